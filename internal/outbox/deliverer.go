package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/crash"
	"catalogd/internal/fault"
)

// Limits of deliveries; Config may say otherwise.
const (
	loopsDefault     = 4
	pollEveryDefault = time.Second
	// retryDelayMin doubles with each attempt up to retryDelayMax.
	retryDelayMin = 5 * time.Second
	retryDelayMax = time.Hour
	// rejectedMax is how often a message is sent that the receiver itself refuses, giveUpAfter how long one for which
	// there is no receiver. Then it is given up, and the next of its table comes.
	rejectedMax = 8
	giveUpAfter = 72 * time.Hour
	// failuresMax is how many failures in a row make a webhook wait as a whole, disableAfter how many switch it off. With the
	// pauses between them that is before giveUpAfter: where nothing arrives at all, nothing is given up for its age.
	failuresMax   = 3
	disableAfter  = 80
	workAtOnce    = 100
	claimMax      = 30 * time.Second // a webhook is given back by then, so that others get their turn
	claimErrorMax = 30 * time.Second // between claims while the database does not answer
	releaseMax    = 5 * time.Second
	secretDelay   = 30 * time.Second // before another server may try, when this one cannot decrypt the secret
	stopMax       = 3 * time.Second  // for the message that is under way when a server ends
)

// Config says how a Deliverer works.
type Config struct {
	Store  catalog.DeliveryStore
	Sender catalog.EventSender
	// OpenSecret decrypts a webhook's secret.
	OpenSecret func(w catalog.Webhook) ([]byte, error)
	Loops      int           // webhooks that are worked for at a time; 0 means loopsDefault
	PollEvery  time.Duration // 0 means pollEveryDefault
	// RetryDelay is the first delay before another attempt; 0 means retryDelayMin.
	RetryDelay  time.Duration
	RejectedMax int           // 0 means rejectedMax
	GiveUpAfter time.Duration // 0 means giveUpAfter
	// DisableAfter is how many failures in a row switch a webhook off; 0 means disableAfter.
	DisableAfter int
	Now          func() time.Time
	Log          *slog.Logger
}

// Deliverer sends events to webhooks until it is stopped. Several may work on one database.
type Deliverer struct {
	Config
	cancel   context.CancelFunc
	loops    sync.WaitGroup
	stopping chan struct{} // closed: nothing new is begun
	stopOnce sync.Once
}

// New makes a Deliverer. It does nothing yet.
func New(c Config) *Deliverer {
	if c.Loops == 0 {
		c.Loops = loopsDefault
	}
	if c.PollEvery == 0 {
		c.PollEvery = pollEveryDefault
	}
	if c.RetryDelay == 0 {
		c.RetryDelay = retryDelayMin
	}
	if c.RejectedMax == 0 {
		c.RejectedMax = rejectedMax
	}
	if c.GiveUpAfter == 0 {
		c.GiveUpAfter = giveUpAfter
	}
	if c.DisableAfter == 0 {
		c.DisableAfter = disableAfter
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Deliverer{Config: c, stopping: make(chan struct{})}
}

// Start begins to deliver in the background.
func (d *Deliverer) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	for range d.Loops {
		d.loops.Go(func() { d.loop(ctx) })
	}
}

// Stop ends the loops. A message that is under way has a moment to end; one that does not is sent again by another server.
func (d *Deliverer) Stop() {
	if d.cancel == nil {
		return
	}
	d.stopOnce.Do(func() { close(d.stopping) })
	patience := time.AfterFunc(stopMax, d.cancel)
	defer patience.Stop()
	d.loops.Wait()
	d.cancel()
}

func (d *Deliverer) ended(ctx context.Context) bool {
	select {
	case <-d.stopping:
		return true
	default:
		return ctx.Err() != nil
	}
}

func (d *Deliverer) loop(ctx context.Context) {
	idle := d.PollEvery * time.Duration(d.Loops) // all of them together ask once in PollEvery
	delay := idle
	for !d.ended(ctx) {
		worked, err := d.RunOnce(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			d.Log.Error("events could not be delivered; they are tried again", "cause", err)
			delay = min(2*delay, claimErrorMax)
		default:
			delay = idle
		}
		if worked && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-d.stopping:
		case <-time.After(delay/2 + rand.N(delay)):
		}
	}
}

// RunOnce works for one webhook for a while, and tells whether there was one. A defect that panics ends this turn and not
// the server; the webhook's lease ends by itself.
func (d *Deliverer) RunOnce(ctx context.Context) (worked bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			d.Log.ErrorContext(ctx, "a delivery panicked", "cause", cause, "stack", string(debug.Stack()))
			worked, err = false, fault.New(fault.Internal, "defect in the server: %v", cause)
		}
	}()
	began := d.Now()
	claim, err := d.Store.ClaimWebhook(ctx)
	if err != nil || claim == nil {
		return false, err
	}
	r := &run{Deliverer: d, claim: *claim, leased: began, ends: d.Now().Add(claimMax), failures: claim.Failures}
	release, err := r.deliver(ctx)
	if fault.Is(err, fault.VersionConflict) { // whoever has it next goes on
		return true, nil
	}
	if ctx.Err() != nil { // we are ended; the lease is given back all the same
		err = nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseMax)
	defer cancel()
	return true, errors.Join(err, d.Store.ReleaseWebhook(ending, *claim, release))
}

// run is the work for one claimed webhook.
type run struct {
	*Deliverer
	claim    catalog.WebhookClaim
	leased   time.Time // when the lease began, at the earliest
	secret   []byte
	ends     time.Time
	failures int    // in a row
	problem  string // of the last failure
	blocked  map[uuid.UUID]bool
	gone     bool // the receiver wants nothing any more
	full     bool // so much waits that nothing new is taken
}

// deliver sends until there is nothing left, the time is over or the webhook has to wait, and says how it is given back.
func (r *run) deliver(ctx context.Context) (catalog.WebhookRelease, error) {
	var err error
	if r.secret, err = r.OpenSecret(r.claim.Webhook); err != nil {
		// Another server may have the key already: one that was started after a rotation.
		return catalog.WebhookRelease{Delay: secretDelay, Problem: "a server cannot decrypt the secret: it was encrypted with another secrets.key"}, nil
	}
	for !r.over(ctx) {
		work, err := r.Store.WebhookWork(ctx, r.claim, workAtOnce)
		if err != nil {
			return catalog.WebhookRelease{}, err
		}
		more, err := r.once(ctx, work)
		if err != nil {
			return catalog.WebhookRelease{}, err
		}
		if !more {
			break
		}
	}
	switch {
	case r.gone:
		return r.disable("the receiver answered 410: it wants nothing any more"), nil
	case r.failures >= r.DisableAfter && r.failures > r.claim.Failures:
		return r.disable(fmt.Sprintf("disabled after %d failures in a row, the last: %s", r.failures, r.problem)), nil
	case r.failures >= failuresMax && r.failures > r.claim.Failures:
		r.Log.Warn("a webhook does not take events; it is tried again later", "webhook", r.claim.ID, "failures", r.failures)
		return catalog.WebhookRelease{Delay: r.backoff(r.failures - failuresMax + 1)}, nil
	case r.full:
		return catalog.WebhookRelease{Delay: r.RetryDelay}, nil
	}
	return catalog.WebhookRelease{}, nil
}

// disable switches the webhook off: what it has not got waits as long as events are kept.
func (r *run) disable(why string) catalog.WebhookRelease {
	r.Log.Warn("a webhook is disabled", "webhook", r.claim.ID, "failures", r.failures, "gone", r.gone)
	return catalog.WebhookRelease{Problem: why, Disabled: r.claim.DisabledFact(r.Now(), why)}
}

func (r *run) over(ctx context.Context) bool {
	return r.ended(ctx) || r.gone || r.failures >= failuresMax && r.failures > r.claim.Failures || !r.Now().Before(r.ends)
}

// once works off what was read, and tells whether there may be more.
func (r *run) once(ctx context.Context, work catalog.WebhookWork) (more bool, err error) {
	r.blocked = map[uuid.UUID]bool{}
	for _, lane := range work.Blocked {
		r.blocked[lane] = true
	}
	for _, due := range work.Due {
		if r.over(ctx) {
			return false, ctx.Err()
		}
		if err := r.again(ctx, due); err != nil {
			return false, err
		}
	}
	if r.full = !work.Open; r.full {
		return len(work.Due) > 0, nil
	}
	for _, e := range work.Fresh {
		if r.over(ctx) {
			return false, ctx.Err()
		}
		if err := r.fresh(ctx, e); err != nil {
			return false, err
		}
	}
	if len(work.Fresh) < workAtOnce && r.claim.Position < r.claim.Through {
		r.claim.Position = r.claim.Through
		return len(work.Due) > 0, r.mark(ctx, catalog.WebhookMark{Position: r.claim.Through})
	}
	return len(work.Due) > 0 || len(work.Fresh) == workAtOnce, nil
}

// again tries the first delivery of a lane once more.
func (r *run) again(ctx context.Context, d catalog.Delivery) error {
	if d.Event.ID == uuid.Nil {
		d.Dead, d.Problem = true, d.Problem+" (and the event has been removed for its age)"
		return r.mark(ctx, catalog.WebhookMark{Put: []catalog.Delivery{d}})
	}
	sent, err := r.send(ctx, d.Event)
	if err != nil {
		return err
	}
	if sent == nil {
		r.failures = 0
		return r.mark(ctx, catalog.WebhookMark{Delivered: true, Done: d.Position})
	}
	return r.failed(ctx, d, sent, 0)
}

// fresh sends an event, or lets it wait behind one of the same table.
func (r *run) fresh(ctx context.Context, e catalog.EventRow) error {
	d := catalog.Delivery{Event: e, Position: e.Position, Lane: e.SecurableID}
	if r.blocked[d.Lane] {
		r.claim.Position = e.Position
		return r.mark(ctx, catalog.WebhookMark{Position: e.Position, Put: []catalog.Delivery{d}})
	}
	sent, err := r.send(ctx, e)
	if err != nil {
		return err
	}
	r.claim.Position = e.Position
	if sent == nil {
		r.failures = 0
		return r.mark(ctx, catalog.WebhookMark{Position: e.Position, Delivered: true})
	}
	d.FirstAt = r.Now()
	r.blocked[d.Lane] = true
	return r.failed(ctx, d, sent, e.Position)
}

// mark keeps what became of deliveries, which extends the lease.
func (r *run) mark(ctx context.Context, m catalog.WebhookMark) error {
	began := r.Now()
	err := r.Store.MarkWebhook(ctx, r.claim, m)
	if err == nil {
		r.leased = began
	}
	return err
}

// send sends an event; what became of it is kept afterwards, so that whatever dies in between sends it again. Who might
// lose the lease meanwhile sends nothing: another deliverer would send it too.
func (r *run) send(ctx context.Context, e catalog.EventRow) (sent, err error) {
	if r.Now().Sub(r.leased) > r.claim.Lease-sendMax {
		return nil, fault.New(fault.VersionConflict, "the lease of webhook %s is about to end", r.claim.ID)
	}
	sent = r.Sender.SendEvent(ctx, r.claim.Webhook, r.secret, e)
	crash.Point("webhook-sent")
	return sent, ctx.Err()
}

func (r *run) failed(ctx context.Context, d catalog.Delivery, why error, position int64) error {
	d.Attempts++
	d.Problem = why.Error()
	r.problem = d.Problem
	r.failures++
	var refused Refused
	switch {
	case errors.As(why, &refused) && refused.Status == http.StatusGone:
		r.gone = true
	case errors.As(why, &refused) && refused.forGood():
		d.Dead = d.Attempts >= r.RejectedMax
	default:
		d.Dead = r.Now().Sub(d.FirstAt) > r.GiveUpAfter
	}
	return r.mark(ctx, catalog.WebhookMark{
		Position: position, Problem: d.Problem, Put: []catalog.Delivery{d}, Delay: r.backoff(d.Attempts),
	})
}

// backoff is the delay behind so many failures, with jitter.
func (r *run) backoff(failures int) time.Duration {
	delay := r.RetryDelay
	for range min(failures-1, 20) {
		delay = min(2*delay, retryDelayMax)
	}
	return delay/2 + rand.N(delay/2+1)
}
