package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
)

// The feeds.
const (
	feedAudit  = "audit"
	feedEvents = "events"
)

// Limits of placing: rows that get their positions in one transaction, and transactions of one call.
const (
	placedAtOnce   = 5000
	placeRoundsMax = 4
)

const sqlAuditFeed = `
SELECT coalesce(max(last), 0), coalesce(max(removed), 0), EXISTS (SELECT FROM audit WHERE position IS NULL)
FROM feeds WHERE name = 'audit'`

const sqlEventFeed = `
SELECT coalesce(max(last), 0), coalesce(max(removed), 0), EXISTS (SELECT FROM events WHERE position IS NULL)
FROM feeds WHERE name = 'events'`

const sqlFeedRemoved = `SELECT coalesce(max(removed), 0) FROM feeds WHERE name = @feed`

// Positions are given by one transaction at a time. What it sees begins after it has this lock, so whatever is placed
// later was not committed before.
const sqlLockFeed = `
INSERT INTO feeds (name) VALUES (@feed) ON CONFLICT (name) DO UPDATE SET last = feeds.last`

// A change that was committed before another one of the same thing was inserted before it as well, because it held the
// thing's row until then: in the order of insertion, what is visible keeps each thing's order. Turns begin with the clock
// each time, or behind the last when the clock was set back, and are counted for each thing apart: who sees those of one
// thing learns when they were placed, and not how many of others lie between.
const sqlPlaceEvents = `
WITH start AS (
    SELECT greatest(turn, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS turn, last FROM feeds WHERE name = 'events'
), fresh AS (
    SELECT id, row_number() OVER (ORDER BY sequence) AS nth, row_number() OVER (PARTITION BY warehouse_id, securable_id ORDER BY sequence) AS own
    FROM (SELECT id, sequence, warehouse_id, securable_id FROM events WHERE position IS NULL ORDER BY sequence LIMIT @limit) AS unplaced
), placed AS (
    UPDATE events SET position = start.last + fresh.nth, turn = start.turn + fresh.own
    FROM fresh, start
    WHERE events.id = fresh.id
    RETURNING events.turn
), sum AS (
    SELECT count(*) AS placed, max(turn) AS turn FROM placed
)
UPDATE feeds SET last = last + sum.placed, turn = greatest(feeds.turn, sum.turn) FROM sum WHERE name = 'events' RETURNING sum.placed`

const sqlPlaceAudit = `
WITH fresh AS (
    SELECT id, row_number() OVER (ORDER BY id) AS nth
    FROM (SELECT id FROM audit WHERE position IS NULL ORDER BY id LIMIT @limit) AS unplaced
), placed AS (
    UPDATE audit SET position = feeds.last + fresh.nth
    FROM fresh, feeds
    WHERE audit.id = fresh.id AND feeds.name = 'audit'
    RETURNING audit.id
)
UPDATE feeds SET last = last + (SELECT count(*) FROM placed) WHERE name = 'audit' RETURNING (SELECT count(*) FROM placed)`

// place gives positions to the rows of a feed that have none, a bounded number of them, and tells how far the feed is.
func (s *Store) place(ctx context.Context, feed string) (catalog.Feed, error) {
	sqlFeed, sqlPlace := sqlEventFeed, sqlPlaceEvents
	if feed == feedAudit {
		sqlFeed, sqlPlace = sqlAuditFeed, sqlPlaceAudit
	}
	for round := 0; ; round++ {
		var at catalog.Feed
		var more bool
		err := s.read(ctx, func(q querier) error { return q.QueryRow(ctx, sqlFeed).Scan(&at.Through, &at.Removed, &more) })
		if err != nil {
			return catalog.Feed{}, fmt.Errorf("look how far the %s are placed: %w", feed, err)
		}
		if at.More = more && round == placeRoundsMax; !more || at.More {
			return at, nil
		}
		err = s.InTx(ctx, func(tx pgx.Tx) error {
			args := pgx.NamedArgs{"feed": feed, "limit": placedAtOnce}
			batch := &pgx.Batch{}
			batch.Queue(sqlLockFeed, args)
			batch.Queue(sqlPlace, args)
			return tx.SendBatch(ctx, batch).Close()
		})
		if err != nil {
			return catalog.Feed{}, fmt.Errorf("place the %s: %w", feed, err)
		}
	}
}

const auditColumns = `audit.id, coalesce(audit.position, 0), audit.at, audit.event_id, audit.request_id, audit.principal,
    audit.actor, audit.token_id, audit.credential, audit.client, audit.user_agent, audit.operation, audit.warehouse_id,
    coalesce(warehouses.name, ''), audit.securable_id, audit.subject, audit.allowed, audit.reason, audit.privilege,
    audit.securable, audit.repeats`

// Parameters that want everything are ” or NULL.
const auditMatches = `(@principal::text = '' OR audit.principal = @principal::text)
    AND (@operation::text = '' OR audit.operation = @operation::text)
    AND (@subject::text = '' OR audit.subject = @subject::text)
    AND (@request::text = '' OR audit.request_id = @request::text)
    AND (@warehouse::uuid IS NULL OR audit.warehouse_id = @warehouse::uuid)
    AND (@securable::uuid IS NULL OR audit.securable_id = @securable::uuid)
    AND (@allowed::boolean IS NULL OR audit.allowed = @allowed::boolean)
    AND audit.at >= @since::text::timestamptz AND audit.at < @until::text::timestamptz`

const sqlListAuditOldest = `
SELECT ` + auditColumns + `
FROM audit LEFT JOIN warehouses ON warehouses.id = audit.warehouse_id
WHERE audit.position > @after AND audit.position <= @through AND ` + auditMatches + `
ORDER BY audit.position
LIMIT @limit`

const sqlListAuditNewest = `
SELECT ` + auditColumns + `
FROM audit LEFT JOIN warehouses ON warehouses.id = audit.warehouse_id
WHERE (@before::bigint = 0 OR audit.id < @before::bigint) AND ` + auditMatches + `
ORDER BY audit.id DESC
LIMIT @limit`

// ListAudit gives a page of the audit.
func (s *Store) ListAudit(ctx context.Context, q catalog.AuditQuery) ([]catalog.AuditRow, catalog.Feed, error) {
	args := pgx.NamedArgs{
		"principal": lookup(q.Principal), "operation": lookup(q.Operation), "subject": lookup(q.Subject), "request": lookup(q.RequestID),
		"warehouse": nullable(q.WarehouseID), "securable": nullable(q.SecurableID), "allowed": q.Allowed,
		"since": boundary(q.Since, "-infinity"), "until": boundary(q.Until, "infinity"),
		"after": q.After, "before": q.Before, "limit": q.Limit,
	}
	if !q.Oldest {
		rows, err := collect(ctx, s, sqlListAuditNewest, args, scanAudit)
		return rows, catalog.Feed{}, err
	}
	return untilStill(ctx, s, feedAudit, func() ([]catalog.AuditRow, catalog.Feed, error) { return s.auditOldest(ctx, args) })
}

// auditOldest gives a page in the order of the feed.
func (s *Store) auditOldest(ctx context.Context, args pgx.NamedArgs) ([]catalog.AuditRow, catalog.Feed, error) {
	feed, err := s.place(ctx, feedAudit)
	if err != nil {
		return nil, feed, err
	}
	args["through"] = feed.Through
	rows, err := collect(ctx, s, sqlListAuditOldest, args, scanAudit)
	return rows, feed, err
}

// untilStill reads again while rows were removed between the look at the feed and the reading of its rows: who was told of
// the feed before that would not learn that rows are missing. After a few times the reader is told that he may have
// missed some, which is then so or nearly so.
func untilStill[T any](ctx context.Context, s *Store, feed string, list func() ([]T, catalog.Feed, error)) ([]T, catalog.Feed, error) {
	for round := 0; ; round++ {
		rows, at, err := list()
		if err != nil {
			return nil, at, err
		}
		removed := int64(0)
		err = s.read(ctx, func(q querier) error {
			return q.QueryRow(ctx, sqlFeedRemoved, pgx.NamedArgs{"feed": feed}).Scan(&removed)
		})
		if err != nil {
			return nil, at, fmt.Errorf("look how far the %s are removed: %w", feed, err)
		}
		if removed == at.Removed || round == placeRoundsMax {
			at.Removed = removed
			return rows, at, nil
		}
	}
}

// boundary is a moment as a text, the other word where there is none.
func boundary(at time.Time, none string) string {
	if at.IsZero() {
		return none
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func scanAudit(row pgx.CollectableRow) (catalog.AuditRow, error) {
	var a catalog.AuditRow
	var event, warehouse, securable *uuid.UUID
	err := row.Scan(&a.ID, &a.Position, &a.At, &event, &a.RequestID, &a.Principal, &a.Actor, &a.TokenID, &a.Credential,
		&a.Client, &a.UserAgent, &a.Operation, &warehouse, &a.Warehouse, &securable, &a.Subject, &a.Allowed, &a.Reason,
		&a.Privilege, &a.Securable, &a.Repeats)
	a.At = a.At.UTC()
	a.EventID, a.WarehouseID, a.SecurableID = idOf(event), idOf(warehouse), idOf(securable)
	return a, err
}

// idOf is nullable the other way round.
func idOf(id *uuid.UUID) uuid.UUID {
	if id == nil {
		return uuid.Nil
	}
	return *id
}

// What a binary before turns placed has the one of its time.
const eventColumns = `events.position, coalesce(events.turn, (extract(epoch FROM events.at) * 1000000)::bigint), events.id, events.at, events.operation, events.principal, events.warehouse_id,
    coalesce(warehouses.name, ''), events.securable_id, events.subject, events.details`

// A commit that was given up is no change.
const eventMatches = `events.operation <> 'commit-abandoned'
    AND (@warehouse::uuid IS NULL OR events.warehouse_id = @warehouse::uuid)
    AND (@securable::uuid IS NULL OR events.securable_id = @securable::uuid)
    AND (@subject::text = '' OR events.subject = @subject::text)
    AND (cardinality(@operations::text[]) = 0 OR events.operation = ANY (@operations::text[]))`

const sqlListEvents = `
SELECT ` + eventColumns + `
FROM events LEFT JOIN warehouses ON warehouses.id = events.warehouse_id
WHERE events.position > @after AND events.position <= @through AND ` + eventMatches + `
ORDER BY events.position
LIMIT @limit`

// ListEvents gives events behind a position.
func (s *Store) ListEvents(ctx context.Context, q catalog.EventQuery) ([]catalog.EventRow, catalog.Feed, error) {
	return untilStill(ctx, s, feedEvents, func() ([]catalog.EventRow, catalog.Feed, error) {
		feed, err := s.place(ctx, feedEvents)
		if err != nil {
			return nil, feed, err
		}
		rows, err := s.eventsBetween(ctx, q, feed.Through)
		return rows, feed, err
	})
}

func (s *Store) eventsBetween(ctx context.Context, q catalog.EventQuery, through int64) ([]catalog.EventRow, error) {
	args := eventArgs(q)
	args["through"] = through
	return collect(ctx, s, sqlListEvents, args, scanEvent)
}

func eventArgs(q catalog.EventQuery) pgx.NamedArgs {
	return pgx.NamedArgs{
		"after": q.After, "warehouse": nullable(q.WarehouseID), "securable": nullable(q.SecurableID), "subject": lookup(q.Subject),
		"operations": lookupAll(q.Operations), "limit": q.Limit,
	}
}

func scanEvent(row pgx.CollectableRow) (catalog.EventRow, error) {
	var e catalog.EventRow
	var warehouse, securable *uuid.UUID
	var details []byte
	err := row.Scan(&e.Position, &e.Turn, &e.ID, &e.At, &e.Operation, &e.Principal, &warehouse, &e.Warehouse, &securable, &e.Subject, &details)
	e.At, e.Details = e.At.UTC(), details
	e.WarehouseID, e.SecurableID = idOf(warehouse), idOf(securable)
	return e, err
}

// factRow is the audit row of a fact, for those who are told of it.
func factRow(f catalog.Fact) catalog.AuditRow {
	return byCaller(f.Caller, catalog.AuditRow{
		At: f.At, EventID: f.ID, Operation: f.Operation, WarehouseID: f.Warehouse, SecurableID: f.Securable,
		Subject: bounded(f.Subject, auditSubjectBytesMax), Allowed: true,
	})
}

// deniedRow is that of a denial.
func deniedRow(d catalog.Denial, onName string) catalog.AuditRow {
	return byCaller(d.Caller, catalog.AuditRow{
		At: d.At, Operation: d.Operation, WarehouseID: d.Warehouse, SecurableID: d.On.ID, Securable: onName,
		Subject: bounded(d.Subject, auditSubjectBytesMax), Reason: bounded(d.Reason, auditReasonBytesMax),
		Privilege: string(d.Privilege), Repeats: d.Repeats,
	})
}

func byCaller(c catalog.Caller, a catalog.AuditRow) catalog.AuditRow {
	a.RequestID, a.Principal, a.TokenID = bounded(c.RequestID, auditLabelBytesMax), c.Principal.Name, bounded(c.Principal.TokenID, auditLabelBytesMax)
	a.Actor, a.Credential = c.Principal.ActorName(), credentialOf(c.Principal)
	a.Client, a.UserAgent = bounded(c.Client, auditLabelBytesMax), bounded(c.UserAgent, auditLabelBytesMax)
	return a
}
