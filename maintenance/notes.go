package maintenance

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"

	"catalogd/internal/fault"
	"catalogd/maintenance/manifest"
)

// note is what a manifest says about the files to be replaced, and nothing else: it stays small whatever the manifest
// holds. Manifests never change, so each is read once.
type note struct {
	live       map[string]int  // replaced files that it lists as live, as often as it does
	deleted    map[string]bool // replaced files to which a delete in it applies
	partitions map[string]bool // partitions to any of whose files a delete in it may apply
	everything bool            // a delete in it may apply to any file
}

func (n note) deletes() bool { return n.everything || len(n.partitions) > 0 || len(n.deleted) > 0 }

// deletesFrom tells whether a delete may apply to a file.
func (n note) deletesFrom(path, partition string) bool {
	return n.everything || n.partitions[partition] || n.deleted[path]
}

// noteOf reads a manifest, or remembers it.
func (c *compaction) noteOf(ctx context.Context, m iceberg.ManifestFile) (note, error) {
	if n, ok := c.notes[m.FilePath()]; ok {
		return n, nil
	}
	n := newNote()
	if m.HasAddedFiles() || m.HasExistingFiles() {
		for e, err := range manifest.Entries(ctx, c.view.files, m, nil) {
			if err != nil {
				return note{}, fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
			}
			c.noteEntry(e, &n)
		}
	}
	c.notes[m.FilePath()] = n
	return n, nil
}

func newNote() note {
	return note{live: map[string]int{}, deleted: map[string]bool{}, partitions: map[string]bool{}}
}

// noteEntry notes a live data file that is to be replaced, or what a delete file applies to.
func (c *compaction) noteEntry(e iceberg.ManifestEntry, n *note) {
	d := e.DataFile()
	switch d.ContentType() {
	case iceberg.EntryContentData:
		if _, ours := c.replaced[d.FilePath()]; ours {
			n.live[d.FilePath()]++
		}
	case iceberg.EntryContentPosDeletes:
		if target := deleteTarget(d); target != "" {
			if _, ours := c.replaced[target]; ours {
				n.deleted[target] = true
			}
			return
		}
		// It may name any file of its partition.
		if int(d.SpecID()) != c.facts.Spec.ID() {
			n.everything = true
		} else if key := partitionKey(d); c.partitions[key] {
			n.partitions[key] = true
		}
	case iceberg.EntryContentEqDeletes:
		// One that is not newer than what was read, though planning saw no delete file: nothing is known for sure.
		n.everything = n.everything || e.SequenceNum() <= c.facts.Sequence
	}
}

// oldFile is what the rewrite keeps of a file to be replaced. The whole entry can be large: it has figures for each
// column.
type oldFile struct {
	path       string
	size       int64
	splits     int
	firstRowID *int64
	sequence   int64       // of its data
	partition  map[int]any // of the first file of a group
}

// findFiles reads the manifest entries of the planned files again, and notes which manifests hold them.
func (c *compaction) findFiles(ctx context.Context) (map[string]oldFile, error) {
	c.replaced, c.notes, c.partitions = map[string]string{}, map[string]note{}, map[string]bool{}
	first := map[string]bool{}
	for _, g := range c.plan.Groups {
		c.partitions[g.Partition] = true
		first[g.Files[0]] = true
		for _, p := range g.Files {
			c.replaced[p] = g.Partition
		}
	}
	manifests, err := c.view.manifests(ctx)
	if err != nil {
		return nil, err
	}
	found := make(map[string]oldFile, len(c.replaced))
	for _, m := range manifests {
		if m.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		n := newNote()
		for e, err := range manifest.Entries(ctx, c.view.files, m, nil) {
			if err != nil {
				return nil, fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
			}
			c.noteEntry(e, &n)
			d := e.DataFile()
			if path := d.FilePath(); c.replaced[path] != "" {
				old := oldFile{path: path, size: d.FileSizeBytes(), splits: len(d.SplitOffsets()), firstRowID: d.FirstRowID(), sequence: e.SequenceNum()}
				if first[path] {
					old.partition = d.Partition()
				}
				found[path] = old
			}
		}
		c.notes[m.FilePath()] = n
	}
	if len(found) != len(c.replaced) {
		return nil, fault.New(fault.Internal, "%d of %d planned files are not in the snapshot that they were planned on", len(c.replaced)-len(found), len(c.replaced))
	}
	return found, nil
}
