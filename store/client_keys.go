package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

const sqlListClientKeys = `
SELECT kid, algorithm, public_key, created_at, ends_at
FROM principal_keys
WHERE principal_id = @principal
ORDER BY created_at, kid`

// ClientKeys gives a principal's keys, oldest first, with those that have ended.
func (s *Store) ClientKeys(ctx context.Context, principal uuid.UUID) ([]auth.ClientKey, error) {
	return collect(ctx, s, sqlListClientKeys, pgx.NamedArgs{"principal": principal}, scanClientKey)
}

func scanClientKey(row pgx.CollectableRow) (auth.ClientKey, error) {
	var k auth.ClientKey
	var ends *time.Time
	err := row.Scan(&k.ID, &k.Algorithm, &k.Public, &k.CreatedAt, &ends)
	k.CreatedAt, k.EndsAt = k.CreatedAt.UTC(), timeOrZero(ends).UTC()
	return k, err
}

const sqlDeleteEndedClientKeys = `DELETE FROM principal_keys WHERE principal_id = @principal AND ends_at <= @at::timestamptz`

const sqlCountClientKeys = `SELECT count(*) FROM principal_keys WHERE principal_id = @principal AND kid <> @kid`

const sqlInsertClientKey = `
INSERT INTO principal_keys (principal_id, kid, algorithm, public_key, created_at, ends_at)
VALUES (@principal, @kid, @algorithm, @public_key, @created_at, @ends_at)
ON CONFLICT DO NOTHING`

// AddClientKey gives a principal a key; ended ones go. fault.NotFound when the principal is gone, fault.AlreadyExists when it has
// that key, fault.IllegalArgument when it has auth.ClientKeysMax.
func (s *Store) AddClientKey(ctx context.Context, principal uuid.UUID, k auth.ClientKey, f catalog.Fact) error {
	args := pgx.NamedArgs{
		"principal": principal, "kid": k.ID, "algorithm": k.Algorithm, "public_key": k.Public,
		"created_at": k.CreatedAt, "ends_at": nullableTime(k.EndsAt), "at": f.At,
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if err := lockPrincipal(ctx, tx, principal, f); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlDeleteEndedClientKeys, args); err != nil {
			return err
		}
		var others int
		if err := tx.QueryRow(ctx, sqlCountClientKeys, args).Scan(&others); err != nil {
			return err
		}
		if others >= auth.ClientKeysMax {
			return fault.New(fault.IllegalArgument, "a principal has at most %d keys; remove one first", auth.ClientKeysMax)
		}
		tag, err := tx.Exec(ctx, sqlInsertClientKey, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.AlreadyExists, "the principal has this key already: %s", k.ID)
		}
		return writeFact(ctx, tx, f)
	})
}

const sqlDeleteClientKey = `DELETE FROM principal_keys WHERE principal_id = @principal AND kid = @kid`

// RemoveClientKey takes a key from a principal, and ends the tokens that it obtained. fault.NotFound when it has no such key.
func (s *Store) RemoveClientKey(ctx context.Context, principal uuid.UUID, kid string, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlDeleteClientKey, pgx.NamedArgs{"principal": principal, "kid": lookup(kid)})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.NotFound, "the principal has no such key")
		}
		return writeFact(ctx, tx, f)
	})
}

// spentSweepMax is how many ended marks each new one takes along: more than come, so the table does not grow.
const spentSweepMax = 8

const sqlSpendAssertion = `
WITH ended AS (
    SELECT principal_id, mark FROM spent_assertions
    WHERE ends_at < now() AND (principal_id, mark) <> (@principal::uuid, @mark::bytea)
    ORDER BY ends_at LIMIT @sweep FOR UPDATE SKIP LOCKED
), swept AS (
    DELETE FROM spent_assertions USING ended
    WHERE spent_assertions.principal_id = ended.principal_id AND spent_assertions.mark = ended.mark
)
INSERT INTO spent_assertions (principal_id, mark, ends_at) VALUES (@principal, @mark, @ends_at)
ON CONFLICT DO NOTHING`

// SpendAssertion remembers an assertion's mark; false when it was there already. Of two servers that try at once one waits for the
// other's answer.
func (s *Store) SpendAssertion(ctx context.Context, principal uuid.UUID, mark []byte, until time.Time) (fresh bool, err error) {
	err = s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlSpendAssertion, pgx.NamedArgs{"principal": principal, "mark": mark, "ends_at": until, "sweep": spentSweepMax})
		fresh = err == nil && tag.RowsAffected() == 1
		return err
	})
	return fresh && err == nil, err
}
