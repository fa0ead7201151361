package commit

import (
	"slices"

	"catalogd/internal/fault"
)

// change is one decoded update.
type change interface {
	// apply makes the change on a draft; it leaves the change itself as it was.
	apply(*draft) error
}

// draft is a table's metadata while updates are applied: the base, and beside it what has changed.
type draft struct {
	base *Document // nil while a table is created
	now  int64     // milliseconds

	changed  bool
	version  int
	uuid     string
	location string

	lastSequence, nextRow              int64
	lastColumn, lastPartition          int
	schemas, specs, orders             list
	schemaMoved, specMoved, orderMoved bool // the current or default one is another, or new

	properties      propertySet
	refs            []namedRef
	refsChanged     bool
	current         int64
	hasCurrent      bool
	added           []newSnapshot
	addedIDs        map[int64]struct{} // of every snapshot that the request adds, also those it removes again
	removed         map[int64]struct{}
	known           map[int64]struct{} // base's snapshot ids, once many are asked for
	lookups         int
	logged          []logEntry
	statistics      keyed[int64]
	partitionStats  keyed[int64]
	encryptionKeys  keyed[string]
	ignoresReserved bool // a create ignores reserved properties, as Java does, where a commit refuses them
}

// list is schemas, partition specs or sort orders, and which of them is the current or default one.
type list struct {
	parts    []part
	read     map[int]any // by id: what was parsed to compare it
	selected int
	added    int // id of the last that this request named in an add; -1 when none
	changed  bool
}

const noneAdded = -1

type logEntry struct {
	id, timestamp int64
}

// draftOf starts a draft on a document.
func draftOf(base *Document, now int64) *draft {
	d := &draft{
		base: base, now: now,
		version: base.version, uuid: base.uuid, location: base.location,
		lastSequence: base.lastSequence, nextRow: base.nextRow,
		lastColumn: base.lastColumn, lastPartition: base.lastPartition,
		schemas: list{parts: base.schemas, selected: base.currentSchema, added: noneAdded},
		specs:   list{parts: base.specs, selected: base.defaultSpec, added: noneAdded},
		orders:  list{parts: base.orders, selected: base.defaultOrder, added: noneAdded},
		refs:    append([]namedRef(nil), base.refs...),
		current: base.current, hasCurrent: base.hasCurrent,
		properties: propertySet{base: base.properties},
	}
	d.statistics = keyed[int64]{name: keyStatistics, text: base.statistics, keyOf: snapshotKey}
	d.partitionStats = keyed[int64]{name: keyPartitionStats, text: base.partitionStats, keyOf: snapshotKey}
	d.encryptionKeys = keyed[string]{name: keyEncryptionKeys, text: base.encryptionKeys, keyOf: encryptionKey}
	return d
}

// readPart gives a part of a list parsed; each is parsed once, since a request may add many that are compared with all.
func readPart[T any](l *list, p part, parse func([]byte) (T, error)) (T, error) {
	if known, ok := l.read[p.id].(T); ok {
		return known, nil
	}
	parsed, err := parse(p.text)
	if err != nil {
		return parsed, err
	}
	if l.read == nil {
		l.read = map[int]any{}
	}
	l.read[p.id] = parsed
	return parsed, nil
}

// add puts a part at the end; the base's slice is left alone.
func (l *list) add(p part) {
	l.parts = append(l.parts[:len(l.parts):len(l.parts)], p)
	l.added, l.changed = p.id, true
}

// resolve turns -1 into the last added one and checks that the id is known. role names what is to be set, as in
// "default partition spec".
func (l *list) resolve(id int, role, what string) (int, error) {
	if id == noneAdded {
		if l.added == noneAdded {
			return 0, fault.New(fault.Validation, "Cannot set last added %s: no %s has been added", what, what)
		}
		return l.added, nil
	}
	if find(l.parts, id) == nil {
		return 0, fault.New(fault.IllegalArgument, "Cannot set %s to unknown %s: %d", role, what, id)
	}
	return id, nil
}

// remove drops the named ones. Unknown ids are ignored; the current or default one is refused.
func (l *list) remove(ids []int, refusal string) error {
	if slices.Contains(ids, l.selected) {
		return fault.New(fault.IllegalArgument, "%s", refusal)
	}
	kept := make([]part, 0, len(l.parts))
	for _, p := range l.parts {
		if !slices.Contains(ids, p.id) {
			kept = append(kept, p)
		}
	}
	if len(kept) < len(l.parts) {
		l.parts, l.changed = kept, true
		l.read = nil // the highest id may be given anew
	}
	if slices.Contains(ids, l.added) {
		l.added = noneAdded
	}
	return nil
}

// nextID gives one more than the highest id, at least first.
func (l *list) nextID(first int) int {
	next := first
	for _, p := range l.parts {
		next = max(next, p.id+1)
	}
	return next
}

// lookupsBeforeMap is the number of look-ups in the base after which a map of its snapshots is made.
const lookupsBeforeMap = 8

// inBase tells whether the base holds a snapshot, removed by this request or not.
func (d *draft) inBase(id int64) bool {
	if d.base == nil {
		return false
	}
	if d.known != nil {
		_, found := d.known[id]
		return found
	}
	if d.lookups++; d.lookups <= lookupsBeforeMap {
		return d.base.snapshot(id) != nil
	}
	d.known = make(map[int64]struct{}, len(d.base.snapshots))
	for i := range d.base.snapshots {
		d.known[d.base.snapshots[i].id] = struct{}{}
	}
	_, found := d.known[id]
	return found
}

// has tells whether a snapshot is in the table at this point of the request.
func (d *draft) has(id int64) bool {
	if d.addedSnapshot(id) != nil {
		return true
	}
	if _, gone := d.removed[id]; gone {
		return false
	}
	return d.inBase(id)
}

func (d *draft) addedSnapshot(id int64) *newSnapshot {
	if _, ever := d.addedIDs[id]; !ever {
		return nil
	}
	for i := range d.added {
		if d.added[i].id == id {
			return &d.added[i]
		}
	}
	return nil
}

func (d *draft) ref(name string) int {
	for i := range d.refs {
		if d.refs[i].name == name {
			return i
		}
	}
	return -1
}

// currentSchema parses the schema that specs and orders are bound to.
func (d *draft) currentSchema() (*schema, error) {
	text := find(d.schemas.parts, d.schemas.selected)
	if text == nil {
		return nil, fault.New(fault.Validation, "the table has no current schema yet: a set-current-schema must come first")
	}
	s, err := parseSchema(text)
	if err != nil {
		return nil, fault.New(fault.Validation, "%v", err)
	}
	return &s, nil
}
