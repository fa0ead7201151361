package catalogtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// outdatedClaim is how long a claimed file is nobody else's.
const outdatedClaim = 2 * time.Minute

// keepUp notes what a change leaves behind, and takes a file that is registered off the list.
func (s *Store) keepUp(st *state, c catalog.PointerChange) error {
	file := vending.Plain(c.Record.MetadataLocation)
	if old, ok := st.outdated[file]; ok && c.Registered {
		if old.claimedUntil.After(s.Now()) {
			return fault.New(fault.Busy, "the metadata file %s is outdated and being removed at this moment", c.Record.MetadataLocation)
		}
		delete(st.outdated, file)
	}
	for _, file := range c.Outdated {
		if _, there := st.outdated[file]; !there {
			st.outdated[file] = outdatedRow{due: s.Now().Add(catalog.OutdatedGrace), OutdatedFile: catalog.OutdatedFile{
				WarehouseID: c.WarehouseID, TableID: c.Record.ID, Location: c.Record.Location, MetadataLocation: file,
			}}
		}
	}
	return nil
}

// ClaimOutdated takes files whose grace has passed.
func (s *Store) ClaimOutdated(ctx context.Context, limit int) ([]catalog.OutdatedFile, error) {
	var found []catalog.OutdatedFile
	err := s.tx(ctx, "ClaimOutdated", func(st *state) error {
		for _, name := range slices.Sorted(maps.Keys(st.outdated)) {
			o := st.outdated[name]
			if len(found) < limit && o.due.Before(s.Now()) && !o.claimedUntil.After(s.Now()) {
				found = append(found, o.OutdatedFile)
				o.claimedUntil = s.Now().Add(outdatedClaim)
				st.outdated[name] = o
			}
		}
		return nil
	})
	return found, err
}

// ForgetOutdated takes files away that were removed.
func (s *Store) ForgetOutdated(ctx context.Context, metadataLocations []string) error {
	return s.tx(ctx, "ForgetOutdated", func(st *state) error {
		for _, file := range metadataLocations {
			delete(st.outdated, file)
		}
		return nil
	})
}

// FindDropped gives a dropped table.
func (s *Store) FindDropped(ctx context.Context, id uuid.UUID) (catalog.DroppedTable, error) {
	var d catalog.DroppedTable
	err := s.tx(ctx, "FindDropped", func(st *state) error {
		row, ok := st.dropped[id]
		if !ok || row.gone {
			return fault.New(fault.NotFound, "the dropped table is not there any more")
		}
		d.Warehouse, d.Record, d.DroppedAt = st.warehouses[row.warehouse], row.TableRecord, row.droppedAt
		d.Record.NamespaceID, d.Record.FormatVersion, d.Record.Version = uuid.Nil, 0, 0
		return nil
	})
	return d, err
}

// ListDropped gives a warehouse's dropped tables and views.
func (s *Store) ListDropped(ctx context.Context, warehouseID uuid.UUID, limit int) ([]catalog.DroppedListed, error) {
	var found []catalog.DroppedListed
	err := s.tx(ctx, "ListDropped", func(st *state) error {
		for id, d := range st.dropped {
			if d.warehouse == warehouseID && !d.gone {
				r := d.TableRecord
				r.NamespaceID, r.FormatVersion, r.Version = uuid.Nil, 0, 0
				found = append(found, catalog.DroppedListed{
					Record: r, DroppedAt: d.droppedAt, PurgeRequested: d.purged, Unregistered: d.unregistered, PurgeJob: st.purges[id].ID,
				})
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b catalog.DroppedListed) int {
		return cmp.Or(b.DroppedAt.Compare(a.DroppedAt), strings.Compare(a.Record.ID.String(), b.Record.ID.String()))
	})
	return found[:min(limit, len(found))], err
}

// LapseDropped moves a table's drop far into the past.
func (s *Store) LapseDropped(_ testing.TB, dropped uuid.UUID) {
	s.changeDropped(dropped, func(d *droppedRow) { d.at = s.Now().Add(-2 * placeGrace) })
}

// MarkPurging marks a dropped table's purge as begun.
func (s *Store) MarkPurging(_ testing.TB, dropped uuid.UUID) {
	s.changeDropped(dropped, func(d *droppedRow) { d.purging = true })
}

func (s *Store) changeDropped(id uuid.UUID, change func(d *droppedRow)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.state.dropped[id]
	change(&d)
	s.state.dropped[id] = d
}

// FinishPurge ends a dropped table's purge.
func (s *Store) FinishPurge(_ testing.TB, dropped uuid.UUID) {
	s.changeDropped(dropped, func(d *droppedRow) { d.purging, d.gone, d.at = true, true, s.Now() })
}

// PurgeOf gives the purge job that a drop left.
func (s *Store) PurgeOf(_ testing.TB, dropped uuid.UUID) (catalog.PurgeJob, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	job, ok := s.state.purges[dropped]
	return job, ok
}

// LapseOutdated ends the grace of all outdated files, and their claims.
func (s *Store) LapseOutdated(testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, o := range s.state.outdated {
		o.due, o.claimedUntil = s.Now().Add(-time.Second), time.Time{}
		s.state.outdated[name] = o
	}
}
