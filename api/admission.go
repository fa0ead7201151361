package api

import (
	"context"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"catalogd/internal/fault"
)

// Limits of large bodies. Bodies are read whole and decoded before rights are known, so what is in memory at a time
// must not depend on how many clients send at once.
const (
	// bodyBytesFree is the size up to which a body passes without being counted.
	bodyBytesFree = 256 << 10
	// bodiesBytesMax bounds the counted bodies in flight together; the largest single one fits.
	bodiesBytesMax = BodyBytesCommit
	// bodyWaitMax bounds how long a request waits for others to end.
	bodyWaitMax = 10 * time.Second
	// bodyReadMax bounds how long a counted body may take to arrive: a slow client holds what others wait for.
	bodyReadMax = time.Minute
)

// admission counts the bytes of large request bodies in flight.
type admission struct {
	bytes *semaphore.Weighted
	wait  time.Duration
}

func newAdmission() *admission {
	return &admission{bytes: semaphore.NewWeighted(bodiesBytesMax), wait: bodyWaitMax}
}

// admit lets a request with a large body wait for its turn, before any of it is read, and counts it until its handler
// has ended. A body of unknown length is counted as the row's limit once it proves to be large. Who waits too long
// gets fault.Busy: nothing was touched.
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
		body := &countedBody{ReadCloser: r.Body, admission: a, ctx: r.Context(), w: w, weight: min(limit, bodiesBytesMax)}
		defer body.release()
		if r.ContentLength > 0 {
			body.weight = min(r.ContentLength, body.weight)
			if err := body.acquire(); err != nil {
				return err
			}
		}
		r.Body = body
		return next(w, r)
	}
}

// countedBody is a body that asks for admission when it proves to be large, if it has none yet.
type countedBody struct {
	io.ReadCloser
	admission *admission
	ctx       context.Context //nolint:containedctx // a body's reader is given none
	w         http.ResponseWriter
	weight    int64
	read      int64
	admitted  bool
}

func (b *countedBody) Read(p []byte) (int, error) {
	if !b.admitted {
		// One byte more than is free tells a large body from one that ends there.
		if free := bodyBytesFree + 1 - b.read; free > 0 {
			p = p[:min(int64(len(p)), free)]
		} else if err := b.acquire(); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err != nil && b.admitted {
		b.deadline(time.Time{})
	}
	return n, err
}

func (b *countedBody) acquire() error {
	ctx, cancel := context.WithTimeout(b.ctx, b.admission.wait)
	defer cancel()
	if err := b.admission.bytes.Acquire(ctx, b.weight); err != nil {
		return fault.Wrap(fault.Busy, err, "the server is busy with other large requests; nothing was changed, try again")
	}
	b.admitted = true
	b.deadline(time.Now().Add(bodyReadMax))
	return nil
}

// deadline is for the rest of the body; the zero time lifts it. Writers without a connection have none.
func (b *countedBody) deadline(at time.Time) { _ = http.NewResponseController(b.w).SetReadDeadline(at) }

func (b *countedBody) release() {
	if b.admitted {
		b.admission.bytes.Release(b.weight)
	}
}
