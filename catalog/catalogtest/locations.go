package catalogtest

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// stagedGrace is how long an expired staged create still holds its location.
const stagedGrace = 12 * time.Hour

// placeGrace is how long an unregistered table's location is for that table alone, and a purged one's for its name.
const placeGrace = 12 * time.Hour

// reservation is a location about to get an owner.
type reservation struct {
	warehouse, owner, principal uuid.UUID
	location                    string
	kind                        authz.SecurableKind // Namespace or Table
	staged                      bool
	ident                       catalog.Identifier
	registers                   uuid.UUID // uuid of the table that was there before; uuid.Nil: none
	restores                    bool
}

func overlap() error {
	return fault.New(fault.BadRequest, "the location overlaps another table's or namespace's: choose another one, or none")
}

// reserve gives the location its owner when nobody else's stands in the way.
func (st *state) reserve(r reservation, now time.Time) error {
	w, ok := st.warehouses[r.warehouse]
	if !ok {
		return fault.New(fault.NoSuchWarehouse, "Warehouse does not exist")
	}
	key := vending.Key(r.location)
	if !vending.Within(w.Location, r.location) && st.meetsBase(key, r.warehouse) {
		return overlap()
	}
	for at, l := range st.locations {
		if l.owner == r.owner || !strings.HasPrefix(at, key) && !strings.HasPrefix(key, at) {
			continue
		}
		if at == key && st.yields(l, r, now) {
			delete(st.staged, l.owner)
			d := st.dropped[l.owner]
			delete(st.dropped, l.owner)
			if r.registers != uuid.Nil && r.registers == d.UUID && !d.gone {
				st.passDropped(l.owner, r.owner)
			} else {
				st.leaveFormer(l.owner)
			}
			continue
		}
		if st.lapsed(l, now) || l.warehouse == r.warehouse && mayNest(l.kind, at, r.kind, key) {
			continue
		}
		return overlap()
	}
	st.locations[key] = locationRow{warehouse: r.warehouse, kind: r.kind, staged: r.staged, owner: r.owner}
	return nil
}

// mayNest: what lies below a namespace's location, in the same warehouse, may be a namespace's or a table's.
func mayNest(there authz.SecurableKind, at string, kind authz.SecurableKind, key string) bool {
	switch {
	case there == authz.Namespace && kind == authz.Namespace:
		return at != key
	case there == authz.Namespace:
		return len(at) < len(key)
	case kind == authz.Namespace:
		return len(at) > len(key)
	}
	return false
}

// yields: a place passes to the same name, from a dropped table, or from a staged create of the same principal, or
// from one that has lapsed to anybody.
func (st *state) yields(l locationRow, r reservation, now time.Time) bool {
	if l.dropped {
		return st.droppedYields(st.dropped[l.owner], r) || st.lapsed(l, now)
	}
	if !l.staged {
		return false
	}
	s := st.staged[l.owner]
	return s.WarehouseID == r.warehouse && st.sameIdent(r.warehouse, s.Ident, r.ident) && s.PrincipalID == r.principal || st.lapsed(l, now)
}

// droppedYields: to its name in its namespace, or to the table itself when it comes back, unless its purge has begun.
func (st *state) droppedYields(d droppedRow, r reservation) bool {
	if r.registers != uuid.Nil && d.purging {
		return false
	}
	_, there := st.namespaces[d.NamespaceID]
	wanted := r.ident
	if r.registers == d.UUID {
		if d.unregistered || r.restores && !there && d.warehouse == r.warehouse {
			return true
		}
		wanted.Name = d.Ident.Name
	} else if r.registers == uuid.Nil && r.restores && !there {
		return d.warehouse == r.warehouse && st.sameIdent(r.warehouse, d.Ident, wanted)
	}
	return there && d.warehouse == r.warehouse && st.sameIdent(r.warehouse, d.Ident, wanted)
}

// passDropped gives the former places of a table that had moved to the table when it comes back.
func (st *state) passDropped(dropped, table uuid.UUID) {
	for key, l := range st.locations {
		if l.owner == dropped && l.dropped {
			l.owner, l.dropped, l.former = table, false, false
			st.locations[key] = l
		}
	}
}

// leaveFormer: what is left of a dropped table's places when its row is gone is reserved for good.
func (st *state) leaveFormer(dropped uuid.UUID) {
	for key, l := range st.locations {
		if l.owner == dropped && l.dropped {
			l.former = true
			st.locations[key] = l
		}
	}
}

// sweepDropped forgets unregistered and purged tables whose places are nobody's any more. Former places stay.
func (st *state) sweepDropped(now time.Time) {
	for key, l := range st.locations {
		if l.dropped && st.lapsed(l, now) {
			delete(st.locations, key)
			delete(st.dropped, l.owner)
		}
	}
}

func (st *state) lapsed(l locationRow, now time.Time) bool {
	if d, ok := st.dropped[l.owner]; ok && l.dropped && (d.unregistered || d.gone) {
		return !l.former && d.at.Add(placeGrace).Before(now)
	}
	return l.staged && st.staged[l.owner].expires.Add(stagedGrace).Before(now)
}

// meetsBase tells whether the key lies in or around another warehouse's base.
func (st *state) meetsBase(key string, warehouse uuid.UUID) bool {
	for id, w := range st.warehouses {
		base := vending.Key(w.Location)
		if id != warehouse && (strings.HasPrefix(base, key) || strings.HasPrefix(key, base)) {
			return true
		}
	}
	return false
}

func (st *state) release(owner uuid.UUID, except string) {
	for key, l := range st.locations {
		if l.owner == owner && key != except {
			delete(st.locations, key)
		}
	}
}

// pass gives a staged create's location to its table.
func (st *state) pass(staged, table uuid.UUID) {
	for key, l := range st.locations {
		if l.owner == staged && l.staged {
			l.owner, l.staged = table, false
			st.locations[key] = l
		}
	}
	delete(st.staged, staged)
}
