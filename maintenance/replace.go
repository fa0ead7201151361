package maintenance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"catalogd/internal/crash"
	"catalogd/maintenance/manifest"
)

// manifestEntriesMax bounds the entries of a manifest that we write: some megabytes.
const manifestEntriesMax = 8000

// pending is a REPLACE snapshot whose manifests are written and that no commit has made visible yet.
type pending struct {
	snapshot table.Snapshot
	listed   []iceberg.ManifestFile
	list     string
}

// draft is what one try of the commit leaves to the next: manifests are written once, and a try writes a new list
// only. It holds while the same groups are committed.
type draft struct {
	id         uuid.UUID // in the names of its manifests
	snapshotID int64
	dropped    int
	count      int      // of manifests written
	lists      []string // names of manifest lists that are recorded and not used yet
	saved      bool     // the figures are saved, as they are if this draft lands
	added      []iceberg.ManifestFile
	copies     map[string]iceberg.ManifestFile // by the path of the manifest that it is a copy of
}

// revalidate gives up every group of which a file is gone from the view's head, is listed twice, or has got a
// position delete or deletion vector since planning. Equality deletes since then do no harm: the new files carry the
// data sequence number of the snapshot that was read, so those deletes still apply to them.
func (c *compaction) revalidate(ctx context.Context) error {
	manifests, err := c.view.manifests(ctx)
	if err != nil {
		return err
	}
	live, notes := map[string]int{}, []note{}
	for _, m := range manifests {
		n, err := c.noteOf(ctx, m)
		if err != nil {
			return err
		}
		for path, times := range n.live {
			live[path] += times
		}
		if n.deletes() {
			notes = append(notes, n)
		}
	}
	for _, r := range c.replacements {
		for _, d := range r.old {
			deleted := slices.ContainsFunc(notes, func(n note) bool { return n.deletesFrom(d.path, r.group.Partition) })
			if live[d.path] != 1 || deleted {
				r.dropped = true
			}
		}
	}
	return nil
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

// prepare writes the manifest list of a REPLACE snapshot on the view's head, and those manifests that no earlier try
// has written.
func (c *compaction) prepare(ctx context.Context) (*pending, error) {
	c.redraft()
	p := &pending{snapshot: c.newSnapshot()}
	var err error
	if p.listed, err = c.listManifests(ctx); err != nil {
		return nil, err
	}
	crash.Point("compact-manifests")
	body, err := c.manifestList(p)
	if err != nil {
		return nil, fmt.Errorf("make the manifest list: %w", err)
	}
	if p.list, err = c.nextListName(ctx); err != nil {
		return nil, err
	}
	if err := c.view.files.WriteFile(p.list, body); err != nil {
		return nil, fmt.Errorf("write %s: %w", p.list, err)
	}
	p.snapshot.ManifestList = p.list
	crash.Point("compact-manifest-list")
	return p, nil
}

// listNamesAtOnce is how many names of manifest lists are recorded at once: a try after a lost race must be quick, or
// the next one is lost too.
const listNamesAtOnce = 8

// nextListName gives a name that is recorded already.
func (c *compaction) nextListName(ctx context.Context) (string, error) {
	d := c.draft
	if len(d.lists) == 0 {
		for range listNamesAtOnce {
			d.lists = append(d.lists, c.manifestFolder()+"/"+manifestListName(c.lease, d.snapshotID, uuid.New()))
		}
		if err := c.intend(ctx, d.lists...); err != nil {
			return "", err
		}
	}
	name := d.lists[0]
	d.lists = d.lists[1:]
	return name, nil
}

// redraft begins a new draft when there is none that fits. A snapshot id is used again by the next try: a refused one
// was never seen by anybody.
func (c *compaction) redraft() {
	dropped := 0
	for _, r := range c.replacements {
		if r.dropped {
			dropped++
		}
	}
	if c.draft != nil && c.draft.dropped == dropped && c.view.meta.SnapshotByID(c.draft.snapshotID) == nil {
		return
	}
	c.draft = &draft{id: uuid.New(), snapshotID: c.unusedSnapshotID(), dropped: dropped, copies: map[string]iceberg.ManifestFile{}}
}

// manifestList encodes the list. In format version 3 it assigns row ids to the new manifests, and the snapshot says
// how many: no row gets one of them, since the files carry the ids of their rows, but the range must be reserved.
func (c *compaction) manifestList(p *pending) ([]byte, error) {
	var body bytes.Buffer
	if c.view.meta.Version() < rowLineageVersion {
		sequence := p.snapshot.SequenceNumber
		err := iceberg.WriteManifestList(c.view.meta.Version(), &body, p.snapshot.SnapshotID, p.snapshot.ParentSnapshotID, &sequence, 0, p.listed)
		return body.Bytes(), err
	}
	first := c.view.meta.NextRowID()
	w, err := iceberg.NewManifestListWriterV3(&body, p.snapshot.SnapshotID, p.snapshot.SequenceNumber, first, p.snapshot.ParentSnapshotID)
	if err != nil {
		return nil, err
	}
	if err := w.AddManifests(p.listed); err != nil {
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
	parent := c.view.head.SnapshotID
	schema := c.view.meta.CurrentSchema().ID
	s := table.Snapshot{
		SnapshotID: c.draft.snapshotID, ParentSnapshotID: &parent, SchemaID: &schema,
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

// listManifests gives the manifests of the new snapshot: one or more for the new files, copies of those of which files
// are replaced, and the others as they are. Manifests without a live file are left out, as every writer does.
func (c *compaction) listManifests(ctx context.Context) ([]iceberg.ManifestFile, error) {
	old, added := map[string]bool{}, []iceberg.DataFile{}
	for _, r := range c.replacements {
		if r.dropped {
			continue
		}
		for _, d := range r.old {
			old[d.path] = true
		}
		added = append(added, r.added...)
	}
	if c.draft.added == nil {
		var err error
		if c.draft.added, err = c.writeAdded(ctx, added); err != nil {
			return nil, err
		}
	}
	manifests, err := c.view.manifests(ctx)
	if err != nil {
		return nil, err
	}
	list, found := slices.Clone(c.draft.added), 0
	for _, m := range manifests {
		if !m.HasAddedFiles() && !m.HasExistingFiles() {
			continue
		}
		hits := 0
		for path, times := range c.notes[m.FilePath()].live {
			if old[path] {
				hits += times
			}
		}
		if found += hits; hits > 0 {
			if m, err = c.copyManifest(ctx, m, old); err != nil {
				return nil, err
			}
		}
		list = append(list, m)
	}
	if found != len(old) {
		return nil, fmt.Errorf("%d files are to be replaced and %d are in the manifests", len(old), found)
	}
	return list, nil
}

// writeAdded lists the new files. Their data sequence number is that of the snapshot whose rows they hold.
func (c *compaction) writeAdded(ctx context.Context, files []iceberg.DataFile) ([]iceberg.ManifestFile, error) {
	var out []iceberg.ManifestFile
	for chunk := range slices.Chunk(files, manifestEntriesMax) {
		m, err := c.writeManifest(ctx, func(w *iceberg.ManifestWriter) error {
			for _, d := range chunk {
				sequence := c.facts.Sequence
				if err := w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &c.draft.snapshotID, &sequence, nil, d)); err != nil {
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

// copyManifest gives a copy of a manifest in which the old files are deleted.
func (c *compaction) copyManifest(ctx context.Context, m iceberg.ManifestFile, old map[string]bool) (iceberg.ManifestFile, error) {
	if done, ok := c.draft.copies[m.FilePath()]; ok {
		return done, nil
	}
	copied, err := c.writeManifest(ctx, func(w *iceberg.ManifestWriter) error {
		for e, err := range manifest.Entries(ctx, c.view.files, m, nil) {
			if err != nil {
				return fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
			}
			write := w.Existing
			if old[e.DataFile().FilePath()] {
				write = w.Delete
			}
			if err := write(e.ManifestEntry); err != nil {
				return fmt.Errorf("list %s: %w", e.DataFile().FilePath(), err)
			}
		}
		return nil
	})
	if err == nil {
		c.draft.copies[m.FilePath()] = copied
	}
	return copied, err
}

// writeManifest writes one manifest of the planned spec and schema. Schema and spec are those of planning: the new
// files were written by them, and a column that has been dropped since may be the source of a partition field.
func (c *compaction) writeManifest(ctx context.Context, fill func(*iceberg.ManifestWriter) error) (iceberg.ManifestFile, error) {
	var body bytes.Buffer
	w, err := iceberg.NewManifestWriter(c.view.meta.Version(), &body, c.facts.Spec, c.facts.Schema, c.draft.snapshotID)
	if err != nil {
		return nil, fmt.Errorf("make a manifest: %w", err)
	}
	if err := fill(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make a manifest: %w", err)
	}
	path := c.manifestFolder() + "/" + manifestName(c.lease, c.draft.id, c.draft.count)
	c.draft.count++
	m, err := w.ToManifestFile(path, int64(body.Len()))
	if err != nil {
		return nil, fmt.Errorf("make a manifest: %w", err)
	}
	return m, c.writeFile(ctx, path, body.Bytes())
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
