package auth

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

const fakeIssuer = "https://idp.example.com"

// fakeIssuers takes a token "idp.<Identity as JSON>." for one that was verified.
type fakeIssuers struct {
	problem   error
	withdrawn bool
	verified  atomic.Int64
}

func (f *fakeIssuers) Issues(token string) bool { return strings.HasPrefix(token, "idp.") }

func (f *fakeIssuers) Verify(_ context.Context, token string) (Identity, error) {
	f.verified.Add(1)
	var i Identity
	err := f.problem
	if err == nil {
		err = json.Unmarshal([]byte(strings.TrimPrefix(token, "idp.")), &i)
	}
	return i, err
}

func (f *fakeIssuers) Trusts(issuer, key string) bool {
	return issuer == fakeIssuer && key == "k" && !f.withdrawn
}

// fakeIdentities keeps links, federated roles and grants beside a fakeStore's accounts.
type fakeIdentities struct {
	*fakeStore
	mu        sync.Mutex
	links     map[[2]string]uuid.UUID
	federated []string
	grants    map[string][]authz.Grant // by role
}

func (f *fakeIdentities) FindIdentity(ctx context.Context, issuer, subject string, brought []string) (Account, error) {
	f.mu.Lock()
	id, ok := f.links[[2]string{issuer, subject}]
	f.mu.Unlock()
	if !ok {
		return Account{}, fault.New(fault.NotFound, "no such identity")
	}
	a, err := f.FindAccountByID(ctx, id)
	a.Secret = StoredSecret{}
	if a.State != nil {
		a.State.Identities = []IdentityLink{{issuer, subject}}
	}
	a.Brought, _ = f.FederatedRoles(ctx, brought)
	a.Roles = append(slices.Clone(a.Roles), a.Brought...)
	return a, err
}

func (f *fakeIdentities) CreateIdentity(_ context.Context, n NewFederated) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fakeStore.mu.Lock()
	defer f.fakeStore.mu.Unlock()
	if _, there := f.links[[2]string{n.Issuer, n.Subject}]; there {
		return nil
	}
	for _, a := range f.accounts {
		if a.Name == n.Name {
			return fault.New(fault.AlreadyExists, "the name is taken")
		}
	}
	f.accounts[n.ID] = Account{ID: n.ID, Name: n.Name, ClientID: n.ClientID, Kind: Federated}
	f.links[[2]string{n.Issuer, n.Subject}] = n.ID
	return nil
}

func (f *fakeIdentities) FindAccountByName(_ context.Context, name string) (Account, error) {
	return f.find(func(a Account) bool { return a.Name == name })
}

func (f *fakeIdentities) FederatedRoles(_ context.Context, names []string) (found []string, _ error) {
	for _, name := range f.federated {
		if slices.Contains(names, name) {
			found = append(found, name)
		}
	}
	return found, nil
}

func (f *fakeIdentities) RootGrants(ctx context.Context, p Principal) (held []authz.Grant, known bool, err error) {
	a, err := f.FindAccountByID(ctx, p.ID)
	if fault.Is(err, fault.NotFound) {
		return nil, false, nil
	}
	for _, role := range a.Roles {
		if p.Roles.All || slices.Contains(p.Roles.Names, role) {
			held = append(held, f.grants[role]...)
		}
	}
	return held, true, err
}

// federation is a token route with an identity provider, and an engine that may act for others.
type federation struct {
	*bench
	issuers    *fakeIssuers
	identities *fakeIdentities
	engine     Account
	secret     Secret
}

func newFederation(b *bench) *federation {
	f := &federation{bench: b, issuers: &fakeIssuers{}}
	f.identities = &fakeIdentities{
		fakeStore: b.store, links: map[[2]string]uuid.UUID{}, federated: []string{"analysts", "writers"},
		grants: map[string][]authz.Grant{
			"engines":       {{Privilege: authz.PrincipalImpersonate, Kind: authz.Root, SecurableID: authz.RootID}},
			"service_admin": {{Privilege: authz.ServiceManageAccess, Kind: authz.Root, SecurableID: authz.RootID}},
			"makers":        {{Privilege: authz.CatalogCreate, Kind: authz.Root, SecurableID: authz.RootID}},
		},
	}
	f.engine, f.secret = b.account("trino", "engines", "other")
	f.tokens = f.newTokens()
	return f
}

func (f *federation) newTokens() *Tokens {
	clock := func() time.Time { return f.now }
	return NewTokens(TokensConfig{
		Accounts: f.store, Keys: NewKeys(f.store, f.ring, clock), Secrets: f.secrets, Now: clock,
		Issuers: f.issuers, Identity: f.identities, Denials: func(_ context.Context, d LoginDenial) { f.denials = append(f.denials, d) },
	})
}

// external is a provider's token.
func (f *federation) external(subject, name string, roles ...string) string {
	return f.externalUntil(f.now.Add(10*time.Minute), subject, name, roles...)
}

func (f *federation) externalUntil(end time.Time, subject, name string, roles ...string) string {
	text, err := json.Marshal(Identity{
		Issuer: fakeIssuer, Subject: subject, Name: name, Roles: roles, Key: "k", IssuedAt: f.now, ExpiresAt: end, Create: true,
	})
	if err != nil {
		panic(err)
	}
	return "idp." + string(text)
}

// unsigned is a token as Trino makes it for its session's user.
func unsigned(claims jwt.MapClaims) string {
	token, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		panic(err)
	}
	return token
}
