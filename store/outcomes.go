package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
)

// outcomesSweepMax bounds how many expired outcomes one new one takes away. It is more than one, so that they grow fewer.
const outcomesSweepMax = 4

// What has expired goes: some of it, and what stands where the outcome is to be.
const sqlSweepOutcomes = `
DELETE FROM idempotency_keys
WHERE expires_at <= now() AND (principal_id, key) IN (
    SELECT old.principal_id, old.key FROM (
        SELECT principal_id, key FROM idempotency_keys WHERE expires_at <= now() ORDER BY expires_at LIMIT @limit FOR UPDATE SKIP LOCKED
    ) AS old
    UNION ALL SELECT @principal::uuid, @key::uuid
)`

// The outcome of a change that was not made, and so has no event, is not kept. A live row in its place is a violation.
const sqlKeepOutcome = `
INSERT INTO idempotency_keys (principal_id, key, operation, request_hash, outcome, created_at, expires_at)
SELECT @principal::uuid, @key::uuid, @operation::text, @hash::bytea, @outcome::text, now(), now() + make_interval(secs => @seconds)
WHERE @event::uuid IS NULL OR EXISTS (SELECT 1 FROM events WHERE id = @event::uuid)`

// queueOutcome adds the row of a fact's outcome to a batch, behind the fact's event. When another request of the key came
// first, the batch fails, and the transaction with it.
func queueOutcome(batch *pgx.Batch, f catalog.Fact) error {
	if f.Outcome == nil {
		return nil
	}
	text, err := json.Marshal(f.Outcome)
	if err != nil {
		return fmt.Errorf("encode the outcome of %s: %w", f.Operation, err)
	}
	key := f.Caller.Key
	args := pgx.NamedArgs{
		"principal": f.Caller.Principal.ID, "key": key.ID, "operation": key.Operation, "hash": key.Hash[:],
		"outcome": string(text), "seconds": (catalog.KeyLifetime + catalog.KeyGrace).Seconds(), "event": nullable(f.ID),
		"limit": outcomesSweepMax,
	}
	batch.Queue(sqlSweepOutcomes, args)
	batch.Queue(sqlKeepOutcome, args)
	return nil
}

// writeOutcome writes a fact's outcome alone, for what changed nothing.
func writeOutcome(ctx context.Context, tx pgx.Tx, f catalog.Fact) error {
	batch := &pgx.Batch{}
	f.ID = uuid.Nil // no event is written
	if err := queueOutcome(batch, f); err != nil {
		return err
	}
	return tx.SendBatch(ctx, batch).Close()
}

// KeepOutcome keeps an outcome that no change brings along.
func (s *Store) KeepOutcome(ctx context.Context, k catalog.KeptOutcome) error {
	f := catalog.Fact{Operation: k.Key.Operation, Outcome: &k.Outcome}
	f.Caller.Principal.ID, f.Caller.Key = k.Principal, k.Key
	return s.InTx(ctx, func(tx pgx.Tx) error { return writeOutcome(ctx, tx, f) })
}

const sqlFindOutcome = `
SELECT operation, request_hash, outcome FROM idempotency_keys
WHERE principal_id = @principal AND key = @key AND expires_at > now()`

// FindOutcome gives what is kept under a principal's key, nil when there is nothing.
func (s *Store) FindOutcome(ctx context.Context, principal, key uuid.UUID) (*catalog.KeptOutcome, error) {
	var found *catalog.KeptOutcome
	err := s.read(ctx, func(q querier) error {
		k := catalog.KeptOutcome{Principal: principal, Key: catalog.RequestKey{ID: key}}
		var hash, text []byte
		err := q.QueryRow(ctx, sqlFindOutcome, pgx.NamedArgs{"principal": principal, "key": key}).Scan(&k.Key.Operation, &hash, &text)
		found = nil
		switch {
		case noRows(err):
			return nil
		case err != nil:
			return err
		}
		if n := copy(k.Key.Hash[:], hash); n != len(k.Key.Hash) {
			return fmt.Errorf("the hash that is kept with key %s has %d bytes", key, n)
		}
		if err := json.Unmarshal(text, &k.Outcome); err != nil {
			return fmt.Errorf("decode the outcome that is kept with key %s: %w", key, err)
		}
		found = &k
		return nil
	})
	return found, err
}
