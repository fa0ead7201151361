package rest

import (
	"net/http"
	"strings"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/catalog/commit"
)

// commitTable applies a commit to one table.
func (h *handlers) commitTable(w http.ResponseWriter, r *http.Request) error {
	return change(w, r, "table", commit.DecodeRequest, h.Service.CommitTable, writeCommitted)
}

// writeCommitted writes a CommitTableResponse. From here on nothing may answer a 4xx: clients would delete the files
// of a commit that has landed.
func writeCommitted(w http.ResponseWriter, r *http.Request, t catalog.LoadedTable) error {
	api.SetETag(w, t.ETag)
	return api.RawJSON(w, r, metadataHead(t.MetadataLocation), t.Metadata, []byte("}"))
}

// commitTransaction applies changes to several tables, all or none.
func (h *handlers) commitTransaction(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := warehouseOf(r)
	if err != nil {
		return err
	}
	requests, err := bodyOf(r, commit.DecodeTransaction)
	if err != nil {
		return err
	}
	changes := make([]catalog.TableChange, len(requests))
	names := make([]string, len(requests))
	for i, request := range requests {
		ident := catalog.Identifier{Namespace: request.Identifier.Namespace, Name: request.Identifier.Name}
		changes[i] = catalog.TableChange{Ident: ident, Change: request}
		names[i] = ident.String()
	}
	api.Annotate(r, warehouse, strings.Join(names, " "))
	if err := h.Service.CommitTransaction(r.Context(), api.CallerOf(r), warehouse, changes); err != nil {
		return err
	}
	return api.NoContent(w)
}
