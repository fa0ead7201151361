package catalogtest

import (
	"context"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

const operationAbandoned = "commit-abandoned"

// CommitPointers moves, or makes, the pointers of all changes or of none.
func (s *Store) CommitPointers(ctx context.Context, changes []catalog.PointerChange, fence catalog.Fence) error {
	return s.tx(ctx, "CommitPointers", func(st *state) error {
		if epoch, held := st.leases[fence.JobID]; fence.JobID != uuid.Nil && (!held || epoch != fence.Epoch) {
			return fault.New(fault.VersionConflict, "the lease of job %s is not held any more", fence.JobID)
		}
		for _, c := range changes {
			if err := s.move(st, c); err != nil {
				return err
			}
			st.keep(c)
			if c.Record.Kind == catalog.KindTable {
				row := st.maintenance[c.Record.ID]
				row.enabled, row.dirty = c.Maintenance != nil && *c.Maintenance, true
				st.maintenance[c.Record.ID] = row
			}
			if err := st.write(c.Fact); err != nil {
				return err
			}
		}
		return nil
	})
}

// CheckPlaces tells whether the changes' locations would be refused now.
func (s *Store) CheckPlaces(ctx context.Context, changes []catalog.PointerChange) error {
	return s.tx(ctx, "CheckPlaces", func(st *state) error {
		asked := st.clone()
		for _, c := range changes {
			if err := s.takePlace(&asked, c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) takePlace(st *state, c catalog.PointerChange) error {
	if c.StagedUUID != uuid.Nil {
		st.pass(c.StagedUUID, c.Record.ID)
	}
	if c.Old != "" && c.OldLocation == "" {
		return nil
	}
	r := reservation{
		warehouse: c.WarehouseID, owner: c.Record.ID, principal: c.Fact.Caller.Principal.ID,
		location: c.Record.Location, kind: authz.Table, ident: c.Record.Ident, restores: c.Restores,
	}
	if c.Registered {
		r.registers = c.Record.UUID
	}
	return st.reserve(r, s.Now())
}

func (s *Store) move(st *state, c catalog.PointerChange) error {
	if err := s.takePlace(st, c); err != nil {
		return err
	}
	if err := s.keepUp(st, c); err != nil {
		return err
	}
	if c.Old == "" {
		return st.create(c)
	}
	t, ok := st.tables[c.Record.ID]
	switch {
	case !ok || t.warehouse != c.WarehouseID:
		return c.Record.Kind.Missing(c.Record.Ident)
	case t.MetadataLocation != c.Old || t.Kind != c.Record.Kind:
		return fault.New(fault.CommitRace, "%s %s was changed by another commit", c.Record.Kind, c.Record.Ident)
	}
	if err := stillAt(t, c.From); err != nil {
		return err
	}
	t.UUID, t.Location, t.MetadataLocation = c.Record.UUID, c.Record.Location, c.Record.MetadataLocation
	t.FormatVersion, t.Version = c.Record.FormatVersion, t.Version+1
	st.tables[t.ID] = t
	return nil
}

func (st *state) create(c catalog.PointerChange) error {
	if unstorable(c.Record.Ident.Name) {
		return badText()
	}
	n, ok := st.namespaces[c.Record.NamespaceID]
	if !ok {
		return noSuchNamespace(c.Record.Ident.Namespace.String())
	}
	if holder, taken := st.tableAt(n.ID, c.Record.Ident.Name); taken {
		return c.Record.Kind.Taken(c.Record.Ident, holder.Kind)
	}
	row := tableRow{TableRecord: c.Record, warehouse: c.WarehouseID}
	row.Version = 1
	row.Ident.Namespace = n.Levels
	st.tables[row.ID] = row
	return nil
}

// CommitLanded settles whether a commit landed: when it has not, it never will.
func (s *Store) CommitLanded(ctx context.Context, commitID uuid.UUID) (bool, error) {
	landed := false
	err := s.tx(ctx, "CommitLanded", func(st *state) error {
		e, ok := st.event(commitID)
		if !ok {
			e = Event{ID: commitID, Operation: operationAbandoned}
			st.events = append(st.events[:len(st.events):len(st.events)], e)
		}
		landed = e.Operation != operationAbandoned
		return nil
	})
	if err != nil {
		return false, err
	}
	return landed, nil
}
