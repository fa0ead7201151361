package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

const webhookColumns = `webhooks.id, webhooks.url, webhooks.secret, webhooks.warehouse_id, coalesce(warehouses.name, ''),
    webhooks.filter, webhooks.enabled, webhooks.created_by, webhooks.created_at, webhooks.position, webhooks.failures,
    webhooks.problem, webhooks.delivered_at`

const webhookCounts = `
    (SELECT count(*) FROM webhook_deliveries AS d WHERE d.webhook_id = webhooks.id AND d.state = 'waiting'),
    (SELECT count(*) FROM webhook_deliveries AS d WHERE d.webhook_id = webhooks.id AND d.state = 'dead')`

func scanWebhook(row pgx.CollectableRow, more ...any) (catalog.Webhook, error) {
	var w catalog.Webhook
	var warehouse *uuid.UUID
	var filter []byte
	var delivered *time.Time
	err := row.Scan(append([]any{&w.ID, &w.URL, &w.Sealed, &warehouse, &w.Warehouse, &filter, &w.Enabled, &w.CreatedBy, &w.CreatedAt,
		&w.Position, &w.Failures, &w.Problem, &delivered}, more...)...)
	if err != nil {
		return w, err
	}
	w.WarehouseID, w.CreatedAt = idOf(warehouse), w.CreatedAt.UTC()
	if delivered != nil {
		w.DeliveredAt = delivered.UTC()
	}
	if err := json.Unmarshal(filter, &w.Filter); err != nil {
		return w, fmt.Errorf("decode the filter of webhook %s: %w", w.ID, err)
	}
	return w, nil
}

func scanCounted(row pgx.CollectableRow) (catalog.Webhook, error) {
	var waiting, dead int64
	w, err := scanWebhook(row, &waiting, &dead)
	w.Waiting, w.Dead = waiting, dead
	return w, err
}

// Two that are made at once may both be the last one: a limit on what an administrator does need not be exact.
const sqlInsertWebhook = `
INSERT INTO webhooks (id, url, secret, warehouse_id, filter, created_by, created_at, position, not_before)
SELECT @id::uuid, @url::text, @secret::bytea, @warehouse::uuid, @filter::jsonb, @created_by::text, @created_at::timestamptz,
    @position::bigint, now()
WHERE (SELECT count(*) FROM webhooks) < @most
  AND (@warehouse::uuid IS NULL OR (SELECT count(*) FROM webhooks WHERE warehouse_id = @warehouse::uuid) < @most_here)`

// CreateWebhook makes a webhook that begins with the next event.
func (s *Store) CreateWebhook(ctx context.Context, w catalog.Webhook, f catalog.Fact) error {
	filter, err := json.Marshal(w.Filter)
	if err != nil {
		return fmt.Errorf("encode the filter of a webhook: %w", err)
	}
	feed, err := s.place(ctx, feedEvents)
	for err == nil && feed.More {
		feed, err = s.place(ctx, feedEvents)
	}
	if err != nil {
		return err
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlInsertWebhook, pgx.NamedArgs{
			"id": w.ID, "url": storable(w.URL), "secret": w.Sealed, "warehouse": nullable(w.WarehouseID), "filter": storable(string(filter)),
			"created_by": storable(w.CreatedBy), "created_at": w.CreatedAt, "position": feed.Through, "most": catalog.WebhooksMax,
			"most_here": catalog.WebhooksOfWarehouseMax,
		})
		if err != nil {
			return goneMeans(err, fault.New(fault.NoSuchWarehouse, "the warehouse no longer exists: %s", w.Warehouse))
		}
		if tag.RowsAffected() == 0 {
			return catalog.ErrWebhooksMax
		}
		return writeFact(ctx, tx, f)
	})
}

const sqlFindWebhook = `
SELECT ` + webhookColumns + `,` + webhookCounts + `
FROM webhooks LEFT JOIN warehouses ON warehouses.id = webhooks.warehouse_id
WHERE webhooks.id = @id`

func webhookMissing(id uuid.UUID) error {
	return fault.New(fault.NotFound, "there is no webhook %s", id)
}

// FindWebhook gives a webhook.
func (s *Store) FindWebhook(ctx context.Context, id uuid.UUID) (catalog.Webhook, error) {
	found, err := collect(ctx, s, sqlFindWebhook, pgx.NamedArgs{"id": id}, scanCounted)
	if err != nil {
		return catalog.Webhook{}, err
	}
	if len(found) == 0 {
		return catalog.Webhook{}, webhookMissing(id)
	}
	w := found[0]
	args := eventArgs(catalog.EventQuery{EventFilter: w.Events(), After: w.Position, Limit: catalog.WebhookBehindMax})
	err = s.read(ctx, func(q querier) error { return q.QueryRow(ctx, sqlCountBehind, args).Scan(&w.Behind) })
	if err != nil {
		return catalog.Webhook{}, fmt.Errorf("count the events for webhook %s: %w", id, err)
	}
	return w, nil
}

// Only what the webhook is to get: how much happens elsewhere is nothing for its owner.
const sqlCountBehind = `
SELECT count(*) FROM (
    SELECT FROM events WHERE (events.position > @after OR events.position IS NULL) AND ` + eventMatches + ` LIMIT @limit
) AS behind`

const sqlListWebhooks = `
SELECT ` + webhookColumns + `,` + webhookCounts + `
FROM webhooks LEFT JOIN warehouses ON warehouses.id = webhooks.warehouse_id
WHERE @warehouse::uuid IS NULL OR webhooks.warehouse_id = @warehouse::uuid
ORDER BY webhooks.created_at, webhooks.id`

// ListWebhooks gives those of a warehouse, or all.
func (s *Store) ListWebhooks(ctx context.Context, warehouseID uuid.UUID) ([]catalog.Webhook, error) {
	return collect(ctx, s, sqlListWebhooks, pgx.NamedArgs{"warehouse": nullable(warehouseID)}, scanCounted)
}

// Whoever works for it stops behind the message that is under way.
const sqlUpdateWebhook = `
UPDATE webhooks
SET url = coalesce(@url::text, url), filter = coalesce(@filter::jsonb, filter), enabled = coalesce(@enabled::boolean, enabled),
    failures = 0, not_before = now(), epoch = epoch + 1, lease_until = NULL,
    problem = CASE WHEN coalesce(@enabled, enabled) THEN '' ELSE problem END
WHERE id = @id`

const sqlHastenDeliveries = `
UPDATE webhook_deliveries SET not_before = now() WHERE webhook_id = @id AND state = 'waiting' AND (SELECT enabled FROM webhooks WHERE id = @id)`

// UpdateWebhook changes a webhook. Two changes at once of different things are both made.
func (s *Store) UpdateWebhook(ctx context.Context, id uuid.UUID, change catalog.WebhookChange, f catalog.Fact) error {
	args := pgx.NamedArgs{"id": id, "url": nil, "filter": nil, "enabled": change.Enabled}
	if change.URL != nil {
		args["url"] = storable(*change.URL)
	}
	if change.Filter != nil {
		filter, err := json.Marshal(change.Filter)
		if err != nil {
			return fmt.Errorf("encode the filter of a webhook: %w", err)
		}
		args["filter"] = storable(string(filter))
	}
	return s.changeWebhook(ctx, id, sqlUpdateWebhook, args, f, sqlHastenDeliveries)
}

const sqlDropWebhook = `DELETE FROM webhooks WHERE id = @id`

// DropWebhook forgets a webhook and what it has not got.
func (s *Store) DropWebhook(ctx context.Context, id uuid.UUID, f catalog.Fact) error {
	return s.changeWebhook(ctx, id, sqlDropWebhook, pgx.NamedArgs{"id": id}, f)
}

func (s *Store) changeWebhook(ctx context.Context, id uuid.UUID, sql string, args pgx.NamedArgs, f catalog.Fact, more ...string) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return webhookMissing(id)
		}
		for _, sql := range more {
			if _, err := tx.Exec(ctx, sql, args); err != nil {
				return err
			}
		}
		return writeFact(ctx, tx, f)
	})
}

const sqlResealWebhook = `UPDATE webhooks SET secret = @fresh WHERE id = @id AND secret = @old`

// ResealWebhook replaces a secret's encrypted form.
func (s *Store) ResealWebhook(ctx context.Context, id uuid.UUID, old, fresh []byte) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlResealWebhook, pgx.NamedArgs{"id": id, "old": old, "fresh": fresh})
		return err
	})
}

// Events that are gone leave their columns empty.
const deliveryColumns = `d.position, coalesce(events.turn, (extract(epoch FROM events.at) * 1000000)::bigint, 0), d.lane, d.state = 'dead', d.attempts, d.problem, d.first_at, d.not_before,
    events.id, coalesce(events.at, d.first_at), coalesce(events.operation, ''), coalesce(events.principal, ''), events.warehouse_id,
    coalesce(warehouses.name, ''), events.securable_id, coalesce(events.subject, ''), coalesce(events.details, '{}')`

const deliveryJoins = `
LEFT JOIN events ON events.id = d.event_id LEFT JOIN warehouses ON warehouses.id = events.warehouse_id`

func scanDelivery(row pgx.CollectableRow) (catalog.Delivery, error) {
	var d catalog.Delivery
	var event, warehouse, securable *uuid.UUID
	var details []byte
	e := &d.Event
	err := row.Scan(&d.Position, &e.Turn, &d.Lane, &d.Dead, &d.Attempts, &d.Problem, &d.FirstAt, &d.Next,
		&event, &e.At, &e.Operation, &e.Principal, &warehouse, &e.Warehouse, &securable, &e.Subject, &details)
	e.ID, e.WarehouseID, e.SecurableID = idOf(event), idOf(warehouse), idOf(securable)
	e.Position, e.At, e.Details = d.Position, e.At.UTC(), details
	d.FirstAt, d.Next = d.FirstAt.UTC(), d.Next.UTC()
	return d, err
}

const sqlListDeliveries = `
SELECT ` + deliveryColumns + `
FROM webhook_deliveries AS d` + deliveryJoins + `
WHERE d.webhook_id = @id
ORDER BY d.state, d.position
LIMIT @limit`

// ListDeliveries gives what was given up and what waits.
func (s *Store) ListDeliveries(ctx context.Context, id uuid.UUID, limit int) ([]catalog.Delivery, error) {
	return collect(ctx, s, sqlListDeliveries, pgx.NamedArgs{"id": id, "limit": limit}, scanDelivery)
}

// What the webhook has had, or would have had if it had not been given up. One that waits goes back to its first attempt.
const sqlRedeliverEvent = `
INSERT INTO webhook_deliveries (webhook_id, position, event_id, lane, state, first_at, not_before)
SELECT webhooks.id, events.position, events.id, coalesce(events.securable_id, @nobody::uuid), 'waiting', now(), now()
FROM webhooks JOIN events ON events.id = @event AND events.position <= webhooks.position
    AND (webhooks.warehouse_id IS NULL OR events.warehouse_id = webhooks.warehouse_id)
    AND events.operation <> 'commit-abandoned'
WHERE webhooks.id = @id
ON CONFLICT (webhook_id, position) DO UPDATE
SET state = 'waiting', attempts = 0, problem = '', first_at = EXCLUDED.first_at, not_before = EXCLUDED.not_before`

const sqlRedeliverDead = `
UPDATE webhook_deliveries AS d SET state = 'waiting', attempts = 0, problem = '', first_at = now(), not_before = now()
FROM events
WHERE d.webhook_id = @id AND d.state = 'dead' AND events.id = d.event_id`

// What was called for is sent at once, also when the webhook rests after failures.
const sqlWakeWebhook = `UPDATE webhooks SET not_before = now(), failures = 0 WHERE id = @id`

// RedeliverWebhook lets events be sent once more.
func (s *Store) RedeliverWebhook(ctx context.Context, id, event uuid.UUID, f catalog.Fact) (n int, err error) {
	err = s.InTx(ctx, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{"id": id, "event": event, "nobody": uuid.Nil}
		tag, err := tx.Exec(ctx, sqlWakeWebhook, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return webhookMissing(id)
		}
		sql := sqlRedeliverEvent
		if event == uuid.Nil {
			sql = sqlRedeliverDead
		}
		if tag, err = tx.Exec(ctx, sql, args); err != nil {
			return err
		}
		if n = int(tag.RowsAffected()); n == 0 && event != uuid.Nil {
			return fault.New(fault.NotFound, "webhook %s has had no event %s, or it has been removed for its age", id, event)
		}
		return writeFact(ctx, tx, f)
	})
	return n, err
}
