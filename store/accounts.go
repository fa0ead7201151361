package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/internal/fault"
)

const sqlFindAccount = `
SELECT principals.id, principals.name, principals.client_id, principals.kind,
       principal_secrets.algorithm, principal_secrets.secret, principal_secrets.rotation_required,
       ARRAY (SELECT principal_roles.name
              FROM principal_role_members
              JOIN principal_roles ON principal_roles.id = principal_role_members.principal_role_id
              WHERE principal_role_members.principal_id = principals.id
              ORDER BY principal_roles.name) AS roles
FROM principals
JOIN principal_secrets ON principal_secrets.principal_id = principals.id
WHERE principals.client_id = @client_id::text OR principals.id = @id::uuid`

// FindAccountByClientID gives the account that a client id belongs to: fault.NotFound.
func (s *Store) FindAccountByClientID(ctx context.Context, clientID string) (auth.Account, error) {
	return s.account(ctx, pgx.NamedArgs{"client_id": lookup(clientID), "id": nil})
}

// FindAccountByID gives a principal's account: fault.NotFound.
func (s *Store) FindAccountByID(ctx context.Context, id uuid.UUID) (auth.Account, error) {
	return s.account(ctx, pgx.NamedArgs{"client_id": nil, "id": id})
}

func (s *Store) account(ctx context.Context, args pgx.NamedArgs) (auth.Account, error) {
	var a auth.Account
	err := s.read(ctx, func(q querier) error {
		a = auth.Account{}
		var kind string
		err := q.QueryRow(ctx, sqlFindAccount, args).Scan(&a.ID, &a.Name, &a.ClientID, &kind,
			&a.Secret.Algorithm, &a.Secret.Form, &a.Secret.RotationRequired, &a.Roles)
		a.Kind = auth.PrincipalKind(kind)
		if noRows(err) {
			return fault.New(fault.NotFound, "no principal has this client id")
		}
		return err
	})
	if err != nil {
		return auth.Account{}, err
	}
	return a, nil
}
