package rest

import (
	"context"
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

type registerRequest struct {
	Name             string `json:"name"`
	MetadataLocation string `json:"metadata-location"`
	Overwrite        bool   `json:"overwrite"`
}

// registerTable makes a table of a metadata file that is there already.
func (h *handlers) registerTable(w http.ResponseWriter, r *http.Request) error {
	return register(w, r, h.Service.RegisterTable, writeLoadedTable)
}

// registerView makes a view of a metadata file that is there already.
func (h *handlers) registerView(w http.ResponseWriter, r *http.Request) error {
	return register(w, r, h.Service.RegisterView, writeLoadedView)
}

func register[Loaded any](
	w http.ResponseWriter, r *http.Request,
	operation func(context.Context, catalog.Caller, catalog.RegisterRequest) (Loaded, error),
	answer func(http.ResponseWriter, *http.Request, Loaded) error,
) error {
	warehouse, ns, err := namespaceOf(r)
	if err != nil {
		return err
	}
	var body registerRequest
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.Name == "" {
		return fault.New(fault.BadRequest, "name is required")
	}
	ident := catalog.Identifier{Namespace: ns, Name: body.Name}
	api.Annotate(r, warehouse, ident.String())
	loaded, err := operation(r.Context(), api.CallerOf(r), catalog.RegisterRequest{
		Warehouse: warehouse, Ident: ident, MetadataLocation: body.MetadataLocation, Overwrite: body.Overwrite, Delegated: delegated(r),
	})
	if err != nil {
		return err
	}
	return answer(w, r, loaded)
}

// unregisterTable gives a table up and answers its last metadata.
func (h *handlers) unregisterTable(w http.ResponseWriter, r *http.Request) error {
	warehouse, ident, err := identifierOf(r, "table")
	if err != nil {
		return err
	}
	loaded, err := h.Service.UnregisterTable(r.Context(), api.CallerOf(r), warehouse, ident)
	if err != nil {
		return err
	}
	return writeCommitted(w, r, loaded)
}

type listFunctionsResult struct {
	Identifiers   [][]string `json:"identifiers"`
	NextPageToken *string    `json:"next-page-token"`
}

// listNoFunctions: there are no functions, so the list of a namespace that exists is empty.
func (h *handlers) listNoFunctions(w http.ResponseWriter, r *http.Request) error {
	if err := h.checkNamespace(r); err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, listFunctionsResult{Identifiers: [][]string{}})
}

// noSuchFunction is what every name of a function is answered in a namespace that exists.
func (h *handlers) noSuchFunction(_ http.ResponseWriter, r *http.Request) error {
	_, ident, err := identifierOf(r, "function")
	if err != nil {
		return err
	}
	if err := h.checkNamespace(r); err != nil {
		return err
	}
	return fault.New(fault.NoSuchFunction, "Function does not exist: %s", ident)
}

func (h *handlers) checkNamespace(r *http.Request) error {
	warehouse, ns, err := namespaceOf(r)
	if err != nil {
		return err
	}
	return h.Service.NamespaceExists(r.Context(), api.CallerOf(r), warehouse, ns)
}
