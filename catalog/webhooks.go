package catalog

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// Limits of webhooks.
const (
	webhookURLBytesMax       = 2048
	webhookOperationsMax     = 100
	webhookOperationBytesMax = 100
	webhookSubjectBytesMax   = 4 << 10 // no event has a longer one
	webhookSecretBytes       = 32
	webhookDeliveriesListed  = 100
	// WebhooksMax is how many there may be, WebhooksOfWarehouseMax how many of one warehouse: whoever may make webhooks there
	// leaves room for others.
	WebhooksMax            = 1000
	WebhooksOfWarehouseMax = 20
	// WebhookBehindMax is how far events are counted that a webhook is still to get.
	WebhookBehindMax = 1000
)

// ErrWebhooksMax refuses one webhook more.
var ErrWebhooksMax = fault.New(fault.BadRequest, "there are as many webhooks as there may be: %d of a warehouse, %d in all",
	WebhooksOfWarehouseMax, WebhooksMax)

// webhookSecretPrefix marks a secret for people and for scanners, as Standard Webhooks has it.
const webhookSecretPrefix = "whsec_"

// webhooksTable is where secrets are kept: part of what they are encrypted with.
const webhooksTable = "webhooks"

// Webhook is an address that events are sent to.
type Webhook struct {
	ID          uuid.UUID
	URL         string
	Sealed      []byte    // the secret that messages are signed with, encrypted
	WarehouseID uuid.UUID // uuid.Nil: of the whole service
	Warehouse   string
	Filter      WebhookFilter
	Enabled     bool
	CreatedBy   string
	CreatedAt   time.Time
	// How deliveries stand.
	Position    int64 // every event up to it was delivered, or waits, or was given up
	Behind      int64 // events behind it that are for this webhook, WebhookBehindMax at most; of FindWebhook alone
	Failures    int   // in a row
	Problem     string
	DeliveredAt time.Time // zero: never
	Waiting     int64     // events whose delivery failed, and those of the same table behind them
	Dead        int64     // events that were given up
}

// WebhookFilter leaves events that match all of it; what is empty matches everything.
type WebhookFilter struct {
	Operations []string `json:"operations,omitempty"`
	Subject    string   `json:"subject,omitempty"`
}

// Events gives the webhook's filter as one of events.
func (w Webhook) Events() EventFilter {
	return EventFilter{WarehouseID: w.WarehouseID, Subject: w.Filter.Subject, Operations: w.Filter.Operations}
}

// WebhookStore keeps webhooks. What is not there is fault.NotFound.
type WebhookStore interface {
	// CreateWebhook makes one that begins with the next event, and sets its position. ErrWebhooksMax when there are as many as
	// there may be.
	CreateWebhook(ctx context.Context, w Webhook, f Fact) error
	FindWebhook(ctx context.Context, id uuid.UUID) (Webhook, error)
	// ListWebhooks gives those of a warehouse, or of uuid.Nil all, in the order in which they were made.
	ListWebhooks(ctx context.Context, warehouseID uuid.UUID) ([]Webhook, error)
	// UpdateWebhook changes what the change names and leaves the rest as it is by then, and takes the webhook from whoever has
	// claimed it. What waits is tried at once when it is enabled.
	UpdateWebhook(ctx context.Context, id uuid.UUID, change WebhookChange, f Fact) error
	DropWebhook(ctx context.Context, id uuid.UUID, f Fact) error
	// ResealWebhook replaces a secret's encrypted form, unless it is another one by now.
	ResealWebhook(ctx context.Context, id uuid.UUID, old, fresh []byte) error
	// ListDeliveries gives what was given up, then what waits, each in order.
	ListDeliveries(ctx context.Context, id uuid.UUID, limit int) ([]Delivery, error)
	// RedeliverWebhook lets an event that was sent or given up be sent once more, or of uuid.Nil all that were given up and
	// are still kept, and tells how many. fault.NotFound when the webhook is to get no such event, or its turn has not come.
	RedeliverWebhook(ctx context.Context, id, event uuid.UUID, f Fact) (int, error)
}

// EventSender sends one event to a webhook's address, signed with its secret. An error says why it did not arrive, in
// words that the webhook's owner may read.
type EventSender interface {
	SendEvent(ctx context.Context, w Webhook, secret []byte, e EventRow) error
}

// WebhookConfig is what webhooks need; without a Ring there are none.
type WebhookConfig struct {
	Ring   *auth.Ring
	Sender EventSender
	// AllowPrivate lets webhooks be where not everybody could reach them, and be reached without TLS.
	AllowPrivate bool
}

// WebhookDraft is a webhook about to be made.
type WebhookDraft struct {
	URL       string
	Warehouse string // "": of the whole service
	Filter    WebhookFilter
}

// CreateWebhook makes a webhook and gives its secret, this once. It takes CATALOG_MANAGE_ACCESS on its warehouse, or of
// the whole service SERVICE_MANAGE_ACCESS: it tells everything that happens there to whoever is at the address.
func (s *Service) CreateWebhook(ctx context.Context, c Caller, d WebhookDraft) (Webhook, string, error) {
	warehouse, err := s.authorizeWebhooks(ctx, c, "create-webhook", d.Warehouse)
	if err != nil {
		return Webhook{}, "", err
	}
	if err := s.checkWebhook(d); err != nil {
		return Webhook{}, "", err
	}
	if s.Webhooks.Ring == nil {
		return Webhook{}, "", errNoSecrets
	}
	raw := make([]byte, webhookSecretBytes)
	_, _ = rand.Read(raw) // never fails: the runtime ends the process instead
	f := s.fact(c, "create-webhook", hostOf(d.URL), warehouse, newID())
	f.Details = map[string]any{"host": f.Subject, "operations": d.Filter.Operations, "subject": d.Filter.Subject, "enabled": true}
	w := Webhook{
		ID: f.Securable, URL: d.URL, WarehouseID: warehouse, Warehouse: d.Warehouse, Filter: d.Filter, Enabled: true,
		Sealed: s.Webhooks.Ring.Seal(webhookPlace(f.Securable), raw), CreatedBy: c.Principal.Name, CreatedAt: f.At,
	}
	if err := s.Admin.CreateWebhook(ctx, w, f); err != nil {
		return Webhook{}, "", fmt.Errorf("create a webhook: %w", err)
	}
	return w, webhookSecretPrefix + base64.StdEncoding.EncodeToString(raw), nil
}

// hostOf is what facts call a webhook. The whole address is in none: it may hold a token.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

func webhookPlace(id uuid.UUID) auth.Place { return auth.Place{Table: webhooksTable, Row: id.String()} }

// checkWebhook refuses an address that could not work or that would give something away.
func (s *Service) checkWebhook(d WebhookDraft) error {
	u, err := url.Parse(d.URL)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" || len(d.URL) > webhookURLBytesMax:
		return fault.New(fault.BadRequest, "url must be an https address of at most %d bytes", webhookURLBytesMax)
	case u.Scheme == "http" && !s.Webhooks.AllowPrivate:
		return fault.New(fault.BadRequest, "url must begin with https: (the setting webhooks.allow_private allows http:)")
	case u.User != nil:
		return fault.New(fault.BadRequest, "url must not hold a user or a password: what is sent is signed with the webhook's secret")
	case u.Fragment != "":
		return fault.New(fault.BadRequest, "url must not hold a fragment (#)")
	case len(d.Filter.Operations) > webhookOperationsMax:
		return fault.New(fault.BadRequest, "a webhook names at most %d operations", webhookOperationsMax)
	case slices.Contains(d.Filter.Operations, ""):
		return fault.New(fault.BadRequest, "operations holds an empty name")
	case slices.ContainsFunc(d.Filter.Operations, func(name string) bool { return len(name) > webhookOperationBytesMax }):
		return fault.New(fault.BadRequest, "an operation's name has at most %d bytes", webhookOperationBytesMax)
	case len(d.Filter.Subject) > webhookSubjectBytesMax:
		return fault.New(fault.BadRequest, "the subject is %d bytes long; at most %d are accepted", len(d.Filter.Subject), webhookSubjectBytesMax)
	}
	return checkOperations(d.Filter.Operations) // one that never happens would look well and be silent for ever
}

func (s *Service) authorizeWebhooks(ctx context.Context, c Caller, operation, warehouse string) (uuid.UUID, error) {
	subject := RecordScope{Warehouse: warehouse}.subject()
	if warehouse == "" {
		return uuid.Nil, s.requireOnRoot(ctx, c, need{operation, subject, authz.ServiceManageAccess})
	}
	w, err := s.requireOnWarehouse(ctx, c, warehouse, need{operation, subject, authz.CatalogManageAccess})
	return w.ID, err
}

// ListWebhooks gives those of a warehouse, or all, to who could make one there.
func (s *Service) ListWebhooks(ctx context.Context, c Caller, warehouse string) ([]Webhook, error) {
	id, err := s.authorizeWebhooks(ctx, c, "list-webhooks", warehouse)
	if err != nil {
		return nil, err
	}
	all, err := s.Admin.ListWebhooks(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("list webhooks: %w", err)
	}
	return all, nil
}

// webhookFor finds a webhook for who could make one there. Nobody else learns whether it exists.
func (s *Service) webhookFor(ctx context.Context, c Caller, operation string, id uuid.UUID) (Webhook, error) {
	w, err := s.Admin.FindWebhook(ctx, id)
	if err == nil && w.Warehouse != "" {
		res, refused := s.resolve(ctx, c, Lookup{Warehouse: w.Warehouse})
		if refused == nil && allowed(res, res.Path(), authz.CatalogManageAccess) {
			return w, nil
		}
	}
	if err == nil || fault.Is(err, fault.NotFound) {
		if _, refused := s.authorizeWebhooks(ctx, c, operation, ""); refused != nil {
			return Webhook{}, refused
		}
	}
	if err != nil {
		return Webhook{}, fmt.Errorf("find webhook %s: %w", id, err)
	}
	return w, nil
}

// FindWebhook gives a webhook with what it has not got, up to a limit.
func (s *Service) FindWebhook(ctx context.Context, c Caller, id uuid.UUID) (Webhook, []Delivery, error) {
	w, err := s.webhookFor(ctx, c, "load-webhook", id)
	if err != nil {
		return Webhook{}, nil, err
	}
	deliveries, err := s.Admin.ListDeliveries(ctx, id, webhookDeliveriesListed)
	if err != nil {
		return Webhook{}, nil, fmt.Errorf("list the deliveries of webhook %s: %w", id, err)
	}
	return w, deliveries, nil
}

// WebhookChange is what is to be another way; nil leaves it.
type WebhookChange struct {
	URL     *string
	Filter  *WebhookFilter
	Enabled *bool
}

// details are what a fact says of a change: what it names alone, because others may change the rest at the same time.
func (c WebhookChange) details() map[string]any {
	details := map[string]any{}
	if c.URL != nil {
		details["host"] = hostOf(*c.URL)
	}
	if c.Filter != nil {
		details["operations"], details["subject"] = c.Filter.Operations, c.Filter.Subject
	}
	if c.Enabled != nil {
		details["enabled"] = *c.Enabled
	}
	return details
}

// UpdateWebhook changes a webhook. While it is not enabled events wait for it, as long as they are kept.
func (s *Service) UpdateWebhook(ctx context.Context, c Caller, id uuid.UUID, change WebhookChange) (Webhook, error) {
	w, err := s.webhookFor(ctx, c, "update-webhook", id)
	if err != nil {
		return Webhook{}, err
	}
	if change.URL != nil {
		w.URL = *change.URL
	}
	if change.Filter != nil {
		w.Filter = *change.Filter
	}
	d := WebhookDraft{URL: w.URL, Filter: w.Filter}
	if change.URL != nil || change.Filter != nil { // one that was made under another setting can be switched off
		if err := s.checkWebhook(d); err != nil {
			return Webhook{}, err
		}
	}
	f := s.fact(c, "update-webhook", hostOf(w.URL), w.WarehouseID, id)
	f.Details = change.details()
	if err := s.Admin.UpdateWebhook(ctx, id, change, f); err != nil {
		return Webhook{}, fmt.Errorf("update webhook %s: %w", id, err)
	}
	if w, err = s.Admin.FindWebhook(ctx, id); err != nil {
		return Webhook{}, fmt.Errorf("find webhook %s: %w", id, err)
	}
	return w, nil
}

// RedeliverWebhook sends an event once more that was sent or given up, with the same id, or of uuid.Nil all that were
// given up. It tells how many will be sent.
func (s *Service) RedeliverWebhook(ctx context.Context, c Caller, id, event uuid.UUID) (int, error) {
	w, err := s.webhookFor(ctx, c, "redeliver-webhook", id)
	if err != nil {
		return 0, err
	}
	f := s.fact(c, "redeliver-webhook", hostOf(w.URL), w.WarehouseID, id)
	if event != uuid.Nil {
		f.Details = map[string]any{"event": event}
	}
	n, err := s.Admin.RedeliverWebhook(ctx, id, event, f)
	if err != nil {
		return 0, fmt.Errorf("deliver once more to webhook %s: %w", id, err)
	}
	return n, nil
}

// DropWebhook forgets a webhook and everything that it has not got.
func (s *Service) DropWebhook(ctx context.Context, c Caller, id uuid.UUID) error {
	w, err := s.webhookFor(ctx, c, "drop-webhook", id)
	if err != nil {
		return err
	}
	if err := s.Admin.DropWebhook(ctx, id, s.fact(c, "drop-webhook", hostOf(w.URL), w.WarehouseID, id)); err != nil {
		return fmt.Errorf("drop webhook %s: %w", id, err)
	}
	return nil
}

// operationTest is the operation of an event that never happened.
const operationTest = "test"

// TestWebhook sends an event that never happened and gives why it did not arrive; "" when it did.
func (s *Service) TestWebhook(ctx context.Context, c Caller, id uuid.UUID) (problem string, err error) {
	w, err := s.webhookFor(ctx, c, "test-webhook", id)
	if err != nil {
		return "", err
	}
	if s.Webhooks.Sender == nil {
		return "", errNoSecrets
	}
	secret, err := s.OpenWebhook(w)
	if err != nil {
		return "", err
	}
	sent := s.Webhooks.Sender.SendEvent(ctx, w, secret, EventRow{
		ID: newID(), At: s.Now().UTC(), Operation: operationTest, Principal: c.Principal.Name, WarehouseID: w.WarehouseID,
		Warehouse: w.Warehouse, Subject: "webhook " + id.String(), Details: []byte("{}"),
	})
	if sent != nil {
		return sent.Error(), nil
	}
	return "", nil
}

// OpenWebhook decrypts a webhook's secret.
func (s *Service) OpenWebhook(w Webhook) ([]byte, error) {
	if s.Webhooks.Ring == nil {
		return nil, errNoSecrets
	}
	return s.Webhooks.Ring.Open(webhookPlace(w.ID), w.Sealed)
}

// ResealWebhooks encrypts secrets anew that a previous key encrypted, and tells how many. Those that no key opens are
// left alone: their deliveries say so.
func (s *Service) ResealWebhooks(ctx context.Context) (resealed int, err error) {
	if s.Webhooks.Ring == nil {
		return 0, nil
	}
	all, err := s.Admin.ListWebhooks(ctx, uuid.Nil)
	if err != nil {
		return 0, fmt.Errorf("list webhooks: %w", err)
	}
	for _, w := range all {
		secret, err := s.OpenWebhook(w)
		if err != nil || s.Webhooks.Ring.IsCurrent(w.Sealed) {
			continue
		}
		if err := s.Admin.ResealWebhook(ctx, w.ID, w.Sealed, s.Webhooks.Ring.Seal(webhookPlace(w.ID), secret)); err != nil {
			return resealed, fmt.Errorf("encrypt the secret of webhook %s anew: %w", w.ID, err)
		}
		resealed++
	}
	return resealed, nil
}
