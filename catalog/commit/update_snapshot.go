package commit

import (
	"math"

	"catalogd/internal/fault"
)

// clockSkewMs is by how much clocks may disagree: Java's reader refuses logs that are out of order by more.
const clockSkewMs = 60_000

// stale makes the conflict that tells a client to load the table again and renumber its snapshot.
func stale(format string, args ...any) error {
	return fault.New(fault.CommitConflict, "Validation failed, please retry: "+format, args...)
}

type addSnapshot struct{ newSnapshot }

func decodeAddSnapshot(o object) (change, error) {
	text, err := o.need("snapshot")
	if err != nil {
		return nil, err
	}
	n, err := parseNewSnapshot(text)
	return addSnapshot{n}, err
}

func (c addSnapshot) apply(d *draft) error {
	if err := d.checkSnapshot(&c.newSnapshot); err != nil {
		return err
	}
	if d.version > 1 {
		// A snapshot without parent may carry any number; the counter never goes back.
		d.lastSequence = max(d.lastSequence, c.sequence)
	}
	if d.version >= formatVersionRows {
		d.nextRow = max(d.nextRow, c.firstRow) + c.addedRows
	}
	d.added = append(d.added, c.newSnapshot)
	if d.addedIDs == nil {
		d.addedIDs = make(map[int64]struct{}, 1)
	}
	d.addedIDs[c.id] = struct{}{}
	d.changed = true
	return nil
}

func (d *draft) checkSnapshot(n *newSnapshot) error {
	switch {
	case len(d.schemas.parts) == 0:
		return fault.New(fault.Validation, "Attempting to add a snapshot before a schema is added")
	case len(d.specs.parts) == 0:
		return fault.New(fault.Validation, "Attempting to add a snapshot before a partition spec is added")
	case len(d.orders.parts) == 0:
		return fault.New(fault.Validation, "Attempting to add a snapshot before a sort order is added")
	case d.has(n.id) || d.inBase(n.id):
		return fault.New(fault.Validation, "Snapshot already exists for id: %d", n.id)
	case n.id < 0 || n.sequence < 0 || n.timestamp < 0:
		return fault.New(fault.Validation, "Cannot add snapshot %d: negative id, sequence number or timestamp", n.id)
	case d.version == 1 && n.sequence != 0:
		return fault.New(fault.Validation, "Sequence number must be 0 in v1: %d", n.sequence)
	case d.version > 1 && n.hasParent && n.sequence <= d.lastSequence:
		return stale("Cannot add snapshot with sequence number %d older than last sequence number %d", n.sequence, d.lastSequence)
	case d.version > 1 && n.manifestList == "":
		return fault.New(fault.Validation, "Cannot add snapshot %d: missing field %q, which v%d needs", n.id, "manifest-list", d.version)
	case d.version > 1 && n.operation == "":
		return fault.New(fault.Validation, "Cannot add snapshot %d: missing field %q in its summary", n.id, "operation")
	case n.hasParent && !d.has(n.parent):
		// The writer loaded another table of this name, or its parent has been expired.
		return stale("Cannot add snapshot %d: its parent %d is not in the table", n.id, n.parent)
	case n.timestamp > d.now+clockSkewMs:
		return fault.New(fault.Validation, "Cannot add snapshot %d: its timestamp %d lies more than a minute after the server's clock %d",
			n.id, n.timestamp, d.now)
	}
	return d.checkRows(n)
}

// checkRows keeps row lineage sound: every row id is handed out once.
func (d *draft) checkRows(n *newSnapshot) error {
	if d.version < formatVersionRows {
		return nil
	}
	switch {
	case !n.hasFirstRow:
		return fault.New(fault.Validation, "Cannot add a snapshot: first-row-id is null")
	case !n.hasAddedRows:
		return fault.New(fault.Validation, "Cannot add a snapshot: added-rows is null")
	case n.addedRows < 0:
		return fault.New(fault.Validation, "Cannot add a snapshot: added-rows is negative: %d", n.addedRows)
	case n.firstRow < d.nextRow:
		return stale("Cannot add a snapshot, first-row-id is behind table next-row-id: %d < %d", n.firstRow, d.nextRow)
	case n.firstRow > math.MaxInt64-n.addedRows:
		return fault.New(fault.Validation, "Cannot add a snapshot: first-row-id %d and added-rows %d overflow", n.firstRow, n.addedRows)
	}
	return nil
}

type setRef struct {
	namedRef
	further object // members of the update that we do not know
}

func decodeSetRef(o object) (change, error) {
	name, err := o.str("ref-name")
	if err != nil {
		return nil, err
	}
	c := setRef{namedRef: namedRef{name: name}}
	c.Ref, err = refOf(o)
	c.further = o.others([]string{"action", "ref-name", refSnapshot, refType, refMinSnapshots, refMaxSnapshotAge, refMaxRefAge})
	return c, err
}

func (c setRef) apply(d *draft) error {
	at := d.ref(c.name)
	if at >= 0 && d.refs[at].Ref == c.Ref {
		return nil
	}
	switch {
	case c.name == "":
		return fault.New(fault.IllegalArgument, "Cannot set a ref with an empty name")
	case !d.has(c.SnapshotID):
		return fault.New(fault.Validation, "Cannot set %s to unknown snapshot: %d", c.name, c.SnapshotID)
	case c.name == mainBranch && c.Type != refBranch:
		return fault.New(fault.IllegalArgument, "Cannot set %s to a tag: it must be a branch", mainBranch)
	case c.Type == refTag && (c.MinSnapshotsToKeep != 0 || c.MaxSnapshotAgeMs != 0):
		return fault.New(fault.IllegalArgument, "Tags do not support setting %s or %s", refMinSnapshots, refMaxSnapshotAge)
	}
	if c.name == mainBranch {
		d.moveMain(c.SnapshotID)
	}
	r := namedRef{name: c.name, Ref: c.Ref, text: c.Ref.appendTo(nil, c.further)}
	if at < 0 {
		d.refs = append(d.refs, r)
	} else {
		d.refs[at] = r
	}
	d.refsChanged, d.changed = true, true
	return nil
}

// moveMain makes a snapshot current and logs it: at its own time if this request brought it, else now.
func (d *draft) moveMain(id int64) {
	at := d.now
	if n := d.addedSnapshot(id); n != nil {
		at = n.timestamp
	}
	d.current, d.hasCurrent = id, true
	d.logged = append(d.logged, logEntry{id: id, timestamp: at})
}

type removeRef string

func decodeRemoveRef(o object) (change, error) {
	name, err := o.str("ref-name")
	return removeRef(name), err
}

func (c removeRef) apply(d *draft) error {
	d.dropRefs(func(r *namedRef) bool { return r.name == string(c) })
	return nil
}

// dropRefs removes refs; without main the table is empty, its history stays.
func (d *draft) dropRefs(gone func(*namedRef) bool) {
	kept := d.refs[:0]
	for i := range d.refs {
		if !gone(&d.refs[i]) {
			kept = append(kept, d.refs[i])
			continue
		}
		if d.refs[i].name == mainBranch {
			d.current, d.hasCurrent = 0, false
		}
		d.refsChanged, d.changed = true, true
	}
	d.refs = kept
}

type removeSnapshots []int64

func decodeRemoveSnapshots(o object) (change, error) {
	ids, err := o.longs("snapshot-ids")
	return removeSnapshots(ids), err
}

// apply removes snapshots, their statistics and the refs that pointed at them. Unknown ids are ignored.
func (c removeSnapshots) apply(d *draft) error {
	gone := make(map[int64]struct{}, len(c))
	for _, id := range c {
		if d.has(id) {
			gone[id] = struct{}{}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if d.removed == nil {
		d.removed = make(map[int64]struct{}, len(gone))
	}
	for id := range gone {
		d.removed[id] = struct{}{}
	}
	kept := d.added[:0:0]
	for _, n := range d.added {
		if _, dropped := gone[n.id]; !dropped {
			kept = append(kept, n)
		}
	}
	d.added = kept
	isGone := func(id int64) bool { _, is := gone[id]; return is }
	for _, partition := range []bool{false, true} {
		l, err := d.statisticsOf(partition)
		if err != nil {
			return err
		}
		l.drop(isGone)
	}
	d.dropRefs(func(r *namedRef) bool { return isGone(r.SnapshotID) })
	d.changed = true
	return nil
}
