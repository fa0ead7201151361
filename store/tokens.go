package store

import (
	"context"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

const sqlLockPrincipal = `SELECT 1 FROM principals WHERE id = @id FOR NO KEY UPDATE`

// lockPrincipal keeps changes of one principal's tokens in a row, so that their limits hold. fault.NotFound.
func lockPrincipal(ctx context.Context, tx pgx.Tx, id uuid.UUID, f catalog.Fact) error {
	tag, err := tx.Exec(ctx, sqlLockPrincipal, pgx.NamedArgs{"id": id})
	if err == nil && tag.RowsAffected() == 0 {
		return fault.New(fault.NotFound, "Principal does not exist: %s", f.Subject)
	}
	return err
}

const sqlForgetPersonalTokens = `
DELETE FROM personal_tokens
WHERE principal_id = @principal AND expires_at <= CASE WHEN name = @name THEN @at::timestamptz ELSE @long_ago::timestamptz END`

const sqlCountPersonalTokens = `SELECT count(*) FROM personal_tokens WHERE principal_id = @principal AND expires_at > @at`

const sqlInsertPersonalToken = `
INSERT INTO personal_tokens (id, principal_id, name, secret, roles, networks, created_by, created_at, expires_at)
VALUES (@id, @principal, @name, @secret, @roles::text[], @networks::text[], @created_by, @created_at, @expires_at)`

// CreatePersonalToken keeps a new personal access token.
func (s *Store) CreatePersonalToken(ctx context.Context, t catalog.PersonalTokenRecord, secret auth.StoredSecret, f catalog.Fact) error {
	if err := checkNames(append([]string{t.Name}, t.Roles...)...); err != nil {
		return err
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if err := lockPrincipal(ctx, tx, t.PrincipalID, f); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlForgetPersonalTokens, pgx.NamedArgs{
			"principal": t.PrincipalID, "name": t.Name, "at": t.CreatedAt, "long_ago": t.CreatedAt.Add(-catalog.PersonalTokenKept),
		}); err != nil {
			return err
		}
		var live int
		if err := tx.QueryRow(ctx, sqlCountPersonalTokens, pgx.NamedArgs{"principal": t.PrincipalID, "at": t.CreatedAt}).Scan(&live); err != nil {
			return err
		}
		if live >= auth.PersonalTokensMax {
			return fault.New(fault.IllegalArgument, "a principal has %d personal access tokens at most: revoke one first", auth.PersonalTokensMax)
		}
		if _, err := tx.Exec(ctx, sqlInsertPersonalToken, pgx.NamedArgs{
			"id": t.ID, "principal": t.PrincipalID, "name": t.Name, "secret": secret.Form, "roles": emptyNotNull(t.Roles),
			"networks": networkTexts(t.Networks), "created_by": t.CreatedBy, "created_at": t.CreatedAt, "expires_at": t.ExpiresAt,
		}); err != nil {
			return takenMeans(err, "personal_tokens_name_key", "Token", t.Name)
		}
		return writeFact(ctx, tx, f)
	})
}

func emptyNotNull(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

func networkTexts(networks []netip.Prefix) []string {
	texts := make([]string, len(networks))
	for i, n := range networks {
		texts[i] = n.String()
	}
	return texts
}

func networksOf(texts []string) (networks []netip.Prefix, err error) {
	for _, text := range texts {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "a stored network cannot be read")
		}
		networks = append(networks, n)
	}
	return networks, nil
}

const sqlListPersonalTokens = `
SELECT id, principal_id, name, roles, networks, created_by, created_at, rotated_at, expires_at, previous_until,
       used_at, coalesce(address, ''), coalesce(client, '')
FROM personal_tokens
LEFT JOIN personal_token_uses ON personal_token_uses.token_id = personal_tokens.id
WHERE principal_id = @principal
ORDER BY name`

// ListPersonalTokens gives a principal's personal access tokens by name.
func (s *Store) ListPersonalTokens(ctx context.Context, principalID uuid.UUID) ([]catalog.PersonalTokenRecord, error) {
	return collect(ctx, s, sqlListPersonalTokens, pgx.NamedArgs{"principal": principalID}, scanPersonalToken)
}

func scanPersonalToken(row pgx.CollectableRow) (catalog.PersonalTokenRecord, error) {
	var t catalog.PersonalTokenRecord
	var networks []string
	var rotated, overlap, used *time.Time
	err := row.Scan(&t.ID, &t.PrincipalID, &t.Name, &t.Roles, &networks, &t.CreatedBy, &t.CreatedAt, &rotated, &t.ExpiresAt, &overlap,
		&used, &t.LastUse.Address, &t.LastUse.Client)
	if err != nil {
		return t, err
	}
	t.CreatedAt, t.ExpiresAt = t.CreatedAt.UTC(), t.ExpiresAt.UTC()
	t.RotatedAt, t.OverlapUntil = timeOrZero(rotated).UTC(), timeOrZero(overlap).UTC()
	if used != nil {
		t.LastUse.Token, t.LastUse.At = t.ID, used.UTC()
	}
	t.Networks, err = networksOf(networks)
	return t, err
}

const sqlRotatePersonalToken = `
UPDATE personal_tokens
SET previous_secret = CASE WHEN @overlap_until::timestamptz IS NULL THEN NULL ELSE secret END, previous_until = @overlap_until::timestamptz,
    secret = @secret, rotated_at = @at, expires_at = coalesce(@expires_at::timestamptz, expires_at)
WHERE id = @id AND principal_id = @principal`

// RotatePersonalToken gives a personal access token another secret.
func (s *Store) RotatePersonalToken(ctx context.Context, r catalog.PersonalTokenRotation, f catalog.Fact) error {
	return s.changePersonalToken(ctx, sqlRotatePersonalToken, pgx.NamedArgs{
		"id": r.ID, "principal": r.PrincipalID, "secret": r.Secret.Form, "at": f.At,
		"overlap_until": nullableTime(r.OverlapUntil), "expires_at": nullableTime(r.ExpiresAt),
	}, f)
}

const sqlDropPersonalToken = `DELETE FROM personal_tokens WHERE id = @id AND principal_id = @principal`

// DropPersonalToken ends a personal access token.
func (s *Store) DropPersonalToken(ctx context.Context, principalID, id uuid.UUID, f catalog.Fact) error {
	return s.changePersonalToken(ctx, sqlDropPersonalToken, pgx.NamedArgs{"id": id, "principal": principalID}, f)
}

func (s *Store) changePersonalToken(ctx context.Context, sql string, args pgx.NamedArgs, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.NotFound, "Token does not exist: %s", args["id"])
		}
		return writeFact(ctx, tx, f)
	})
}

// The family's name is listed beside the token's: servers of the release before know the latter alone.
const sqlRevokeToken = `
INSERT INTO revoked_tokens (principal_id, token_id, expires_at)
SELECT @principal, token, @expires_at FROM unnest(@tokens::text[]) AS token
ON CONFLICT DO NOTHING`

const sqlForgetRevoked = `DELETE FROM revoked_tokens WHERE principal_id = @principal AND (@all::boolean OR expires_at <= now())`

// A token and its family are one revocation.
const sqlCountRevoked = `
SELECT count(DISTINCT regexp_replace(token_id, '/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', ''))
FROM revoked_tokens WHERE principal_id = @principal`

// Whatever was issued in the millisecond of the revocation is older than it, and each revocation has its own. It is no earlier than now by
// the database's clock: a server whose own is behind would leave tokens of other servers alive.
const sqlRevokeAllTokens = `
UPDATE principals
SET tokens_not_before = date_trunc('milliseconds', greatest(@at::timestamptz, clock_timestamp(), tokens_not_before)) + interval '1 millisecond'
WHERE id = @principal`

// A personal access token that is used as it is has its own id in the audit. It ends as a whole: it lives longer than any revocation of
// an access token is kept.
const sqlDropPersonalTokenNamed = `DELETE FROM personal_tokens WHERE principal_id = @principal AND id::text = @token`

const sqlDropPersonalTokens = `DELETE FROM personal_tokens WHERE principal_id = @principal`

// RevokeTokens ends access tokens of a principal.
func (s *Store) RevokeTokens(ctx context.Context, r catalog.TokenRevocation, f catalog.Fact) error {
	if err := checkNames(r.TokenID); err != nil {
		return err
	}
	args := pgx.NamedArgs{"principal": r.PrincipalID, "token": r.TokenID, "tokens": auth.RevokedWith(r.TokenID), "expires_at": r.ExpiresAt, "at": f.At, "all": false}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if err := lockPrincipal(ctx, tx, r.PrincipalID, f); err != nil {
			return err
		}
		args["all"] = r.TokenID == ""
		if _, err := tx.Exec(ctx, sqlForgetRevoked, args); err != nil {
			return err
		}
		if r.TokenID != "" {
			for _, statement := range []string{sqlRevokeToken, sqlDropPersonalTokenNamed} {
				if _, err := tx.Exec(ctx, statement, args); err != nil {
					return err
				}
			}
			var revoked int
			if err := tx.QueryRow(ctx, sqlCountRevoked, args).Scan(&revoked); err != nil {
				return err
			}
			args["all"] = revoked > auth.RevokedTokensMax
		}
		if args["all"] == true {
			for _, statement := range []string{sqlForgetRevoked, sqlRevokeAllTokens} {
				if _, err := tx.Exec(ctx, statement, args); err != nil {
					return err
				}
			}
		}
		if r.Personal {
			if _, err := tx.Exec(ctx, sqlDropPersonalTokens, args); err != nil {
				return err
			}
		}
		return writeFact(ctx, tx, f)
	})
}

// In the order of the tokens' ids, so that two servers that write at once do not wait for each other in a circle.
const sqlRecordTokenUses = `
INSERT INTO personal_token_uses AS u (token_id, used_at, address, client)
SELECT used.token, used.at, used.address, used.client
FROM unnest(@tokens::text[]::uuid[], @times::timestamptz[], @addresses::text[], @clients::text[]) AS used (token, at, address, client)
JOIN personal_tokens ON personal_tokens.id = used.token
ORDER BY used.token
ON CONFLICT (token_id) DO UPDATE SET used_at = excluded.used_at, address = excluded.address, client = excluded.client
WHERE u.used_at < excluded.used_at`

// RecordTokenUses keeps the latest uses of personal access tokens. It is no change of anything: there is no fact of it.
func (s *Store) RecordTokenUses(ctx context.Context, uses []auth.TokenUse) error {
	tokens, addresses, clients := make([]uuid.UUID, len(uses)), make([]string, len(uses)), make([]string, len(uses))
	times := make([]time.Time, len(uses))
	for i, use := range uses {
		tokens[i], times[i], addresses[i], clients[i] = use.Token, use.At, storable(use.Address), storable(use.Client)
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlRecordTokenUses, pgx.NamedArgs{
			"tokens": idTexts(tokens), "times": times, "addresses": addresses, "clients": clients,
		})
		return err
	})
}
