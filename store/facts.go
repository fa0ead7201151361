package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
)

// The rows are selected, so that a statement can take them from what it changed.
const sqlInsertEvent = `
INSERT INTO events (id, at, operation, warehouse_id, securable_id, subject, details)
SELECT @event::uuid, @at::timestamptz, @operation::text, @event_warehouse::uuid, @securable::uuid, @subject::text, @details::jsonb`

const sqlInsertAudit = `
INSERT INTO audit (at, event_id, request_id, principal, token_id, client, operation, subject, allowed, reason)
SELECT @at::timestamptz, @event::uuid, @request::text, @principal::text, @token::text, @client::text, @operation::text, @subject::text,
       @allowed::boolean, @reason::text`

// writeFact writes a mutation's event and audit row in the mutation's transaction.
func writeFact(ctx context.Context, tx pgx.Tx, f catalog.Fact) error {
	batch := &pgx.Batch{}
	if err := queueFact(batch, f); err != nil {
		return err
	}
	return tx.SendBatch(ctx, batch).Close()
}

// queueFact adds a fact's rows to a batch: the event's, the audit's and, when it has an outcome, that of its caller's key.
func queueFact(batch *pgx.Batch, f catalog.Fact) error {
	args, err := factArgs(f)
	if err != nil {
		return err
	}
	batch.Queue(sqlInsertEvent, args)
	batch.Queue(sqlInsertAudit, args)
	return queueOutcome(batch, f)
}

// factArgs are the parameters of a fact's event and audit row.
func factArgs(f catalog.Fact) (pgx.NamedArgs, error) {
	details := []byte("{}")
	if len(f.Details) > 0 {
		var err error
		if details, err = json.Marshal(f.Details); err != nil {
			return nil, fmt.Errorf("encode the details of %s: %w", f.Operation, err)
		}
	}
	return auditArgs(f.Caller, pgx.NamedArgs{
		"event": f.ID, "at": f.At, "operation": f.Operation, "event_warehouse": nullable(f.Warehouse),
		"securable": nullable(f.Securable), "subject": storable(f.Subject), "details": string(details),
		"allowed": true, "reason": "",
	}), nil
}

// RecordDenial writes an audit row for a refused attempt.
func (s *Store) RecordDenial(ctx context.Context, d catalog.Denial) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlInsertAudit, auditArgs(d.Caller, pgx.NamedArgs{
			"at": d.At, "event": nil, "operation": d.Operation, "subject": storable(d.Subject), "allowed": false,
			"reason": storable(d.Reason),
		}))
		return err
	})
}

func auditArgs(c catalog.Caller, args pgx.NamedArgs) pgx.NamedArgs {
	args["request"] = storable(c.RequestID)
	args["principal"] = storable(c.Principal.Name)
	args["token"] = storable(c.Principal.TokenID)
	args["client"] = storable(c.Client)
	return args
}

// nullable makes NULL of the id that means none.
func nullable(id uuid.UUID) any {
	if id == uuid.Nil {
		return nil
	}
	return id
}
