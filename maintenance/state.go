package maintenance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance/manifest"
	"catalogd/vending"
)

// pendingBranchAgeMax is how long a branch or a staged write keeps automatic runs away.
const pendingBranchAgeMax = 24 * time.Hour

// snapshotJobKey is the summary key by which a job finds its own snapshot after a crash; snapshotLayoutKey tells
// people what was done.
const (
	snapshotJobKey    = "catalogd.job-id"
	snapshotLayoutKey = "catalogd.layout"
)

// mainBranch is the only branch that is maintained.
const mainBranch = "main"

// tableView is a table as one load found it, and its files.
type tableView struct {
	ref       TableRef
	warehouse catalog.Warehouse
	record    catalog.TableRecord
	meta      table.Metadata
	head      *table.Snapshot // of main; nil without one
	access    vending.Access
	files     Files

	list   []iceberg.ManifestFile // of the snapshot listOf
	listOf int64
}

// systemCaller is who the worker acts as; the job's id ties its audit rows together.
func systemCaller(requestID string) catalog.Caller {
	return catalog.Caller{Principal: auth.MaintenancePrincipal(), RequestID: requestID}
}

// reader loads tables and opens their files.
type reader struct {
	tables Tables
	open   OpenFiles
}

// load reads a table's newest state and opens its files for the access.
func (r reader) load(ctx context.Context, c catalog.Caller, ref TableRef, access vending.Access) (*tableView, error) {
	privilege := authz.TableReadProperties
	if access == vending.ReadWrite {
		privilege = authz.TableWriteData
	}
	warehouse, record, err := r.tables.AuthorizeTable(ctx, c, ref.Warehouse, ref.Ident, privilege)
	if err != nil {
		return nil, fmt.Errorf("find table %s: %w", ref.Ident, err)
	}
	if ref.ID != record.ID {
		return nil, fault.New(fault.NoSuchTable, "table %s is another table now", ref.Ident)
	}
	v := &tableView{ref: ref, warehouse: warehouse, record: record}
	if err := r.refresh(ctx, c, v); err != nil {
		return nil, err
	}
	v.access = access
	v.files, err = r.openFiles(ctx, v)
	return v, err
}

// openFiles opens the view's table's files for as long as ctx lasts.
func (r reader) openFiles(ctx context.Context, v *tableView) (Files, error) {
	files, err := r.open(ctx, v.warehouse.Storage, vending.Scope{
		Warehouse: v.warehouse.ID.String(), Named: v.warehouse.Name, Table: v.record.ID.String(), Principal: auth.MaintenancePrincipal().Name,
		Location: v.record.Location, Access: v.access,
	})
	if err != nil {
		return nil, fmt.Errorf("open the files of %s: %w", v.ref.Ident, err)
	}
	return files, nil
}

// refresh reads the metadata again.
func (r reader) refresh(ctx context.Context, c catalog.Caller, v *tableView) error {
	loaded, err := r.tables.LoadTable(ctx, c, catalog.LoadTableRequest{
		Warehouse: v.ref.Warehouse, Ident: v.ref.Ident, Snapshots: catalog.SnapshotsAll,
	})
	if err != nil {
		return fmt.Errorf("load table %s: %w", v.ref.Ident, err)
	}
	v.meta, err = table.ParseMetadataBytes(loaded.Metadata)
	if err != nil {
		return fault.Wrap(fault.Validation, err, "the metadata of table %s cannot be read: %v", v.ref.Ident, err)
	}
	if v.meta.TableUUID() != v.record.UUID {
		return fault.New(fault.NoSuchTable, "table %s is another table now", v.ref.Ident)
	}
	v.head = v.meta.CurrentSnapshot()
	return nil
}

// manifests gives the manifests of main's head.
func (v *tableView) manifests(ctx context.Context) ([]iceberg.ManifestFile, error) {
	if v.head == nil {
		return nil, nil
	}
	if v.list != nil && v.listOf == v.head.SnapshotID {
		return v.list, nil
	}
	list, err := manifest.List(ctx, v.files, v.head)
	if err != nil {
		return nil, fmt.Errorf("read the manifest list of snapshot %d: %w", v.head.SnapshotID, err)
	}
	v.list, v.listOf = list, v.head.SnapshotID
	return list, nil
}

// jobSnapshot finds the snapshot that a job committed, on whatever branch; nil when there is none.
func (v *tableView) jobSnapshot(jobID string) *table.Snapshot {
	for _, s := range v.meta.Snapshots() {
		if s.Summary != nil && s.Summary.Properties[snapshotJobKey] == jobID {
			return &s
		}
	}
	return nil
}

// shape gives what decides the table's layout.
func (v *tableView) shape() Shape {
	return Shape{Schema: v.meta.CurrentSchema(), Spec: v.meta.PartitionSpec(), Order: v.meta.SortOrder()}
}

// facts reads the manifests of main's head. Bounds are kept for the columns of the target only; a target that does
// not resolve keeps none, and the plan says why.
func (v *tableView) facts(ctx context.Context, s Settings, now time.Time) (Facts, error) {
	f := Facts{
		Shape: v.shape(), FormatVersion: v.meta.Version(), Location: strings.TrimRight(v.meta.Location(), "/"),
		Properties: v.meta.Properties(), Encrypted: v.encrypted(), PendingBranch: v.pendingBranch(now),
	}
	if v.head == nil {
		return f, nil
	}
	f.SnapshotID, f.Sequence = v.head.SnapshotID, v.head.SequenceNumber
	target, _ := ResolveTarget(s, f.Shape)
	manifests, err := v.manifests(ctx)
	if err != nil {
		return Facts{}, err
	}
	budget, held := manifest.Budget{Entries: planEntriesMax, Bytes: planUnpackedMax}, int64(0)
	for _, m := range manifests {
		if ctx.Err() != nil {
			return Facts{}, context.Cause(ctx)
		}
		if m.ManifestContent() == iceberg.ManifestContentDeletes {
			f.DeleteFiles += int64(max(m.AddedDataFiles(), 0)) + int64(max(m.ExistingDataFiles(), 0))
			continue
		}
		for e, err := range manifest.Entries(ctx, v.files, m, &budget) {
			if err != nil {
				return Facts{}, fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
			}
			f.Files = append(f.Files, factsOf(e.DataFile(), target))
			if held += f.Files[len(f.Files)-1].heldBytes(); held > planHeldMax {
				return Facts{}, fault.New(fault.TooLarge, "a plan of table %s does not fit into %d MiB: after %d of its files it is larger",
					v.ref.Ident, planHeldMax>>20, len(f.Files))
			}
		}
	}
	return f, nil
}

// encrypted tells whether the table's files need keys that the server does not have.
func (v *tableView) encrypted() bool {
	if v.meta.Properties()["encryption.key-id"] != "" {
		return true
	}
	for range v.meta.EncryptionKeys() {
		return true
	}
	return false
}

// pendingBranch names a branch or a staged write that a rewrite of main would leave without a way to main.
func (v *tableView) pendingBranch(now time.Time) string {
	if v.head == nil {
		return ""
	}
	oldest := now.Add(-pendingBranchAgeMax).UnixMilli()
	onMain, published := v.ancestors(v.head), map[string]bool{}
	for id := range onMain {
		if s := v.meta.SnapshotByID(id); s.Summary != nil {
			published[s.Summary.Properties["published-wap-id"]] = true
		}
	}
	for name, ref := range v.meta.Refs() {
		tip := v.meta.SnapshotByID(ref.SnapshotID)
		if ref.SnapshotRefType != table.BranchRef || name == mainBranch || tip == nil || tip.TimestampMs < oldest {
			continue
		}
		if v.ancestors(tip)[v.head.SnapshotID] {
			return "branch " + name
		}
	}
	for _, s := range v.meta.Snapshots() {
		if s.Summary == nil || s.TimestampMs < oldest || onMain[s.SnapshotID] {
			continue
		}
		if id := s.Summary.Properties["wap.id"]; id != "" && !published[id] {
			return "staged write " + id
		}
	}
	return ""
}

// ancestors gives a snapshot and all before it that are still in the metadata.
func (v *tableView) ancestors(s *table.Snapshot) map[int64]bool {
	out := map[int64]bool{}
	for s != nil && !out[s.SnapshotID] {
		out[s.SnapshotID] = true
		if s.ParentSnapshotID == nil {
			break
		}
		s = v.meta.SnapshotByID(*s.ParentSnapshotID)
	}
	return out
}

// factsOf takes from a manifest entry's file what planning needs.
func factsOf(d iceberg.DataFile, t Target) FileFacts {
	f := FileFacts{
		Path: d.FilePath(), SpecID: int(d.SpecID()), Partition: partitionKey(d), Rows: d.Count(), Bytes: d.FileSizeBytes(),
		RowGroups: max(1, int64(len(d.SplitOffsets()))),
		Parquet:   strings.EqualFold(string(d.FileFormat()), string(iceberg.ParquetFile)),
		Encrypted: len(d.KeyMetadata()) > 0, HasRowIDs: d.FirstRowID() != nil,
	}
	if len(t.Columns) == 0 {
		return f
	}
	lower, upper := d.LowerBoundValues(), d.UpperBoundValues()
	f.Lower, f.Upper = map[int]string{}, map[int]string{}
	for _, c := range t.Columns {
		low, lowKnown := orderedBound(c.Type, lower[c.FieldID])
		high, highKnown := orderedBound(c.Type, upper[c.FieldID])
		if lowKnown && highKnown {
			f.Lower[c.FieldID], f.Upper[c.FieldID] = low, high
		}
	}
	return f
}

// partitionKey spells a partition tuple so that equal keys are equal tuples of one spec.
func partitionKey(d iceberg.DataFile) string {
	tuple := d.Partition()
	var b strings.Builder
	fmt.Fprintf(&b, "%d", d.SpecID())
	for _, id := range slices.Sorted(maps.Keys(tuple)) {
		fmt.Fprintf(&b, "/%d=%q", id, fmt.Sprint(tuple[id]))
		if tuple[id] == nil {
			b.WriteString("null") // not the text "<nil>"
		}
	}
	return b.String()
}
