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

const sqlListSigningKeys = `
SELECT kid, algorithm, public_key, private_key, created_at, signs_from, retired_at
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
		var from, retired *time.Time
		err := row.Scan(&k.KID, &k.Algorithm, &k.PublicKey, &k.PrivateKey, &k.CreatedAt, &from, &retired)
		k.CreatedAt, k.SignsFrom, k.RetiredAt = k.CreatedAt.UTC(), timeOrZero(from).UTC(), timeOrZero(retired).UTC()
		return k, err
	})
}

// Two servers that start on an empty database take turns here; readers do not wait.
const sqlLockSigningKeys = `LOCK TABLE signing_keys IN SHARE ROW EXCLUSIVE MODE`

const sqlInsertSigningKey = `
INSERT INTO signing_keys (kid, algorithm, public_key, private_key, created_at, signs_from)
SELECT @kid::text, @algorithm::text, @public_key::bytea, @private_key::bytea, @created_at::timestamptz, @signs_from::timestamptz`

const sqlInsertFirstSigningKey = sqlInsertSigningKey + `
WHERE NOT EXISTS (SELECT 1 FROM signing_keys WHERE retired_at IS NULL AND algorithm = @algorithm)`

// AddSigningKey keeps the key unless there is an active one of its algorithm, and gives the keys that are there then.
func (s *Store) AddSigningKey(ctx context.Context, k auth.StoredKey) ([]auth.StoredKey, error) {
	return s.changeKeys(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlInsertFirstSigningKey, keyArgs(k))
		return err
	})
}

func keyArgs(k auth.StoredKey) pgx.NamedArgs {
	return pgx.NamedArgs{
		"kid": k.KID, "algorithm": k.Algorithm, "public_key": k.PublicKey, "private_key": k.PrivateKey, "created_at": k.CreatedAt,
		"signs_from": nullableTime(k.SignsFrom),
	}
}

// Keys whose last token has ended go with the next change.
const sqlDeleteEndedKeys = `DELETE FROM signing_keys WHERE retired_at <= @retired_after::timestamptz`

// changeKeys changes the signing keys, one after the other on all servers, and gives those that are there then.
func (s *Store) changeKeys(ctx context.Context, change func(tx pgx.Tx) error) ([]auth.StoredKey, error) {
	var keys []auth.StoredKey
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlLockSigningKeys); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		ended := time.Now().Add(-auth.TokenLifeMax)
		if _, err := tx.Exec(ctx, sqlDeleteEndedKeys, pgx.NamedArgs{"retired_after": ended}); err != nil {
			return err
		}
		var err error
		keys, err = listKeys(ctx, tx, ended)
		return err
	})
	return keys, err
}

const sqlRetireSigningKey = `UPDATE signing_keys SET retired_at = @signs_from::timestamptz WHERE kid = @old AND retired_at IS NULL`

// SucceedSigningKey inserts the key and retires old when it begins to sign; when old has a successor already nothing happens.
func (s *Store) SucceedSigningKey(ctx context.Context, old string, k auth.StoredKey) ([]auth.StoredKey, error) {
	return s.changeKeys(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlRetireSigningKey, pgx.NamedArgs{"old": old, "signs_from": k.SignsFrom})
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, sqlInsertSigningKey, keyArgs(k)); err != nil {
			return err
		}
		return writeFact(ctx, tx, catalog.KeySuccession(k))
	})
}

const sqlFindAnnouncedKey = `SELECT kid, signs_from FROM signing_keys WHERE retired_at IS NULL AND signs_from > @now::timestamptz LIMIT 1`

const sqlRetireSigningKeys = `UPDATE signing_keys SET retired_at = @signs_from::timestamptz WHERE retired_at IS NULL OR retired_at > @signs_from`

const sqlDeleteSigningKeys = `DELETE FROM signing_keys`

// RotateSigningKeys retires all keys in favour of one, or removes them. fault.AlreadyExists while a successor is announced; not
// when the others are to go at once.
func (s *Store) RotateSigningKeys(ctx context.Context, k auth.StoredKey, others catalog.OtherKeys, f catalog.Fact) ([]auth.StoredKey, error) {
	return s.changeKeys(ctx, func(tx pgx.Tx) error {
		if others == catalog.RemoveOtherKeys {
			if _, err := tx.Exec(ctx, sqlDeleteSigningKeys); err != nil {
				return err
			}
		} else if err := retireAll(ctx, tx, k); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlInsertSigningKey, keyArgs(k)); err != nil {
			return err
		}
		return writeFact(ctx, tx, f)
	})
}

func retireAll(ctx context.Context, tx pgx.Tx, k auth.StoredKey) error {
	var kid string
	var from time.Time
	err := tx.QueryRow(ctx, sqlFindAnnouncedKey, pgx.NamedArgs{"now": k.CreatedAt}).Scan(&kid, &from)
	if err == nil {
		return fault.New(fault.AlreadyExists, "signing key %s is announced already and signs from %s on", kid, from.UTC().Format(time.RFC3339))
	}
	if !noRows(err) {
		return err
	}
	_, err = tx.Exec(ctx, sqlRetireSigningKeys, pgx.NamedArgs{"signs_from": k.SignsFrom})
	return err
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

// As with a secret. Neither moves what its tokens rest on: the mark stays.
const sqlRenewPersonalForm = `
UPDATE personal_tokens
SET secret = CASE WHEN secret = @old::bytea THEN @fresh::bytea ELSE secret END,
    previous_secret = CASE WHEN previous_secret = @old::bytea THEN @fresh::bytea ELSE previous_secret END
WHERE id = @token AND (secret = @old::bytea OR previous_secret = @old::bytea)`

// RenewPersonalForm replaces a stored form of a personal access token, unless it was replaced meanwhile.
func (s *Store) RenewPersonalForm(ctx context.Context, token uuid.UUID, old, fresh []byte) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlRenewPersonalForm, pgx.NamedArgs{"token": token, "old": old, "fresh": fresh})
		return err
	})
}

const sqlListSecretsOfOtherKeys = `
SELECT principals.name
FROM principals
WHERE EXISTS (SELECT 1 FROM principal_secrets
              WHERE principal_secrets.principal_id = principals.id AND algorithm = @algorithm
                AND substring(secret FROM 1 FOR length(@key::bytea)) <> @key::bytea)
   OR EXISTS (SELECT 1 FROM personal_tokens
              WHERE personal_tokens.principal_id = principals.id AND expires_at > now()
                AND substring(secret FROM 1 FOR length(@key::bytea)) <> @key::bytea)
ORDER BY principals.name`

// PrincipalsOfOtherKeys names the principals whose generated secrets, or live personal access tokens, another key than
// the given one (auth.Ring.ID) made: these are good only while that key is in secrets.previous_keys.
func (s *Store) PrincipalsOfOtherKeys(ctx context.Context, keyID []byte) ([]string, error) {
	return collect(ctx, s, sqlListSecretsOfOtherKeys, pgx.NamedArgs{"algorithm": auth.AlgorithmHMAC, "key": keyID}, pgx.RowTo[string])
}

// nullableTime makes NULL of the time that means none.
func nullableTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}
