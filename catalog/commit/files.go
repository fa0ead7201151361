package commit

import (
	"encoding/json"

	"catalogd/internal/fault"
)

// deleteAfterCommitProperty lets the catalog remove metadata files that fell out of metadata-log.
const deleteAfterCommitProperty = "write.metadata.delete-after-commit.enabled"

// MetadataLog gives the metadata files that the document's log names, oldest first.
func (d *Document) MetadataLog() ([]string, error) {
	if d.metadataLog == nil {
		return nil, nil
	}
	var files []string
	var buf [4]member
	err := eachElement(d.metadataLog, keyMetadataLog, func(text []byte) error {
		o, err := parseObject(text, keyMetadataLog, buf[:0])
		if err != nil {
			return err
		}
		file, err := o.str("metadata-file")
		files = append(files, file)
		return err
	})
	if err != nil {
		return nil, fault.New(fault.Validation, "table metadata: %s: %v", keyMetadataLog, err)
	}
	return files, nil
}

// Outdated gives the metadata files that base's log names and next's does not, when next's properties let them be
// removed; else none. A log that cannot be read has none: what is in doubt stays.
func Outdated(base, next *Document) []string {
	if value, _ := next.Property(deleteAfterCommitProperty); value != "true" {
		return nil
	}
	before, err := base.MetadataLog()
	if err != nil || len(before) == 0 {
		return nil
	}
	after, err := next.MetadataLog()
	if err != nil {
		return nil
	}
	kept := make(map[string]bool, len(after))
	for _, file := range after {
		kept[file] = true
	}
	var gone []string
	for _, file := range before {
		if !kept[file] {
			gone = append(gone, file)
		}
	}
	return gone
}

// WithUUID gives the document of an old v1 table that has no table-uuid with the uuid put in. One that has its own is
// given as it is.
func (d *Document) WithUUID(uuid string) (*Document, error) {
	if d.uuid != "" {
		return d, nil
	}
	return Parse(d.rewritten([]topEdit{{name: keyUUID, value: quoted(uuid)}}))
}

// References are the files that a document names itself, beside its metadata-log.
type References struct {
	ManifestLists []string // by snapshot, oldest first
	Statistics    []string // of tables and of partitions
	// Inline counts the snapshots that list their manifests in the document instead, as v1 allows.
	Inline int
}

// References reads the names of files out of snapshots and statistics.
func (d *Document) References() (References, error) {
	var r References
	for _, e := range d.snapshots {
		var s struct {
			ManifestList string `json:"manifest-list"`
		}
		if err := json.Unmarshal(d.text[e.start:e.end], &s); err != nil {
			return References{}, fault.New(fault.Validation, "table metadata: snapshot %d: %v", e.id, err)
		}
		if s.ManifestList == "" {
			r.Inline++
			continue
		}
		r.ManifestLists = append(r.ManifestLists, s.ManifestList)
	}
	for _, text := range [][]byte{d.statistics, d.partitionStats} {
		if text == nil {
			continue
		}
		var files []struct {
			Path string `json:"statistics-path"`
		}
		if err := json.Unmarshal(text, &files); err != nil {
			return References{}, fault.New(fault.Validation, "table metadata: statistics: %v", err)
		}
		for _, f := range files {
			r.Statistics = append(r.Statistics, f.Path)
		}
	}
	return r, nil
}
