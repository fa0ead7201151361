package store

import (
	"context"
	"time"

	"github.com/google/uuid"
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
	return collectFrom(ctx, q, sqlListSigningKeys, pgx.NamedArgs{"retired_after": retiredAfter}, func(row pgx.CollectableRow) (auth.StoredKey, error) {
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

const sqlResealSigningKey = `UPDATE signing_keys SET private_key = @fresh::bytea WHERE kid = @kid AND private_key = @old::bytea`

// ResealSigningKey replaces the encrypted half of a key, unless somebody else has done so.
func (s *Store) ResealSigningKey(ctx context.Context, kid string, old, fresh []byte) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlResealSigningKey, pgx.NamedArgs{"kid": kid, "old": old, "fresh": fresh})
		return err
	})
}

// The secret itself stays what it was, so that neither the principal's version nor any record of events changes.
const sqlRenewSecretForm = `
UPDATE principal_secrets SET secret = @fresh::bytea
WHERE principal_id = @principal AND algorithm = @algorithm AND secret = @old::bytea`

// RenewSecretForm replaces the stored form of a generated secret, unless the secret was replaced meanwhile.
func (s *Store) RenewSecretForm(ctx context.Context, principal uuid.UUID, old, fresh []byte) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlRenewSecretForm, pgx.NamedArgs{
			"principal": principal, "algorithm": auth.AlgorithmHMAC, "old": old, "fresh": fresh,
		})
		return err
	})
}

const sqlListSecretsOfOtherKeys = `
SELECT principals.name
FROM principal_secrets
JOIN principals ON principals.id = principal_secrets.principal_id
WHERE algorithm = @algorithm AND substring(secret FROM 1 FOR length(@key::bytea)) <> @key::bytea
ORDER BY principals.name`

// PrincipalsOfOtherKeys names the principals whose generated secrets another key than the given one (auth.Ring.ID)
// made: they can log in only while that key is in secrets.previous_keys.
func (s *Store) PrincipalsOfOtherKeys(ctx context.Context, keyID []byte) ([]string, error) {
	return collect(ctx, s, sqlListSecretsOfOtherKeys, pgx.NamedArgs{"algorithm": auth.AlgorithmHMAC, "key": keyID}, pgx.RowTo[string])
}
