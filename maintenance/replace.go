package maintenance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"catalogd/internal/crash"
)

// manifestEntriesMax bounds the entries of a manifest that we write: some megabytes.
const manifestEntriesMax = 8000

// pending is a REPLACE snapshot whose manifests are written and that no commit has made visible yet.
type pending struct {
	snapshot  table.Snapshot
	manifests []string // written for this try
	list      string
}

// stale tells which of the replaced files are not live any more in a snapshot, and which got a delete.
type stale struct {
	live    map[string]int  // replaced path -> live entries
	deleted map[string]bool // replaced path -> a delete applies
}

// revalidate gives up every group of which a file is gone from the view's head, is listed twice, or has got a
// position delete or deletion vector since planning. Equality deletes since then do no harm: the new files carry the
// data sequence number of the snapshot that was read, so those deletes still apply to them.
func (c *compaction) revalidate(ctx context.Context) error {
	s := stale{live: map[string]int{}, deleted: map[string]bool{}}
	for _, r := range c.replacements {
		for _, d := range r.old {
			s.live[d.FilePath()] = 0
		}
	}
	manifests, err := c.view.manifests()
	if err != nil {
		return err
	}
	for _, m := range manifests {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !m.HasAddedFiles() && !m.HasExistingFiles() {
			continue
		}
		for e, err := range m.Entries(c.view.files, true) {
			if err != nil {
				return fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
			}
			c.noteEntry(e, &s)
		}
	}
	for _, r := range c.replacements {
		if r.dropped {
			continue
		}
		for _, d := range r.old {
			if s.live[d.FilePath()] != 1 || s.deleted[d.FilePath()] {
				r.dropped = true
			}
		}
	}
	return nil
}

// noteEntry counts a live data file that is to be replaced, or finds what a delete file applies to.
func (c *compaction) noteEntry(e iceberg.ManifestEntry, s *stale) {
	d := e.DataFile()
	switch d.ContentType() {
	case iceberg.EntryContentData:
		if _, ours := s.live[d.FilePath()]; ours {
			s.live[d.FilePath()]++
		}
	case iceberg.EntryContentPosDeletes:
		if target := deleteTarget(d); target != "" {
			s.deleted[target] = true
			return
		}
		// It may name any file of its partition.
		key := partitionKey(d)
		for _, r := range c.replacements {
			for _, old := range r.old {
				if int(d.SpecID()) != c.facts.Spec.ID() || partitionKey(old) == key {
					s.deleted[old.FilePath()] = true
				}
			}
		}
	case iceberg.EntryContentEqDeletes:
		if e.SequenceNum() > c.facts.Sequence {
			return
		}
		// Not newer than what was read, though planning saw no delete file: nothing is known for sure.
		for path := range s.live {
			s.deleted[path] = true
		}
	}
}

// filePathFieldID is the reserved id of file_path in position delete files.
const filePathFieldID = 2147483546

// deleteTarget gives the one data file that a position delete file or deletion vector is for; "" when it may be for
// several.
func deleteTarget(d iceberg.DataFile) string {
	if p := d.ReferencedDataFile(); p != nil {
		return *p
	}
	lower, upper := d.LowerBoundValues()[filePathFieldID], d.UpperBoundValues()[filePathFieldID]
	if len(lower) > 0 && bytes.Equal(lower, upper) {
		return string(lower)
	}
	return ""
}

// prepare writes the manifests and the manifest list of a REPLACE snapshot on the view's head.
func (c *compaction) prepare(ctx context.Context) (*pending, error) {
	p := &pending{snapshot: c.newSnapshot()}
	try := uuid.New()
	list, err := c.writeManifests(ctx, p, try)
	if err != nil {
		return nil, err
	}
	crash.Point("compact-manifests")
	body, err := c.manifestList(p, list)
	if err != nil {
		return nil, fmt.Errorf("make the manifest list: %w", err)
	}
	p.list = c.manifestFolder() + "/" + manifestListName(c.lease, p.snapshot.SnapshotID, try)
	if err := c.writeFile(ctx, p.list, body); err != nil {
		return nil, err
	}
	p.snapshot.ManifestList = p.list
	crash.Point("compact-manifest-list")
	return p, nil
}

// manifestList encodes the list. In format version 3 it assigns row ids to the new manifests, and the snapshot says
// how many: no row gets one of them, since the files carry the ids of their rows, but the range must be reserved.
func (c *compaction) manifestList(p *pending, list []iceberg.ManifestFile) ([]byte, error) {
	var body bytes.Buffer
	if c.view.meta.Version() < rowLineageVersion {
		sequence := p.snapshot.SequenceNumber
		err := iceberg.WriteManifestList(c.view.meta.Version(), &body, p.snapshot.SnapshotID, p.snapshot.ParentSnapshotID, &sequence, 0, list)
		return body.Bytes(), err
	}
	first := c.view.meta.NextRowID()
	w, err := iceberg.NewManifestListWriterV3(&body, p.snapshot.SnapshotID, p.snapshot.SequenceNumber, first, p.snapshot.ParentSnapshotID)
	if err != nil {
		return nil, err
	}
	if err := w.AddManifests(list); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	assigned := *w.NextRowID() - first
	p.snapshot.FirstRowID, p.snapshot.AddedRows = &first, &assigned
	return body.Bytes(), nil
}

// newSnapshot begins a snapshot on the view's head.
func (c *compaction) newSnapshot() table.Snapshot {
	id := c.unusedSnapshotID()
	parent := c.view.head.SnapshotID
	schema := c.view.meta.CurrentSchema().ID
	s := table.Snapshot{
		SnapshotID: id, ParentSnapshotID: &parent, SchemaID: &schema,
		// Clocks differ; a snapshot must not lie before its parent.
		TimestampMs: max(c.env.now().UnixMilli(), c.view.head.TimestampMs, c.view.meta.LastUpdatedMillis()),
		Summary:     &table.Summary{Operation: table.OpReplace, Properties: c.summary()},
	}
	if c.view.meta.Version() > 1 {
		s.SequenceNumber = c.view.meta.LastSequenceNumber() + 1
	}
	return s
}

// unusedSnapshotID makes an id that no snapshot of the table has, positive as all writers' are.
func (c *compaction) unusedSnapshotID() int64 {
	for {
		random := uuid.New()
		id := int64(0)
		for _, b := range random[:8] {
			id = id<<8 | int64(b)
		}
		id &= 1<<62 - 1
		if id != 0 && c.view.meta.SnapshotByID(id) == nil {
			return id
		}
	}
}

// writeManifests writes one or more manifests for the new files and copies those of which files are replaced; the
// others are taken over as they are. Manifests without a live file are left out, as every writer does.
func (c *compaction) writeManifests(ctx context.Context, p *pending, try uuid.UUID) ([]iceberg.ManifestFile, error) {
	old, added := map[string]bool{}, []iceberg.DataFile{}
	for _, r := range c.replacements {
		if r.dropped {
			continue
		}
		for _, d := range r.old {
			old[d.FilePath()] = true
		}
		added = append(added, r.added...)
	}
	list, err := c.writeAdded(ctx, p, try, added)
	if err != nil {
		return nil, err
	}
	manifests, err := c.view.manifests()
	if err != nil {
		return nil, err
	}
	for _, m := range manifests {
		if !m.HasAddedFiles() && !m.HasExistingFiles() {
			continue
		}
		if m.ManifestContent() != iceberg.ManifestContentData || int(m.PartitionSpecID()) != c.facts.Spec.ID() {
			list = append(list, m)
			continue
		}
		copied, err := c.copyManifest(ctx, p, try, m, old)
		if err != nil {
			return nil, err
		}
		list = append(list, copied)
	}
	if len(old) > 0 {
		return nil, fmt.Errorf("%d replaced files are in no manifest, among them %s", len(old), slices.Sorted(maps.Keys(old))[0])
	}
	return list, nil
}

// writeAdded lists the new files. Their data sequence number is that of the snapshot whose rows they hold.
func (c *compaction) writeAdded(ctx context.Context, p *pending, try uuid.UUID, files []iceberg.DataFile) ([]iceberg.ManifestFile, error) {
	var out []iceberg.ManifestFile
	for chunk := range slices.Chunk(files, manifestEntriesMax) {
		m, err := c.writeManifest(ctx, p, try, func(w *iceberg.ManifestWriter) error {
			for _, d := range chunk {
				sequence := c.facts.Sequence
				if err := w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &p.snapshot.SnapshotID, &sequence, nil, d)); err != nil {
					return fmt.Errorf("list %s: %w", d.FilePath(), err)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// copyManifest gives the manifest itself when none of the old files is in it, else a copy in which they are deleted.
// Found files are taken out of old.
func (c *compaction) copyManifest(ctx context.Context, p *pending, try uuid.UUID, m iceberg.ManifestFile, old map[string]bool) (iceberg.ManifestFile, error) {
	var live []iceberg.ManifestEntry
	hit := false
	for e, err := range m.Entries(c.view.files, true) {
		if err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
		}
		live = append(live, e)
		hit = hit || old[e.DataFile().FilePath()]
	}
	if !hit {
		return m, nil
	}
	return c.writeManifest(ctx, p, try, func(w *iceberg.ManifestWriter) error {
		for _, e := range live {
			path := e.DataFile().FilePath()
			write := w.Existing
			if old[path] {
				delete(old, path)
				write = w.Delete
			}
			if err := write(e); err != nil {
				return fmt.Errorf("list %s: %w", path, err)
			}
		}
		return nil
	})
}

// writeManifest writes one manifest of the planned spec and schema. Schema and spec are those of planning: the new
// files were written by them, and a column that has been dropped since may be the source of a partition field.
func (c *compaction) writeManifest(ctx context.Context, p *pending, try uuid.UUID, fill func(*iceberg.ManifestWriter) error) (iceberg.ManifestFile, error) {
	var body bytes.Buffer
	w, err := iceberg.NewManifestWriter(c.view.meta.Version(), &body, c.facts.Spec, c.facts.Schema, p.snapshot.SnapshotID)
	if err != nil {
		return nil, fmt.Errorf("make a manifest: %w", err)
	}
	if err := fill(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make a manifest: %w", err)
	}
	path := c.manifestFolder() + "/" + manifestName(c.lease, try, len(p.manifests))
	m, err := w.ToManifestFile(path, int64(body.Len()))
	if err != nil {
		return nil, fmt.Errorf("make a manifest: %w", err)
	}
	if err := c.writeFile(ctx, path, body.Bytes()); err != nil {
		return nil, err
	}
	p.manifests = append(p.manifests, path)
	return m, nil
}

// summary gives the snapshot's summary. Totals follow from the head's, where it has them.
func (c *compaction) summary() map[string]string {
	var oldFiles, oldRows, oldBytes, newFiles, newRows, newBytes int64
	partitions := map[string]bool{}
	for _, r := range c.replacements {
		if r.dropped {
			continue
		}
		partitions[r.group.Partition] = true
		oldFiles += int64(len(r.old))
		oldRows += r.rows
		oldBytes += r.group.Bytes
		for _, d := range r.added {
			newFiles++
			newRows += d.Count()
			newBytes += d.FileSizeBytes()
		}
	}
	out := map[string]string{
		snapshotJobKey: c.job.ID.String(), snapshotLayoutKey: c.plan.Target.Fingerprint(),
		"added-data-files": text(newFiles), "added-records": text(newRows), "added-files-size": text(newBytes),
		"deleted-data-files": text(oldFiles), "deleted-records": text(oldRows), "removed-files-size": text(oldBytes),
		"changed-partition-count": text(int64(len(partitions))),
	}
	before := map[string]string{}
	if c.view.head.Summary != nil {
		before = c.view.head.Summary.Properties
	}
	for key, change := range map[string]int64{
		"total-data-files": newFiles - oldFiles, "total-records": newRows - oldRows, "total-files-size": newBytes - oldBytes,
		"total-delete-files": 0, "total-position-deletes": 0, "total-equality-deletes": 0,
	} {
		if n, err := strconv.ParseInt(before[key], 10, 64); err == nil && n+change >= 0 {
			out[key] = text(n + change)
		}
	}
	return out
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// change is the commit as a client would send it: the snapshot, main moved to it, and what must still hold.
func (c *compaction) change(p *pending) ([]byte, error) {
	ref := map[string]any{"action": "set-snapshot-ref", "ref-name": mainBranch, "type": "branch", "snapshot-id": p.snapshot.SnapshotID}
	for name, r := range c.view.meta.Refs() { // what main says about its history stays
		if name != mainBranch {
			continue
		}
		if r.MinSnapshotsToKeep != nil {
			ref["min-snapshots-to-keep"] = *r.MinSnapshotsToKeep
		}
		if r.MaxSnapshotAgeMs != nil {
			ref["max-snapshot-age-ms"] = *r.MaxSnapshotAgeMs
		}
		if r.MaxRefAgeMs != nil {
			ref["max-ref-age-ms"] = *r.MaxRefAgeMs
		}
	}
	body, err := json.Marshal(map[string]any{
		"requirements": []any{
			map[string]any{"type": "assert-table-uuid", "uuid": c.view.meta.TableUUID()},
			map[string]any{"type": "assert-ref-snapshot-id", "ref": mainBranch, "snapshot-id": c.view.head.SnapshotID},
		},
		"updates": []any{
			map[string]any{"action": "add-snapshot", "snapshot": p.snapshot},
			ref,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the commit: %w", err)
	}
	return body, nil
}
