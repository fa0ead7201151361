package rest

import (
	"net/http"

	"catalogd/api"
)

// reportMetrics takes a client's scan or commit report. The table is the path's, whatever the report says.
func (h *handlers) reportMetrics(w http.ResponseWriter, r *http.Request) error {
	warehouse, ident, err := identifierOf(r, "table")
	if err != nil {
		return err
	}
	body, err := api.ReadBody(r)
	if err != nil {
		return err
	}
	if err := h.Service.ReportMetrics(r.Context(), api.CallerOf(r), warehouse, ident, body); err != nil {
		return err
	}
	return api.NoContent(w)
}
