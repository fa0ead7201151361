package commit

import "bytes"

// Landed tells whether the request is the repeat of a commit that has landed: it adds snapshots, every one of them
// is in the table with the same manifest list, and every ref that it sets points at its snapshot or a descendant.
// A client whose answer was lost sends such a repeat; refusing it would make it delete live files.
func Landed(base *Document, r Request) bool {
	adds := false
	var ancestry *ancestry
	for _, u := range r.Updates {
		switch c := u.change.(type) {
		case addSnapshot:
			adds = true
			if !base.holds(&c.newSnapshot) {
				return false
			}
		case setRef:
			ref := base.ref(c.name)
			if ref == nil {
				return false
			}
			if ref.SnapshotID == c.SnapshotID {
				continue
			}
			if ancestry == nil {
				ancestry = ancestryOf(base)
			}
			if !ancestry.descends(ref.SnapshotID, c.SnapshotID) {
				return false
			}
		}
	}
	return adds
}

// Held tells whether the request adds snapshots and the table has every one of them already, wherever its refs point.
// Applying such a request would be refused, and refusing it cleanly would make the client delete files of snapshots
// that are in the table.
func Held(base *Document, r Request) bool {
	adds := false
	for _, u := range r.Updates {
		if c, ok := u.change.(addSnapshot); ok {
			adds = true
			if !base.holds(&c.newSnapshot) {
				return false
			}
		}
	}
	return adds
}

// AddsSnapshots tells whether the request brings any snapshot.
func (r Request) AddsSnapshots() bool {
	for _, u := range r.Updates {
		if _, ok := u.change.(addSnapshot); ok {
			return true
		}
	}
	return false
}

// Rest is the request without its snapshots and refs, and with no requirement but the table's uuid: what else a
// commit whose snapshots are in the table would have done. If it does nothing to the table, all of it has landed.
func (r Request) Rest() Request {
	rest := Request{Identifier: r.Identifier}
	for _, q := range r.Requirements {
		if q.Type == "assert-table-uuid" {
			rest.Requirements = append(rest.Requirements, q)
		}
	}
	for _, u := range r.Updates {
		switch u.change.(type) {
		case addSnapshot, setRef:
		default:
			rest.Updates = append(rest.Updates, u)
		}
	}
	return rest
}

// holds tells whether the table has a snapshot of this id with the same list of manifests.
func (d *Document) holds(n *newSnapshot) bool {
	e := d.snapshot(n.id)
	if e == nil {
		return false
	}
	theirs, err := parseNewSnapshot(d.text[e.start:e.end])
	if err != nil {
		return false
	}
	if n.manifestList == "" { // v1 may list its manifests in the snapshot
		return theirs.manifestList == "" && bytes.Equal(theirs.text, n.text)
	}
	return theirs.manifestList == n.manifestList
}

// ancestry answers who descends from whom.
type ancestry struct {
	parents map[int64]int64
}

func ancestryOf(d *Document) *ancestry {
	a := &ancestry{parents: make(map[int64]int64, len(d.snapshots))}
	for i := range d.snapshots {
		if e := &d.snapshots[i]; e.hasParent {
			a.parents[e.id] = e.parent
		}
	}
	return a
}

// descends walks from a snapshot towards the first one. The walk is bounded by the number of snapshots, so a
// document whose parents form a ring cannot hold it.
func (a *ancestry) descends(id, ancestor int64) bool {
	for range len(a.parents) + 1 {
		if id == ancestor {
			return true
		}
		parent, known := a.parents[id]
		if !known {
			return false
		}
		id = parent
	}
	return false
}
