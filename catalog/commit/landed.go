package commit

import (
	"bytes"
	"slices"
)

// Landed tells whether the request is the repeat of a commit that has landed: it adds snapshots, every one of them
// is in the table just as the request has it, and every ref that it sets is as the request leaves it; only a branch
// that was left at one of the request's own snapshots may have gone on to a descendant.
// A client whose answer was lost sends such a repeat; refusing it would make it delete live files.
func Landed(base *Document, r Request) bool {
	added := map[int64]struct{}{}
	refs := map[string]Ref{} // as the request leaves them
	for _, u := range r.Updates {
		switch c := u.change.(type) {
		case addSnapshot:
			if theirs, held := base.holds(&c.newSnapshot); !held || !bytes.Equal(theirs.text, c.text) {
				return false
			}
			added[c.id] = struct{}{}
		case setRef:
			refs[c.name] = c.Ref
		}
	}
	if len(added) == 0 {
		return false
	}
	var ancestry *ancestry
	for name, wanted := range refs {
		ref := base.ref(name)
		if ref == nil {
			return false
		}
		now := ref.Ref
		if now == wanted {
			continue
		}
		if _, own := added[wanted.SnapshotID]; !own || wanted.Type != refBranch {
			return false
		}
		if ancestry == nil {
			ancestry = ancestryOf(base)
		}
		if !ancestry.descends(now.SnapshotID, wanted.SnapshotID) {
			return false
		}
		if now.SnapshotID = wanted.SnapshotID; now != wanted {
			return false
		}
	}
	return true
}

// Held tells whether the table has a snapshot that the request adds, wherever its refs point, or had it: one that was
// expired lives on in its children, which use its files. Applying such a request would be refused, and refusing it
// cleanly would make the client delete files of snapshots that are in the table.
func Held(base *Document, r Request) bool {
	for _, u := range r.Updates {
		if c, ok := u.change.(addSnapshot); ok {
			if _, held := base.holds(&c.newSnapshot); held || base.hasChildOf(c.id) {
				return true
			}
		}
	}
	return false
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

// Rest is the request without its snapshots and their refs, and with no requirement but the table's uuid: what else a
// commit whose snapshots are in the table would have done. If it does nothing to the table, all of it has landed.
func (r Request) Rest() Request {
	rest := Request{Identifier: r.Identifier}
	adds := r.AddsSnapshots()
	for _, q := range r.Requirements {
		if q.Type == "assert-table-uuid" {
			rest.Requirements = append(rest.Requirements, q)
		}
	}
	for _, u := range r.Updates {
		switch u.change.(type) {
		case addSnapshot:
		case setRef:
			if !adds {
				rest.Updates = append(rest.Updates, u)
			}
		default:
			rest.Updates = append(rest.Updates, u)
		}
	}
	return rest
}

// hasChildOf tells whether a snapshot names this one as its parent.
func (d *Document) hasChildOf(id int64) bool {
	for i := range d.snapshots {
		if e := &d.snapshots[i]; e.hasParent && e.parent == id {
			return true
		}
	}
	return false
}

// holds gives the table's snapshot of the same id when it has the same manifests.
func (d *Document) holds(n *newSnapshot) (theirs newSnapshot, held bool) {
	e := d.snapshot(n.id)
	if e == nil {
		return theirs, false
	}
	theirs, err := parseNewSnapshot(d.text[e.start:e.end])
	if err != nil {
		return theirs, false
	}
	return theirs, theirs.manifestList == n.manifestList && slices.Equal(theirs.manifests, n.manifests)
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
