package rest

import (
	"encoding/json"
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

// commitTable applies a commit to one table. The path names the table; the identifier that some clients repeat in the
// body is not looked at.
func (h *handlers) commitTable(w http.ResponseWriter, r *http.Request) error {
	warehouse, ident, err := identifierOf(r, "table")
	if err != nil {
		return err
	}
	body, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	change, err := commit.DecodeRequest(body)
	if err != nil {
		return err
	}
	loaded, err := h.Service.CommitTable(r.Context(), api.CallerOf(r), catalog.CommitTableRequest{
		Warehouse: warehouse, Ident: ident, Change: change,
	})
	if err != nil {
		return err
	}
	return writeCommitted(w, r, loaded)
}

// writeCommitted writes a CommitTableResponse. From here on nothing may answer a 4xx: clients would delete the files
// of a commit that has landed.
func writeCommitted(w http.ResponseWriter, r *http.Request, t catalog.LoadedTable) error {
	head, err := metadataHead(t.MetadataLocation)
	if err != nil {
		return err
	}
	api.SetETag(w, t.ETag)
	return api.RawJSON(w, r, head, t.Metadata, []byte("}"))
}

type commitTransactionRequest struct {
	TableChanges []json.RawMessage `json:"table-changes"`
}

type tableChange struct {
	Identifier *catalog.Identifier `json:"identifier"`
}

// commitTransaction applies changes to several tables, all or none.
func (h *handlers) commitTransaction(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := warehouseOf(r)
	if err != nil {
		return err
	}
	var request commitTransactionRequest
	if err := api.DecodeJSON(r, &request); err != nil {
		return err
	}
	changes := make([]catalog.TableChange, len(request.TableChanges))
	for i, text := range request.TableChanges {
		if changes[i], err = decodeTableChange(i, text); err != nil {
			return err
		}
	}
	if len(changes) > 0 {
		api.Annotate(r, warehouse, changes[0].Ident.String())
	}
	if err := h.Service.CommitTransaction(r.Context(), api.CallerOf(r), warehouse, changes); err != nil {
		return err
	}
	return api.NoContent(w)
}

func decodeTableChange(index int, text []byte) (catalog.TableChange, error) {
	var change tableChange
	if err := api.UnmarshalJSON(text, &change); err != nil {
		return catalog.TableChange{}, err
	}
	if change.Identifier == nil {
		return catalog.TableChange{}, fault.New(fault.BadRequest, "table-changes[%d].identifier is required", index)
	}
	request, err := commit.DecodeRequest(text)
	if err != nil {
		return catalog.TableChange{}, err
	}
	return catalog.TableChange{Ident: *change.Identifier, Change: request}, nil
}
