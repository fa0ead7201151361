package commit

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"catalogd/internal/fault"
)

// The format versions that are read and written. 4 is a draft of the specification.
const (
	formatVersionMin     = 1
	formatVersionMax     = 3
	formatVersionDefault = 2
	formatVersionRows    = 3 // the first with row lineage, defaults and the newer types
)

// mainBranch is the ref that current-snapshot-id follows.
const mainBranch = "main"

// Document is one version of a table's metadata: its JSON text and an index into it. It never changes, so one
// Document may serve many requests at once. Slices and texts that it gives are its own; callers must not write to them.
type Document struct {
	text    []byte
	members object // the top level
	spans   []span // of the members, in the same order

	version                                    int
	uuid, location                             string
	lastUpdated                                int64
	lastSequence                               int64
	nextRow                                    int64
	lastColumn, lastPartition                  int
	currentSchema                              int
	defaultSpec, defaultOrder                  int
	schemas, specs, orders                     []part
	properties                                 object
	current                                    int64
	hasCurrent                                 bool
	snapshots                                  []snapshotEntry
	sequenceMax                                int64
	refs                                       []namedRef
	snapshotLog, metadataLog                   []byte // texts of the arrays; nil when absent
	statistics, partitionStats, encryptionKeys []byte
}

// span is where a top-level member lies in the text: its name's first byte, its value's first byte, the byte after it.
type span struct{ name, value, end int }

// part is an element of schemas, partition-specs or sort-orders.
type part struct {
	id   int
	text []byte
}

// Ref is a branch or a tag. Retention limits are 0 when unset.
type Ref struct {
	SnapshotID         int64
	Type               string // "branch" or "tag"
	MinSnapshotsToKeep int
	MaxSnapshotAgeMs   int64
	MaxRefAgeMs        int64
}

type namedRef struct {
	name string
	Ref
	text []byte // of the ref's object; nil for a main that only current-snapshot-id implies
}

// Parse reads a metadata document, versions 1 to 3, keeping its text as it is. The error is a fault.Validation that
// names the field that is missing or wrong.
func Parse(raw []byte) (*Document, error) {
	if !utf8.Valid(raw) {
		return nil, fault.New(fault.Validation, "table metadata is not valid UTF-8")
	}
	d, err := index(raw, nil)
	if err != nil {
		return nil, fault.New(fault.Validation, "table metadata: %v", err)
	}
	return d, nil
}

// JSON gives the document's text.
func (d *Document) JSON() []byte { return d.text }

// IndexBytes tells about how much memory the document holds beside its text.
func (d *Document) IndexBytes() int {
	bytes := int(unsafe.Sizeof(*d))
	bytes += (cap(d.members) + cap(d.properties)) * int(unsafe.Sizeof(member{}))
	bytes += cap(d.spans) * int(unsafe.Sizeof(span{}))
	bytes += (cap(d.schemas) + cap(d.specs) + cap(d.orders)) * int(unsafe.Sizeof(part{}))
	bytes += cap(d.snapshots) * int(unsafe.Sizeof(snapshotEntry{}))
	bytes += cap(d.refs) * int(unsafe.Sizeof(namedRef{}))
	return bytes
}

// UUID gives table-uuid as written; "" in a v1 table that has none.
func (d *Document) UUID() string { return d.uuid }

// Location gives the table's location without trailing slashes.
func (d *Document) Location() string { return stripSlashes(d.location) }

// FormatVersion gives 1, 2 or 3.
func (d *Document) FormatVersion() int { return d.version }

// LastUpdated gives when this version was made.
func (d *Document) LastUpdated() time.Time { return time.UnixMilli(d.lastUpdated).UTC() }

// LastSequenceNumber gives the highest sequence number handed out; 0 in v1.
func (d *Document) LastSequenceNumber() int64 { return d.lastSequence }

// NextRowID gives the first row id not handed out; 0 before v3.
func (d *Document) NextRowID() int64 { return d.nextRow }

// Properties gives a copy of the table's properties.
func (d *Document) Properties() map[string]string { return d.properties.stringValues() }

// Property gives one property and whether it is set.
func (d *Document) Property(name string) (string, bool) { return d.properties.stringValue(name) }

// CurrentSnapshotID gives the head of main; false when the table is empty.
func (d *Document) CurrentSnapshotID() (int64, bool) { return d.current, d.hasCurrent }

// SnapshotJSON gives the text of a snapshot.
func (d *Document) SnapshotJSON(id int64) ([]byte, bool) {
	e := d.snapshot(id)
	if e == nil {
		return nil, false
	}
	return d.text[e.start:e.end], true
}

// snapshot finds a snapshot by its id; nil when there is none.
func (d *Document) snapshot(id int64) *snapshotEntry {
	for i := range d.snapshots {
		if d.snapshots[i].id == id {
			return &d.snapshots[i]
		}
	}
	return nil
}

// SnapshotCount gives how many snapshots the document holds.
func (d *Document) SnapshotCount() int { return len(d.snapshots) }

// Refs gives the branches and tags by name. A document without refs has main where it has a current snapshot.
func (d *Document) Refs() map[string]Ref {
	refs := make(map[string]Ref, len(d.refs))
	for _, r := range d.refs {
		refs[r.name] = r.Ref
	}
	return refs
}

func (d *Document) ref(name string) *namedRef {
	for i := range d.refs {
		if d.refs[i].name == name {
			return &d.refs[i]
		}
	}
	return nil
}

// CurrentSchemaJSON gives the current schema's text.
func (d *Document) CurrentSchemaJSON() []byte { return find(d.schemas, d.currentSchema) }

// SchemaJSON gives a schema's text.
func (d *Document) SchemaJSON(id int) ([]byte, bool) {
	text := find(d.schemas, id)
	return text, text != nil
}

// DefaultSpecJSON gives the default partition spec's text.
func (d *Document) DefaultSpecJSON() []byte { return find(d.specs, d.defaultSpec) }

// DefaultSortOrderJSON gives the default sort order's text.
func (d *Document) DefaultSortOrderJSON() []byte { return find(d.orders, d.defaultOrder) }

func find(parts []part, id int) []byte {
	for _, p := range parts {
		if p.id == id {
			return p.text
		}
	}
	return nil
}

// RefsOnly gives the document's text with only those snapshots that a ref points at directly, as a load with
// snapshots=refs answers it; everything else is untouched. It must never be written back.
func (d *Document) RefsOnly() []byte {
	heads := make(map[int64]struct{}, len(d.refs))
	for _, r := range d.refs {
		heads[r.SnapshotID] = struct{}{}
	}
	var kept [][]byte
	for _, e := range d.snapshots {
		if _, head := heads[e.id]; head {
			kept = append(kept, d.text[e.start:e.end])
		}
	}
	if len(kept) == len(d.snapshots) {
		return d.text
	}
	return d.rewritten([]topEdit{{name: keySnapshots, value: joinArray(kept)}})
}

// Answer gives the document's text for a load of all snapshots. It is JSON(), but older files that have a current
// snapshot and no refs get refs.main, which some clients rely on.
func (d *Document) Answer() []byte {
	if main := d.ref(mainBranch); main != nil && main.text == nil {
		return d.rewritten([]topEdit{{name: keyRefs, value: refsText(d.refs)}})
	}
	return d.text
}

// stripSlashes removes trailing slashes, but not those of a scheme or a root.
func stripSlashes(location string) string {
	stripped := strings.TrimRight(location, "/")
	if stripped == "" || strings.HasSuffix(stripped, ":") {
		return location
	}
	return stripped
}

func joinArray(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte{','})...), ']')
}
