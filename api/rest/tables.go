package rest

import (
	"context"
	"maps"
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

// appendTail appends what follows the metadata in a LoadTableResult. Config holds strings only: Java fails on others.
func appendTail(dst []byte, config map[string]string, credentials *vending.Credentials) []byte {
	dst = appendConfig(append(dst, `,"config":`...), config)
	dst = append(dst, `,"storage-credentials":[`...)
	if credentials != nil {
		dst = api.AppendJSON(append(dst, `{"prefix":`...), credentials.Prefix)
		dst = append(appendConfig(append(dst, `,"config":`...), credentials.Config), '}')
	}
	return append(dst, "]}"...)
}

// appendConfig appends settings as an object, by name.
func appendConfig(dst []byte, config map[string]string) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(config)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(api.AppendJSON(dst, name), ':')
		dst = api.AppendJSON(dst, config[name])
	}
	return append(dst, '}')
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
	if t.Credentials != nil {
		api.NoStore(w)
	}
	api.SetETag(w, t.ETag)
	tail := appendTail(make([]byte, 0, tailBytes), t.Config, t.Credentials)
	return api.PackedJSON(w, r, metadataHead(t.MetadataLocation), t.Metadata, t.Packed, tail)
}

// tailBytes is the room for what follows the metadata; a longer tail takes more.
const tailBytes = 512

// metadataHead opens an answer up to where the metadata's text follows. A staged table has no location.
func metadataHead(location string) []byte {
	if location == "" {
		return []byte(`{"metadata":`)
	}
	const before, after = `{"metadata-location":`, `,"metadata":`
	head := make([]byte, 0, len(before)+len(location)+len(`""`)+len(after))
	return append(api.AppendJSON(append(head, before...), location), after...)
}
