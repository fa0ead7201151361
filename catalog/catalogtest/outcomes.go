package catalogtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

type outcomeKey struct{ principal, key uuid.UUID }

type outcomeRow struct {
	catalog.KeptOutcome
	expires time.Time
}

// keepOutcome keeps an outcome unless there is a live one under the key.
func (st *state) keepOutcome(k catalog.KeptOutcome) error {
	at := outcomeKey{k.Principal, k.Key.ID}
	if row, ok := st.outcomes[at]; ok && row.expires.After(st.now) {
		return fault.New(fault.RepeatLanded, "another request with this Idempotency-Key came to its end before")
	}
	st.outcomes[at] = outcomeRow{k, st.now.Add(catalog.KeyLifetime + catalog.KeyGrace)}
	return nil
}

// keepOf keeps a fact's outcome, if it has one.
func (st *state) keepOf(f catalog.Fact) error {
	if f.Outcome == nil {
		return nil
	}
	return st.keepOutcome(catalog.KeptOutcome{Principal: f.Caller.Principal.ID, Key: f.Caller.Key, Outcome: *f.Outcome})
}

// KeepOutcome keeps an outcome that no change brings along.
func (s *Store) KeepOutcome(ctx context.Context, k catalog.KeptOutcome) error {
	return s.tx(ctx, "KeepOutcome", func(st *state) error { return st.keepOutcome(k) })
}

// FindOutcome gives what is kept under a principal's key, nil when there is nothing.
func (s *Store) FindOutcome(ctx context.Context, principal, key uuid.UUID) (*catalog.KeptOutcome, error) {
	var found *catalog.KeptOutcome
	err := s.tx(ctx, "FindOutcome", func(st *state) error {
		if row, ok := st.outcomes[outcomeKey{principal, key}]; ok && row.expires.After(st.now) {
			found = &row.KeptOutcome
		}
		return nil
	})
	return found, err
}

// LapseOutcome ends what is kept under a key.
func (s *Store) LapseOutcome(_ testing.TB, principal, key uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := outcomeKey{principal, key}
	row := s.state.outcomes[at]
	row.expires = s.Now()
	s.state.outcomes[at] = row
}
