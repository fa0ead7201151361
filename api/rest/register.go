package rest

import (
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

// registerRequestOf reads what is to be registered and where.
func registerRequestOf(r *http.Request) (catalog.RegisterRequest, error) {
	warehouse, ns, err := namespaceOf(r)
	if err != nil {
		return catalog.RegisterRequest{}, err
	}
	var body registerRequest
	if err := api.DecodeJSON(r, &body); err != nil {
		return catalog.RegisterRequest{}, err
	}
	if body.Name == "" {
		return catalog.RegisterRequest{}, fault.New(fault.BadRequest, "name is required")
	}
	request := catalog.RegisterRequest{
		Warehouse: warehouse, Ident: catalog.Identifier{Namespace: ns, Name: body.Name}, MetadataLocation: body.MetadataLocation,
		Overwrite: body.Overwrite, Delegated: delegated(r),
	}
	api.Annotate(r, warehouse, request.Ident.String())
	return request, nil
}

// registerTable makes a table of a metadata file that is there already.
func (h *handlers) registerTable(w http.ResponseWriter, r *http.Request) error {
	request, err := registerRequestOf(r)
	if err != nil {
		return err
	}
	loaded, err := h.Service.RegisterTable(r.Context(), api.CallerOf(r), request)
	if err != nil {
		return err
	}
	return writeLoadedTable(w, r, loaded)
}

// registerView makes a view of a metadata file that is there already.
func (h *handlers) registerView(w http.ResponseWriter, r *http.Request) error {
	request, err := registerRequestOf(r)
	if err != nil {
		return err
	}
	loaded, err := h.Service.RegisterView(r.Context(), api.CallerOf(r), request)
	if err != nil {
		return err
	}
	return writeLoadedView(w, r, loaded)
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
