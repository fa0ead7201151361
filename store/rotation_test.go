package store

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
)

// tokens makes a token route as a server with these keys would have it, after its start.
func (s *staff) tokens(keys ...string) (*auth.Tokens, *auth.Ring, *auth.Secrets) {
	s.t.Helper()
	ring, err := auth.NewRing(keys[0], keys[1:]...)
	s.must(err)
	stored, err := s.SigningKeys(s.t.Context())
	s.must(err)
	_, err = auth.ResealKeys(s.t.Context(), s.Store, ring, stored)
	s.must(err)
	secrets := auth.NewSecrets(ring)
	return auth.NewTokens(auth.TokensConfig{
		Accounts: s.Store, Keys: auth.NewKeys(s.Store, ring, nil), Secrets: secrets, Rotation: s.Store,
	}), ring, secrets
}

func login(clientID string, secret auth.Secret) auth.TokenRequest {
	return auth.TokenRequest{Form: url.Values{
		"grant_type": {"client_credentials"}, "client_id": {clientID}, "client_secret": {secret.Reveal()}, "scope": {"PRINCIPAL_ROLE:ALL"},
	}}
}

// A new secrets.key with the old one beside it: after one start signing needs the new one alone, and after one login
// the principal too. Who has not logged in is named. A token from before is still refreshed: its secret is the same.
func TestRotation_OldKeyCanBeDropped(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	old, fresh := auth.NewRingKey(), auth.NewRingKey()
	tokens, _, secrets := s.tokens(old)
	clients := map[string]auth.Secret{}
	for _, name := range []string{"ann", "bob"} {
		p := catalog.PrincipalRecord{ID: uuid.New(), Name: name, ClientID: auth.NewClientID(), Kind: auth.Service, CreatedAt: time.Now()}
		secret, form := secrets.Generate(p.ClientID)
		s.must(s.CreatePrincipal(ctx, p, form, catalog.Fact{ID: uuid.New(), At: time.Now(), Operation: "create-principal", Subject: name}))
		clients[name], clients[name+" id"] = secret, auth.Secret(p.ClientID)
	}
	annID, ann := clients["ann id"].Reveal(), clients["ann"]
	before, err := tokens.Issue(ctx, login(annID, ann))
	s.must(err)

	others := func(ring *auth.Ring) string {
		names, err := s.PrincipalsOfOtherKeys(ctx, ring.ID())
		s.must(err)
		return strings.Join(names, " ")
	}
	tokens, ring, _ := s.tokens(fresh, old)
	if got := others(ring); got != "ann bob" {
		t.Errorf("before any login remain %q", got)
	}
	_, err = tokens.Issue(ctx, login(annID, ann))
	s.must(err)
	if got := others(ring); got != "bob" {
		t.Errorf("after ann's login remain %q", got)
	}

	tokens, _, _ = s.tokens(fresh)
	_, err = tokens.Issue(ctx, login(annID, ann))
	if err != nil {
		t.Errorf("ann with the new key alone: %v", err)
	}
	refresh := auth.TokenRequest{Form: url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {before.AccessToken},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
	}, Authorization: "Bearer " + before.AccessToken}
	if _, err := tokens.Issue(ctx, refresh); err != nil {
		t.Errorf("refresh of a token from before: %v", err)
	}
	if _, err := tokens.Issue(ctx, login(clients["bob id"].Reveal(), clients["bob"])); err == nil {
		t.Error("bob never logged in while the old key was there, and yet is let in now: what made his secret's form?")
	}
}

// What was changed meanwhile stays.
func TestRotation_ReplacesOnlyWhatItNames(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	keys, err := s.AddSigningKey(ctx, auth.StoredKey{KID: "k", Algorithm: "EdDSA", PublicKey: []byte{1}, PrivateKey: []byte{2}, CreatedAt: time.Now()})
	s.must(err)
	s.must(s.ResealSigningKey(ctx, keys[0].KID, []byte{9}, []byte{3}))
	if keys, err = s.SigningKeys(ctx); err != nil || string(keys[0].PrivateKey) != "\x02" {
		t.Errorf("%v, %v", keys[0].PrivateKey, err)
	}
	s.must(s.ResealSigningKey(ctx, keys[0].KID, []byte{2}, []byte{3}))
	if keys, err = s.SigningKeys(ctx); err != nil || string(keys[0].PrivateKey) != "\x03" {
		t.Errorf("%v, %v", keys[0].PrivateKey, err)
	}
}
