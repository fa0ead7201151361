package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"catalogd/auth"
)

const sqlListSigningKeys = `
SELECT kid, algorithm, public_key, private_key, created_at, retired_at
FROM signing_keys
WHERE retired_at IS NULL OR retired_at > @retired_after::timestamptz
ORDER BY created_at, kid`

// SigningKeys gives the active keys and those that were retired so recently that a token of theirs may still live.
func (s *Store) SigningKeys(ctx context.Context) ([]auth.StoredKey, error) {
	var keys []auth.StoredKey
	err := s.read(ctx, func(q querier) error {
		var err error
		keys, err = listKeys(ctx, q, time.Now().Add(-auth.TokenLifeMax))
		return err
	})
	return keys, err
}

func listKeys(ctx context.Context, q querier, retiredAfter time.Time) ([]auth.StoredKey, error) {
	rows, err := q.Query(ctx, sqlListSigningKeys, pgx.NamedArgs{"retired_after": retiredAfter})
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (auth.StoredKey, error) {
		var k auth.StoredKey
		var retired *time.Time
		err := row.Scan(&k.KID, &k.Algorithm, &k.PublicKey, &k.PrivateKey, &k.CreatedAt, &retired)
		k.CreatedAt = k.CreatedAt.UTC()
		if retired != nil {
			k.RetiredAt = retired.UTC()
		}
		return k, err
	})
}

// Two servers that start on an empty database take turns here; readers do not wait.
const sqlLockSigningKeys = `LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE`

const sqlInsertSigningKey = `
INSERT INTO signing_keys (kid, algorithm, public_key, private_key, created_at)
SELECT @kid::text, @algorithm::text, @public_key::bytea, @private_key::bytea, @created_at::timestamptz
WHERE NOT EXISTS (SELECT 1 FROM signing_keys WHERE retired_at IS NULL AND algorithm = @algorithm)`

// AddSigningKey keeps the key unless there is an active one of its algorithm, and gives the keys that are there then.
func (s *Store) AddSigningKey(ctx context.Context, k auth.StoredKey) ([]auth.StoredKey, error) {
	var keys []auth.StoredKey
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlLockSigningKeys); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlInsertSigningKey, pgx.NamedArgs{
			"kid": k.KID, "algorithm": k.Algorithm, "public_key": k.PublicKey, "private_key": k.PrivateKey, "created_at": k.CreatedAt,
		}); err != nil {
			return err
		}
		var err error
		keys, err = listKeys(ctx, tx, time.Now().Add(-auth.TokenLifeMax))
		return err
	})
	return keys, err
}
