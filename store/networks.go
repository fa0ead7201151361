package store

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

const sqlFindNetworkPolicy = `
SELECT allowed, blocked FROM network_policies WHERE principal_id IS NOT DISTINCT FROM @principal::uuid`

// FindNetworkPolicy gives the policy of a principal, or of the server for uuid.Nil; the zero policy where there is none.
func (s *Store) FindNetworkPolicy(ctx context.Context, principalID uuid.UUID) (auth.NetworkPolicy, error) {
	var allowed, blocked []string
	err := s.read(ctx, func(q querier) error {
		allowed, blocked = nil, nil
		err := q.QueryRow(ctx, sqlFindNetworkPolicy, pgx.NamedArgs{"principal": nilNull(principalID)}).Scan(&allowed, &blocked)
		if noRows(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return auth.NetworkPolicy{}, err
	}
	var p auth.NetworkPolicy
	var first, second error
	p.Allowed, first = networksOf(allowed)
	p.Blocked, second = networksOf(blocked)
	return p, errors.Join(first, second)
}

func nilNull(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != uuid.Nil} }

const sqlSetNetworkPolicy = `
INSERT INTO network_policies (principal_id, allowed, blocked, updated_at)
VALUES (@principal::uuid, @allowed::text[], @blocked::text[], @at)
ON CONFLICT (principal_id) DO UPDATE SET allowed = excluded.allowed, blocked = excluded.blocked, updated_at = excluded.updated_at`

const sqlDropNetworkPolicy = `DELETE FROM network_policies WHERE principal_id IS NOT DISTINCT FROM @principal::uuid`

// SetNetworkPolicy replaces a policy, or takes it away.
func (s *Store) SetNetworkPolicy(ctx context.Context, principalID uuid.UUID, p auth.NetworkPolicy, f catalog.Fact) error {
	statement := sqlSetNetworkPolicy
	if len(p.Allowed)+len(p.Blocked) == 0 {
		statement = sqlDropNetworkPolicy
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statement, pgx.NamedArgs{
			"principal": nilNull(principalID), "allowed": networkTexts(p.Allowed), "blocked": networkTexts(p.Blocked), "at": f.At,
		})
		if err != nil {
			return goneMeans(err, fault.New(fault.NotFound, "Principal does not exist: %s", f.Subject))
		}
		return writeFact(ctx, tx, f)
	})
}
