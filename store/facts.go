package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/catalog"
)

// The rows are selected, so that a statement can take them from what it changed.
const sqlInsertEvent = `
INSERT INTO events (id, at, operation, warehouse_id, securable_id, subject, details, principal)
SELECT @event::uuid, @at::timestamptz, @operation::text, @event_warehouse::uuid, @securable::uuid, @subject::text, @details::jsonb,
       @principal::text`

const sqlInsertAudit = `
INSERT INTO audit (at, event_id, request_id, principal, token_id, client, user_agent, actor, credential, operation, subject,
                   warehouse_id, securable_id, allowed, reason)
SELECT @at::timestamptz, @event::uuid, @request::text, @principal::text, @token::text, @client::text, @user_agent::text,
       @actor::text, @credential::text, @operation::text, @subject::text, @event_warehouse::uuid, @securable::uuid,
       @allowed::boolean, @reason::text`

const sqlInsertDenial = `
INSERT INTO audit (at, request_id, principal, token_id, client, user_agent, actor, credential, operation, subject,
                   warehouse_id, securable_id, securable, privilege, allowed, reason, repeats)
VALUES (@at, @request, @principal, @token, @client, @user_agent, @actor, @credential, @operation, @subject,
        @event_warehouse, @securable, @securable_name, @privilege, false, @reason, @repeats)`

// Bounds of texts in the audit that callers choose.
const (
	auditSubjectBytesMax = 4 << 10
	auditReasonBytesMax  = 4 << 10
	auditLabelBytesMax   = 256 // of addresses, user agents, ids
)

// writeFact writes a mutation's event and audit row in the mutation's transaction.
func writeFact(ctx context.Context, tx pgx.Tx, f catalog.Fact) error {
	batch := &pgx.Batch{}
	if err := queueFact(batch, f); err != nil {
		return err
	}
	noteFact(tx, f)
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
		"securable": nullable(f.Securable), "subject": bounded(f.Subject, auditSubjectBytesMax), "details": string(details),
		"allowed": true, "reason": "",
	}), nil
}

// RecordDenial writes an audit row for a refused attempt.
func (s *Store) RecordDenial(ctx context.Context, d catalog.Denial) error {
	onName := ""
	if d.On.Kind != "" {
		onName = d.On.String()
	}
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlInsertDenial, auditArgs(d.Caller, pgx.NamedArgs{
			"at": d.At, "operation": d.Operation, "subject": bounded(d.Subject, auditSubjectBytesMax),
			"reason": bounded(d.Reason, auditReasonBytesMax), "event_warehouse": nullable(d.Warehouse), "securable": nullable(d.On.ID),
			"securable_name": bounded(onName, auditSubjectBytesMax), "privilege": string(d.Privilege), "repeats": d.Repeats,
		}))
		return err
	})
	if err == nil && s.audited != nil {
		s.audited(deniedRow(d, onName))
	}
	return err
}

func auditArgs(c catalog.Caller, args pgx.NamedArgs) pgx.NamedArgs {
	args["request"] = bounded(c.RequestID, auditLabelBytesMax)
	args["principal"] = storable(c.Principal.Name)
	args["token"] = bounded(c.Principal.TokenID, auditLabelBytesMax)
	args["client"] = bounded(c.Client, auditLabelBytesMax)
	args["user_agent"] = bounded(c.UserAgent, auditLabelBytesMax)
	args["actor"], args["credential"] = storable(c.Principal.ActorName()), credentialOf(c.Principal)
	return args
}

// credentialOf names what a caller's token was obtained with, as far as that has a name: a personal access token's id, or none where
// the server is open and none was shown.
func credentialOf(p auth.Principal) string {
	if p.Anonymous {
		return "none"
	}
	if p.PersonalToken == uuid.Nil {
		return ""
	}
	return "personal-token " + p.PersonalToken.String()
}

// nullable makes NULL of the id that means none.
func nullable(id uuid.UUID) any {
	if id == uuid.Nil {
		return nil
	}
	return id
}
