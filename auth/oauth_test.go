package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"catalogd/internal/fault"
)

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func form(pairs ...string) url.Values {
	f := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return f
}

func (b *bench) issue(t *testing.T, r TokenRequest) TokenAnswer {
	t.Helper()
	answer, err := b.tokens.Issue(t.Context(), r)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return answer
}

func (b *bench) login(t *testing.T, a Account, s Secret, scope string) TokenAnswer {
	t.Helper()
	return b.issue(t, TokenRequest{Form: form("grant_type", "client_credentials",
		"client_id", a.ClientID, "client_secret", s.Reveal(), "scope", scope)})
}

// wantRefused checks code and status of a refusal and that its description can be sent.
func wantRefused(t *testing.T, err error, code string, status int) {
	t.Helper()
	var refused *OAuthError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want the refusal %s", err, code)
	}
	if refused.Code != code || refused.Status != status || refused.Description == "" {
		t.Fatalf("got %d %+v, want %d %s", refused.Status, refused, status, code)
	}
	if strings.ContainsAny(refused.Description, "\"\\\n") {
		t.Errorf("description holds characters that RFC 6749 forbids: %q", refused.Description)
	}
}

func exchangeForm(subject string) url.Values {
	return form("grant_type", grantTokenExchange, "subject_token", subject, "subject_token_type", tokenTypeAccess, "scope", "catalog")
}

func TestIssue_AnswerIsWhatClientsRead(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl", "reader")
	answer := b.login(t, a, secret, "")
	raw, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"token_type": "bearer", "expires_in": 3600.0, "issued_token_type": tokenTypeAccess,
		"scope": "PRINCIPAL_ROLE:ALL", "access_token": answer.AccessToken,
	}
	if len(fields) != len(want) {
		t.Errorf("fields %v", fields)
	}
	for name, value := range want {
		if fields[name] != value {
			t.Errorf("%s = %v, want %v", name, fields[name], value)
		}
	}
	// Java reads the expiry out of the token when it has three parts.
	parts := strings.Split(answer.AccessToken, ".")
	if len(parts) != 3 {
		t.Fatalf("token has %d parts", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claimed struct {
		Exp int64 `json:"exp"`
		Iat int64 `json:"iat"`
	}
	if err := json.Unmarshal(payload, &claimed); err != nil {
		t.Fatal(err)
	}
	if claimed.Exp != b.now.Add(time.Hour).Unix() || claimed.Iat != b.now.Unix() {
		t.Errorf("exp %d iat %d", claimed.Exp, claimed.Iat)
	}
	p, err := b.tokens.Authenticate(t.Context(), "bearer "+answer.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	if p.ID != a.ID || p.Name != "etl" || p.Kind != Service || !p.Roles.All || p.TokenID == "" {
		t.Errorf("principal %+v", p)
	}
}

func TestField_C134_CredentialWithoutColon(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	// Java: the secret alone in the form; its late refresh and DuckDB: Basic of the raw credential.
	for name, r := range map[string]TokenRequest{
		"form":               {Form: form("grant_type", "client_credentials", "client_secret", secret.Reveal(), "scope", "catalog")},
		"form with empty id": {Form: form("grant_type", "client_credentials", "client_id", "", "client_secret", secret.Reveal())},
		"basic":              {Form: form("grant_type", "client_credentials"), Authorization: basic(secret.Reveal())},
		"basic, empty id":    {Form: form("grant_type", "client_credentials"), Authorization: basic(":" + secret.Reveal())},
	} {
		answer, err := b.tokens.Issue(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+answer.AccessToken)
		if err != nil || p.ID != a.ID {
			t.Errorf("%s: token of %v, %v", name, p.Name, err)
		}
	}
	// With an id, both must match.
	other, _ := b.account("other")
	_, err := b.tokens.Issue(t.Context(), TokenRequest{Form: form("grant_type", "client_credentials",
		"client_id", other.ClientID, "client_secret", secret.Reveal())})
	wantRefused(t, err, codeInvalidClient, 401)
}

func TestField_C135_WrongFormsOfCredentialsAreExplained(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	pair := a.ClientID + ":" + secret.Reveal()
	for name, r := range map[string]TokenRequest{
		"trailing newline":         {Form: form("grant_type", "client_credentials", "client_id", a.ClientID, "client_secret", secret.Reveal()+"\n")},
		"trailing newline, basic":  {Form: form("grant_type", "client_credentials"), Authorization: basic(pair + "\n")},
		"basic without its equals": {Form: form("grant_type", "client_credentials"), Authorization: strings.TrimRight(basic(pair), "=")},
	} {
		if _, err := b.tokens.Issue(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, r := range map[string]TokenRequest{
		"id only":           {Form: form("grant_type", "client_credentials", "client_id", a.ClientID)},
		"nothing":           {Form: form("grant_type", "client_credentials")},
		"colon encoded":     {Form: form("grant_type", "client_credentials", "client_secret", a.ClientID+"%3A"+secret.Reveal())},
		"secret unknown":    {Form: form("grant_type", "client_credentials", "client_secret", "something-else-entirely")},
		"basic not base64":  {Form: form("grant_type", "client_credentials"), Authorization: "Basic ###"},
		"basic, id only":    {Form: form("grant_type", "client_credentials"), Authorization: basic(a.ClientID + ":")},
		"bearer is no help": {Form: form("grant_type", "client_credentials"), Authorization: "Bearer x"},
	} {
		_, err := b.tokens.Issue(t.Context(), r)
		t.Log(name, err)
		wantRefused(t, err, codeInvalidClient, 401)
	}
}

func TestField_C136_SecretsThatClientsEncodeInTwoWays(t *testing.T) {
	b := newBench(t)
	const secret = "a+b/c=%&d:e-and-long-enough"
	stored, err := b.secrets.StoreChosen(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := b.account("imported")
	a.Secret = stored
	b.store.accounts[a.ID] = a
	encoded, err := ParseTokenForm("grant_type=client_credentials&client_id=" + a.ClientID + "&client_secret=" + url.QueryEscape(secret))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]TokenRequest{
		"form":                {Form: encoded},
		"basic raw":           {Form: form("grant_type", "client_credentials"), Authorization: basic(a.ClientID + ":" + secret)},
		"basic form-encoded":  {Form: form("grant_type", "client_credentials"), Authorization: basic(a.ClientID + ":" + url.QueryEscape(secret))},
		"basic url alphabet":  {Form: form("grant_type", "client_credentials"), Authorization: "Basic " + base64.URLEncoding.EncodeToString([]byte(a.ClientID+":"+secret))},
		"basic in lower case": {Form: form("grant_type", "client_credentials"), Authorization: "basic " + base64.StdEncoding.EncodeToString([]byte(a.ClientID+":"+secret))},
	} {
		if _, err := b.tokens.Issue(t.Context(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = ParseTokenForm("grant_type=client_credentials&client_id=x&client_secret=" + secret)
	wantRefused(t, err, codeInvalidClient, 401)

	for range 200 {
		s, _ := b.secrets.Generate(NewClientID())
		if s.Reveal() != url.QueryEscape(s.Reveal()) {
			t.Fatalf("a generated secret needs encoding: %q", s.Reveal())
		}
	}
}

func TestField_C138_Scopes(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl", "etl", "analyst", "Mixed", "mixed")
	cases := []struct {
		scope string
		want  RoleScope
		code  string
	}{
		{scope: "", want: RoleScope{All: true}},
		{scope: "catalog", want: RoleScope{All: true}},
		{scope: "sign", want: RoleScope{All: true}},
		{scope: "catalog sign", want: RoleScope{All: true}},
		{scope: "PRINCIPAL_ROLE:ALL", want: RoleScope{All: true}},
		{scope: "session:role-any", want: RoleScope{All: true}},
		{scope: "openid profile email offline_access", want: RoleScope{All: true}},
		{scope: "api://some/.default", want: RoleScope{All: true}},
		{scope: "PRINCIPAL_ROLE:etl", want: RoleScope{Names: []string{"etl"}}},
		{scope: "  catalog   PRINCIPAL_ROLE:etl  ", want: RoleScope{Names: []string{"etl"}}},
		{scope: "PRINCIPAL_ROLE:etl PRINCIPAL_ROLE:analyst PRINCIPAL_ROLE:etl", want: RoleScope{Names: []string{"etl", "analyst"}}},
		{scope: "session:role:ETL", want: RoleScope{Names: []string{"etl"}}},
		{scope: "PRINCIPAL_ROLE:ETL", code: codeInvalidScope},
		{scope: "session:role:MIXED", code: codeInvalidScope}, // two roles differ in case only: do not guess
		{scope: "session:role:Mixed", want: RoleScope{Names: []string{"Mixed"}}},
		{scope: "PRINCIPAL_ROLE:admin", code: codeInvalidScope},
		{scope: "PRINCIPAL_ROLE:etl PRINCIPAL_ROLE:admin", code: codeInvalidScope},
		{scope: "PRINCIPAL_ROLE:", code: codeInvalidScope},
		{scope: "principal_role:etl", code: codeInvalidScope}, // a slip must not give every role
		{scope: strings.Repeat("x", 10<<10), code: codeInvalidScope},
	}
	for _, c := range cases {
		answer, err := b.tokens.Issue(t.Context(), TokenRequest{Form: form("grant_type", "client_credentials",
			"client_id", a.ClientID, "client_secret", secret.Reveal(), "scope", c.scope)})
		if c.code != "" {
			wantRefused(t, err, c.code, 400)
			continue
		}
		if err != nil {
			t.Errorf("scope %q: %v", c.scope, err)
			continue
		}
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+answer.AccessToken)
		if err != nil {
			t.Fatal(err)
		}
		if p.Roles.All != c.want.All || !slices.Equal(p.Roles.Names, c.want.Names) {
			t.Errorf("scope %q gives %+v, want %+v", c.scope, p.Roles, c.want)
		}
		for _, piece := range strings.Split(answer.Scope, " ") {
			if piece == "" {
				t.Errorf("scope %q is answered with %q, which Java refuses", c.scope, answer.Scope)
			}
		}
	}
}

func TestIssue_FormCredentialsWinOverStaleBearer(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	for _, header := range []string{"Bearer None", "Bearer stale.token.here", basic("someone:else")} {
		b.issue(t, TokenRequest{Authorization: header, Form: form("grant_type", "client_credentials",
			"client_id", a.ClientID, "client_secret", secret.Reveal())})
	}
}

// Java refreshes a live token with itself as Bearer, and the refreshed one again, for as long as the job runs.
func TestExchange_LiveTokenByBearer(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("spark", "etl")
	answer := b.login(t, a, secret, "PRINCIPAL_ROLE:etl")
	for range 5 {
		b.now = b.now.Add(55 * time.Minute)
		fresh := b.issue(t, TokenRequest{Form: exchangeForm(answer.AccessToken), Authorization: "Bearer " + answer.AccessToken})
		if fresh.AccessToken == answer.AccessToken || fresh.ExpiresIn != 3600 || fresh.IssuedTokenType != tokenTypeAccess {
			t.Fatalf("refreshed: expires_in %d, issued_token_type %q", fresh.ExpiresIn, fresh.IssuedTokenType)
		}
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+fresh.AccessToken)
		if err != nil || p.Roles.All || !slices.Equal(p.Roles.Names, []string{"etl"}) {
			t.Fatalf("refreshed token: %+v, %v", p, err)
		}
		answer = fresh
	}
	b.now = b.now.Add(2 * time.Hour)
	_, err := b.tokens.Issue(t.Context(), TokenRequest{Form: exchangeForm(answer.AccessToken), Authorization: "Bearer " + answer.AccessToken})
	wantRefused(t, err, codeInvalidClient, 401)
}

// A laptop that slept: the token is long expired, the credential is still there.
func TestExchange_ExpiredOwnTokenByBasic(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("spark", "etl", "other")
	other, otherSecret := b.account("other")
	answer := b.login(t, a, secret, "PRINCIPAL_ROLE:etl")
	b.now = b.now.Add(80 * time.Hour)
	pair := a.ClientID + ":" + secret.Reveal()
	for name, r := range map[string]TokenRequest{
		"basic":              {Form: exchangeForm(answer.AccessToken), Authorization: basic(pair)},
		"basic, secret only": {Form: exchangeForm(answer.AccessToken), Authorization: basic(secret.Reveal())},
		"form": {Form: func() url.Values {
			f := exchangeForm(answer.AccessToken)
			f.Set("client_id", a.ClientID)
			f.Set("client_secret", secret.Reveal())
			return f
		}()},
		"as refresh token": {Form: form("grant_type", "refresh_token", "refresh_token", answer.AccessToken,
			"client_id", a.ClientID, "client_secret", secret.Reveal())},
	} {
		fresh, err := b.tokens.Issue(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+fresh.AccessToken)
		if err != nil || !slices.Equal(p.Roles.Names, []string{"etl"}) {
			t.Errorf("%s: the narrowing was lost: %+v, %v", name, p.Roles, err)
		}
	}
	_, err := b.tokens.Issue(t.Context(), TokenRequest{Form: exchangeForm(answer.AccessToken),
		Authorization: basic(other.ClientID + ":" + otherSecret.Reveal())})
	wantRefused(t, err, codeInvalidGrant, 400)
	_, err = b.tokens.Issue(t.Context(), TokenRequest{Form: exchangeForm(answer.AccessToken), Authorization: basic(a.ClientID + ":wrong")})
	wantRefused(t, err, codeInvalidClient, 401)
	_, err = b.tokens.Issue(t.Context(), TokenRequest{Form: exchangeForm(answer.AccessToken)})
	wantRefused(t, err, codeInvalidClient, 401)
}

func TestExchange_NarrowsNeverWidens(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("spark", "etl", "analyst")
	narrow := b.login(t, a, secret, "PRINCIPAL_ROLE:etl").AccessToken
	wide := b.login(t, a, secret, "").AccessToken
	exchange := func(subject, scope string) (TokenAnswer, error) {
		f := exchangeForm(subject)
		f.Set("scope", scope)
		return b.tokens.Issue(t.Context(), TokenRequest{Form: f, Authorization: "Bearer " + subject})
	}
	if answer, err := exchange(wide, "PRINCIPAL_ROLE:analyst"); err != nil || answer.Scope != "PRINCIPAL_ROLE:analyst" {
		t.Errorf("narrowing: %q, %v", answer.Scope, err)
	}
	_, err := exchange(narrow, "PRINCIPAL_ROLE:analyst")
	wantRefused(t, err, codeInvalidScope, 400)
	for _, scope := range []string{"", "catalog", "PRINCIPAL_ROLE:ALL"} {
		if answer, err := exchange(narrow, scope); err != nil || answer.Scope != "PRINCIPAL_ROLE:etl" {
			t.Errorf("scope %q: %q, %v", scope, answer.Scope, err)
		}
	}
	// The role is taken away: the narrowed session ends, it does not become another.
	a.Roles = []string{"analyst"}
	b.store.accounts[a.ID] = a
	_, err = exchange(narrow, "")
	wantRefused(t, err, codeInvalidScope, 400)
}

func TestExchange_EndsWithTheSecretAndThePrincipal(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("spark")
	token := b.login(t, a, secret, "").AccessToken
	r := TokenRequest{Form: exchangeForm(token), Authorization: "Bearer " + token}
	b.issue(t, r)

	rotated := a
	_, rotated.Secret = b.secrets.Generate(a.ClientID)
	b.store.accounts[a.ID] = rotated
	_, err := b.tokens.Issue(t.Context(), r)
	wantRefused(t, err, codeInvalidClient, 401)

	b.store.accounts[a.ID] = a
	b.issue(t, r)
	delete(b.store.accounts, a.ID)
	_, err = b.tokens.Issue(t.Context(), r)
	wantRefused(t, err, codeInvalidClient, 401)
}

func TestExchange_RefusesForeignParts(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("spark")
	other, otherSecret := b.account("other")
	token := b.login(t, a, secret, "").AccessToken
	otherToken := b.login(t, other, otherSecret, "").AccessToken

	_, err := b.tokens.Issue(t.Context(), TokenRequest{Form: exchangeForm(token), Authorization: "Bearer " + otherToken})
	wantRefused(t, err, codeInvalidGrant, 400)
	_, err = b.tokens.Issue(t.Context(), TokenRequest{Form: exchangeForm("not.a.token"), Authorization: "Bearer " + token})
	wantRefused(t, err, codeInvalidGrant, 400)
	_, err = b.tokens.Issue(t.Context(), TokenRequest{Form: exchangeForm(token), Authorization: "Bearer None"})
	wantRefused(t, err, codeInvalidClient, 401)
	f := exchangeForm(token)
	f.Set("subject_token_type", "urn:ietf:params:oauth:token-type:saml2")
	_, err = b.tokens.Issue(t.Context(), TokenRequest{Form: f, Authorization: "Bearer " + token})
	wantRefused(t, err, codeInvalidRequest, 400)
	_, err = b.tokens.Issue(t.Context(), TokenRequest{Form: form("grant_type", grantTokenExchange), Authorization: "Bearer " + token})
	wantRefused(t, err, codeInvalidRequest, 400)
}

func TestField_C145_UnknownGrantsAndDoubledParameters(t *testing.T) {
	b := newBench(t)
	_, err := b.tokens.Issue(t.Context(), TokenRequest{Form: form("grant_type", "password")})
	wantRefused(t, err, codeUnsupportedGrant, 400)
	_, err = b.tokens.Issue(t.Context(), TokenRequest{Form: form()})
	wantRefused(t, err, codeInvalidRequest, 400)
	_, err = ParseTokenForm("grant_type=client_credentials&scope=a&scope=b")
	wantRefused(t, err, codeInvalidRequest, 400)
	_, err = ParseTokenForm(strings.Repeat("a", 1) + strings.Join(func() (out []string) {
		for i := range 100 {
			out = append(out, "&f"+strings.Repeat("x", i)+"=1")
		}
		return out
	}(), ""))
	wantRefused(t, err, codeInvalidRequest, 400)
}

// An outage is no refusal: clients end their sessions on 400 and 401.
func TestField_C143_OutageIsNoRefusal(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("spark")
	token := b.login(t, a, secret, "").AccessToken
	b.store.problem = fault.New(fault.Busy, "the database does not answer")
	for name, r := range map[string]TokenRequest{
		"login": {Form: form("grant_type", "client_credentials", "client_id", a.ClientID, "client_secret", secret.Reveal())},
		"exchange": {
			Form: exchangeForm(token), Authorization: "Bearer " + token,
		},
	} {
		_, err := b.tokens.Issue(t.Context(), r)
		var refused *OAuthError
		if errors.As(err, &refused) || !fault.Is(err, fault.Busy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A server that has just started and cannot read its keys does not know whether a token is good.
	_, err := b.server().Authenticate(t.Context(), "Bearer "+token)
	if !fault.Is(err, fault.Busy) {
		t.Errorf("cold server: %v", err)
	}
	// A warm one does not ask.
	if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+token); err != nil {
		t.Errorf("warm server: %v", err)
	}
}

func TestClient_RefusalsAreAlike(t *testing.T) {
	b := newBench(t)
	a, _ := b.account("spark")
	system, systemSecret := b.account("system:maintenance")
	system.Kind = System
	b.store.accounts[system.ID] = system
	var texts []string
	for _, pair := range [][2]string{{a.ClientID, "wrong"}, {"nobody", "wrong"}, {system.ClientID, systemSecret.Reveal()}} {
		_, err := b.tokens.Issue(t.Context(), TokenRequest{Form: form("grant_type", "client_credentials",
			"client_id", pair[0], "client_secret", pair[1])})
		wantRefused(t, err, codeInvalidClient, 401)
		texts = append(texts, err.Error())
	}
	if texts[0] != texts[1] || texts[0] != texts[2] {
		t.Errorf("refusals differ: %q", texts)
	}
}

// The work behind refusals is bounded; when too much of it waits, the answer is "later", for everybody alike.
func TestClient_RefusalsWaitTheirTurn(t *testing.T) {
	b := newBench(t)
	a, _ := b.account("spark")
	for range argonAtOnceMax {
		b.secrets.slots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, id := range []string{a.ClientID, "nobody"} {
		_, err := b.tokens.Issue(ctx, TokenRequest{Form: form("grant_type", "client_credentials", "client_id", id, "client_secret", "wrong")})
		if !fault.Is(err, fault.Busy) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestIssue_SecretThatMustBeRotatedActivatesNoRole(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("new", "etl")
	a.Secret.RotationRequired = true
	b.store.accounts[a.ID] = a
	for _, scope := range []string{"", "PRINCIPAL_ROLE:ALL", "PRINCIPAL_ROLE:etl"} {
		answer := b.login(t, a, secret, scope)
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+answer.AccessToken)
		if err != nil || p.Roles.All || len(p.Roles.Names) > 0 || answer.Scope != "" {
			t.Errorf("scope %q: %+v %q, %v", scope, p.Roles, answer.Scope, err)
		}
		raw, err := json.Marshal(answer)
		if err != nil || strings.Contains(string(raw), "scope") {
			t.Errorf("an empty scope is in the answer: %v", err)
		}
	}
}

// What is exchanged is of the family of what it was exchanged for, and knows when somebody signed in; with credentials it begins anew.
func TestExchange_KeepsFamilyAndSignIn(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("ann", "r")
	caller := func(token string) Principal {
		t.Helper()
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+token)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	exchange := func(token, more string) string {
		t.Helper()
		form, err := ParseTokenForm("grant_type=" + grantTokenExchange + "&subject_token=" + token + more)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := b.tokens.Issue(t.Context(), TokenRequest{Form: form})
		if err != nil {
			t.Fatal(err)
		}
		return answer.AccessToken
	}
	token := b.login(t, a, secret, "").AccessToken
	first := caller(token)
	for range 4 {
		if !caller(token).SignedInLately(b.now) {
			t.Errorf("at %s the sign-in at %s is too old", b.now, first.SignedInAt)
		}
		b.now = b.now.Add(SignInFreshMax / 4)
		token = exchange(token, "")
		if p := caller(token); familyOf(p.TokenID) != first.TokenID || p.TokenID == first.TokenID || !p.SignedInAt.Equal(first.SignedInAt) {
			t.Errorf("%+v is not of the family of %+v", p, first)
		}
	}
	if caller(token).SignedInLately(b.now) {
		t.Error("an exchange made the sign-in fresh")
	}
	p := caller(exchange(token, "&client_id="+a.ClientID+"&client_secret="+secret.Reveal()))
	if familyOf(p.TokenID) == first.TokenID || !p.SignedInLately(b.now) {
		t.Errorf("with credentials: %+v", p)
	}
}
