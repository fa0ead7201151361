package rest

import (
	"net/http"

	"catalogd/api"
)

// configResult is the answer of /v1/config. Nothing secret is ever in it: everybody who is signed in may read it.
type configResult struct {
	Defaults  map[string]string `json:"defaults"`
	Overrides map[string]string `json:"overrides"`
	Endpoints []string          `json:"endpoints"`
}

// loadConfig answers GET /v1/config.
func (h *handlers) loadConfig(w http.ResponseWriter, r *http.Request) error {
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	warehouse := query.Get("warehouse")
	api.Annotate(r, warehouse, "")
	config, err := h.Service.LoadConfig(r.Context(), api.CallerOf(r), warehouse)
	if err != nil {
		return err
	}
	result := configResult{
		Defaults:  map[string]string{},
		Overrides: map[string]string{"prefix": config.Prefix},
		Endpoints: h.announced,
	}
	if config.Vends {
		// Java clients send configured headers with each request, so they ask for credentials without being told to.
		result.Defaults["header."+delegationHeader] = delegationVended
	}
	return api.JSON(w, r, http.StatusOK, result)
}
