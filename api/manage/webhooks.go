package manage

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

const (
	webhooksRoute = "/webhooks"
	webhookRoute  = webhooksRoute + "/{webhook}"
)

func (h *handlers) webhookRows() []api.Endpoint {
	return []api.Endpoint{
		row(http.MethodGet, webhooksRoute, "list-webhooks", h.listWebhooks),
		row(http.MethodPost, webhooksRoute, "create-webhook", h.createWebhook),
		row(http.MethodGet, webhookRoute, "load-webhook", h.loadWebhook),
		row(http.MethodPut, webhookRoute, "update-webhook", h.updateWebhook),
		row(http.MethodDelete, webhookRoute, "drop-webhook", h.dropWebhook),
		row(http.MethodPost, webhookRoute+"/test", "test-webhook", h.testWebhook),
		row(http.MethodPost, webhookRoute+"/redeliver", "redeliver-webhook", h.redeliverWebhook),
	}
}

// webhookAnswer is a webhook without its secret.
type webhookAnswer struct {
	ID         uuid.UUID  `json:"id"`
	URL        string     `json:"url"`
	Catalog    string     `json:"catalog,omitempty"`
	Operations []string   `json:"operations"`
	Subject    string     `json:"subject,omitempty"`
	Enabled    bool       `json:"enabled"`
	CreatedBy  string     `json:"createdBy"`
	CreatedAt  time.Time  `json:"createdAt"`
	Behind     *int64     `json:"behind,omitempty"` // of one webhook alone: counting takes a while
	Waiting    int64      `json:"waiting"`
	Dead       int64      `json:"dead"`
	Failures   int        `json:"failures"`
	Problem    string     `json:"problem,omitempty"`
	Delivered  *time.Time `json:"deliveredAt,omitempty"`
}

func newWebhookAnswer(w catalog.Webhook) webhookAnswer {
	a := webhookAnswer{
		ID: w.ID, URL: w.URL, Catalog: w.Warehouse, Operations: append([]string{}, w.Filter.Operations...), Subject: w.Filter.Subject,
		Enabled: w.Enabled, CreatedBy: w.CreatedBy, CreatedAt: w.CreatedAt, Waiting: w.Waiting, Dead: w.Dead,
		Failures: w.Failures, Problem: w.Problem,
	}
	if !w.DeliveredAt.IsZero() {
		a.Delivered = &w.DeliveredAt
	}
	return a
}

// withBehind tells how much the webhook is still to get as well.
func withBehind(w catalog.Webhook) webhookAnswer {
	a := newWebhookAnswer(w)
	a.Behind = &w.Behind
	return a
}

// deliveryAnswer is an event that a webhook has not got.
type deliveryAnswer struct {
	EventID   *uuid.UUID `json:"eventId,omitempty"`
	Operation string     `json:"operation,omitempty"`
	Subject   string     `json:"subject,omitempty"`
	State     string     `json:"state"`
	Attempts  int        `json:"attempts"`
	Problem   string     `json:"problem,omitempty"`
	Since     time.Time  `json:"since"`
	Next      *time.Time `json:"nextAttemptAt,omitempty"`
}

func newDeliveryAnswer(d catalog.Delivery) deliveryAnswer {
	a := deliveryAnswer{
		EventID: known(d.Event.ID), Operation: d.Event.Operation, Subject: d.Event.Subject, State: "dead",
		Attempts: d.Attempts, Problem: d.Problem, Since: d.FirstAt,
	}
	if !d.Dead {
		a.State, a.Next = "waiting", &d.Next
	}
	return a
}

// webhookOf reads the webhook's id of the path.
func webhookOf(r *http.Request) (uuid.UUID, error) {
	text, err := param(r, "webhook")
	if err != nil {
		return uuid.Nil, err
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, fault.New(fault.BadRequest, "the webhook in the path is not a UUID")
	}
	return id, nil
}

func (h *handlers) listWebhooks(w http.ResponseWriter, r *http.Request) error {
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	warehouse := query.Get("catalog")
	api.Annotate(r, warehouse, "")
	all, err := h.service.ListWebhooks(r.Context(), api.CallerOf(r), warehouse)
	if err != nil {
		return err
	}
	answer := struct {
		Webhooks []webhookAnswer `json:"webhooks"`
	}{[]webhookAnswer{}}
	for _, one := range all {
		answer.Webhooks = append(answer.Webhooks, newWebhookAnswer(one))
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// createWebhook answers the secret, this once.
func (h *handlers) createWebhook(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		URL        string   `json:"url"`
		Catalog    string   `json:"catalog"`
		Operations []string `json:"operations"`
		Subject    string   `json:"subject"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	api.Annotate(r, body.Catalog, "")
	if body.URL == "" {
		return missing("url")
	}
	made, secret, err := h.service.CreateWebhook(r.Context(), api.CallerOf(r), catalog.WebhookDraft{
		URL: body.URL, Warehouse: body.Catalog, Filter: catalog.WebhookFilter{Operations: body.Operations, Subject: body.Subject},
	})
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return api.JSON(w, r, http.StatusCreated, struct {
		Webhook webhookAnswer `json:"webhook"`
		Secret  string        `json:"secret"`
	}{newWebhookAnswer(made), secret})
}

func (h *handlers) loadWebhook(w http.ResponseWriter, r *http.Request) error {
	id, err := webhookOf(r)
	if err != nil {
		return err
	}
	found, deliveries, err := h.service.FindWebhook(r.Context(), api.CallerOf(r), id)
	if err != nil {
		return err
	}
	answer := struct {
		Webhook    webhookAnswer    `json:"webhook"`
		Deliveries []deliveryAnswer `json:"deliveries"`
	}{withBehind(found), []deliveryAnswer{}}
	for _, d := range deliveries {
		answer.Deliveries = append(answer.Deliveries, newDeliveryAnswer(d))
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// updateWebhook changes what the body names, and leaves the rest.
func (h *handlers) updateWebhook(w http.ResponseWriter, r *http.Request) error {
	id, err := webhookOf(r)
	if err != nil {
		return err
	}
	var body struct {
		URL     *string                `json:"url"`
		Filter  *catalog.WebhookFilter `json:"filter"`
		Enabled *bool                  `json:"enabled"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.URL == nil && body.Filter == nil && body.Enabled == nil {
		return missing("url, filter or enabled")
	}
	changed, err := h.service.UpdateWebhook(r.Context(), api.CallerOf(r), id, catalog.WebhookChange(body))
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, withBehind(changed))
}

func (h *handlers) dropWebhook(w http.ResponseWriter, r *http.Request) error {
	id, err := webhookOf(r)
	if err != nil {
		return err
	}
	if err := h.service.DropWebhook(r.Context(), api.CallerOf(r), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// testWebhook answers whether an event that never happened arrived. That it did not is no failure of this request.
func (h *handlers) testWebhook(w http.ResponseWriter, r *http.Request) error {
	id, err := webhookOf(r)
	if err != nil {
		return err
	}
	problem, err := h.service.TestWebhook(r.Context(), api.CallerOf(r), id)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, struct {
		Delivered bool   `json:"delivered"`
		Problem   string `json:"problem,omitempty"`
	}{problem == "", problem})
}

// redeliverWebhook takes an event's id or, without a body, means all that were given up.
func (h *handlers) redeliverWebhook(w http.ResponseWriter, r *http.Request) error {
	id, err := webhookOf(r)
	if err != nil {
		return err
	}
	var body struct {
		EventID uuid.UUID `json:"eventId"`
	}
	if r.ContentLength != 0 {
		if err := api.DecodeJSON(r, &body); err != nil {
			return err
		}
	}
	n, err := h.service.RedeliverWebhook(r.Context(), api.CallerOf(r), id, body.EventID)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, struct {
		Redelivered int `json:"redelivered"`
	}{n})
}
