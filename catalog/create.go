package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// CreateTable makes a table, or stages one: a staged create takes no name and writes no file; it only says what the
// table would be and where, so that a client can write data before its commit creates the table.
func (s *Service) CreateTable(ctx context.Context, c Caller, r CreateTableRequest) (LoadedTable, error) {
	id := Identifier{Namespace: r.Namespace, Name: r.Body.Name}
	if err := id.Validate(); err != nil {
		return LoadedTable{}, err
	}
	if r.Body.Stage { // it changes nothing that a repeat could change twice
		loaded, _, err := s.createTable(ctx, c, r, id)
		return loaded, err
	}
	return once(ctx, s, c,
		func() (LoadedTable, *Outcome, error) { return s.createTable(ctx, c, r, id) },
		func(o Outcome) (LoadedTable, error) { return s.replayCreate(ctx, c, r, id, o) })
}

func (s *Service) createTable(ctx context.Context, c Caller, r CreateTableRequest, id Identifier) (LoadedTable, *Outcome, error) {
	if err := checkProperties(r.Body.Properties); err != nil {
		return LoadedTable{}, nil, err
	}
	res, err := s.resolveForCreate(ctx, c, KindTable, r.Warehouse, id, "create-table")
	if err != nil {
		return LoadedTable{}, nil, err
	}
	w := *res.Warehouse
	tableUUID := uuid.New()
	location, err := res.newLocation(r.Body.Location, tableUUID)
	if err != nil {
		return LoadedTable{}, nil, err
	}
	document, err := commit.Create(r.Body, commit.CreateStamp{
		Now: s.Now(), UUID: tableUUID.String(), Location: location, Presets: w.tablePresets(),
	})
	if err != nil {
		return LoadedTable{}, nil, fmt.Errorf("create table %s: %w", id, err)
	}
	if err := res.checkNewTable(document, location); err != nil {
		return LoadedTable{}, nil, err
	}
	access := s.accessFor(res, res.Path(), r.Delegated)
	if r.Body.Stage {
		loaded, err := s.stageTable(ctx, c, res, stagedCreate{id, tableUUID, location, document, access})
		return loaded, nil, err
	}
	record, err := s.createOnce(ctx, w, func() pending {
		p := s.creation(c, "create-table", res, newTableRecord(res, id, document), document)
		p.change.Maintenance = maintenanceFlag(document)
		return p
	})
	if err != nil {
		return LoadedTable{}, nil, err
	}
	return s.created(ctx, c, createdTable{w, record, document, r.Delegated, access}), nil, nil
}

// createdTable is what the answer to a create is made of.
type createdTable struct {
	warehouse Warehouse
	record    TableRecord
	document  *commit.Document
	delegated bool
	access    vending.Access
}

// created answers a create that has landed; nothing may fail it.
func (s *Service) created(ctx context.Context, c Caller, t createdTable) LoadedTable {
	loaded := LoadedTable{
		MetadataLocation: t.record.MetadataLocation, Metadata: t.document.JSON(), Document: t.document,
		ETag: s.etag(c, t.warehouse, t.record.MetadataLocation, tagParts{t.record.Ident, SnapshotsAll, t.delegated, t.access}),
	}
	loaded.Config, loaded.Credentials = s.configAfterWrite(ctx, c, t.warehouse,
		vendTarget{t.record.Ident, t.record.ID.String(), t.record.Location}, t.access)
	return loaded
}

// createOnce writes the first metadata file and makes the row. An attempt whose outcome was settled as "did not land"
// is made again, under a new commit id.
func (s *Service) createOnce(ctx context.Context, w Warehouse, made func() pending) (TableRecord, error) {
	var record TableRecord
	err := s.retryRaces(ctx, func() error {
		work := []pending{made()}
		if err := s.writeAndMove(ctx, w, work, Fence{}); err != nil {
			return err
		}
		record = work[0].change.Record
		return nil
	})
	return record, err
}

// configAfterWrite is clientConfig for answers that nothing may fail any more: the table is there, so when vending
// fails the client gets none and asks the credentials route.
func (s *Service) configAfterWrite(
	ctx context.Context, c Caller, w Warehouse, t vendTarget, access vending.Access,
) (map[string]string, *vending.Credentials) {
	config, creds, err := s.clientConfig(ctx, c, w, t, access)
	if err != nil {
		s.Log.Error("a new table's credentials could not be vended", "table", t.ident.String(), "cause", err)
		config, creds, _ = s.clientConfig(ctx, c, w, t, vending.None)
	}
	return config, creds
}

// resolveForCreate finds the namespace of a table or view about to be made, checks the right and that the name is free.
func (s *Service) resolveForCreate(
	ctx context.Context, c Caller, kind Kind, warehouse string, id Identifier, operation string,
) (Resolution, error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse, Namespace: id.Namespace, Table: id.Name})
	if err != nil {
		return res, err
	}
	path := res.Path()
	if res.Table != nil || res.View != nil {
		path = parentPath(path)
	}
	n := need{operation, id.String(), rightsOf[kind].create}
	if err := s.require(ctx, c, res, path, n); err != nil {
		return res, err
	}
	if err := res.Warehouse.validName(id); err != nil {
		return res, err
	}
	switch {
	case res.Namespace == nil:
		return res, fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", id.Namespace)
	case res.View != nil:
		return res, kind.Taken(id, KindView)
	case res.Table != nil:
		return res, kind.Taken(id, KindTable)
	}
	return res, nil
}

type stagedCreate struct {
	ident    Identifier
	uuid     uuid.UUID
	location string
	document *commit.Document
	access   vending.Access
}

func (s *Service) stageTable(ctx context.Context, c Caller, res Resolution, st stagedCreate) (LoadedTable, error) {
	err := s.Store.StageTable(ctx, StagedTable{
		UUID: st.uuid, WarehouseID: res.Warehouse.ID, Ident: st.ident, Location: st.location,
		PrincipalID: c.Principal.ID, TTL: stagedTableTTL, Restores: restores(res),
	})
	if err != nil {
		return LoadedTable{}, fmt.Errorf("stage table %s: %w", st.ident, err)
	}
	loaded := LoadedTable{Metadata: st.document.JSON(), Document: st.document}
	loaded.Config, loaded.Credentials, err = s.clientConfig(ctx, c, *res.Warehouse,
		vendTarget{st.ident, st.uuid.String(), st.location}, st.access)
	return loaded, err
}

// creation is the work of making a table or a view. Each call gives it a commit id of its own.
func (s *Service) creation(c Caller, operation string, res Resolution, record TableRecord, d metadataText) pending {
	w := *res.Warehouse
	record.OwnerID = c.owner()
	return pending{ident: record.Ident, document: d, change: PointerChange{
		Record: record, WarehouseID: w.ID, Restores: restores(res), Fact: s.fact(c, operation, record.Ident.String(), w.ID, record.ID),
	}}
}

// restores tells who may have again what was dropped with its namespace: whoever manages all content of the warehouse.
func restores(res Resolution) bool { return allowed(res, res.Path()[:2], authz.CatalogManageContent) }

// newRecord is the row of a table or view before its first metadata file has a name.
func newRecord(res Resolution, kind Kind, id Identifier, d metadataText, formatVersion int) TableRecord {
	return TableRecord{
		ID: newID(), Kind: kind, NamespaceID: res.Namespace.ID, Ident: id, UUID: uuid.MustParse(d.UUID()),
		Location: d.Location(), FormatVersion: formatVersion, Version: 1,
	}
}

func newTableRecord(res Resolution, id Identifier, d *commit.Document) TableRecord {
	return newRecord(res, KindTable, id, d, d.FormatVersion())
}

// maintenanceFlag reads the property that switches a table's maintenance on or off; nil when it says neither.
func maintenanceFlag(d *commit.Document) *bool {
	value, ok := d.Property("catalogd.maintenance.enabled")
	on := value == "true"
	if !ok || !on && value != "false" {
		return nil
	}
	return &on
}

// planCreate is the commit of a staged create, or of a create transaction that was never staged here: the uuid and
// location must be those of a staged create of this caller, or pass the checks of a plain create.
func (s *Service) planCreate(ctx context.Context, c Caller, warehouse string, id Identifier, r commit.Request) (plan[*commit.Document], error) {
	if err := id.Validate(); err != nil {
		return plan[*commit.Document]{}, err
	}
	if err := checkProperties(r.NewProperties()); err != nil {
		return plan[*commit.Document]{}, err
	}
	res, err := s.resolveForCreate(ctx, c, KindTable, warehouse, id, "commit-table")
	if err != nil {
		return s.landedCreate(ctx, c, res, r, err)
	}
	w := *res.Warehouse
	assigned, err := uuid.Parse(r.AssignedUUID())
	if r.AssignedUUID() != "" && err != nil {
		return plan[*commit.Document]{}, fault.New(fault.BadRequest, "assign-uuid: %q is not a UUID", r.AssignedUUID())
	}
	staged, err := s.stagedOf(ctx, c, w, id, assigned)
	if err != nil {
		return plan[*commit.Document]{}, err
	}
	if staged == nil && s.heldElsewhere(ctx, res, r) {
		return plan[*commit.Document]{}, fault.New(fault.CommitUnknown, "the table was created before, and has another name now, or was dropped: "+
			"nothing was changed or deleted")
	}
	if assigned == uuid.Nil {
		assigned = uuid.New()
	}
	location, chosen := r.NewLocation()
	switch {
	case staged != nil && (!chosen || samePlace(location, staged.Location)):
		location = staged.Location
	case chosen:
		if location, err = res.acceptLocation(location); err != nil {
			return plan[*commit.Document]{}, err
		}
	default:
		location = defaultTableLocation(w, assigned)
	}
	document, err := commit.ApplyCreate(r, commit.CreateStamp{
		Now: s.Now(), UUID: assigned.String(), Location: location, Presets: w.tablePresets(),
	})
	if err != nil {
		return plan[*commit.Document]{}, fmt.Errorf("create table %s: %w", id, err)
	}
	if err := res.checkNewTable(document, location); err != nil {
		return plan[*commit.Document]{}, err
	}
	if err := checkReferences(r, document.Location()); err != nil {
		return plan[*commit.Document]{}, err
	}
	p := s.creation(c, "commit-table", res, newTableRecord(res, id, document), document)
	p.change.Maintenance = maintenanceFlag(document)
	if staged != nil {
		p.change.StagedUUID = staged.UUID
	}
	return plan[*commit.Document]{warehouse: w, document: document, work: &p}, nil
}

// landedCreate answers the repeat of a create that has landed: same uuid, and everything that it brought is there.
func (s *Service) landedCreate(ctx context.Context, c Caller, res Resolution, r commit.Request, refused error) (plan[*commit.Document], error) {
	if !fault.Is(refused, fault.AlreadyExists) || res.View != nil {
		return plan[*commit.Document]{}, s.unlessHeld(ctx, res, r, refused)
	}
	exists := s.unlessElsewhere(ctx, res, r, fault.New(fault.AlreadyExists, "Requirement failed: table already exists"))
	if res.Table == nil || !strings.EqualFold(r.AssignedUUID(), res.Table.UUID.String()) {
		return plan[*commit.Document]{}, exists
	}
	n := need{"commit-table", res.Table.Ident.String(), authz.TableReadProperties}
	if err := s.require(ctx, c, res, res.Path(), n); err != nil {
		return plan[*commit.Document]{}, s.unlessHeld(ctx, res, r, err)
	}
	document, err := s.document(ctx, *res.Warehouse, *res.Table)
	if err != nil {
		return plan[*commit.Document]{}, err
	}
	if r.AddsSnapshots() && !commit.Held(document, r) {
		return plan[*commit.Document]{}, exists
	}
	return plan[*commit.Document]{warehouse: *res.Warehouse, record: *res.Table, document: document}, s.repeated(document, r)
}

func (s *Service) stagedOf(ctx context.Context, c Caller, w Warehouse, id Identifier, assigned uuid.UUID) (*StagedTable, error) {
	if assigned == uuid.Nil {
		return nil, nil
	}
	staged, err := s.Store.FindStagedTables(ctx, w.ID, id)
	if err != nil {
		return nil, fmt.Errorf("find staged creates of %s: %w", id, err)
	}
	for _, t := range staged {
		if t.UUID == assigned && t.PrincipalID == c.Principal.ID {
			return &t, nil
		}
	}
	return nil, nil
}
