package rest

import (
	"fmt"
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
)

// configResult is the answer of /v1/config. Nothing secret is ever in it: everybody who is signed in may read it.
type configResult struct {
	Defaults  map[string]string `json:"defaults"`
	Overrides map[string]string `json:"overrides"`
	Endpoints []string          `json:"endpoints"`
	// KeyLifetime is a duration of ISO 8601. That it is there makes clients send keys.
	KeyLifetime string `json:"idempotency-key-lifetime"`
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
		Defaults:    config.Defaults,
		Overrides:   config.Overrides,
		Endpoints:   h.announced,
		KeyLifetime: fmt.Sprintf("PT%dH", int(catalog.KeyLifetime.Hours())),
	}
	result.Overrides["prefix"] = config.Prefix
	if config.Vends {
		// Java clients send configured headers with each request, so they ask for credentials without being told to.
		result.Defaults["header."+delegationHeader] = delegationVended
	}
	return api.JSON(w, r, http.StatusOK, result)
}
