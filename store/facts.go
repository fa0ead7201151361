package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
)

const sqlInsertEvent = `
INSERT INTO events (id, at, operation, warehouse_id, securable_id, subject, details)
VALUES (@id, @at, @operation, @warehouse, @securable, @subject, @details)`

const sqlInsertAudit = `
INSERT INTO audit (at, event_id, request_id, principal, token_id, client, operation, subject, allowed, reason)
VALUES (@at, @event, @request, @principal, @token, @client, @operation, @subject, @allowed, @reason)`

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
	details := []byte("{}")
	if len(f.Details) > 0 {
		var err error
		if details, err = json.Marshal(f.Details); err != nil {
			return fmt.Errorf("encode the details of %s: %w", f.Operation, err)
		}
	}
	batch.Queue(sqlInsertEvent, pgx.NamedArgs{
		"id": f.ID, "at": f.At, "operation": f.Operation, "warehouse": nullable(f.Warehouse),
		"securable": nullable(f.Securable), "subject": storable(f.Subject), "details": string(details),
	})
	batch.Queue(sqlInsertAudit, auditArgs(f.Caller, pgx.NamedArgs{
		"at": f.At, "event": f.ID, "operation": f.Operation, "subject": storable(f.Subject), "allowed": true, "reason": "",
	}))
	return queueOutcome(batch, f)
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
