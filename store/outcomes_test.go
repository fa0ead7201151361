package store

import (
	"testing"

	"github.com/google/uuid"

	"catalogd/catalog"
)

// TestKeepOutcome_SweepsWhatHasExpired: each new outcome takes a few expired ones away, so their number cannot grow.
func TestKeepOutcome_SweepsWhatHasExpired(t *testing.T) {
	s := openStore(t)
	keep := func() {
		t.Helper()
		k := catalog.KeptOutcome{Principal: uuid.New(), Key: catalog.RequestKey{ID: uuid.New(), Operation: "drop-table"}}
		if err := s.KeepOutcome(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (n int) {
		t.Helper()
		if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM idempotency_keys`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const expired = outcomesSweepMax + 2
	for range expired {
		keep()
	}
	if n := count(); n != expired {
		t.Fatalf("%d outcomes, want %d: what lives was swept", n, expired)
	}
	if _, err := s.pool.Exec(t.Context(), `UPDATE idempotency_keys SET expires_at = now() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{3, 2, 3} {
		if keep(); count() != want {
			t.Errorf("%d outcomes, want %d", count(), want)
		}
	}
}
