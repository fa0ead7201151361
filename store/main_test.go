package store

import (
	"os"
	"testing"

	"catalogd/internal/pgserver/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m, Migrate)) }

// openStore gives a store on a database of the test's own.
func openStore(t testing.TB) *Store {
	t.Helper()
	return openAt(t, Config{URL: pgtest.Database(t)})
}

func openAt(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}
