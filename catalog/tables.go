package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"catalogd/authz"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// ListTables gives the tables of a namespace by name.
func (s *Service) ListTables(ctx context.Context, c Caller, warehouse string, ns Namespace, p Page) ([]Identifier, error) {
	return s.listKind(ctx, c, KindTable, warehouse, ns, p)
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
	document, err := s.document(ctx, w, record)
	if err != nil {
		return LoadedTable{}, err
	}
	loaded := LoadedTable{
		MetadataLocation: record.MetadataLocation, Metadata: document.Answer(), Document: document, ETag: tag,
	}
	if r.Snapshots == SnapshotsRefs {
		loaded.Metadata = document.RefsOnly()
	}
	loaded.Config, loaded.Credentials, err = s.clientConfig(ctx, c, w, vendTarget{record.Ident, record.ID.String(), record.Location}, access)
	return loaded, err
}

// document gives a table's metadata.
func (s *Service) document(ctx context.Context, w Warehouse, record TableRecord) (*commit.Document, error) {
	return current(ctx, s, w, record, commit.Parse)
}

// current gives the metadata of a table or a view, from memory when it is there.
func current[D metadataText](ctx context.Context, s *Service, w Warehouse, record TableRecord, parse func([]byte) (D, error)) (D, error) {
	var none D
	if found, ok := s.cache.find(record.MetadataLocation); ok {
		if d, ok := found.(D); ok {
			return d, nil
		}
	}
	raw, err := s.Metadata.ReadMetadata(ctx, serverPlace(w, record, record.MetadataLocation))
	if err != nil {
		return none, fmt.Errorf("read metadata of %s: %w", record.Ident, err)
	}
	d, err := parse(raw)
	if err != nil {
		return none, fault.Wrap(fault.Internal, err, "the metadata file of %s %s cannot be read: %s",
			record.Kind, record.Ident, fault.Message(err))
	}
	if err := matchesRecord(d, record); err != nil {
		return none, err
	}
	s.cache.put(record.MetadataLocation, d)
	return d, nil
}

// matchesRecord refuses a metadata file that says something else than the catalog: whoever may write a table's files
// could else replace it and send the table's readers elsewhere.
func matchesRecord(d metadataText, record TableRecord) error {
	if strings.EqualFold(d.UUID(), record.UUID.String()) && samePlace(d.Location(), record.Location) && checkProperties(d.Properties()) == nil {
		return nil
	}
	return fault.New(fault.Validation, "the metadata file of %s %s was changed outside the catalog: its uuid, its location "+
		"or its properties are not those that were committed; restore %s", record.Kind, record.Ident, record.MetadataLocation)
}

// serverPlace is a file of a table as the server itself reaches it: with a scope of that table, nothing wider.
func serverPlace(w Warehouse, record TableRecord, path string) vending.FilePlace {
	return vending.FilePlace{
		Profile: w.Storage,
		Scope: vending.Scope{
			Warehouse: w.ID.String(), Table: record.ID.String(), Principal: "system:catalog",
			Location: record.Location, Access: vending.ReadWrite,
		},
		Path: path,
	}
}

// DropTableRequest names a table to drop. Purge is recorded; files are removed by no one yet.
type DropTableRequest struct {
	Warehouse string
	Ident     Identifier
	Purge     bool
}

// DropTable takes a table out of its namespace. Its files stay.
func (s *Service) DropTable(ctx context.Context, c Caller, r DropTableRequest) error {
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
	f := s.fact(c, "drop-table", r.Ident.String(), res.Warehouse.ID, res.Table.ID)
	f.Details = map[string]any{"purge-requested": r.Purge, "table-uuid": res.Table.UUID.String()}
	err = s.Store.DropTable(ctx, TableDrop{ID: res.Table.ID, Kind: KindTable, Ident: r.Ident, PurgeRequested: r.Purge, Fact: f})
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

// ReportMetrics takes a client's scan or commit report. Nothing in it is trusted.
func (s *Service) ReportMetrics(ctx context.Context, c Caller, warehouse string, id Identifier, body []byte) error {
	_, err := s.resolveTable(ctx, c, warehouse, id, need{"report-metrics", id.String(), authz.TableReadData})
	if err != nil {
		return err
	}
	var report struct {
		Type string `json:"report-type"`
	}
	if err := json.Unmarshal(body, &report); err != nil {
		return fault.Wrap(fault.BadRequest, err, "the metrics report is not a JSON object with a report-type")
	}
	if report.Type == "" {
		return fault.New(fault.BadRequest, "the metrics report has no report-type")
	}
	return nil
}
