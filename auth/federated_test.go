package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// ask sends a form to the token route.
func (f *federation) ask(t *testing.T, fields ...string) (TokenAnswer, error) {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	authorization := form.Get("Authorization")
	form.Del("Authorization")
	return f.tokens.Issue(t.Context(), TokenRequest{Form: form, Authorization: authorization, Address: netip.MustParseAddr("192.0.2.7")})
}

func (f *federation) exchanged(t *testing.T, fields ...string) (Principal, TokenAnswer) {
	t.Helper()
	answer, err := f.ask(t, append([]string{"grant_type", grantTokenExchange, "subject_token_type", tokenTypeJWT}, fields...)...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.tokens.Authenticate(t.Context(), "Bearer "+answer.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	return p, answer
}

func (f *federation) refusedExchange(t *testing.T, code, words string, fields ...string) {
	t.Helper()
	_, err := f.ask(t, append([]string{"grant_type", grantTokenExchange}, fields...)...)
	var refused *OAuthError
	if !errors.As(err, &refused) || refused.Code != code || !strings.Contains(refused.Description, words) {
		t.Errorf("refused with %v, want %s: %s", err, code, words)
	}
}

func (f *federation) login(t *testing.T, scope string) string {
	t.Helper()
	answer, err := f.ask(t, "grant_type", grantClientCredentials, "client_id", f.engine.ClientID, "client_secret", string(f.secret), "scope", scope)
	if err != nil {
		t.Fatal(err)
	}
	return answer.AccessToken
}

func TestFederated_BearerMakesThePrincipalOnce(t *testing.T) {
	f := newFederation(newBench(t))
	token := f.external("u-1", "ann", "analysts", "nobody")
	first, err := f.tokens.Authenticate(t.Context(), "Bearer "+token)
	if err != nil {
		t.Fatal(err)
	}
	if first.Name != "ann" || first.Kind != Federated || !first.Roles.All || !slices.Equal(first.Roles.Brought, []string{"analysts", "nobody"}) ||
		first.Issuer != fakeIssuer || first.Subject != "u-1" || first.SecretMark != "" || !strings.HasPrefix(first.TokenID, "sha256:") {
		t.Errorf("the caller is %+v", first)
	}
	first.Roles.Brought[0] = "service_admin" // the next caller has its own
	again, err := f.tokens.Authenticate(t.Context(), "Bearer "+token)
	if err != nil || again.ID != first.ID || again.Roles.Brought[0] != "analysts" || f.issuers.verified.Load() != 1 {
		t.Errorf("the second time %+v, %v; verified %d times", again, err, f.issuers.verified.Load())
	}
	// The name may change: who it is does not.
	renamed, err := f.tokens.Authenticate(t.Context(), "Bearer "+f.external("u-1", "anna"))
	if err != nil || renamed.ID != first.ID || renamed.Name != "ann" {
		t.Errorf("with another name %+v, %v", renamed, err)
	}
	f.issuers.withdrawn, f.issuers.problem = true, fault.New(fault.Unauthenticated, "the key is gone")
	if _, err := f.tokens.Authenticate(t.Context(), "Bearer "+token); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("a token of a withdrawn key: %v", err)
	}
	f.issuers.withdrawn, f.issuers.problem = false, nil
	f.now = f.now.Add(11 * time.Minute)
	f.issuers.problem = fault.New(fault.Unauthenticated, "expired")
	if _, err := f.tokens.Authenticate(t.Context(), "Bearer "+token); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("an expired token: %v", err)
	}
}

func TestFederated_NamesAreNotTakenOver(t *testing.T) {
	f := newFederation(newBench(t))
	for _, name := range []string{"trino", "ann"} {
		if name == "ann" {
			if _, err := f.tokens.Authenticate(t.Context(), "Bearer "+f.external("u-1", "ann")); err != nil {
				t.Fatal(err)
			}
		}
		token := f.external("thief", name)
		if _, err := f.tokens.Authenticate(t.Context(), "Bearer "+token); !fault.Is(err, fault.Unauthenticated) || !strings.Contains(fault.Message(err), "another principal's name") {
			t.Errorf("%s was taken over: %v", name, err)
		}
		f.refusedExchange(t, codeInvalidGrant, "another principal's name", "subject_token", token)
	}
	// An administrator's link is what makes a principal somebody's.
	f.identities.links[[2]string{fakeIssuer, "u-9"}] = f.engine.ID
	if p, err := f.tokens.Authenticate(t.Context(), "Bearer "+f.external("u-9", "whoever")); err != nil || p.ID != f.engine.ID || p.Name != "trino" {
		t.Errorf("the linked principal is %+v, %v", p, err)
	}
}

func TestFederated_NobodyIsMadeWhereThatIsOff(t *testing.T) {
	f := newFederation(newBench(t))
	token := strings.Replace(f.external("u-1", "ann"), `"Create":true`, `"Create":false`, 1)
	if _, err := f.tokens.Authenticate(t.Context(), "Bearer "+token); !fault.Is(err, fault.Unauthenticated) || !strings.Contains(fault.Message(err), "create_principals") {
		t.Errorf("%v", err)
	}
	if len(f.store.accounts) != 1 {
		t.Error("a principal was made")
	}
}

func TestFederated_ExchangeEndsWithTheProvidersToken(t *testing.T) {
	f := newFederation(newBench(t))
	for _, kind := range []string{tokenTypeJWT, tokenTypeID, tokenTypeAccess} {
		p, answer := f.exchanged(t, "subject_token", f.external("u-1", "ann", "analysts", "nobody"), "subject_token_type", kind)
		if p.Name != "ann" || !p.ExpiresAt.Equal(f.now.Add(10*time.Minute)) || answer.ExpiresIn != 600 || !p.Roles.All ||
			!slices.Equal(p.Roles.Brought, []string{"analysts"}) || p.Issuer != fakeIssuer || p.Subject != "u-1" || p.SecretMark != "" || p.Actor != nil {
			t.Errorf("the token of %s is %+v for %d s", kind, p, answer.ExpiresIn)
		}
	}
	p, _ := f.exchanged(t, "subject_token", f.external("u-1", "ann", "analysts", "writers"), "scope", "PRINCIPAL_ROLE:writers")
	if p.Roles.All || !slices.Equal(p.Roles.Names, []string{"writers"}) || !slices.Equal(p.Roles.ActiveBrought(), []string{"writers"}) {
		t.Errorf("narrowed to %+v", p.Roles)
	}
	f.refusedExchange(t, codeInvalidScope, "does not have this role", "subject_token", f.external("u-1", "ann", "analysts"), "scope", "PRINCIPAL_ROLE:writers")
	f.refusedExchange(t, codeInvalidScope, "does not have this role", "subject_token", f.external("u-1", "ann", "service_admin"), "scope", "PRINCIPAL_ROLE:service_admin")
	f.refusedExchange(t, codeInvalidClient, "", "subject_token", f.external("u-1", "ann"), "client_id", f.engine.ClientID, "client_secret", "wrong")
	f.issuers.problem = fault.New(fault.Unauthenticated, "not good")
	f.refusedExchange(t, codeInvalidGrant, "not good", "subject_token", "idp.{}")
	f.issuers.problem = fault.New(fault.Busy, "the keys cannot be read")
	if _, err := f.ask(t, "grant_type", grantTokenExchange, "subject_token", "idp.{}"); !fault.Is(err, fault.Busy) {
		t.Errorf("a provider that is away: %v", err)
	}
}

// A provider's token without an id is revoked by its mark, which the audit has; it then is no bearer and is not exchanged.
func TestFederated_WhatIsRevokedIsNotExchanged(t *testing.T) {
	f := newFederation(newBench(t))
	raw := f.external("u-1", "ann", "analysts")
	p, err := f.tokens.Authenticate(t.Context(), "Bearer "+raw)
	if err != nil {
		t.Fatal(err)
	}
	f.store.states[p.ID] = CallerState{Revoked: []string{p.TokenID}}
	f.refusedExchange(t, codeInvalidGrant, "revoked", "subject_token", raw)
}

func TestFederated_RefreshGoesNoFurther(t *testing.T) {
	f := newFederation(newBench(t))
	_, answer := f.exchanged(t, "subject_token", f.external("u-1", "ann", "analysts", "writers"))
	end := f.now.Add(10 * time.Minute)
	f.now = f.now.Add(9 * time.Minute)
	refresh := func(token string) []string {
		return []string{"subject_token", token, "Authorization", "Bearer " + token}
	}
	p, second := f.exchanged(t, refresh(answer.AccessToken)...)
	if !p.ExpiresAt.Equal(end) || second.ExpiresIn != 60 || !slices.Equal(p.Roles.Brought, []string{"analysts", "writers"}) {
		t.Errorf("refreshed to %+v for %d s", p, second.ExpiresIn)
	}
	f.identities.federated = []string{"analysts"} // the other was dropped
	if p, _ := f.exchanged(t, refresh(answer.AccessToken)...); !slices.Equal(p.Roles.Brought, []string{"analysts"}) {
		t.Errorf("refreshed with %v", p.Roles.Brought)
	}
	narrow, _ := f.exchanged(t, append(refresh(answer.AccessToken), "scope", "PRINCIPAL_ROLE:analysts")...)
	if narrow.Roles.All || len(narrow.Roles.Names) != 1 {
		t.Errorf("narrowed to %+v", narrow.Roles)
	}
	link := [2]string{fakeIssuer, "u-1"}
	id := f.identities.links[link]
	f.identities.links[link] = f.engine.ID // the subject is somebody else now
	f.refusedExchange(t, codeInvalidGrant, "no longer exists", refresh(answer.AccessToken)...)
	delete(f.identities.links, link)
	f.refusedExchange(t, codeInvalidGrant, "no longer exists", refresh(answer.AccessToken)...)
	f.identities.links[link] = id
	f.refusedExchange(t, codeInvalidGrant, "another principal", "subject_token", answer.AccessToken, "client_id", f.engine.ClientID, "client_secret", string(f.secret))
	f.now = end
	f.refusedExchange(t, codeInvalidGrant, "expired", refresh(second.AccessToken)...)
	f.refusedExchange(t, codeInvalidGrant, "ended", "subject_token", f.externalUntil(end, "u-1", "ann"))
}

// An engine exchanges each user's own token: the user's rights, the user's end, and nobody else's.
func TestField_C155_AnEngineExchangesItsUsersTokens(t *testing.T) {
	f := newFederation(newBench(t))
	actor := f.login(t, "PRINCIPAL_ROLE:other") // it needs no right for that
	const users = 2000
	var mu sync.Mutex
	tokens, ids := map[string]string{}, map[uuid.UUID]string{}
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for n := worker; n < users; n += 8 {
				name, role := fmt.Sprint("user-", n), []string{"analysts", "writers"}[n%2]
				end := f.now.Add(time.Duration(n%50+1) * time.Minute)
				answer, err := f.ask(t, "grant_type", grantTokenExchange, "subject_token_type", tokenTypeJWT, "actor_token", actor,
					"actor_token_type", tokenTypeAccess, "subject_token", f.externalUntil(end, "s-"+name, name, role), "Authorization", "Bearer "+actor)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				tokens[name] = answer.AccessToken
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for n := range users {
		name, role := fmt.Sprint("user-", n), []string{"analysts", "writers"}[n%2]
		p, err := f.tokens.Authenticate(t.Context(), "Bearer "+tokens[name])
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != name || p.Subject != "s-"+name || p.ActorName() != "trino" || p.Actor.ID != f.engine.ID || p.ID == f.engine.ID ||
			!slices.Equal(p.Roles.Brought, []string{role}) || !p.ExpiresAt.Equal(f.now.Add(time.Duration(n%50+1)*time.Minute)) {
			t.Fatalf("the token of %s is %+v", name, p)
		}
		if other, twice := ids[p.ID]; twice {
			t.Fatalf("%s and %s are one principal", name, other)
		}
		ids[p.ID] = name
	}
}

func TestImpersonation_NeedsTheRight(t *testing.T) {
	f := newFederation(newBench(t))
	f.account("ann", "analysts")
	f.account("maker", "makers")
	f.account("root", "service_admin")
	f.account("other-engine", "engines")
	actor := f.login(t, "")
	trino := func(user string) string { return unsigned(jwt.MapClaims{"sub": user, "iat": f.now.Unix()}) }
	for name, subject := range map[string]string{"ann": trino("ann"), "maker": "maker"} {
		p, answer := f.exchanged(t, "subject_token", subject, "actor_token", actor, "Authorization", "Bearer "+actor)
		if p.Name != name || p.ActorName() != "trino" || p.Actor.ID != f.engine.ID || !p.Roles.All || p.SecretMark != "" || p.Issuer != "" || answer.ExpiresIn != 3600 {
			t.Errorf("the token for %s is %+v", name, p)
		}
	}
	for _, user := range []string{"root", "other-engine"} {
		f.refusedExchange(t, codeInvalidGrant, "rights over principals", "subject_token", trino(user), "actor_token", actor)
	}
	f.refusedExchange(t, codeInvalidGrant, "nobody who is known", "subject_token", trino("nobody"), "actor_token", actor)
	f.refusedExchange(t, codeInvalidScope, "does not have", "subject_token", trino("ann"), "actor_token", actor, "scope", "PRINCIPAL_ROLE:engines")
	narrow := f.login(t, "PRINCIPAL_ROLE:other")
	for _, user := range []string{"ann", "nobody", "root"} { // who may not ask does not learn who there is
		f.refusedExchange(t, codeUnauthorizedClient, "PRINCIPAL_IMPERSONATE", "subject_token", trino(user), "actor_token", narrow)
	}
	_, err := f.ask(t, "grant_type", grantTokenExchange, "subject_token", trino("ann"), "Authorization", "Bearer "+actor)
	if refused := (*OAuthError)(nil); !errors.As(err, &refused) {
		t.Errorf("without an actor token: %v", err)
	}
}

func TestImpersonation_HostileSubjectsAndActors(t *testing.T) {
	f := newFederation(newBench(t))
	ann, secret := f.account("ann", "analysts")
	actor := f.login(t, "")
	p, acting := f.exchanged(t, "subject_token", "ann", "actor_token", actor)
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "ann"}).SignedString([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for name, subject := range map[string]string{
		"signed by nobody known":       signed,
		"no subject":                   unsigned(jwt.MapClaims{"name": "ann"}),
		"an empty subject":             unsigned(jwt.MapClaims{"sub": ""}),
		"a list":                       unsigned(jwt.MapClaims{"sub": []string{"ann"}}),
		"control characters":           "ann\n",
		"long":                         strings.Repeat("x", userBytesMax+1),
		"very long":                    strings.Repeat("x", 1<<20),
		"half unsigned":                unsigned(jwt.MapClaims{"sub": "ann"}) + "x",
		"an unsigned one of alg HS256": strings.Join([]string{strings.Split(signed, ".")[0], strings.Split(unsigned(jwt.MapClaims{"sub": "ann"}), ".")[1], ""}, "."),
	} {
		if _, err := f.ask(t, "grant_type", grantTokenExchange, "subject_token", subject, "actor_token", actor); err == nil {
			t.Errorf("%s: a token was given", name)
		} else if refused := (*OAuthError)(nil); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.refusedExchange(t, codeInvalidGrant, "acts for another", "subject_token", "ann", "actor_token", acting.AccessToken)
	f.refusedExchange(t, codeInvalidGrant, "actor_token", "subject_token", "ann", "actor_token", "x")
	f.refusedExchange(t, codeInvalidGrant, "actor_token", "subject_token", "ann", "actor_token", unsigned(jwt.MapClaims{"sub": f.engine.ID.String()}))
	f.refusedExchange(t, codeInvalidGrant, "actor_token belongs", "subject_token", "ann", "actor_token", actor, "client_id", ann.ClientID, "client_secret", string(secret))

	// Refreshing asks again.
	refresh := []string{"subject_token", acting.AccessToken, "Authorization", "Bearer " + acting.AccessToken}
	if again, _ := f.exchanged(t, refresh...); again.ID != p.ID || again.ActorName() != "trino" {
		t.Errorf("refreshed to %+v", again)
	}
	f.now = f.now.Add(2 * time.Hour)
	f.refusedExchange(t, codeInvalidGrant, "expired", refresh...)
	byCredential := []string{"subject_token", acting.AccessToken, "client_id", f.engine.ClientID, "client_secret", string(f.secret)}
	if again, _ := f.exchanged(t, byCredential...); again.ID != p.ID || again.ActorName() != "trino" {
		t.Errorf("refreshed by the actor's credential to %+v", again)
	}
	f.refusedExchange(t, codeInvalidGrant, "another principal", "subject_token", acting.AccessToken, "client_id", ann.ClientID, "client_secret", string(secret))
	f.identities.grants["analysts"] = []authz.Grant{{Privilege: authz.PrincipalCreate, Kind: authz.Root, SecurableID: authz.RootID}}
	f.refusedExchange(t, codeInvalidGrant, "rights over principals", byCredential...)
	delete(f.identities.grants, "analysts")
	delete(f.identities.grants, "engines")
	f.refusedExchange(t, codeUnauthorizedClient, "PRINCIPAL_IMPERSONATE", byCredential...)
	f.identities.grants["engines"] = []authz.Grant{{Privilege: authz.PrincipalImpersonate, Kind: authz.Root, SecurableID: authz.RootID}}
	_, f.engine.Secret = f.secrets.Generate(f.engine.ClientID)
	actor = f.login(t, "")
	f.store.accounts[f.engine.ID] = f.engine
	f.refusedExchange(t, codeInvalidGrant, "was replaced", "subject_token", "ann", "actor_token", actor)
	delete(f.store.accounts, f.engine.ID)
	f.refusedExchange(t, codeInvalidGrant, "no longer exists", "subject_token", "ann", "actor_token", actor)
}

// Each refused exchange is told to the audit once: whose token was wanted, who has proven to want it, and why; what was sent is not.
func TestExchange_RefusalsAreTold(t *testing.T) {
	f := newFederation(newBench(t))
	ann, secret := f.account("ann", "analysts")
	f.account("root", "service_admin")
	actor, narrow := f.login(t, ""), f.login(t, "PRINCIPAL_ROLE:other")
	_, acting := f.exchanged(t, "subject_token", "ann", "actor_token", actor)
	own, err := f.ask(t, "grant_type", grantClientCredentials, "client_id", ann.ClientID, "client_secret", string(secret))
	if err != nil {
		t.Fatal(err)
	}
	good := f.external("s-1", "bob")
	f.exchanged(t, "subject_token", good)
	bob, _ := f.identities.FindAccountByName(t.Context(), "bob")
	asAnn := []string{"client_id", ann.ClientID, "client_secret", string(secret)}
	for name, c := range map[string]struct {
		named, actor, reason string
		fields               []string
	}{
		"may not act":             {"ann", "trino", "PRINCIPAL_IMPERSONATE", []string{"subject_token", "ann", "actor_token", narrow}},
		"may not act for nobody":  {"", "trino", "PRINCIPAL_IMPERSONATE", []string{"subject_token", "sent-by-mistake", "actor_token", narrow}},
		"for an administrator":    {"root", "trino", "rights over principals", []string{"subject_token", "root", "actor_token", actor}},
		"an actor that is none":   {"", "", "actor_token", []string{"subject_token", "ann", "actor_token", "sent-by-mistake"}},
		"another's actor":         {"ann", "trino", "belongs to another", append([]string{"subject_token", "ann", "actor_token", actor}, asAnn...)},
		"refreshed by another":    {"ann", "", "belongs to another", append([]string{"subject_token", acting.AccessToken}, asAnn...)},
		"a wrong secret beside":   {"trino", "", "secret is wrong", []string{"subject_token", good, "client_id", f.engine.ClientID, "client_secret", "sent-by-mistake"}},
		"a provider's that ended": {"bob", "", "has ended", []string{"subject_token", f.externalUntil(f.now, "s-1", "bob")}},
		"a name that is taken":    {"", "", "another principal's name", []string{"subject_token", f.external("s-2", "ann")}},
		"a locked out provider's": {"bob", "", "network policy", []string{"subject_token", good}},
		"ours of another":         {"ann", "", "belongs to another", []string{"subject_token", own.AccessToken, "Authorization", "Bearer " + actor}},
		"no token":                {"", "", "subject_token", []string{"subject_token", "sent-by-mistake"}},
		"wrong in form":           {"-", "", "", []string{"subject_token", "ann", "actor_token", actor, "scope", "PRINCIPAL_ROLE:engines"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.reason == "network policy" {
				f.store.states[bob.ID] = CallerState{Network: NetworkPolicy{Blocked: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}}
				defer delete(f.store.states, bob.ID)
			}
			f.denials = nil
			if _, err := f.ask(t, append([]string{"grant_type", grantTokenExchange}, c.fields...)...); err == nil {
				t.Fatal("a token was given")
			}
			if c.named == "-" {
				if len(f.denials) != 0 {
					t.Errorf("told: %+v", f.denials)
				}
				return
			}
			if len(f.denials) != 1 {
				t.Fatalf("told: %+v", f.denials)
			}
			d := f.denials[0]
			if d.Principal != c.named || d.Actor.Name != c.actor || !strings.Contains(d.Reason, c.reason) || strings.Contains(fmt.Sprint(d), "sent-by-mistake") {
				t.Errorf("told: %+v", d)
			}
		})
	}
}
