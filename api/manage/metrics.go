package manage

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

const metricsRoute = catalogRoute + "/namespaces/{namespace}/tables/{table}/metrics"

// metricsPageMax bounds a page of reports, each of which may be 64 KiB long.
const metricsPageMax = 200

func (h *handlers) metricsRows() []api.Endpoint {
	return []api.Endpoint{row(http.MethodGet, metricsRoute, "list-metrics", h.listMetrics)}
}

type reportAnswer struct {
	ID         uuid.UUID       `json:"id"`
	At         time.Time       `json:"at"`
	Principal  string          `json:"principal"`
	Type       string          `json:"report-type"`
	SnapshotID *int64          `json:"snapshot-id,omitempty"`
	Report     json.RawMessage `json:"report"`
}

// listMetrics gives a table's reports, newest first and always in pages: nobody wants all of them at once.
func (h *handlers) listMetrics(w http.ResponseWriter, r *http.Request) error {
	names, err := params(r, "catalog", "namespace", "table")
	if err != nil {
		return err
	}
	ident := catalog.Identifier{Namespace: strings.Split(names[1], namespaceSeparator), Name: names[2]}
	api.Annotate(r, names[0], ident.String())
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	if !query.Has("pageToken") {
		query.Set("pageToken", "")
	}
	paging, err := api.PagingOf(query)
	if err != nil {
		return err
	}
	paging.Items = min(paging.Items, metricsPageMax)
	page := catalog.MetricsPage{Type: query.Get("type"), Limit: paging.Items + 1}
	if paging.After != "" {
		if page.Before, err = uuid.Parse(paging.After); err != nil {
			return fault.Wrap(fault.BadRequest, err, "pageToken is not one of this list's")
		}
	}
	found, err := h.service.ListMetrics(r.Context(), api.CallerOf(r), names[0], ident, page)
	if err != nil {
		return err
	}
	found, next := api.CutPage(paging, found, func(m catalog.MetricsReport) string { return m.ID.String() })
	answer := struct {
		Reports []reportAnswer `json:"reports"`
		Next    *string        `json:"next-page-token"`
	}{[]reportAnswer{}, next}
	for _, m := range found {
		answer.Reports = append(answer.Reports, reportAnswer{m.ID, m.At, m.Principal, m.Type, m.SnapshotID, m.Report})
	}
	return api.JSON(w, r, http.StatusOK, answer)
}
