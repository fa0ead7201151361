package pgtest_test

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"catalogd/internal/pgserver/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Run(m, func(ctx context.Context, url string) error {
		connection, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer connection.Close(ctx)
		_, err = connection.Exec(ctx, "CREATE TABLE mark (n int)")
		return err
	}))
}

func TestDatabase_IsMigratedAndOfOneTestAlone(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, err := pgx.Connect(t.Context(), pgtest.Database(t))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close(t.Context())
			if _, err := connection.Exec(t.Context(), "INSERT INTO mark VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			var rows int
			if err := connection.QueryRow(t.Context(), "SELECT count(*) FROM mark").Scan(&rows); err != nil {
				t.Fatal(err)
			}
			if rows != 1 {
				t.Fatalf("%d rows; another test wrote into this database", rows)
			}
		})
	}
}

func TestDatabase_IsEmptyThoughItServedBefore(t *testing.T) {
	used := map[string]bool{}
	recycled := false
	for range 3 {
		t.Run("user", func(t *testing.T) {
			url := pgtest.Database(t)
			recycled = recycled || used[url]
			used[url] = true
			connection, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			// The connection stays open, as one of a careless test does.
			var rows int
			if err := connection.QueryRow(t.Context(), "SELECT count(*) FROM mark").Scan(&rows); err != nil || rows != 0 {
				t.Fatalf("%d rows, %v", rows, err)
			}
			if _, err := connection.Exec(t.Context(), "INSERT INTO mark VALUES (1)"); err != nil {
				t.Fatal(err)
			}
		})
	}
	if !recycled {
		t.Error("no database was used twice")
	}
}

func TestEmptyDatabase_HoldsNothing(t *testing.T) {
	connection, err := pgx.Connect(t.Context(), pgtest.EmptyDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	if _, err := connection.Exec(t.Context(), "SELECT n FROM mark"); err == nil {
		t.Fatal("the empty database has the template's table")
	}
}
