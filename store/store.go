// Package store keeps the catalog in Postgres, and knows nothing but Postgres. Every mutation is one transaction that
// also writes its facts (an event and an audit row); nobody opens a second connection inside one, and nothing in one
// waits for the network. Statements stand beside the function that uses them, as constants named sql…, and a test
// PREPAREs every one of them against a migrated database. Errors leave this package with the meaning that callers
// branch on: pgerr.go has the table of SQLSTATEs and constraints.
package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// Limits of the store.
const (
	connectionsDefault = 16
	txAttemptsMax      = 8 // of one transaction that loses against others
	txRetryDelayMin    = 2 * time.Millisecond
	txRetryDelayMax    = 100 * time.Millisecond
	// idleInTxMillisMax is when Postgres ends a transaction whose client has fallen silent. Ours never pause, and
	// whoever asks for the outcome of such a commit waits until its session has ended, so it is well below the time
	// that the service gives a commit.
	idleInTxMillisMax = "20000"
	// Seconds after which Postgres asks a silent connection for a sign of life, asks again, and how often. A commit is sent
	// in one piece; should the sender's machine die in the middle of it, its locks are held until this finds it out.
	keepaliveIdle     = "20"
	keepaliveInterval = "5"
	keepaliveCount    = "4"
	connectTimeoutMax = 10 * time.Second
	rollbackMax       = 5 * time.Second
	connectionLifeMax = time.Hour // so that a failover or a new pooler is noticed
	connectionIdleMax = 10 * time.Minute
	schemaName        = "catalogd"
)

// beginOneMoment begins a transaction whose statements all see what was there at the first one.
const beginOneMoment = "begin isolation level repeatable read, read only"

// setSchema makes a transaction find the catalog's tables where the session does not.
const setSchema = "set local search_path to " + schemaName

// beginPooled are the statements that begin a transaction behind a pooler; the first alone does elsewhere.
var beginPooled = [...]string{
	"begin", setSchema,
	"set local idle_in_transaction_session_timeout to " + idleInTxMillisMax,
}

// Config says which database.
type Config struct {
	// URL is a connection string; a password inside never reaches logs or errors.
	URL string
	// MaxConns bounds the pool; 0 means connectionsDefault.
	MaxConns int
	// Audited is told each row of the audit after its transaction has committed; a process that ends in between tells
	// nobody. nil: nobody wants to know. It must not wait.
	Audited func(catalog.AuditRow)
	// SimpleProtocol is for transaction poolers: no prepared statements, no settings of a session.
	SimpleProtocol bool
}

// Store is the database. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	// pooled tells that a session's settings do not last: the schema is named in each transaction instead.
	pooled bool

	decisions *decisions
	accounts  *accounts
	lookups   *lookups
	trips     *roundTrips
	audited   func(catalog.AuditRow)
}

// Open makes a pool. It does not connect: Ping and CheckSchema do. Close it when nothing uses it any more.
func Open(ctx context.Context, c Config) (*Store, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		// pgx takes the password out of its message, but not out of a URL that it cannot parse.
		return nil, fault.New(fault.Internal, "database.url is not a usable Postgres connection string")
	}
	config.MaxConns = connectionsDefault
	if c.MaxConns > 0 {
		config.MaxConns = int32(c.MaxConns)
	}
	config.MaxConnLifetime = connectionLifeMax
	config.MaxConnIdleTime = connectionIdleMax
	config.ConnConfig.ConnectTimeout = connectTimeoutMax
	config.ConnConfig.RuntimeParams["application_name"] = "catalogd"
	if c.SimpleProtocol {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	} else {
		config.ConnConfig.RuntimeParams["search_path"] = schemaName
		config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = idleInTxMillisMax
		config.ConnConfig.RuntimeParams["tcp_keepalives_idle"] = keepaliveIdle
		config.ConnConfig.RuntimeParams["tcp_keepalives_interval"] = keepaliveInterval
		config.ConnConfig.RuntimeParams["tcp_keepalives_count"] = keepaliveCount
	}
	trips := &roundTrips{}
	config.ConnConfig.Tracer = trips
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("make the pool of database connections: %w", err)
	}
	s := &Store{pool: pool, pooled: c.SimpleProtocol, decisions: newDecisions(), accounts: newAccounts(), trips: trips, audited: c.Audited}
	s.lookups = newLookups(s.findTables)
	return s, nil
}

// Close ends all connections and waits for those in use.
func (s *Store) Close() {
	s.lookups.close()
	s.pool.Close()
}

// Ping tells whether the database answers: fault.Busy when it does not.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return translate(err)
	}
	return nil
}

// InTx runs fn in one transaction and commits it when fn gives nil. It runs fn again, a bounded number of times, when
// the transaction lost against another one (serialization failure, deadlock) or the connection broke before COMMIT
// was sent; so fn must not keep results of a run that failed. fn must use tx alone and nothing that waits elsewhere.
// Errors come back as faults: translated, or as fn made them. fault.CommitUnknown means that COMMIT was sent and no
// answer came; it is never tried again here.
func (s *Store) InTx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return retry(ctx, func() error { return s.runTx(ctx, fn) })
}

// retry runs fn until it succeeds, fails for good, or has had its attempts, and translates what is left.
func retry(ctx context.Context, fn func() error) error {
	delay := txRetryDelayMin
	for attempt := 1; ; attempt++ {
		err := fn()
		if err == nil {
			return nil
		}
		if fault.Is(err, fault.CommitUnknown) || !retryable(err) || attempt == txAttemptsMax {
			return translate(err)
		}
		select {
		case <-ctx.Done():
			return translate(err)
		case <-time.After(delay/2 + rand.N(delay)):
		}
		delay = min(2*delay, txRetryDelayMax)
	}
}

func (s *Store) runTx(ctx context.Context, fn func(tx pgx.Tx) error) (err error) {
	tx, err := s.beginLate(ctx)
	if err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			_ = undo(ctx, tx) // the cause is err; a failing rollback closes the connection, which rolls back as well
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err // nothing was sent yet, so the outcome is certain
	}
	committed = true
	if err := commitOutcome(tx.Commit(ctx)); err != nil {
		return err
	}
	s.tell(tx.facts)
	return nil
}

// tell passes on the audit rows of facts that are committed.
func (s *Store) tell(facts []catalog.Fact) {
	if s.audited == nil {
		return
	}
	for _, f := range facts {
		s.audited(factRow(f))
	}
}

// querier is what reads need: a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// read runs fn, which only reads, with errors translated. One statement is one round trip; several are not one
// moment in time. It runs fn again when the connection turns out to be dead, so the rule for results is InTx's.
func (s *Store) read(ctx context.Context, fn func(q querier) error) error {
	if s.pooled {
		return s.InTx(ctx, func(tx pgx.Tx) error { return fn(tx) })
	}
	return retry(ctx, func() error { return fn(s.pool) })
}

// readOnce is read without another try.
func (s *Store) readOnce(ctx context.Context, fn func(q querier) error) error {
	if s.pooled {
		return s.runTx(ctx, func(tx pgx.Tx) error { return fn(tx) })
	}
	return fn(s.pool)
}

// collect gives the rows of one statement, which only reads, as scan reads each.
func collect[T any](ctx context.Context, s *Store, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	var found []T
	err := s.read(ctx, func(q querier) (err error) {
		found, err = collectFrom(ctx, q, sql, args, scan)
		return err
	})
	return found, err
}

// collectFrom is collect beside other statements of a transaction.
func collectFrom[T any](ctx context.Context, q querier, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	rows, err := q.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// atOneMoment runs fn, which only reads, in a transaction in which all statements see the same moment. It is not tried
// again.
func (s *Store) atOneMoment(ctx context.Context, fn func(q querier) error) (err error) {
	tx, err := s.beginLate(ctx)
	if err != nil {
		return translate(err)
	}
	tx.begin = append([]string{beginOneMoment}, tx.begin[1:]...)
	defer func() { // also when fn panics: a connection that is not given back is missing for ever
		// There is nothing to commit; a failing rollback closes the connection.
		if ended := undo(ctx, tx); err == nil {
			err = ended
		}
		if err != nil {
			err = translate(err)
		}
	}()
	return fn(tx)
}

// undo rolls back within its own time: the request's bounds it no more, and it must not wait for a database that fell
// silent.
func undo(ctx context.Context, tx *lateTx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackMax)
	defer cancel()
	return tx.Rollback(ctx)
}

// noRows tells that a query for one row found none.
func noRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
