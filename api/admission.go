package api

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"catalogd/internal/fault"
)

// Limits of large bodies. Bodies are read whole and decoded before rights are known, so what is in memory at a time
// must not depend on how many clients send at once.
const (
	// bodyBytesFree is the size up to which a body passes without being counted.
	bodyBytesFree = 256 << 10
	// bodiesOfOneMax bounds the counted bodies in flight of one principal; the largest single one fits. Whoever sends
	// slowly holds up nobody but himself.
	bodiesOfOneMax = BodyBytesCommit
	// bodiesBytesMax bounds the counted bodies in flight together.
	bodiesBytesMax = 2 * BodyBytesCommit
	// bodyBytesStep is how a body of unknown length is counted: by what has come of it, in such steps.
	bodyBytesStep = 1 << 20
	// bodyWaitMax bounds how long a request waits for others to end.
	bodyWaitMax = 10 * time.Second
	// bodyReadMax bounds how long a counted body may take to arrive: a slow client holds what others wait for.
	bodyReadMax = time.Minute
)

// bodiesGrowingMax bounds the bodies of unknown length in flight: so many fit whole, whatever they come to. Who has some
// of its bytes counted and waits for more could else wait for another that does the same. Each principal has one.
const bodiesGrowingMax = bodiesBytesMax / BodyBytesCommit

// admission counts the bytes of large request bodies in flight, all together and for each principal.
type admission struct {
	bytes   *semaphore.Weighted
	growing *semaphore.Weighted
	wait    time.Duration

	mu     sync.Mutex
	shares map[uuid.UUID]*share
}

// share is what one principal has in flight; it is there as long as somebody uses it.
type share struct {
	bytes   *semaphore.Weighted
	growing *semaphore.Weighted
	users   int
}

func newAdmission() *admission {
	return &admission{
		bytes: semaphore.NewWeighted(bodiesBytesMax), growing: semaphore.NewWeighted(bodiesGrowingMax), wait: bodyWaitMax,
		shares: map[uuid.UUID]*share{},
	}
}

// admit lets a request with a large body wait for its turn, before any of it is read, and counts it until its handler
// has ended. A body of unknown length is counted as it comes. Who waits too long gets fault.Busy: nothing was touched.
func (a *admission) admit(e Endpoint, next HandlerFunc) HandlerFunc {
	limit := e.BodyBytesMax
	if limit == 0 {
		limit = BodyBytesDefault
	}
	if limit <= bodyBytesFree {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.Body == nil || r.Body == http.NoBody || r.ContentLength >= 0 && r.ContentLength <= bodyBytesFree {
			return next(w, r)
		}
		body := &countedBody{ReadCloser: r.Body, admission: a, ctx: r.Context(), w: w, principal: eventOf(r.Context()).principal.ID, limit: limit}
		defer body.release()
		if r.ContentLength > 0 {
			if err := body.acquire(min(r.ContentLength, limit)); err != nil {
				return err
			}
		}
		r.Body = body
		return next(w, r)
	}
}

// claim is what a request takes of the admission: bytes, or the right to grow.
type claim struct {
	bytes   int64
	growing bool
}

// take takes a claim for a principal, within the time that the admission gives.
func (a *admission) take(ctx context.Context, principal uuid.UUID, c claim) error {
	ctx, cancel := context.WithTimeout(ctx, a.wait)
	defer cancel()
	a.mu.Lock()
	own := a.shares[principal]
	if own == nil {
		own = &share{bytes: semaphore.NewWeighted(bodiesOfOneMax), growing: semaphore.NewWeighted(1)}
		a.shares[principal] = own
	}
	own.users++
	a.mu.Unlock()
	ours, all, n := a.of(own, c)
	err := acquire(ctx, ours, n)
	if err == nil {
		if err = acquire(ctx, all, n); err != nil {
			ours.Release(n)
		}
	}
	if err != nil {
		a.leave(principal)
		return fault.Wrap(fault.Busy, err, "the server is busy with other large requests; nothing was changed, try again")
	}
	return nil
}

// acquire takes what is free at once, however little time is left, and waits for the rest.
func acquire(ctx context.Context, of *semaphore.Weighted, n int64) error {
	if of.TryAcquire(n) {
		return nil
	}
	return of.Acquire(ctx, n)
}

// of gives what a claim is taken from: the principal's and everybody's.
func (a *admission) of(own *share, c claim) (ours, all *semaphore.Weighted, n int64) {
	if c.growing {
		return own.growing, a.growing, 1
	}
	return own.bytes, a.bytes, c.bytes
}

func (a *admission) give(principal uuid.UUID, c claim) {
	a.mu.Lock()
	ours, all, n := a.of(a.shares[principal], c)
	a.mu.Unlock()
	all.Release(n)
	ours.Release(n)
	a.leave(principal)
}

func (a *admission) leave(principal uuid.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if own := a.shares[principal]; own.users > 1 {
		own.users--
	} else {
		delete(a.shares, principal)
	}
}

// countedBody is a body that asks for admission when it proves to be large, or larger than it was counted for.
type countedBody struct {
	io.ReadCloser
	admission *admission
	ctx       context.Context //nolint:containedctx // a body's reader is given none
	w         http.ResponseWriter
	principal uuid.UUID
	limit     int64
	read      int64
	claims    []claim
	total     int64 // bytes of the claims
}

func (b *countedBody) Read(p []byte) (int, error) {
	// One byte more than is free, or counted, tells a larger body from one that ends there.
	room := max(bodyBytesFree, b.total) + 1 - b.read
	if room <= 0 && b.total < b.limit {
		if err := b.grow(); err != nil {
			return 0, err
		}
		room = b.total + 1 - b.read
	}
	if room > 0 {
		p = p[:min(int64(len(p)), room)]
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err != nil && b.total > 0 {
		b.deadline(time.Time{})
	}
	return n, err
}

// grow counts the next step of a body of unknown length.
func (b *countedBody) grow() error {
	if b.total == 0 {
		if err := b.claim(claim{growing: true}); err != nil {
			return err
		}
	}
	return b.acquire(min(bodyBytesStep, b.limit-b.total))
}

func (b *countedBody) acquire(bytes int64) error {
	if err := b.claim(claim{bytes: bytes}); err != nil {
		return err
	}
	if b.total == 0 {
		b.deadline(time.Now().Add(bodyReadMax))
	}
	b.total += bytes
	return nil
}

func (b *countedBody) claim(c claim) error {
	if err := b.admission.take(b.ctx, b.principal, c); err != nil {
		return err
	}
	b.claims = append(b.claims, c)
	return nil
}

// deadline is for the rest of the body; the zero time lifts it. Writers without a connection have none.
func (b *countedBody) deadline(at time.Time) { _ = http.NewResponseController(b.w).SetReadDeadline(at) }

func (b *countedBody) release() {
	for _, c := range b.claims {
		b.admission.give(b.principal, c)
	}
	b.claims = nil
}
