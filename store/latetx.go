package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// lateTx is a transaction whose BEGIN goes out together with its first batch, which saves a round trip; before any
// other first statement it goes out alone.
type lateTx struct {
	conn  *pgxpool.Conn
	begin []string // statements
	begun bool
	facts []catalog.Fact // written in it
}

// noteFact keeps a fact with its transaction, to be told when that is committed.
func noteFact(tx pgx.Tx, f catalog.Fact) {
	if t, ok := tx.(*lateTx); ok {
		t.facts = append(t.facts, f)
	}
}

var _ pgx.Tx = (*lateTx)(nil)

// beginLate takes a connection for a transaction.
func (s *Store) beginLate(ctx context.Context) (*lateTx, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if s.pooled {
		return &lateTx{conn: conn, begin: beginPooled[:]}, nil
	}
	return &lateTx{conn: conn, begin: beginPooled[:1]}, nil
}

func (t *lateTx) start(ctx context.Context) error {
	if t.begun {
		return nil
	}
	t.begun = true
	return t.conn.SendBatch(ctx, t.beginning()).Close()
}

func (t *lateTx) beginning() *pgx.Batch {
	batch := &pgx.Batch{}
	for _, statement := range t.begin {
		batch.Queue(statement)
	}
	return batch
}

// SendBatch sends BEGIN with the batch when nothing was sent before.
func (t *lateTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if !t.begun {
		t.begun = true
		b.QueuedQueries = append(t.beginning().QueuedQueries, b.QueuedQueries...)
	}
	return t.conn.SendBatch(ctx, b)
}

// Exec runs a statement.
func (t *lateTx) Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error) {
	if err := t.start(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return t.conn.Exec(ctx, sql, arguments...)
}

// Query runs a statement that gives rows.
func (t *lateTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.start(ctx); err != nil {
		return nil, err
	}
	return t.conn.Query(ctx, sql, args...)
}

// failedRow is the row of a query that was not sent.
type failedRow struct{ err error }

// Scan gives the error.
func (r failedRow) Scan(...any) error { return r.err }

// QueryRow runs a statement that gives one row.
func (t *lateTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.start(ctx); err != nil {
		return failedRow{err}
	}
	return t.conn.QueryRow(ctx, sql, args...)
}

// Commit ends the transaction. pgx.ErrTxCommitRollback when a statement in it had failed.
func (t *lateTx) Commit(ctx context.Context) error {
	defer t.conn.Release()
	if !t.begun {
		return nil
	}
	tag, err := t.conn.Exec(ctx, "commit")
	if err != nil {
		if t.conn.Conn().PgConn().TxStatus() != 'I' {
			_ = t.conn.Conn().Close(ctx) // the cause is err
		}
		return err
	}
	if tag.String() == "ROLLBACK" {
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// Rollback gives the transaction up. A connection on which that fails is closed, which rolls back as well.
func (t *lateTx) Rollback(ctx context.Context) error {
	defer t.conn.Release()
	if !t.begun {
		return nil
	}
	_, err := t.conn.Exec(ctx, "rollback")
	if err != nil {
		_ = t.conn.Conn().Close(ctx)
	}
	return err
}

// errNotServed is for what no transaction of this package needs.
var errNotServed = fault.New(fault.Internal, "this is not served within a transaction")

// Begin is not served.
func (*lateTx) Begin(context.Context) (pgx.Tx, error) { return nil, errNotServed }

// CopyFrom is not served.
func (*lateTx) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, errNotServed
}

// Prepare is not served.
func (*lateTx) Prepare(context.Context, string, string) (*pgconn.StatementDescription, error) {
	return nil, errNotServed
}

// LargeObjects is not served.
func (*lateTx) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// Conn gives the connection.
func (t *lateTx) Conn() *pgx.Conn { return t.conn.Conn() }
