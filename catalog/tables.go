package catalog

import (
	"context"
	"fmt"
	"slices"

	"catalogd/authz"
)

// ListTables gives the tables of a namespace by name, all of one moment.
func (s *Service) ListTables(ctx context.Context, c Caller, warehouse string, ns Namespace, p Page, each EachNames) error {
	return s.listKind(ctx, c, KindTable, Lookup{Warehouse: warehouse, Namespace: ns}, p, each)
}

// TableExists is nil when the table is there and the caller may list it.
func (s *Service) TableExists(ctx context.Context, c Caller, warehouse string, id Identifier) error {
	_, err := s.resolveTable(ctx, c, warehouse, id, need{"table-exists", id.String(), authz.TableList})
	return err
}

// LoadTable answers a table's metadata and, when asked and granted, credentials for its files.
func (s *Service) LoadTable(ctx context.Context, c Caller, r LoadTableRequest) (LoadedTable, error) {
	n := need{"load-table", r.Ident.String(), authz.TableReadProperties}
	res, err := s.resolveTable(ctx, c, r.Warehouse, r.Ident, n)
	if err != nil {
		return LoadedTable{}, err
	}
	w, record := *res.Warehouse, *res.Table
	if w.verifiesMetadata() {
		if err := s.Metadata.StatMetadata(ctx, serverPlace(w, record, record.MetadataLocation)); err != nil {
			return LoadedTable{}, err
		}
	}
	access := s.accessFor(res, res.Path(), r.Delegated)
	tag := s.etag(c, w, record.MetadataLocation, tagParts{record.Ident, r.Snapshots, r.Delegated, access})
	if slices.Contains(r.IfNoneMatch, tag) {
		return LoadedTable{ETag: tag, NotModified: true}, nil
	}
	document, entry, err := currentEntry(ctx, s, w, record, record.parseTable)
	if err != nil {
		return LoadedTable{}, err
	}
	made := document.Answer
	if r.Snapshots == SnapshotsRefs {
		made = document.RefsOnly
	}
	a := s.cache.answerOf(entry, r.Snapshots, made)
	loaded := LoadedTable{
		MetadataLocation: record.MetadataLocation, Metadata: a.text, Packed: a.packed, Document: document, ETag: tag,
	}
	loaded.Config, loaded.Credentials, err = s.clientConfig(ctx, c, w, vendTarget{record.Ident, record.ID.String(), record.Location}, access)
	return loaded, err
}

// DropTableRequest names a table to drop. Purge asks for the removal of its files, which a worker does later.
type DropTableRequest struct {
	Warehouse string
	Ident     Identifier
	Purge     bool
}

// DropTable takes a table out of its namespace. Its files stay.
func (s *Service) DropTable(ctx context.Context, c Caller, r DropTableRequest) error {
	return s.onceSilent(ctx, c, r.Warehouse, func() (*Outcome, error) {
		return nil, s.retryRaces(ctx, func() error { return s.dropTable(ctx, c, r) })
	})
}

func (s *Service) dropTable(ctx context.Context, c Caller, r DropTableRequest) error {
	n := need{"drop-table", r.Ident.String(), authz.TableDrop}
	res, err := s.resolveTable(ctx, c, r.Warehouse, r.Ident, n)
	if err != nil {
		return err
	}
	if r.Purge {
		n.wanted = authz.TableWriteData
		if err := s.require(ctx, c, res, res.Path(), n); err != nil {
			return err
		}
	}
	f := remember(s.fact(c, "drop-table", r.Ident.String(), res.Warehouse.ID, res.Table.ID), Outcome{})
	f.Details = map[string]any{
		"purge-requested": r.Purge, "table-uuid": res.Table.UUID.String(), "metadata-location": res.Table.MetadataLocation,
	}
	drop := TableDrop{ID: res.Table.ID, Kind: KindTable, Ident: r.Ident, From: res.Table.place(), PurgeRequested: r.Purge, Fact: f}
	if r.Purge {
		drop.Purge = PurgeJob{ID: newID(), Delay: purgeDelay(*res.Warehouse)}
		f.Details["purge-job"] = drop.Purge.ID.String()
	}
	err = s.Store.DropTable(ctx, drop)
	if err != nil {
		return fmt.Errorf("drop table %s: %w", r.Ident, err)
	}
	return nil
}

// RenameTableRequest moves the name of a table or a view, within a warehouse.
type RenameTableRequest struct {
	Warehouse string
	From, To  Identifier
}

// RenameTable gives a table another name. No file moves; uuid, location and grants stay.
func (s *Service) RenameTable(ctx context.Context, c Caller, r RenameTableRequest) error {
	return s.renameKind(ctx, c, KindTable, r)
}
