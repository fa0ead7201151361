package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

const sqlListIdentities = `
SELECT issuer, subject, created_at
FROM federated_identities
WHERE principal_id = @principal
ORDER BY issuer, subject`

// LinkedIdentities gives the identity providers' subjects that are a principal, by issuer and subject.
func (s *Store) LinkedIdentities(ctx context.Context, principal uuid.UUID) ([]catalog.LinkedIdentity, error) {
	return collect(ctx, s, sqlListIdentities, pgx.NamedArgs{"principal": principal}, func(row pgx.CollectableRow) (catalog.LinkedIdentity, error) {
		var l catalog.LinkedIdentity
		err := row.Scan(&l.Issuer, &l.Subject, &l.LinkedAt)
		l.LinkedAt = l.LinkedAt.UTC()
		return l, err
	})
}

const sqlCountIdentities = `SELECT count(*) FROM federated_identities WHERE principal_id = @principal`

const sqlFindIdentityHolder = `
SELECT principals.name
FROM federated_identities
JOIN principals ON principals.id = federated_identities.principal_id
WHERE federated_identities.issuer = @issuer AND federated_identities.subject = @subject`

// LinkIdentity lets an identity provider's subject be a principal. fault.NotFound when the principal is gone, fault.AlreadyExists,
// with its name, when the subject is one already, fault.IllegalArgument when the principal has auth.IdentitiesMax.
func (s *Store) LinkIdentity(ctx context.Context, principal uuid.UUID, l catalog.LinkedIdentity, f catalog.Fact) error {
	if err := checkNames(l.Issuer, l.Subject); err != nil {
		return err
	}
	args := pgx.NamedArgs{"issuer": l.Issuer, "subject": l.Subject, "principal": principal, "at": l.LinkedAt}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if err := lockPrincipal(ctx, tx, principal, f); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sqlInsertIdentity, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			var holder string
			if err := tx.QueryRow(ctx, sqlFindIdentityHolder, args).Scan(&holder); err != nil && !noRows(err) {
				return err
			}
			return fault.New(fault.AlreadyExists, "the subject is %s already", holder)
		}
		var has int
		if err := tx.QueryRow(ctx, sqlCountIdentities, args).Scan(&has); err != nil {
			return err
		}
		if has > auth.IdentitiesMax {
			return fault.New(fault.IllegalArgument, "a principal has %d identities at most: remove one first", auth.IdentitiesMax)
		}
		return writeFact(ctx, tx, f)
	})
}

const sqlDeleteIdentity = `
DELETE FROM federated_identities
WHERE issuer = @issuer AND subject = @subject AND principal_id = @principal`

// UnlinkIdentity ends that a subject is a principal, and with it the subject's tokens. fault.NotFound when the principal has no such
// subject.
func (s *Store) UnlinkIdentity(ctx context.Context, principal uuid.UUID, l auth.IdentityLink, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlDeleteIdentity, pgx.NamedArgs{"issuer": lookup(l.Issuer), "subject": lookup(l.Subject), "principal": principal})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.NotFound, "the principal has no such identity")
		}
		return writeFact(ctx, tx, f)
	})
}
