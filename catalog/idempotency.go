package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// Times of idempotency keys.
const (
	// KeyLifetime is how long after its first request a key may be used again; clients are told so. No access token
	// lives longer.
	KeyLifetime = 24 * time.Hour
	// KeyGrace is how much longer an outcome is kept, for requests that were on their way and for clocks that differ.
	KeyGrace = time.Hour
	// keepOutcomeMax bounds the writing of an outcome that was not written with a change.
	keepOutcomeMax = 5 * time.Second
	// refusalBytesMax bounds the message that is kept of a refusal. No answer shows more of one.
	refusalBytesMax = 8 << 10
)

// RequestKey marks a mutation that its client may send again. The zero value marks none.
type RequestKey struct {
	ID        uuid.UUID // as the client chose it
	Operation string    // the endpoint table's name
	Hash      [sha256.Size]byte
}

// Outcome is how a mutation ended: what its repeat needs to be answered alike, and nothing that is secret. It is kept as
// JSON. The zero value is a success that answers nothing.
type Outcome struct {
	Refusal    fault.Kind       `json:"refusal,omitempty"` // "" for a success
	Message    string           `json:"message,omitempty"`
	Table      *TableOutcome    `json:"table,omitempty"`     // of what answers a table or a view
	Namespace  *uuid.UUID       `json:"namespace,omitempty"` // the id of one that was made
	Properties *PropertyChanges `json:"properties,omitempty"`
}

// TableOutcome is a table, or a view, as a mutation left it.
type TableOutcome struct {
	ID               uuid.UUID `json:"id"`
	UUID             uuid.UUID `json:"uuid"`
	Location         string    `json:"location"`
	MetadataLocation string    `json:"metadata-location"`
}

// KeptOutcome is an outcome with the request that it belongs to.
type KeptOutcome struct {
	Principal uuid.UUID
	Key       RequestKey
	Outcome   Outcome
}

// IdempotencyStore keeps the outcome of mutations by their principals and keys, for KeyLifetime and KeyGrace by the
// database's clock. Every method that takes a Fact with an Outcome keeps that in the transaction of the change; when
// there is one already under the key, the change is rolled back and the answer is fault.RepeatLanded.
type IdempotencyStore interface {
	// FindOutcome gives what is kept under a principal's key; nil when there is nothing, or what was there has expired.
	FindOutcome(ctx context.Context, principal, key uuid.UUID) (*KeptOutcome, error)
	// KeepOutcome keeps an outcome that no change brings along. fault.RepeatLanded: there is one already, which stays.
	KeepOutcome(ctx context.Context, k KeptOutcome) error
}

// remember adds the outcome to a fact whose request has a key, so that the store keeps both in one transaction.
func remember(f Fact, o Outcome) Fact {
	if f.Caller.Key.ID != uuid.Nil {
		f.Outcome = &o
	}
	return f
}

// Completed is the update's fact, with what the update answers when the properties were these before. Stores call it
// in the transaction, where alone that is known.
func (u NamespaceUpdate) Completed(before map[string]string) Fact {
	if u.Fact.Outcome == nil {
		return u.Fact
	}
	changes := propertyChanges(before, u.Remove, u.Set)
	return remember(u.Fact, Outcome{Properties: &changes})
}

// once runs a mutation, unless the caller's key says that it ran already: then replay answers as it was answered first.
//
// run gives the answer and, when no fact carried the outcome into the change's own transaction, the outcome to keep.
// replay is asked for outcomes that are no refusals; it must hold the caller's rights against what it gives away.
// Requests of one key go one after the other. On one server they wait for each other here; between servers the store
// lets one of them in.
func once[T any](
	ctx context.Context, s *Service, c Caller, run func() (T, *Outcome, error), replay func(Outcome) (T, error),
) (T, error) {
	var none T
	if c.Key.ID == uuid.Nil {
		answer, _, err := run()
		return answer, err
	}
	done, err := s.repeats.enter(ctx, c)
	if err != nil {
		return none, err
	}
	defer done()
	kept, err := s.Store.FindOutcome(ctx, c.Principal.ID, c.Key.ID)
	if err != nil {
		return none, fmt.Errorf("look for an earlier request with this Idempotency-Key: %w", err)
	}
	if kept != nil {
		return answerKept(ctx, s, c, *kept, replay)
	}
	answer, left, err := run()
	if err == nil && left == nil {
		return answer, nil
	}
	if kept = s.afterwards(ctx, c, left, err); kept != nil {
		return answerKept(ctx, s, c, *kept, replay)
	}
	return answer, err
}

// afterwards keeps what a run left to keep, and gives what a run elsewhere has kept before it. Nil: the run's own answer
// stands. That nothing could be kept does not change the answer: the run changed nothing, so its repeat may run again.
func (s *Service) afterwards(ctx context.Context, c Caller, left *Outcome, failed error) *KeptOutcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepOutcomeMax)
	defer cancel()
	if failed != nil {
		left = refusalToKeep(failed)
	}
	if left != nil {
		err := s.Store.KeepOutcome(ctx, KeptOutcome{Principal: c.Principal.ID, Key: c.Key, Outcome: *left})
		if err == nil {
			return nil
		}
		if !fault.Is(err, fault.RepeatLanded) {
			s.Log.Warn("the outcome of a request with an Idempotency-Key could not be kept", "operation", c.Key.Operation, "cause", err)
			return nil
		}
	}
	kept, err := s.Store.FindOutcome(ctx, c.Principal.ID, c.Key.ID)
	if err != nil {
		s.Log.Warn("an earlier request with an Idempotency-Key could not be looked for", "operation", c.Key.Operation, "cause", err)
		return nil
	}
	return kept
}

func answerKept[T any](ctx context.Context, s *Service, c Caller, kept KeptOutcome, replay func(Outcome) (T, error)) (T, error) {
	var none T
	if kept.Key.Operation != c.Key.Operation || kept.Key.Hash != c.Key.Hash {
		return none, fault.New(fault.Unprocessable, "the Idempotency-Key %s belongs to another request (%s): a key may be sent again "+
			"with the same request only", c.Key.ID, kept.Key.Operation)
	}
	if kept.Outcome.Refusal != "" {
		if !c.isSystem() { // whose principal has no row
			if _, err := s.resolveRoot(ctx, c); err != nil { // it was deleted after its token was made
				return none, err
			}
		}
		return none, fault.New(kept.Outcome.Refusal, "%s", kept.Outcome.Message)
	}
	return replay(kept.Outcome)
}

// finalRefusals are the kinds that a repeat of the same request may be answered again. What hangs on who asks, on how
// busy the server is or on what broke may be different the next time.
var finalRefusals = map[fault.Kind]bool{
	fault.NoSuchWarehouse: true, fault.NoSuchNamespace: true, fault.NoSuchTable: true, fault.NoSuchView: true,
	fault.NotFound: true, fault.AlreadyExists: true, fault.NamespaceNotEmpty: true, fault.CommitConflict: true,
	fault.VersionConflict: true, fault.BadRequest: true, fault.IllegalArgument: true, fault.Validation: true,
	fault.Unprocessable: true, fault.Unsupported: true,
}

// refusalToKeep makes an outcome of a final refusal; nil for all others. A conflict that only says that others were
// always faster is not final: nothing is wrong with the request.
func refusalToKeep(err error) *Outcome {
	if !finalRefusals[fault.KindOf(err)] || lostRaces(err) {
		return nil
	}
	message := fault.Message(err)
	if len(message) > refusalBytesMax {
		message = strings.ToValidUTF8(message[:refusalBytesMax], "")
	}
	return &Outcome{Refusal: fault.KindOf(err), Message: message}
}

func lostRaces(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if f, ok := err.(*fault.Error); ok && f.Kind == fault.CommitRace { //nolint:errorlint // each link is looked at
			return true
		}
	}
	return false
}

// repeats lets requests of one principal and key run one after the other inside this process.
type repeats struct {
	mu      sync.Mutex
	running map[repeatOf]chan struct{} // closed when the request that runs has ended
}

type repeatOf struct{ principal, key uuid.UUID }

func newRepeats() *repeats { return &repeats{running: map[repeatOf]chan struct{}{}} }

// enter waits until no other request of the caller's key runs, and gives the function that ends this one.
// fault.Busy: the request ended before.
func (r *repeats) enter(ctx context.Context, c Caller) (func(), error) {
	key := repeatOf{c.Principal.ID, c.Key.ID}
	for {
		r.mu.Lock()
		ahead, busy := r.running[key]
		if !busy {
			mine := make(chan struct{})
			r.running[key] = mine
			r.mu.Unlock()
			return func() { r.leave(key, mine) }, nil
		}
		r.mu.Unlock()
		select {
		case <-ahead:
		case <-ctx.Done():
			return nil, fault.Wrap(fault.Busy, ctx.Err(), "another request with this Idempotency-Key is still running; try again")
		}
	}
}

func (r *repeats) leave(key repeatOf, mine chan struct{}) {
	r.mu.Lock()
	delete(r.running, key)
	r.mu.Unlock()
	close(mine)
}
