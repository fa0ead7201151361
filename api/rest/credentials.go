package rest

import (
	"net/http"

	"catalogd/api"
)

type loadCredentialsResult struct {
	StorageCredentials []storageCredential `json:"storage-credentials"`
}

// loadCredentials is the refresh route. Clients do not always send the delegation header here, so it is not asked for.
func (h *handlers) loadCredentials(w http.ResponseWriter, r *http.Request) error {
	warehouse, ident, err := identifierOf(r, "table")
	if err != nil {
		return err
	}
	credentials, err := h.Service.LoadCredentials(r.Context(), api.CallerOf(r), warehouse, ident)
	if err != nil {
		return err
	}
	api.NoStore(w)
	return api.JSON(w, r, http.StatusOK, loadCredentialsResult{StorageCredentials: storageCredentials(credentials...)})
}
