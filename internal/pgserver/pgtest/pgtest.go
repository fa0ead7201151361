// Package pgtest gives tests a real Postgres: one private server a test process, started by the first test that
// asks, and a database of its own for each test, cloned from one that was migrated once. A package uses it by
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

// Limits of the shared server.
const (
	connectionsMax = 300
	startWaitMax   = 2 * time.Minute
	stopWaitMax    = 10 * time.Second
	queryWaitMax   = 30 * time.Second
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
}

// Run runs the package's tests and then stops the server. The result goes to os.Exit.
func Run(m *testing.M, migrate Migrate) int {
	shared.migrate = migrate
	defer stop()
	return m.Run()
}

// Server gives the process's server, started when it is not running yet.
func Server(t testing.TB) *pgserver.Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	return startedLocked(t)
}

// Database makes a migrated database for the test and gives its connection string. It goes with the test.
func Database(t testing.TB) string {
	t.Helper()
	return create(t, templateName)
}

// EmptyDatabase makes a database with nothing in it.
func EmptyDatabase(t testing.TB) string {
	t.Helper()
	return create(t, "template0")
}

func create(t testing.TB, template string) string {
	t.Helper()
	shared.Lock()
	defer shared.Unlock() // Postgres copies a template for one at a time
	server := startedLocked(t)
	shared.count++
	name := "test_" + strconv.Itoa(shared.count)
	if err := execute(server.URL(), "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		t.Fatalf("make the test's database: %v", err)
	}
	t.Cleanup(func() {
		// Whatever the test left connected is cut off, or the database would stay.
		if err := execute(server.URL(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("remove the test's database: %v", err)
		}
	})
	return server.DatabaseURL(name)
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
