package catalog

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// OutdatedGrace is how long a metadata file stays after it fell out of its table's log: readers that hold its name may
// still want it.
const OutdatedGrace = time.Hour

// outdatedRemovalMax ends a round of removals before its files may be claimed by somebody else, or registered: the last
// removal of a round may take a minute more.
const outdatedRemovalMax = 40 * time.Second

// purgeDelayProperty is the warehouse property that makes purges wait, in seconds.
const purgeDelayProperty = "purge-delay-seconds"

// purgeDelayMax bounds it: a year.
const purgeDelayMax = 365 * 24 * time.Hour

// purgeDelay reads how long a dropped table's files stay; what is not a number of seconds is no delay.
func purgeDelay(w Warehouse) time.Duration {
	seconds, err := strconv.ParseInt(w.Properties[purgeDelayProperty], 10, 32)
	if err != nil || seconds < 0 {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, purgeDelayMax)
}

// outdated gives the metadata files that a commit leaves behind and that may go: those of the table's own location. A
// log may come from a file that was registered: what it names and has no metadata file's name is left alone.
func outdated(base, next *commit.Document) []string {
	var files []string
	for _, file := range commit.Outdated(base, next) {
		if vending.Within(next.Location(), file) && commit.NamesMetadata(file) {
			files = append(files, vending.Plain(file))
		}
	}
	return files
}

// OutdatedFile is a metadata file that may be removed.
type OutdatedFile struct {
	WarehouseID      uuid.UUID
	TableID          uuid.UUID
	Location         string // of the table: nothing outside it is removed
	MetadataLocation string
}

// DroppedTable is a table that is in no namespace any more and whose files are there.
type DroppedTable struct {
	Warehouse Warehouse
	Record    TableRecord // as it was when it was dropped; NamespaceID and FormatVersion are not kept
	DroppedAt time.Time
}

// DroppedListed is a dropped table or view as lists show it.
type DroppedListed struct {
	Record         TableRecord // as in DroppedTable
	DroppedAt      time.Time
	PurgeRequested bool
	Unregistered   bool
	PurgeJob       uuid.UUID // the last one; uuid.Nil: none
}

// droppedListedMax bounds a list of dropped tables.
const droppedListedMax = 1000

// ListDropped gives what was dropped from a warehouse and still has its files, newest first, up to a limit.
func (s *Service) ListDropped(ctx context.Context, c Caller, warehouse string) ([]DroppedListed, error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse})
	if err != nil {
		return nil, err
	}
	if err := s.require(ctx, c, res, res.Path(), need{"list-dropped", warehouse, authz.TableReadProperties}); err != nil {
		return nil, err
	}
	dropped, err := s.Store.ListDropped(ctx, res.Warehouse.ID, droppedListedMax)
	if err != nil {
		return nil, fmt.Errorf("list what was dropped from %s: %w", warehouse, err)
	}
	return dropped, nil
}

// UpkeepStore keeps which metadata files are outdated and may go, and what is known of dropped tables.
type UpkeepStore interface {
	// ClaimOutdated takes up to limit files whose grace has passed, which nobody else gets for two minutes and which no
	// table can be registered with meanwhile. The current file of a table is never among them.
	ClaimOutdated(ctx context.Context, limit int) ([]OutdatedFile, error)
	// ForgetOutdated takes files away that were removed.
	ForgetOutdated(ctx context.Context, metadataLocations []string) error
	// FindDropped gives a dropped table: fault.NotFound when it is gone, or back.
	FindDropped(ctx context.Context, id uuid.UUID) (DroppedTable, error)
	// ListDropped gives a warehouse's dropped tables and views, newest first.
	ListDropped(ctx context.Context, warehouseID uuid.UUID, limit int) ([]DroppedListed, error)
}

// LoadDropped reads a dropped table's metadata, for who removes its files. Only the server itself may ask.
func (s *Service) LoadDropped(ctx context.Context, c Caller, id uuid.UUID) (DroppedTable, *commit.Document, error) {
	if !c.isSystem() {
		return DroppedTable{}, nil, fault.New(fault.Forbidden, "dropped tables are read by the server alone")
	}
	dropped, err := s.Store.FindDropped(ctx, id)
	if err != nil {
		return DroppedTable{}, nil, fmt.Errorf("find dropped table %s: %w", id, err)
	}
	document, err := s.document(ctx, dropped.Warehouse, dropped.Record)
	return dropped, document, err
}

// RemoveOutdated removes metadata files whose grace has passed, and tells how many it looked at. A file that cannot be
// removed is tried again later, and after some tries it stays: it costs its bytes and harms nobody.
func (s *Service) RemoveOutdated(ctx context.Context, c Caller, limit int) (int, error) {
	if !c.isSystem() {
		return 0, fault.New(fault.Forbidden, "outdated files are removed by the server alone")
	}
	claimed, err := s.Store.ClaimOutdated(ctx, limit)
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	gone, err := s.removeClaimed(ctx, c, claimed)
	if err != nil {
		return 0, fmt.Errorf("remove outdated metadata files: %w", err)
	}
	if err := s.Store.ForgetOutdated(ctx, gone); err != nil {
		return 0, fmt.Errorf("forget outdated metadata files: %w", err)
	}
	return len(claimed), nil
}

// removeClaimed removes files while their claims hold, and gives those that are gone.
func (s *Service) removeClaimed(ctx context.Context, c Caller, claimed []OutdatedFile) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, outdatedRemovalMax)
	defer cancel()
	var gone []string
	warehouses := map[uuid.UUID]Warehouse{}
	for _, f := range claimed {
		if ctx.Err() != nil { // the claims may end: what is left is for a later round
			break
		}
		w, ok := warehouses[f.WarehouseID]
		if !ok {
			res, err := s.resolve(ctx, c, Lookup{Warehouse: f.WarehouseID.String()})
			if err != nil {
				return nil, err
			}
			w = *res.Warehouse
			warehouses[f.WarehouseID] = w
		}
		at := serverPlace(w, TableRecord{ID: f.TableID, Location: f.Location}, f.MetadataLocation)
		s.Metadata.RemoveMetadata(ctx, at)
		if err := s.Metadata.StatMetadata(ctx, at); fault.Is(err, fault.FileNotFound) {
			gone = append(gone, f.MetadataLocation)
		}
	}
	return gone, nil
}
