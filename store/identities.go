package store

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// FindIdentity gives the account that is linked to an identity provider's subject, without its secret: fault.NotFound. Of
// the brought roles it has those that are federated.
func (s *Store) FindIdentity(ctx context.Context, issuer, subject string, brought []string) (auth.Account, error) {
	args := accountArgs()
	args["issuer"], args["subject"] = lookup(issuer), lookup(subject)
	account, err := s.account(ctx, args)
	if err != nil {
		return auth.Account{}, err
	}
	account.Secret = auth.StoredSecret{}
	if len(brought) == 0 {
		return account, nil
	}
	account.Brought, err = s.FederatedRoles(ctx, brought)
	account.Roles = append(account.Roles, account.Brought...)
	return account, err
}

// FindAccountByName gives a principal's account, without its secret: fault.NotFound.
func (s *Store) FindAccountByName(ctx context.Context, name string) (auth.Account, error) {
	args := accountArgs()
	args["name"] = lookup(name)
	account, err := s.account(ctx, args)
	account.Secret = auth.StoredSecret{}
	return account, err
}

const sqlFederatedRoles = `SELECT name FROM principal_roles WHERE federated AND name = ANY (@names::text[]) ORDER BY name`

// FederatedRoles gives those of the names that are principal roles which identity providers' tokens bring.
func (s *Store) FederatedRoles(ctx context.Context, names []string) ([]string, error) {
	return collect(ctx, s, sqlFederatedRoles, pgx.NamedArgs{"names": lookupAll(names)}, pgx.RowTo[string])
}

// RootGrants gives a caller's grants on the service, and whether it exists.
func (s *Store) RootGrants(ctx context.Context, p auth.Principal) (grants []authz.Grant, known bool, err error) {
	grants, state, err := s.ResolveGrants(ctx, catalog.Lookup{Principal: p})
	return grants, state != nil, err
}

const sqlInsertIdentity = `
INSERT INTO federated_identities (issuer, subject, principal_id, created_at)
VALUES (@issuer, @subject, @principal, @at)
ON CONFLICT DO NOTHING`

// errLinkedMeanwhile undoes what another server did first.
var errLinkedMeanwhile = errors.New("the identity has a principal by now")

// CreateIdentity makes a principal for an identity provider's subject. It does nothing when the subject has one by now.
// fault.AlreadyExists when another principal has the name.
func (s *Store) CreateIdentity(ctx context.Context, n auth.NewFederated) error {
	f := catalog.Fact{
		ID: uuid.Must(uuid.NewV7()), At: n.At, Operation: "create-principal", Subject: n.Name, Securable: n.ID,
		Caller:  catalog.Caller{Principal: auth.Principal{ID: n.ID, Name: n.Name, Kind: auth.Federated, Issuer: n.Issuer}},
		Details: map[string]any{"issuer": n.Issuer, "subject": n.Subject},
	}
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlInsertPrincipal, pgx.NamedArgs{
			"id": n.ID, "name": n.Name, "client_id": n.ClientID, "kind": string(auth.Federated), "properties": []byte("{}"), "created_at": n.At,
		}); err != nil {
			return takenMeans(err, "principals_name_key", "Principal", n.Name)
		}
		tag, err := tx.Exec(ctx, sqlInsertIdentity, pgx.NamedArgs{"issuer": n.Issuer, "subject": n.Subject, "principal": n.ID, "at": n.At})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errLinkedMeanwhile
		}
		return writeFact(ctx, tx, f)
	})
	if errors.Is(err, errLinkedMeanwhile) {
		return nil
	}
	if fault.Is(err, fault.AlreadyExists) {
		// Perhaps by the same subject's request at another server.
		if _, found := s.FindIdentity(ctx, n.Issuer, n.Subject, nil); found == nil {
			return nil
		}
	}
	return err
}
