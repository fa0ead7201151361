package rest

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// listTables answers the tables of a namespace, never its views.
func (h *handlers) listTables(w http.ResponseWriter, r *http.Request) error {
	return listIdentifiers(w, r, h.Service.ListTables)
}

type listFunc func(context.Context, catalog.Caller, string, catalog.Namespace, catalog.Page, catalog.EachNames) error

// listIdentifiers answers a page of a namespace's tables or views.
func listIdentifiers(w http.ResponseWriter, r *http.Request, list listFunc) error {
	warehouse, ns, err := namespaceOf(r)
	if err != nil {
		return err
	}
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	paging, err := api.PagingOf(query)
	if err != nil {
		return err
	}
	caller := api.CallerOf(r)
	return api.JSONList(w, r, "identifiers", paging, api.ListSource{
		Read: func(ctx context.Context, p catalog.Page, each catalog.EachNames) error {
			return list(ctx, caller, warehouse, ns, p, each)
		},
		Around: func(below catalog.Namespace) (head, tail string) {
			return `{"namespace":[` + string(appendLevels(nil, below)) + `],"name":`, "}"
		},
	})
}

// createTable makes a table or stages one.
func (h *handlers) createTable(w http.ResponseWriter, r *http.Request) error {
	return create(w, r, commit.DecodeCreate, h.Service.CreateTable, writeLoadedTable)
}

// loadTable answers a table's metadata, or 304 when the client has it already.
func (h *handlers) loadTable(w http.ResponseWriter, r *http.Request) error {
	warehouse, ident, err := identifierOf(r, "table")
	if err != nil {
		return err
	}
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	mode, err := snapshotsModeOf(query)
	if err != nil {
		return err
	}
	known := api.IfNoneMatch(r)
	loaded, err := h.Service.LoadTable(r.Context(), api.CallerOf(r), catalog.LoadTableRequest{
		Warehouse: warehouse, Ident: ident, Snapshots: mode, Delegated: delegated(r), IfNoneMatch: known,
	})
	if err != nil {
		return err
	}
	if loaded.NotModified || loaded.ETag != "" && slices.Contains(known, "*") {
		return api.NotModified(w, loaded.ETag)
	}
	return writeLoadedTable(w, r, loaded)
}

func snapshotsModeOf(query url.Values) (catalog.SnapshotsMode, error) {
	switch mode := catalog.SnapshotsMode(query.Get("snapshots")); mode {
	case "":
		return catalog.SnapshotsAll, nil
	case catalog.SnapshotsAll, catalog.SnapshotsRefs:
		return mode, nil
	default:
		return "", fault.New(fault.BadRequest, "snapshots must be %q or %q", catalog.SnapshotsAll, catalog.SnapshotsRefs)
	}
}

// tableExists answers HEAD: 204 or an error without a body.
func (h *handlers) tableExists(w http.ResponseWriter, r *http.Request) error {
	return onName(w, r, "table", h.Service.TableExists)
}

// dropTable takes a table out of the catalog.
func (h *handlers) dropTable(w http.ResponseWriter, r *http.Request) error {
	warehouse, ident, err := identifierOf(r, "table")
	if err != nil {
		return err
	}
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	purge, err := api.Flag(query, "purgeRequested")
	if err != nil {
		return err
	}
	err = h.Service.DropTable(r.Context(), api.CallerOf(r), catalog.DropTableRequest{
		Warehouse: warehouse, Ident: ident, Purge: purge,
	})
	if err != nil {
		return err
	}
	return api.NoContent(w)
}

// renameTable moves a table's name, within the warehouse.
func (h *handlers) renameTable(w http.ResponseWriter, r *http.Request) error {
	return rename(w, r, h.Service.RenameTable)
}

// loadTableTail is what follows the metadata in a LoadTableResult. Config holds strings only: Java fails on others.
type loadTableTail struct {
	Config             map[string]string   `json:"config"`
	StorageCredentials []storageCredential `json:"storage-credentials"`
}

type storageCredential struct {
	Prefix string            `json:"prefix"`
	Config map[string]string `json:"config"`
}

func storageCredentials(credentials ...vending.Credentials) []storageCredential {
	out := make([]storageCredential, len(credentials))
	for i, c := range credentials {
		out[i] = storageCredential{Prefix: c.Prefix, Config: c.Config}
	}
	return out
}

// writeLoadedTable writes a LoadTableResult around the metadata's own text, which is never decoded again: 19-digit
// ids, unknown fields and absent members stay as they are.
func writeLoadedTable(w http.ResponseWriter, r *http.Request, t catalog.LoadedTable) error {
	if t.Document != nil {
		api.AnnotateFormat(r, t.Document.FormatVersion())
	}
	tail := loadTableTail{Config: t.Config, StorageCredentials: []storageCredential{}}
	if tail.Config == nil {
		tail.Config = map[string]string{}
	}
	if t.Credentials != nil {
		tail.StorageCredentials = storageCredentials(*t.Credentials)
		api.NoStore(w)
	}
	tailText, err := api.EncodeJSON(tail)
	if err != nil {
		return err
	}
	head, err := metadataHead(t.MetadataLocation)
	if err != nil {
		return err
	}
	api.SetETag(w, t.ETag)
	tailText[0] = ',' // instead of its brace: it goes on where the metadata ends
	return api.PackedJSON(w, r, head, t.Metadata, t.Packed, tailText)
}

// metadataHead opens an answer up to where the metadata's text follows. A staged table has no location.
func metadataHead(location string) ([]byte, error) {
	if location == "" {
		return []byte(`{"metadata":`), nil
	}
	text, err := api.EncodeJSON(location)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{[]byte(`{"metadata-location":`), text, []byte(`,"metadata":`)}, nil), nil
}
