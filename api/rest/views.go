package rest

import (
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/catalog/commit"
)

// listViews answers the views of a namespace, never its tables.
func (h *handlers) listViews(w http.ResponseWriter, r *http.Request) error {
	return listIdentifiers(w, r, h.Service.ListViews)
}

// createView makes a view.
func (h *handlers) createView(w http.ResponseWriter, r *http.Request) error {
	return create(w, r, commit.DecodeCreateView, h.Service.CreateView, writeLoadedView)
}

// loadView answers a view's metadata. Which view referred to it (referenced-by) makes no difference here: a view's rights
// are the caller's own.
func (h *handlers) loadView(w http.ResponseWriter, r *http.Request) error {
	warehouse, ident, err := identifierOf(r, "view")
	if err != nil {
		return err
	}
	if _, err := api.Query(r); err != nil {
		return err
	}
	loaded, err := h.Service.LoadView(r.Context(), api.CallerOf(r), warehouse, ident)
	if err != nil {
		return err
	}
	return writeLoadedView(w, r, loaded)
}

// viewExists answers HEAD: 204 or an error without a body.
func (h *handlers) viewExists(w http.ResponseWriter, r *http.Request) error {
	return onName(w, r, "view", h.Service.ViewExists)
}

// replaceView applies a commit to one view. Old clients send no requirements.
func (h *handlers) replaceView(w http.ResponseWriter, r *http.Request) error {
	return change(w, r, "view", commit.DecodeViewRequest, h.Service.ReplaceView, writeLoadedView)
}

// dropView takes a view out of the catalog.
func (h *handlers) dropView(w http.ResponseWriter, r *http.Request) error {
	return onName(w, r, "view", h.Service.DropView)
}

// renameView moves a view's name, within the warehouse.
func (h *handlers) renameView(w http.ResponseWriter, r *http.Request) error {
	return rename(w, r, h.Service.RenameView)
}

// writeLoadedView writes a LoadViewResult around the metadata's own text. Java dies of a config that is null and of a
// missing metadata-location.
func writeLoadedView(w http.ResponseWriter, r *http.Request, v catalog.LoadedView) error {
	return api.PackedJSON(w, r, metadataHead(v.MetadataLocation), v.Metadata, v.Packed, []byte(`,"config":{}}`))
}
