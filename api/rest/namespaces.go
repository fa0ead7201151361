package rest

import (
	"context"
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// listNamespaces answers the direct children of a namespace, as full paths.
func (h *handlers) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := warehouseOf(r)
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
	parent := splitLevels(query.Get("parent"))
	api.Annotate(r, warehouse, parent.String())
	caller := api.CallerOf(r)
	return api.JSONList(w, r, "namespaces", paging, api.ListSource{
		Read: func(ctx context.Context, p catalog.Page, each catalog.EachNames) error {
			return h.Service.ListNamespaces(ctx, caller, warehouse, parent, p, each)
		},
		Around: func(below catalog.Namespace) (head, tail string) {
			if len(below) == 0 {
				return "[", "]"
			}
			return "[" + string(appendLevels(nil, below)) + ",", "]"
		},
	})
}

// appendLevels appends the levels of a namespace as the content of a JSON list.
func appendLevels(dst []byte, levels catalog.Namespace) []byte {
	for i, level := range levels {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = api.AppendJSON(dst, level)
	}
	return dst
}

type createNamespaceRequest struct {
	Namespace  catalog.Namespace  `json:"namespace"`
	Properties map[string]*string `json:"properties"`
}

type namespaceResult struct {
	Namespace  catalog.Namespace `json:"namespace"`
	Properties map[string]string `json:"properties"`
}

// createNamespace answers the properties as stored, those that the server added included.
func (h *handlers) createNamespace(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := warehouseOf(r)
	if err != nil {
		return err
	}
	var request createNamespaceRequest
	if err := api.DecodeJSON(r, &request); err != nil {
		return err
	}
	api.Annotate(r, warehouse, request.Namespace.String())
	properties, err := plainProperties("properties", request.Properties)
	if err != nil {
		return err
	}
	stored, err := h.Service.CreateNamespace(r.Context(), api.CallerOf(r), warehouse, request.Namespace, properties)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, namespaceResult{Namespace: request.Namespace, Properties: stored})
}

// loadNamespace answers a namespace's properties.
func (h *handlers) loadNamespace(w http.ResponseWriter, r *http.Request) error {
	warehouse, ns, err := namespaceOf(r)
	if err != nil {
		return err
	}
	properties, err := h.Service.LoadNamespace(r.Context(), api.CallerOf(r), warehouse, ns)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, namespaceResult{Namespace: ns, Properties: properties})
}

// namespaceExists answers HEAD: 204 or an error without a body.
func (h *handlers) namespaceExists(w http.ResponseWriter, r *http.Request) error {
	return onNamespace(w, r, h.Service.NamespaceExists)
}

// onNamespace does something to the namespace that the path names and has nothing to answer.
func onNamespace(
	w http.ResponseWriter, r *http.Request, do func(context.Context, catalog.Caller, string, catalog.Namespace) error,
) error {
	warehouse, ns, err := namespaceOf(r)
	if err != nil {
		return err
	}
	if err := do(r.Context(), api.CallerOf(r), warehouse, ns); err != nil {
		return err
	}
	return api.NoContent(w)
}

// dropNamespace removes an empty namespace.
func (h *handlers) dropNamespace(w http.ResponseWriter, r *http.Request) error {
	return onNamespace(w, r, h.Service.DropNamespace)
}

type updateNamespaceRequest struct {
	Removals []string           `json:"removals"`
	Updates  map[string]*string `json:"updates"`
}

// updateNamespaceResult always has all three lists: PyIceberg refuses an answer without "missing".
type updateNamespaceResult struct {
	Updated []string `json:"updated"`
	Removed []string `json:"removed"`
	Missing []string `json:"missing"`
}

// updateNamespace sets and removes properties.
func (h *handlers) updateNamespace(w http.ResponseWriter, r *http.Request) error {
	warehouse, ns, err := namespaceOf(r)
	if err != nil {
		return err
	}
	var request updateNamespaceRequest
	if err := api.DecodeJSON(r, &request); err != nil {
		return err
	}
	updates, err := plainProperties("updates", request.Updates)
	if err != nil {
		return err
	}
	changes, err := h.Service.UpdateNamespaceProperties(r.Context(), api.CallerOf(r), warehouse, ns, request.Removals, updates)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, updateNamespaceResult{
		Updated: api.List(changes.Updated), Removed: api.List(changes.Removed), Missing: api.List(changes.Missing),
	})
}

// plainProperties refuses null values, which a map of strings would silently read as "".
func plainProperties(field string, properties map[string]*string) (map[string]string, error) {
	plain := make(map[string]string, len(properties))
	for key, value := range properties {
		if value == nil {
			return nil, fault.New(fault.BadRequest, "%s.%s has the wrong type: null is not a string", field, key)
		}
		plain[key] = *value
	}
	return plain, nil
}
