package auth

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"catalogd/internal/fault"
)

// pat gives an account a personal access token that lives for a day.
func (b *bench) pat(a Account, roles ...string) (uuid.UUID, string) {
	id := uuid.New()
	secret, stored := b.secrets.GeneratePersonal(id)
	b.store.personal[id] = PersonalAccount{
		Account: a, TokenID: id, Form: stored.Form, TokenRoles: roles, ExpiresAt: b.now.Add(24 * time.Hour),
	}
	return id, secret.Reveal()
}

// A token is told from other text by its pattern and its checksum, and a slip of the pen costs no question.
func TestPersonal_TheChecksumTellsASlip(t *testing.T) {
	b := newBench(t)
	a, _ := b.account("ann", "r")
	_, text := b.pat(a)
	if !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(text) || !personalToken.MatchString(text) {
		t.Fatalf("%s is not in the pattern", text)
	}
	rapid.Check(t, func(t *rapid.T) {
		finds := b.store.finds
		at := rapid.IntRange(len(personalPrefix), len(text)-1).Draw(t, "at")
		slip := rapid.SampledFrom([]string{"", "a", "B", "7", "_", "-", "%", "ä", "ab"}).Draw(t, "instead")
		wrong := text[:at] + slip + text[at+1:]
		if wrong == text {
			return
		}
		if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+wrong); !fault.Is(err, fault.Unauthenticated) {
			t.Fatalf("%s: %v", wrong, err)
		}
		if b.store.finds != finds {
			t.Fatalf("%s was looked up", wrong)
		}
	})
}

func TestPersonal_AsBearer(t *testing.T) {
	b := newBench(t)
	a, _ := b.account("ann", "r", "s")
	id, text := b.pat(a, "r")
	for range 3 {
		p, err := b.tokens.Authenticate(t.Context(), "bearer "+text)
		if err != nil || p.ID != a.ID || p.Name != "ann" || p.Roles.All || !slices.Equal(p.Roles.Names, []string{"r"}) || p.PersonalToken != id ||
			p.TokenID != id.String() || p.SecretMark == "" {
			t.Fatalf("%+v, %v", p, err)
		}
		p.Roles.Names[0] = "s" // a caller's own
	}
	if b.store.finds != 1 {
		t.Errorf("looked up %d times", b.store.finds)
	}
	other, _ := b.secrets.GeneratePersonal(id)
	_, unknown := b.pat(a)
	delete(b.store.personal, uuid.MustParse(strings.Split(unknown, "_")[2]))
	for name, wrong := range map[string]string{"another secret": other.Reveal(), "unknown": unknown} {
		if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+wrong); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.now = b.now.Add(24 * time.Hour)
	if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+text); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("an expired token: %v", err)
	}
}

// A personal access token stands for a credential in every form in which clients send one without an id.
func TestField_C134_PersonalTokenAsCredential(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("ann", "ETL", "s")
	other, _ := b.account("bob", "ETL")
	id, text := b.pat(a)
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct {
		name, id, secret, authorization, scope, code string
		roles                                        RoleScope
	}{
		{"Spark's credential without a colon", "", text, "", "catalog", "", RoleScope{All: true}},
		{"with a session's role", "", text, "", "session:role:etl", "", RoleScope{Names: []string{"ETL"}}},
		{"with a role that the owner lacks", "", text, "", "session:role:none", codeInvalidScope, RoleScope{}},
		{"Basic without a colon", "", "", basic(text), "", "", RoleScope{All: true}},
		{"Basic with an empty id", "", "", basic(":" + text), "", "", RoleScope{All: true}},
		{"with the owner's id", a.ClientID, text, "", "", "", RoleScope{All: true}},
		{"with its own id", id.String(), text, "", "", "", RoleScope{All: true}},
		{"with another's id", other.ClientID, text, "", "", codeInvalidClient, RoleScope{}},
		{"Basic with another's id", "", "", basic(other.ClientID + ":" + text), "", codeInvalidClient, RoleScope{}},
		{"the owner's own secret", "", secret.Reveal(), "", "", "", RoleScope{All: true}},
		{"cut off", "", text[:len(text)-1], "", "", codeInvalidClient, RoleScope{}},
	} {
		form := url.Values{"grant_type": {grantClientCredentials}, "scope": {c.scope}}
		if c.id != "" {
			form.Set("client_id", c.id)
		}
		if c.secret != "" {
			form.Set("client_secret", c.secret)
		}
		answer, err := b.tokens.Issue(t.Context(), TokenRequest{Form: form, Authorization: c.authorization})
		if c.code != "" {
			if refused, ok := err.(*OAuthError); !ok || refused.Code != c.code {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+answer.AccessToken)
		wantToken := id
		if c.secret == secret.Reveal() {
			wantToken = uuid.Nil
		}
		if err != nil || p.ID != a.ID || p.PersonalToken != wantToken || p.Roles.All != c.roles.All || !slices.Equal(p.Roles.Names, c.roles.Names) {
			t.Errorf("%s: %+v, %v", c.name, p, err)
		}
	}
}

// Whatever is exchanged, the role restriction narrows, the end is the personal token's at most, and what comes of it dies
// with it.
func TestPersonal_Exchanged(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("ann", "r", "s")
	id, text := b.pat(a, "r")
	exchange := func(subject, authorization, scope string) (Principal, TokenAnswer, error) {
		form := url.Values{"grant_type": {grantTokenExchange}, "subject_token": {subject}, "scope": {scope}, "subject_token_type": {tokenTypeAccess}}
		answer, err := b.tokens.Issue(t.Context(), TokenRequest{Form: form, Authorization: authorization, Address: netip.MustParseAddr("192.0.2.1")})
		if err != nil {
			return Principal{}, answer, err
		}
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+answer.AccessToken)
		return p, answer, err
	}
	b.now = b.now.Add(24*time.Hour - 10*time.Minute)
	var live string
	for _, authorization := range []string{"", "Bearer " + text} {
		p, answer, err := exchange(text, authorization, "catalog")
		if err != nil || p.PersonalToken != id || !slices.Equal(p.Roles.Names, []string{"r"}) || answer.ExpiresIn != 600 || !p.ExpiresAt.Equal(b.now.Add(10*time.Minute)) {
			t.Fatalf("%+v, %+v, %v", p, answer.ExpiresIn, err)
		}
		live = answer.AccessToken
	}
	if p, _, err := exchange(live, "Bearer "+live, ""); err != nil || p.PersonalToken != id || !slices.Equal(p.Roles.Names, []string{"r"}) {
		t.Errorf("a refresh: %+v, %v", p, err)
	}
	if _, _, err := exchange(text, "", "PRINCIPAL_ROLE:s"); err == nil || !strings.Contains(err.Error(), codeInvalidScope) {
		t.Errorf("a role beyond the restriction: %v", err)
	}
	own := b.login(t, a, secret, "").AccessToken
	if _, _, err := exchange(own, "Bearer "+text, ""); err == nil || !strings.Contains(err.Error(), codeInvalidGrant) {
		t.Errorf("a token of the secret by a personal one: %v", err)
	}
	delete(b.store.personal, id)
	for _, subject := range []string{text, live} {
		if _, _, err := exchange(subject, "", ""); err == nil || !strings.Contains(err.Error(), "was revoked") {
			t.Errorf("after its end: %v", err)
		}
	}
}

// The secret before is good while it overlaps, and so is what it obtained; a new form under a new secrets.key is still the
// same secret.
func TestPersonal_RotationOverlaps(t *testing.T) {
	b := newBench(t)
	a, _ := b.account("ann", "r")
	id, old := b.pat(a)
	before, err := b.tokens.Authenticate(t.Context(), "Bearer "+old)
	if err != nil {
		t.Fatal(err)
	}
	row := b.store.personal[id]
	fresh, stored := b.secrets.GeneratePersonal(id)
	row.Previous, row.PreviousUntil, row.Form = row.Form, b.now.Add(time.Hour), stored.Form
	b.store.personal[id] = row
	state := func() *CallerState {
		account, err := b.store.FindAccountByID(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		return account.State
	}
	ring, err := NewRing(NewRingKey())
	if err != nil {
		t.Fatal(err)
	}
	ring.keys = append(ring.keys, b.ring.keys...)
	rotated := NewTokens(TokensConfig{
		Accounts: b.store, Keys: b.tokens.keys, Secrets: NewSecrets(ring), Rotation: &rowRotation{b.store}, Now: func() time.Time { return b.now },
	})
	for name, text := range map[string]string{"old": old, "new": fresh.Reveal()} {
		p, err := rotated.Authenticate(t.Context(), "Bearer "+text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := state().Admit(p, b.now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if row := b.store.personal[id]; !slices.Equal(row.Form[:ringIDBytes], ring.ID()) || !slices.Equal(row.Previous[:ringIDBytes], ring.ID()) {
		t.Error("the forms were not renewed")
	}
	if err := state().Admit(before, b.now); err != nil {
		t.Errorf("whom an older server let in: %v", err)
	}
	b.now = b.now.Add(time.Hour)
	if _, err := b.server().Authenticate(t.Context(), "Bearer "+old); err == nil {
		t.Error("the old secret is good for ever")
	}
	if err := state().Admit(before, b.now); err == nil {
		t.Error("the old secret's session is good for ever")
	}
}

// rowRotation renews personal tokens in the fake.
type rowRotation struct{ store *fakeStore }

func (r *rowRotation) ResealSigningKey(context.Context, string, []byte, []byte) error   { return nil }
func (r *rowRotation) RenewSecretForm(context.Context, uuid.UUID, []byte, []byte) error { return nil }

func (r *rowRotation) RenewPersonalForm(_ context.Context, id uuid.UUID, old, fresh []byte) error {
	row := r.store.personal[id]
	switch {
	case bytes.Equal(row.Form, old):
		row.Form = fresh
	case bytes.Equal(row.Previous, old):
		row.Previous = fresh
	}
	r.store.personal[id] = row
	return nil
}
