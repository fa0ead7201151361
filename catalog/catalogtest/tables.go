package catalogtest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// RenameTable gives a table another name. Its own name is no change.
func (s *Store) RenameTable(ctx context.Context, r catalog.TableRename) error {
	return s.tx(ctx, "RenameTable", func(st *state) error {
		t, ok := st.tables[r.ID]
		if !ok || t.Kind != r.Kind {
			return r.Kind.Missing(r.Source)
		}
		if err := stillAt(t, r.From); err != nil {
			return err
		}
		if unstorable(r.Target.Name) {
			return badText()
		}
		n, ok := st.namespaces[r.TargetNamespaceID]
		if !ok || n.warehouse != t.warehouse {
			return noSuchNamespace(r.Target.Namespace.String())
		}
		if holder, taken := st.tableAt(r.TargetNamespaceID, r.Target.Name); taken {
			if holder.ID == r.ID && holder.Ident.Name == r.Target.Name {
				return st.keepOf(r.Fact)
			}
			if holder.ID != r.ID {
				return holder.Kind.NotRenamed(r.Source, r.Target)
			}
		}
		t.NamespaceID, t.Version = r.TargetNamespaceID, t.Version+1
		t.Ident = catalog.Identifier{Namespace: n.Levels, Name: r.Target.Name}
		st.tables[r.ID] = t
		return st.write(r.Fact)
	})
}

// stillAt refuses a table that was renamed since it was found.
func stillAt(t tableRow, from catalog.Place) error {
	if from == (catalog.Place{}) || from == (catalog.Place{NamespaceID: t.NamespaceID, Name: t.Ident.Name}) {
		return nil
	}
	return fault.New(fault.CommitRace, "%s %s was renamed meanwhile", t.Kind, from.Name)
}

// DropTable takes a table's name away; its location stays reserved.
func (s *Store) DropTable(ctx context.Context, d catalog.TableDrop) error {
	return s.tx(ctx, "DropTable", func(st *state) error {
		t, ok := st.tables[d.ID]
		if !ok || t.Kind != d.Kind {
			return d.Kind.Missing(d.Ident)
		}
		if err := stillAt(t, d.From); err != nil {
			return err
		}
		if d.At != "" && d.At != t.MetadataLocation {
			return fault.New(fault.CommitRace, "%s %s was changed by another commit", d.Kind, d.Ident)
		}
		delete(st.tables, d.ID)
		delete(st.metadata, d.ID)
		st.dropped[d.ID] = droppedRow{
			tableRow: t, unregistered: d.Unregistered, purged: d.PurgeRequested, at: s.Now(), droppedAt: d.Fact.At,
		}
		if d.PurgeRequested && d.Kind == catalog.KindTable {
			st.purges[d.ID] = d.Purge
		}
		for key, l := range st.locations {
			if l.owner == d.ID {
				l.dropped, l.former = true, key != vending.Key(t.Location)
				st.locations[key] = l
			}
		}
		st.dropGrantsOn(d.ID)
		delete(st.maintenance, d.ID)
		st.sweepDropped(s.Now())
		return st.write(d.Fact)
	})
}

// StageTable remembers a staged create and reserves its location.
func (s *Store) StageTable(ctx context.Context, t catalog.StagedTable) error {
	return s.tx(ctx, "StageTable", func(st *state) error {
		if unstorable(append(slices.Clone(t.Ident.Namespace), t.Ident.Name)...) {
			return badText()
		}
		err := st.reserve(reservation{
			warehouse: t.WarehouseID, owner: t.UUID, principal: t.PrincipalID, location: t.Location,
			kind: authz.Table, staged: true, ident: t.Ident, restores: t.Restores,
		}, s.Now())
		if err != nil {
			return err
		}
		if _, taken := st.staged[t.UUID]; taken {
			return fault.New(fault.AlreadyExists, "a staged create has this table uuid already")
		}
		st.sweepDropped(s.Now())
		st.staged[t.UUID] = stagedRow{StagedTable: t, expires: s.Now().Add(t.TTL)}
		return nil
	})
}

// FindStagedTables gives the staged creates of a name that have not expired, newest first.
func (s *Store) FindStagedTables(ctx context.Context, warehouseID uuid.UUID, ident catalog.Identifier) ([]catalog.StagedTable, error) {
	var found []stagedRow
	err := s.tx(ctx, "FindStagedTables", func(st *state) error {
		for _, t := range st.staged {
			if t.WarehouseID == warehouseID && st.sameIdent(warehouseID, t.Ident, ident) && t.expires.After(s.Now()) {
				found = append(found, t)
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b stagedRow) int {
		return cmp.Or(b.expires.Compare(a.expires), cmp.Compare(a.UUID.String(), b.UUID.String()))
	})
	var out []catalog.StagedTable
	for _, t := range found {
		t.TTL = t.expires.Sub(s.Now())
		out = append(out, t.StagedTable)
	}
	return out, err
}

// FindTableByFile gives the table that owns the place of a file.
func (s *Store) FindTableByFile(ctx context.Context, warehouseID uuid.UUID, file string) (*catalog.TableRecord, error) {
	var found *catalog.TableRecord
	err := s.tx(ctx, "FindTableByFile", func(st *state) error {
		for key, l := range st.locations {
			if l.warehouse != warehouseID || !strings.HasPrefix(vending.Key(file), key) || vending.Key(file) == key {
				continue
			}
			row, ok := st.tables[l.owner]
			if d, dropped := st.dropped[l.owner]; dropped && !d.gone {
				row, ok = d.tableRow, true
			}
			if ok && row.Kind == catalog.KindTable {
				r := row.TableRecord
				r.NamespaceID, r.FormatVersion, r.Version = uuid.Nil, 0, 0
				found = &r
			}
		}
		return nil
	})
	return found, err
}
