package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
)

// Delivery is an event that a webhook has not got.
type Delivery struct {
	Event    EventRow // ID is uuid.Nil when the event is gone
	Position int64
	Lane     uuid.UUID // deliveries of one lane keep their order: the event's securable
	Dead     bool      // given up
	Attempts int
	Problem  string
	FirstAt  time.Time
	Next     time.Time
}

// WebhookClaim is a webhook that one deliverer works for, until its lease ends.
type WebhookClaim struct {
	Webhook
	Epoch   int64
	Through int64         // the last event's position
	Lease   time.Duration // from the claim, and from each mark
}

// WebhookWork is what a webhook is to get.
type WebhookWork struct {
	// Due are the first deliveries of their lanes that failed before and are to be tried now.
	Due []Delivery
	// Fresh are events behind the webhook's position, in order.
	Fresh []EventRow
	// Blocked are the lanes in which something waits: nothing of theirs may overtake it.
	Blocked []uuid.UUID
	// Open tells that new events may be taken; else too many wait.
	Open bool
}

// WebhookMark keeps what became of deliveries.
type WebhookMark struct {
	Position  int64      // everything up to it is settled; 0 leaves it
	Delivered bool       // something arrived
	Problem   string     // something did not
	Done      int64      // the position of a waiting delivery that has arrived; 0: none
	Put       []Delivery // to be kept; Next is not used
	Delay     time.Duration
}

// WebhookRelease ends a claim.
type WebhookRelease struct {
	Delay   time.Duration // before anything is tried again
	Problem string        // to be shown; "" leaves what is
	// Disabled switches the webhook off and is the fact of that; nil leaves it on.
	Disabled *Fact
}

// DisabledFact is the fact of a webhook that the server switches off.
func (c WebhookClaim) DisabledFact(at time.Time, why string) *Fact {
	return &Fact{
		ID: newID(), At: at.UTC(), Caller: Caller{Principal: auth.DeliveryPrincipal()}, Operation: "disable-webhook", Warehouse: c.WarehouseID,
		Securable: c.ID, Subject: hostOf(c.URL), Details: map[string]any{"problem": why},
	}
}

// DeliveryStore is what sends events needs of the database.
type DeliveryStore interface {
	// ClaimWebhook takes a webhook that something is to be delivered to, which no other deliverer gets while the lease
	// lasts; nil: there is none.
	ClaimWebhook(ctx context.Context) (*WebhookClaim, error)
	// WebhookWork gives what a claimed webhook is to get, up to a limit of each kind.
	WebhookWork(ctx context.Context, c WebhookClaim, limit int) (WebhookWork, error)
	// MarkWebhook keeps what became of deliveries and extends the lease: fault.VersionConflict when it is lost.
	MarkWebhook(ctx context.Context, c WebhookClaim, m WebhookMark) error
	// ReleaseWebhook ends a claim; one that is lost is left to who has it.
	ReleaseWebhook(ctx context.Context, c WebhookClaim, r WebhookRelease) error
}
