package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// Limits of deliveries.
const (
	// webhookLease is how long a webhook is one deliverer's. Each mark makes it as long again, and comes after one
	// message at most.
	webhookLease = time.Minute
	// deliveriesWaitingMax is how many events may wait behind failures of one webhook; then it gets no new ones.
	deliveriesWaitingMax   = 10_000
	webhookProblemBytesMax = 500
)

// The first delivery of a lane that waits is the only one of it that may be tried.
const headWaits = `
SELECT FROM webhook_deliveries AS d
WHERE d.webhook_id = w.id AND d.state = 'waiting' AND d.not_before <= now() AND NOT EXISTS (
    SELECT FROM webhook_deliveries AS before
    WHERE before.webhook_id = d.webhook_id AND before.lane = d.lane AND before.state = 'waiting' AND before.position < d.position)`

const sqlClaimWebhook = `
WITH claimed AS (
    UPDATE webhooks SET epoch = epoch + 1, lease_until = clock_timestamp() + @lease::interval
    WHERE id = (
        SELECT w.id FROM webhooks AS w
        WHERE w.enabled AND w.not_before <= now() AND (w.lease_until IS NULL OR w.lease_until < clock_timestamp())
          AND (w.position < @through OR EXISTS (` + headWaits + `))
        ORDER BY w.not_before, w.id
        LIMIT 1
        FOR UPDATE SKIP LOCKED)
    RETURNING id, url, secret, warehouse_id, filter, enabled, created_by, created_at, position, failures, problem, delivered_at, epoch
)
SELECT webhooks.id, webhooks.url, webhooks.secret, webhooks.warehouse_id, coalesce(warehouses.name, ''), webhooks.filter,
    webhooks.enabled, webhooks.created_by, webhooks.created_at, webhooks.position, webhooks.failures, webhooks.problem,
    webhooks.delivered_at, webhooks.epoch
FROM claimed AS webhooks LEFT JOIN warehouses ON warehouses.id = webhooks.warehouse_id`

const sqlAnyWebhook = `SELECT EXISTS (SELECT FROM webhooks WHERE enabled)`

// ClaimWebhook takes a webhook that something is to be delivered to; nil: there is none.
func (s *Store) ClaimWebhook(ctx context.Context) (*catalog.WebhookClaim, error) {
	anyone := false
	err := s.read(ctx, func(q querier) error { return q.QueryRow(ctx, sqlAnyWebhook).Scan(&anyone) })
	if err != nil || !anyone {
		return nil, err
	}
	feed, err := s.place(ctx, feedEvents)
	if err != nil {
		return nil, err
	}
	var claims []catalog.WebhookClaim
	err = s.InTx(ctx, func(tx pgx.Tx) error {
		claims, err = collectFrom(ctx, tx, sqlClaimWebhook, pgx.NamedArgs{"lease": webhookLease, "through": feed.Through},
			func(row pgx.CollectableRow) (catalog.WebhookClaim, error) {
				c := catalog.WebhookClaim{Through: feed.Through, Lease: webhookLease}
				w, err := scanWebhook(row, &c.Epoch)
				c.Webhook = w
				return c, err
			})
		return err
	})
	if err != nil || len(claims) == 0 {
		return nil, err
	}
	return &claims[0], nil
}

const sqlDueDeliveries = `
SELECT ` + deliveryColumns + `
FROM webhook_deliveries AS d` + deliveryJoins + `
WHERE d.webhook_id = @id AND d.state = 'waiting' AND d.not_before <= now() AND NOT EXISTS (
    SELECT FROM webhook_deliveries AS before
    WHERE before.webhook_id = d.webhook_id AND before.lane = d.lane AND before.state = 'waiting' AND before.position < d.position)
ORDER BY d.not_before, d.position
LIMIT @limit`

const sqlBlockedLanes = `SELECT lane, count(*) FROM webhook_deliveries WHERE webhook_id = @id AND state = 'waiting' GROUP BY lane`

// WebhookWork gives what a claimed webhook is to get, up to a limit of each kind.
func (s *Store) WebhookWork(ctx context.Context, c catalog.WebhookClaim, limit int) (catalog.WebhookWork, error) {
	var w catalog.WebhookWork
	args := pgx.NamedArgs{"id": c.ID, "limit": limit}
	var err error
	if w.Due, err = collect(ctx, s, sqlDueDeliveries, args, scanDelivery); err != nil {
		return w, fmt.Errorf("list the due deliveries of webhook %s: %w", c.ID, err)
	}
	var waiting int64
	w.Blocked, err = collect(ctx, s, sqlBlockedLanes, args, func(row pgx.CollectableRow) (lane uuid.UUID, err error) {
		var n int64
		err = row.Scan(&lane, &n)
		waiting += n
		return lane, err
	})
	if err != nil {
		return w, fmt.Errorf("list what waits for webhook %s: %w", c.ID, err)
	}
	if waiting >= deliveriesWaitingMax {
		return w, nil
	}
	w.Open = true
	w.Fresh, err = s.eventsBetween(ctx, catalog.EventQuery{EventFilter: c.Events(), After: c.Position, Limit: limit}, c.Through)
	if err != nil {
		return w, fmt.Errorf("list the events for webhook %s: %w", c.ID, err)
	}
	return w, nil
}

const sqlMarkWebhook = `
UPDATE webhooks
SET position = greatest(position, @position::bigint), lease_until = clock_timestamp() + @lease::interval,
    failures = CASE WHEN @delivered::boolean THEN 0 WHEN @problem::text <> '' THEN failures + 1 ELSE failures END,
    problem = CASE WHEN @delivered THEN '' WHEN @problem <> '' THEN @problem ELSE problem END,
    delivered_at = CASE WHEN @delivered THEN now() ELSE delivered_at END
WHERE id = @id AND epoch = @epoch AND lease_until > clock_timestamp()`

const sqlPutDelivery = `
INSERT INTO webhook_deliveries (webhook_id, position, event_id, lane, state, attempts, problem, first_at, not_before)
VALUES (@id, @place, @event, @lane, @state, @attempts, @problem, now(), now() + @delay::interval)
ON CONFLICT (webhook_id, position) DO UPDATE
SET state = EXCLUDED.state, attempts = EXCLUDED.attempts, problem = EXCLUDED.problem, not_before = EXCLUDED.not_before`

const sqlForgetDelivery = `DELETE FROM webhook_deliveries WHERE webhook_id = @id AND position = @done`

// MarkWebhook keeps what became of deliveries, while the lease holds: fault.VersionConflict when it does not.
func (s *Store) MarkWebhook(ctx context.Context, c catalog.WebhookClaim, m catalog.WebhookMark) error {
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{
			"id": c.ID, "epoch": c.Epoch, "lease": webhookLease, "position": m.Position, "delivered": m.Delivered,
			"problem": bounded(m.Problem, webhookProblemBytesMax), "done": m.Done,
		}
		tag, err := tx.Exec(ctx, sqlMarkWebhook, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.VersionConflict, "webhook %s is another deliverer's by now", c.ID)
		}
		batch := &pgx.Batch{}
		if m.Done > 0 {
			batch.Queue(sqlForgetDelivery, args)
		}
		for _, d := range m.Put {
			state := "waiting"
			if d.Dead {
				state = "dead"
			}
			batch.Queue(sqlPutDelivery, pgx.NamedArgs{
				"id": c.ID, "place": d.Position, "event": d.Event.ID, "lane": d.Lane, "state": state, "attempts": d.Attempts,
				"problem": bounded(d.Problem, webhookProblemBytesMax), "delay": m.Delay,
			})
		}
		if batch.Len() == 0 {
			return nil
		}
		return tx.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return fmt.Errorf("mark deliveries of webhook %s: %w", c.ID, err)
	}
	return nil
}

const sqlReleaseWebhook = `
UPDATE webhooks
SET lease_until = NULL, not_before = now() + @delay::interval, enabled = enabled AND NOT @disable::boolean,
    problem = CASE WHEN @problem::text <> '' THEN @problem::text ELSE problem END
WHERE id = @id AND epoch = @epoch`

// ReleaseWebhook ends a claim.
func (s *Store) ReleaseWebhook(ctx context.Context, c catalog.WebhookClaim, r catalog.WebhookRelease) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlReleaseWebhook, pgx.NamedArgs{
			"id": c.ID, "epoch": c.Epoch, "delay": r.Delay, "disable": r.Disabled != nil, "problem": bounded(r.Problem, webhookProblemBytesMax),
		})
		if err != nil || r.Disabled == nil || tag.RowsAffected() == 0 {
			return err
		}
		return writeFact(ctx, tx, *r.Disabled)
	})
}
