package store

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// roundTrips counts what is sent to the database and waited for: statements, batches and preparations alike.
type roundTrips struct{ sent atomic.Int64 }

var (
	_ pgx.QueryTracer   = (*roundTrips)(nil)
	_ pgx.BatchTracer   = (*roundTrips)(nil)
	_ pgx.PrepareTracer = (*roundTrips)(nil)
)

// TraceQueryStart counts a statement.
func (r *roundTrips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	r.sent.Add(1)
	return ctx
}

// TraceQueryEnd does nothing.
func (*roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart counts a batch, which is one round trip.
func (r *roundTrips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.sent.Add(1)
	return ctx
}

// TraceBatchQuery does nothing.
func (*roundTrips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd does nothing.
func (*roundTrips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TracePrepareStart counts the preparation of a statement, once on each connection.
func (r *roundTrips) TracePrepareStart(ctx context.Context, _ *pgx.Conn, data pgx.TracePrepareStartData) context.Context {
	r.sent.Add(1)
	return ctx
}

// TracePrepareEnd does nothing.
func (*roundTrips) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}

// RoundTrips tells how many round trips to the database there were since Open.
func (s *Store) RoundTrips() int64 { return s.trips.sent.Load() }
