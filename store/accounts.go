package store

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/internal/fault"
	"catalogd/internal/lru"
)

const sqlFindAccount = `
SELECT principals.id, principals.name, principals.client_id, principals.kind,
       coalesce(principal_secrets.algorithm, ''), principal_secrets.secret, coalesce(principal_secrets.rotation_required, false),
       ARRAY (SELECT principal_roles.name
              FROM principal_role_members
              JOIN principal_roles ON principal_roles.id = principal_role_members.principal_role_id
              WHERE principal_role_members.principal_id = principals.id
              ORDER BY principal_roles.name) AS roles,
       ` + callerState + `principals.id) AS caller
FROM principals
LEFT JOIN principal_secrets ON principal_secrets.principal_id = principals.id
WHERE principals.client_id = @client_id::text AND principal_secrets.principal_id IS NOT NULL
   OR principals.id = @id::uuid OR principals.name = @name::text
   OR principals.id = (SELECT federated_identities.principal_id FROM federated_identities
                       WHERE federated_identities.issuer = @issuer::text AND federated_identities.subject = @subject::text)`

// accountArgs are the parameters of sqlFindAccount, with nothing to find it by.
func accountArgs() pgx.NamedArgs {
	return pgx.NamedArgs{"client_id": nil, "id": nil, "name": nil, "issuer": nil, "subject": nil}
}

// FindAccountByClientID gives the account that a client id belongs to: fault.NotFound.
func (s *Store) FindAccountByClientID(ctx context.Context, clientID string) (auth.Account, error) {
	args := accountArgs()
	args["client_id"] = lookup(clientID)
	return s.keptAccount(ctx, "c"+clientID, args)
}

// FindAccountByID gives a principal's account: fault.NotFound.
func (s *Store) FindAccountByID(ctx context.Context, id uuid.UUID) (auth.Account, error) {
	args := accountArgs()
	args["id"] = id
	return s.keptAccount(ctx, "i"+string(id[:]), args)
}

// accountsMax bounds the accounts that are kept: some 2 kB each.
const accountsMax = 4096

// accounts keeps what was found, that nothing was found included: what is not there costs as much as what is.
type accounts struct {
	mu   sync.Mutex
	kept *lru.Cache[string, keptAccount]
}

// keptAccount holds while the access epoch is the one from before it was read: all of it moves the epoch. Nobody writes to what it
// points at.
type keptAccount struct {
	epoch   int64
	account auth.Account
	missing error
}

func newAccounts() *accounts { return &accounts{kept: lru.New[string, keptAccount](accountsMax)} }

func (a *accounts) find(key string) (keptAccount, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept.Find(key)
}

func (a *accounts) keep(key string, k keptAccount) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept.Put(key, k, 1)
}

// keptAccount answers from what is kept when the epoch, which many requests ask for together, is still the same.
func (s *Store) keptAccount(ctx context.Context, key string, args pgx.NamedArgs) (auth.Account, error) {
	now, err := s.lookups.find(ctx, tableWanted{})
	if err == nil {
		if kept, ok := s.accounts.find(key); ok && kept.epoch == now.epoch {
			return kept.account, kept.missing
		}
	}
	if ctx.Err() != nil {
		return auth.Account{}, translate(ctx.Err())
	}
	account, problem := s.account(ctx, args)
	if err == nil && (problem == nil || fault.Is(problem, fault.NotFound)) {
		s.accounts.keep(key, keptAccount{epoch: now.epoch, account: account, missing: problem})
	}
	return account, problem
}

func (s *Store) account(ctx context.Context, args pgx.NamedArgs) (auth.Account, error) {
	var a auth.Account
	err := s.read(ctx, func(q querier) error {
		a = auth.Account{}
		var kind string
		var caller []byte
		err := q.QueryRow(ctx, sqlFindAccount, args).Scan(&a.ID, &a.Name, &a.ClientID, &kind,
			&a.Secret.Algorithm, &a.Secret.Form, &a.Secret.RotationRequired, &a.Roles, &caller)
		a.Kind = auth.PrincipalKind(kind)
		if noRows(err) {
			return fault.New(fault.NotFound, "no principal has this client id")
		}
		if err != nil {
			return err
		}
		a.State, err = decodeCaller(caller)
		return err
	})
	if err != nil {
		return auth.Account{}, err
	}
	return a, nil
}

const sqlFindPersonalToken = `
SELECT principals.id, principals.name, principals.client_id, principals.kind,
       ARRAY (SELECT principal_roles.name
              FROM principal_role_members
              JOIN principal_roles ON principal_roles.id = principal_role_members.principal_role_id
              WHERE principal_role_members.principal_id = principals.id
              ORDER BY principal_roles.name) AS roles,
       ` + callerState + `principals.id) AS caller,
       personal_tokens.secret, personal_tokens.previous_secret, personal_tokens.previous_until, personal_tokens.roles, personal_tokens.expires_at
FROM personal_tokens
JOIN principals ON principals.id = personal_tokens.principal_id
WHERE personal_tokens.id = @id`

// FindPersonalToken gives a personal access token with the account of its owner, but for the owner's own secret:
// fault.NotFound.
func (s *Store) FindPersonalToken(ctx context.Context, id uuid.UUID) (auth.PersonalAccount, error) {
	var p auth.PersonalAccount
	err := s.read(ctx, func(q querier) error {
		p = auth.PersonalAccount{TokenID: id}
		var kind string
		var caller []byte
		var previousUntil *time.Time
		err := q.QueryRow(ctx, sqlFindPersonalToken, pgx.NamedArgs{"id": id}).Scan(&p.ID, &p.Name, &p.ClientID, &kind, &p.Account.Roles,
			&caller, &p.Form, &p.Previous, &previousUntil, &p.TokenRoles, &p.ExpiresAt)
		if noRows(err) {
			return fault.New(fault.NotFound, "there is no such token")
		}
		if err != nil {
			return err
		}
		p.Kind, p.PreviousUntil = auth.PrincipalKind(kind), timeOrZero(previousUntil)
		p.State, err = decodeCaller(caller)
		return err
	})
	return p, err
}
