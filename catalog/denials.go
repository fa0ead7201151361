package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits of the recording of refusals.
const (
	// denialMax bounds the recording of one.
	denialMax = 5 * time.Second
	// denialsInFull are recorded one by one of one principal, address and operation within denialWindow. What comes beyond
	// is counted, and the count is recorded when the window is over.
	denialsInFull = 20
	denialWindow  = time.Minute
	// denialKeysMax bounds how many of them are counted apart. The refusals of the rest are counted together.
	denialKeysMax = 10_000
)

// operationAny stands in the audit for operations that were not told apart.
const operationAny = "any"

// denialKey is who is refused what: the refusals of one are counted together.
type denialKey struct{ principal, subject, client, operation string }

// keyOf gives a denial's key. Where nobody is proven to ask, the subject says who is meant; elsewhere it does not count,
// because who is refused chooses it.
func keyOf(d Denial) denialKey {
	k := denialKey{principal: d.Caller.Principal.Name, client: d.Caller.Client, operation: d.Operation}
	if k.principal == "" {
		k.subject = d.Subject
	}
	return k
}

// denials count refusals so that somebody who is refused all day does not fill the database, and is not lost either.
type denials struct {
	mu      sync.Mutex
	windows map[denialKey]*denialCount
	// others counts the refusals of keys that are too many.
	others      int64
	othersBegan time.Time
}

type denialCount struct {
	began   time.Time
	written int
	more    int64  // refusals that were only counted
	last    Denial // of these
}

func newDenials() *denials { return &denials{windows: map[denialKey]*denialCount{}} }

// take gives what is to be recorded because of a denial: itself, unless it is only counted, behind the count of an
// earlier window.
func (d *denials) take(n Denial) []Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := keyOf(n)
	w := d.windows[key]
	if w == nil && len(d.windows) >= denialKeysMax {
		d.others++
		if d.others == 1 {
			d.othersBegan = n.At
		}
		return nil
	}
	var out []Denial
	if w == nil || n.At.Sub(w.began) >= denialWindow {
		if w != nil && w.more > 0 {
			out = append(out, w.count())
		}
		w = &denialCount{began: n.At}
		d.windows[key] = w
	}
	if w.written >= denialsInFull {
		w.more++
		w.last = n
		return out
	}
	w.written++
	return append(out, n)
}

// count is the row that stands for what was only counted.
func (w *denialCount) count() Denial {
	c := w.last
	c.Repeats = w.more
	c.Caller.RequestID, c.Caller.Principal.TokenID, c.Caller.UserAgent = "", "", ""
	c.Reason = fmt.Sprintf("and %d more since %s, the last one: %s", w.more, w.began.UTC().Format(time.RFC3339), w.last.Reason)
	return c
}

// due gives the counts of windows that are over, or of all, and forgets the windows.
func (d *denials) due(now time.Time, all bool) []Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Denial
	for key, w := range d.windows {
		if !all && now.Sub(w.began) < denialWindow {
			continue
		}
		if w.more > 0 {
			out = append(out, w.count())
		}
		delete(d.windows, key)
	}
	if d.others > 0 {
		out = append(out, Denial{
			At: now, Operation: operationAny, Repeats: d.others,
			Reason: fmt.Sprintf("%d refusals since %s of callers who were too many to be told apart", d.others, d.othersBegan.UTC().Format(time.RFC3339)),
		})
		d.others = 0
	}
	return out
}

// giveBack keeps a count that could not be recorded for the next time.
func (d *denials) giveBack(c Denial, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Operation == operationAny {
		if d.others == 0 {
			d.othersBegan = now
		}
		d.others += c.Repeats
		return
	}
	key := keyOf(c)
	w := d.windows[key]
	if w == nil {
		w = &denialCount{began: now, written: denialsInFull}
		d.windows[key] = w
	}
	w.more += c.Repeats
	if w.last.At.IsZero() {
		w.last = c
	}
}

// recordDenial leaves an audit row, or counts what has enough of them.
func (s *Service) recordDenial(ctx context.Context, d Denial) {
	if err := s.writeDenials(context.WithoutCancel(ctx), s.denials.take(d)); err != nil { // who leaves at once is recorded all the same
		s.Log.Error("a denial could not be recorded", "operation", d.Operation, "principal", d.Caller.Principal.Name, "cause", err)
	}
}

// writeDenials records denials, each within its time and all within the context's. Counts that were not recorded are kept.
func (s *Service) writeDenials(ctx context.Context, list []Denial) error {
	var failed error
	for _, d := range list {
		bounded, cancel := context.WithTimeout(ctx, denialMax)
		err := s.Store.RecordDenial(bounded, d)
		cancel()
		if err != nil {
			if ctx.Err() == nil || failed == nil { // whatever is behind its end fails the same way
				failed = errors.Join(failed, fmt.Errorf("record a denial: %w", err))
			}
			if d.Repeats > 0 {
				s.denials.giveBack(d, s.Now())
			}
		}
	}
	return failed
}

// RecordRefusal leaves an audit row of an attempt that came to no operation: a login that was refused, a token that is
// none. subject is what is safe to keep of whom it was for; "" when that is not known.
func (s *Service) RecordRefusal(ctx context.Context, c Caller, operation, subject, reason string) {
	s.recordDenial(ctx, Denial{At: s.Now(), Caller: c, Operation: operation, Subject: subject, Reason: reason})
}

// FlushDenials records the counts of refusals whose window is over. A server calls it once in a while.
func (s *Service) FlushDenials(ctx context.Context) error {
	return s.writeDenials(ctx, s.denials.due(s.Now(), false))
}

// FlushAllDenials records all counts, at the end of a server.
func (s *Service) FlushAllDenials(ctx context.Context) error {
	return s.writeDenials(ctx, s.denials.due(s.Now(), true))
}
