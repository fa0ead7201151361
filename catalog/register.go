package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog/commit"
	"catalogd/internal/deflate"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// metadataLocationBytesMax bounds the name of a metadata file that a client brings.
const metadataLocationBytesMax = 2048

// uuidsByLocation is the name space of the uuids that registered v1 tables get which have none of their own.
var uuidsByLocation = uuid.MustParse("5f0a3c3e-9d5b-4d0e-8a55-3c0f4b8f6c1d")

// RegisterRequest asks for a table of which there is a metadata file already. Overwrite lets it take the place of a
// table of that name.
type RegisterRequest struct {
	Warehouse        string
	Ident            Identifier
	MetadataLocation string
	Overwrite        bool
	Delegated        bool
}

// RegisterTable makes a table out of a metadata file. Nothing is written to the storage; the file's spelling of
// locations, its uuid and its history stay.
func (s *Service) RegisterTable(ctx context.Context, c Caller, r RegisterRequest) (LoadedTable, error) {
	return once(ctx, s, c, func() (LoadedTable, *Outcome, error) {
		res, d, err := register(ctx, s, c, KindTable, r, parseRegisteredTable)
		if err != nil {
			return LoadedTable{}, nil, err
		}
		return s.registeredTable(ctx, c, createdTable{
			warehouse: *res.Warehouse, record: *res.Table, document: d, delegated: r.Delegated,
			access: s.accessFor(res, res.Path(), r.Delegated),
		}), nil, nil
	}, func(o Outcome) (LoadedTable, error) {
		n := need{"register-table", r.Ident.String(), authz.TableCreate}
		made, err := replayMade(ctx, s, c, mutation{KindTable, r.Warehouse, r.Ident, n, o}, parseRegisteredTable)
		if err != nil {
			return LoadedTable{}, err
		}
		t := createdTable{warehouse: *made.res.Warehouse, record: made.record, document: made.document, delegated: r.Delegated}
		if made.there {
			t.access = s.accessFor(made.res, made.path, r.Delegated)
		}
		return s.registeredTable(ctx, c, t), nil
	})
}

// registeredTable is the answer of a create, with the metadata as loads answer it.
func (s *Service) registeredTable(ctx context.Context, c Caller, t createdTable) LoadedTable {
	loaded := s.created(ctx, c, t)
	loaded.Metadata = t.document.Answer()
	return loaded
}

// RegisterView makes a view out of a metadata file. Overwrite and Delegated mean nothing for views.
func (s *Service) RegisterView(ctx context.Context, c Caller, r RegisterRequest) (LoadedView, error) {
	r.Overwrite = false
	return once(ctx, s, c, func() (LoadedView, *Outcome, error) {
		res, v, err := register(ctx, s, c, KindView, r, commit.ParseView)
		if err != nil {
			return LoadedView{}, nil, err
		}
		return loadedView(*res.View, v), nil, nil
	}, func(o Outcome) (LoadedView, error) {
		n := need{"register-view", r.Ident.String(), authz.ViewCreate}
		return s.replayView(ctx, c, mutation{KindView, r.Warehouse, r.Ident, n, o})
	})
}

// parseRegisteredTable is commit.Parse with a uuid for old v1 tables that have none: the same one whenever the table is
// registered. The next commit writes it.
func parseRegisteredTable(text []byte) (*commit.Document, error) {
	d, err := commit.Parse(text)
	if err != nil {
		return nil, err
	}
	return d.WithUUID(uuid.NewSHA1(uuidsByLocation, []byte(d.Location())).String())
}

// register makes a table or a view out of a metadata file. The resolution holds its new row.
func register[D metadataText](
	ctx context.Context, s *Service, c Caller, kind Kind, r RegisterRequest, parse func([]byte) (D, error),
) (res Resolution, d D, err error) {
	if err := r.Ident.Validate(); err != nil {
		return res, d, err
	}
	read, turn := false, registerTurn{registers: s.registers}
	defer turn.end()
	err = s.retryRaces(ctx, func() error {
		var err error
		if res, err = s.resolveForRegister(ctx, c, kind, r); err != nil {
			return err
		}
		if !read { // a metadata file never changes
			if d, err = readRegistered(ctx, s, &turn, *res.Warehouse, r.MetadataLocation, parse); err != nil {
				return fmt.Errorf("register %s %s: %w", kind, r.Ident, err)
			}
			read = true
		}
		change := s.registration(c, kind, res, r, d)
		if err := s.movePointers(ctx, []PointerChange{change}, Fence{}); err != nil {
			if r.Overwrite && fault.Is(err, fault.AlreadyExists) {
				return fault.Wrap(fault.CommitRace, err, "the name %s was taken meanwhile", r.Ident)
			}
			return err
		}
		s.cache.put(newMetadataEntry(r.MetadataLocation, d, change.Packed))
		res.Table, res.View = nil, nil
		if kind == KindView {
			res.View = &change.Record
		} else {
			res.Table = &change.Record
		}
		return nil
	})
	return res, d, err
}

// resolveForRegister finds where the table is to be and checks the rights: those of a create, and on a table that is
// to be replaced those over all of its metadata and its data, since every reader is sent elsewhere.
func (s *Service) resolveForRegister(ctx context.Context, c Caller, kind Kind, r RegisterRequest) (Resolution, error) {
	res, err := s.resolveForCreate(ctx, c, kind, r.Warehouse, r.Ident, "register-"+string(kind))
	if !r.Overwrite || res.Table == nil || !fault.Is(err, fault.AlreadyExists) {
		return res, err
	}
	for _, wanted := range []authz.Privilege{authz.TableFullMetadata, authz.TableWriteData} {
		if err := s.require(ctx, c, res, res.Path(), need{"register-table", r.Ident.String(), wanted}); err != nil {
			return res, err
		}
	}
	return res, nil
}

// readRegistered reads a metadata file that a client named, and refuses what it must not lead to. A client that may
// make tables could else get credentials for files that are none of the warehouse's.
func readRegistered[D metadataText](
	ctx context.Context, s *Service, turn *registerTurn, w Warehouse, metadataLocation string, parse func([]byte) (D, error),
) (D, error) {
	var none D
	text, err := s.readForeign(ctx, turn, w, metadataLocation)
	if err != nil {
		return none, err
	}
	d, err := parse(text)
	if err != nil {
		return none, notMetadata(metadataLocation, err)
	}
	if err := checkRegisteredLocation(w, d.Location()); err != nil {
		return none, err
	}
	if !vending.Within(d.Location(), metadataLocation) {
		return none, fault.New(fault.BadRequest, "metadata-location %q lies outside the location %s that the file itself names",
			metadataLocation, d.Location())
	}
	if err := checkProperties(d.Properties()); err != nil {
		return none, err
	}
	if table, ok := any(d).(*commit.Document); ok {
		if err := w.checkFormatVersion(table.FormatVersion()); err != nil {
			return none, err
		}
	}
	if err := checkPaths(d); err != nil {
		return none, fault.Wrap(fault.Forbidden, err, "the metadata file is refused: %s", fault.Message(err))
	}
	return d, nil
}

func notMetadata(metadataLocation string, err error) error {
	return fault.Wrap(fault.Validation, err, "the file %s cannot be registered: %s", metadataLocation, fault.Message(err))
}

// readForeign reads a metadata file that is no table's or view's yet, with credentials for its own folder alone.
func (s *Service) readForeign(ctx context.Context, turn *registerTurn, w Warehouse, metadataLocation string) ([]byte, error) {
	if metadataLocation == "" {
		return nil, fault.New(fault.BadRequest, "metadata-location is required")
	}
	if len(metadataLocation) > metadataLocationBytesMax {
		return nil, fault.New(fault.BadRequest, "metadata-location is %d bytes long; at most %d are allowed",
			len(metadataLocation), metadataLocationBytesMax)
	}
	folder, err := foreignFolder(w, metadataLocation)
	if err != nil {
		return nil, err
	}
	if err := turn.begin(ctx); err != nil {
		return nil, err
	}
	return s.Metadata.ReadForeign(ctx, vending.FilePlace{
		Profile: w.Storage, Path: metadataLocation, Scope: vending.Scope{
			Warehouse: w.ID.String(), Named: w.Name, Table: "register", Principal: "system:catalog", Location: folder, Access: vending.Read,
		},
	}, registerBytesFree, turn.larger)
}

// foreignFolder gives the innermost folder of a file that credentials can be made for, inside what the warehouse
// allows.
func foreignFolder(w Warehouse, file string) (string, error) {
	bases := allowedLocations(w)
	for _, base := range bases {
		if !vending.Within(base, file) || samePlace(base, file) {
			continue
		}
		folder := file
		for {
			slash := strings.LastIndexByte(folder, '/')
			if slash < 0 {
				break
			}
			folder = folder[:slash]
			if _, err := vending.Canonical(folder); err == nil && vending.Within(base, folder) {
				return folder, nil
			}
			if !vending.Within(base, folder) {
				break
			}
		}
		return base, nil
	}
	if _, err := vending.CanonicalBase(file[:max(0, strings.LastIndexByte(file, '/'))]); err != nil {
		return "", fault.Wrap(fault.BadRequest, err, "metadata-location %q is refused: %s", file, fault.Message(err))
	}
	return "", fault.New(fault.Forbidden, "metadata-location %q lies outside the allowed locations of warehouse %s: %s",
		file, w.Name, strings.Join(bases, ", "))
}

// checkRegisteredLocation is placeOf for a location that a file names and not the client: that it lies elsewhere is no
// slip of the client's, it is an attempt on somebody's data. In which namespace's folder it lies does not matter: the files
// are there already, and whose place it is says the store.
func checkRegisteredLocation(w Warehouse, location string) error {
	_, _, err := placeOf(w, location)
	if err == nil {
		return nil
	}
	if _, malformed := vending.Canonical(location); malformed != nil {
		return err
	}
	return fault.Wrap(fault.Forbidden, err, "the metadata file is refused: its %s", fault.Message(err))
}

// registration is the change that makes the table or view, or puts it in the place of the one that the name has now.
func (s *Service) registration(c Caller, kind Kind, res Resolution, r RegisterRequest, d metadataText) PointerChange {
	w := *res.Warehouse
	record := newRecord(res, kind, r.Ident, d, viewFormatVersion)
	change := PointerChange{
		WarehouseID: w.ID, Registered: true, Packed: deflate.Pack(d.JSON()),
		Restores: restores(res),
	}
	if table, ok := d.(*commit.Document); ok {
		record.FormatVersion = table.FormatVersion()
		change.Maintenance = maintenanceFlag(table)
	}
	if old := kind.of(res); old != nil {
		record.ID, record.Version = old.ID, old.Version+1
		change.Old, change.From = old.MetadataLocation, old.place()
		if !samePlace(record.Location, old.Location) {
			change.OldLocation = old.Location
		}
	}
	record.MetadataLocation = r.MetadataLocation
	change.Record = record
	change.Fact = remember(s.fact(c, "register-"+string(kind), r.Ident.String(), w.ID, record.ID), tableOutcome(record))
	change.Fact.Details = map[string]any{
		"metadata-location": r.MetadataLocation, string(kind) + "-uuid": record.UUID.String(), "overwritten": change.Old,
	}
	return change
}

// UnregisterTable takes a table out of the catalog and answers its last metadata. Its files stay, and its location is
// free for who registers the same table, here or in another catalog.
func (s *Service) UnregisterTable(ctx context.Context, c Caller, warehouse string, id Identifier) (LoadedTable, error) {
	return once(ctx, s, c, func() (LoadedTable, *Outcome, error) {
		var loaded LoadedTable
		err := s.retryRaces(ctx, func() error {
			var err error
			loaded, err = s.unregisterTable(ctx, c, warehouse, id)
			return err
		})
		return loaded, nil, err
	}, func(o Outcome) (LoadedTable, error) {
		n := need{"unregister-table", id.String(), authz.TableDrop}
		made, err := replayMade(ctx, s, c, mutation{KindTable, warehouse, id, n, o}, parseRegisteredTable)
		if err != nil {
			return LoadedTable{}, err
		}
		n.wanted = authz.TableReadProperties
		if err := s.require(ctx, c, made.res, made.path, n); err != nil {
			return LoadedTable{}, err
		}
		return lastOf(made.record, made.document), nil
	})
}

func (s *Service) unregisterTable(ctx context.Context, c Caller, warehouse string, id Identifier) (LoadedTable, error) {
	res, err := s.resolveTable(ctx, c, warehouse, id, need{"unregister-table", id.String(), authz.TableDrop})
	if err != nil {
		return LoadedTable{}, err
	}
	n := need{"unregister-table", id.String(), authz.TableReadProperties}
	if err := s.require(ctx, c, res, res.Path(), n); err != nil {
		return LoadedTable{}, err
	}
	record := *res.Table
	document, err := s.document(ctx, *res.Warehouse, record)
	if err != nil {
		return LoadedTable{}, err
	}
	f := remember(s.fact(c, "unregister-table", id.String(), res.Warehouse.ID, record.ID), tableOutcome(record))
	f.Details = map[string]any{"metadata-location": record.MetadataLocation, "table-uuid": record.UUID.String()}
	err = s.Store.DropTable(ctx, TableDrop{
		ID: record.ID, Kind: KindTable, Ident: id, From: record.place(), Unregistered: true, At: record.MetadataLocation, Fact: f,
	})
	if err != nil {
		return LoadedTable{}, fmt.Errorf("unregister table %s: %w", id, err)
	}
	return lastOf(record, document), nil
}

// lastOf is a table that was given up, as it was last.
func lastOf(record TableRecord, d *commit.Document) LoadedTable {
	return LoadedTable{MetadataLocation: record.MetadataLocation, Metadata: d.Answer(), Document: d}
}

// isSystem tells that the server itself asks.
func (c Caller) isSystem() bool { return c.Principal.Kind == auth.System }
