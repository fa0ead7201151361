// Package pgtest gives tests a real Postgres: one private server a test process, started by the first test that
// asks, and a database of its own for each test, cloned from one that was migrated once. A database goes back empty
// and serves the next test, since emptying one is several times cheaper than making one. A package uses it by
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Run(m, store.Migrate)) }
//
// and then pgtest.Database(t). A machine without Postgres fails the test, with the remedy; nothing is skipped.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"catalogd/internal/pgserver"
)

// Limits of the shared server. What they bound takes a second; they are for machines that have much other work.
const (
	connectionsMax = 300
	startWaitMax   = 5 * time.Minute
	stopWaitMax    = 10 * time.Second
	queryWaitMax   = 2 * time.Minute
)

const (
	dirPrefix    = "catalogd-pgtest-" // followed by the process id
	templateName = "catalogd_template"
)

// Migrate brings the database at url to the schema that the tests want.
type Migrate func(ctx context.Context, url string) error

// shared is the process's one server. Tests of one process run in parallel, so it is guarded.
var shared struct {
	sync.Mutex
	migrate Migrate
	ready   bool
	err     error // of the first start; later tests fail with the same
	server  *pgserver.Server
	dir     string
	count   int
	free    []string // names of databases that are migrated, empty and nobody's
}

// Run runs the package's tests and then stops the server. The result goes to os.Exit.
func Run(m *testing.M, migrate Migrate) int {
	shared.migrate = migrate
	defer stop()
	return m.Run()
}

// Database gives a migrated database that is the test's own and empty, by its connection string.
func Database(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	server := startedLocked(t)
	var name string
	if last := len(shared.free) - 1; last >= 0 {
		name, shared.free = shared.free[last], shared.free[:last]
	} else {
		name = createLocked(t, server, templateName)
	}
	t.Cleanup(func() { giveBack(t, server, name) })
	return server.DatabaseURL(name)
}

// EmptyDatabase makes a database with nothing in it. It goes with the test.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	server := startedLocked(t)
	name := createLocked(t, server, "template0")
	t.Cleanup(func() { drop(t, server, name) })
	return server.DatabaseURL(name)
}

// createLocked makes a database. Postgres copies a template for one at a time, hence the lock.
func createLocked(t testing.TB, server *pgserver.Server, template string) string {
	t.Helper()
	shared.count++
	name := "test_" + strconv.Itoa(shared.count)
	if err := execute(server.URL(), "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		t.Fatalf("make the test's database: %v", err)
	}
	return name
}

// drop removes a database. Whatever the test left connected is cut off, or the database would stay.
func drop(t testing.TB, server *pgserver.Server, name string) {
	t.Helper()
	if err := execute(server.URL(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		t.Errorf("remove the test's database: %v", err)
	}
}

// empty cuts off what a test left connected and takes away all rows but those of goose's table of versions.
const empty = `
DO $$
BEGIN
    PERFORM pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
    EXECUTE (SELECT 'TRUNCATE ' || string_agg(format('%I.%I', schemaname, tablename), ', ') || ' RESTART IDENTITY'
             FROM pg_tables
             WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND tablename NOT LIKE '%version%');
END $$`

// giveBack empties a database for the next test. One that a failed test leaves behind may be broken in any way.
func giveBack(t testing.TB, server *pgserver.Server, name string) {
	if t.Failed() {
		drop(t, server, name)
		return
	}
	if err := execute(server.DatabaseURL(name), empty); err != nil {
		t.Errorf("empty the test's database: %v", err)
		drop(t, server, name)
		return
	}
	shared.Lock()
	defer shared.Unlock()
	shared.free = append(shared.free, name)
}

func startedLocked(t testing.TB) *pgserver.Server {
	t.Helper()
	if shared.migrate == nil {
		t.Fatal("this package's TestMain must call pgtest.Run")
	}
	if !shared.ready {
		shared.ready = true
		shared.server, shared.err = startServer()
	}
	if shared.err != nil {
		t.Fatalf("start a Postgres for the tests: %v", shared.err)
	}
	return shared.server
}

func startServer() (*pgserver.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWaitMax)
	defer cancel()
	sweep()
	shared.dir = filepath.Join(os.TempDir(), dirPrefix+strconv.Itoa(os.Getpid()))
	if err := os.RemoveAll(shared.dir); err != nil {
		return nil, fmt.Errorf("clear the folder: %w", err)
	}
	server, err := pgserver.Start(ctx, pgserver.Options{
		Dir: shared.dir, Durability: pgserver.Disposable, ConnectionsMax: connectionsMax,
	})
	if err != nil {
		return nil, err
	}
	if err := execute(server.URL(), "CREATE DATABASE "+templateName+" TEMPLATE template0"); err != nil {
		return server, fmt.Errorf("make the template: %w", err)
	}
	if err := shared.migrate(ctx, server.DatabaseURL(templateName)); err != nil {
		return server, fmt.Errorf("migrate the template: %w", err)
	}
	return server, nil
}

func stop() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopWaitMax)
		defer cancel()
		// The data goes with the folder, so nothing has to be written back; but a clean end shows our mistakes.
		if err := shared.server.Stop(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "stop the tests' Postgres: %v\n", err)
		}
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
}

// sweep removes the folders of test processes that were killed. Their servers ended with them.
func sweep() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*")) // the only error is a bad pattern
	for _, dir := range left {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), dirPrefix))
		if err != nil {
			continue
		}
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			os.RemoveAll(dir)
		}
	}
}

func execute(url, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), queryWaitMax)
	defer cancel()
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	_, err = connection.Exec(ctx, statement)
	return err
}
