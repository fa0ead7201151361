package auth

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"catalogd/internal/fault"
)

const here = "https://lake.example/api/catalog/v1/oauth/tokens"

// register gives an account one of the pairs as its key.
func (b *bench) register(t *testing.T, a Account, algorithm string) ClientKey {
	t.Helper()
	key, err := ReadClientKey(publicPEM(t, pairs()[algorithm].Public()))
	if err != nil {
		t.Fatal(err)
	}
	b.store.clients[a.ID] = append(b.store.clients[a.ID], key)
	return key
}

// sign makes an assertion as a good client does, with changes.
func (b *bench) sign(t *testing.T, a Account, algorithm string, change func(c jwt.MapClaims, header map[string]any)) string {
	t.Helper()
	c := jwt.MapClaims{
		"iss": a.ClientID, "sub": a.ClientID, "aud": here, "jti": rand43(), "iat": b.now.Unix(), "exp": b.now.Add(time.Minute).Unix(),
	}
	token := jwt.NewWithClaims(methodOf(algorithm), c)
	if change != nil {
		change(c, token.Header)
	}
	signed, err := token.SignedString(crypto.Signer(pairs()[algorithm]))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func rand43() string { return NewClientID() + NewClientID() }

func asserting(assertion string, more ...string) TokenRequest {
	f := form("grant_type", "client_credentials", "client_assertion_type", assertionTypeJWT, "client_assertion", assertion)
	for i := 0; i < len(more); i += 2 {
		f.Set(more[i], more[i+1])
	}
	return TokenRequest{Form: f, Audiences: []string{here, "https://lake.example/api/catalog"}}
}

func granting(assertion string) TokenRequest {
	return TokenRequest{Form: form("grant_type", grantJWTBearer, "assertion", assertion), Audiences: []string{here}}
}

// Signatures are not JSON, whatever they begin with.
func TestAssertion_SignaturesThatLookLikeObjects(t *testing.T) {
	b := newBench(t)
	a, _ := b.account("etl", "etl")
	b.register(t, a, AlgorithmEdDSA)
	for {
		text := b.sign(t, a, AlgorithmEdDSA, nil)
		signature, err := base64.RawURLEncoding.DecodeString(text[strings.LastIndexByte(text, '.')+1:])
		if err != nil {
			t.Fatal(err)
		}
		if signature[0] != '{' {
			continue
		}
		if _, err := b.tokens.Issue(t.Context(), asserting(text)); err != nil {
			t.Error(err)
		}
		return
	}
}

// Each algorithm, as a client's assertion and as a grant; refreshed by the token alone; narrowed by scope; ended with the key.
func TestAssertion_SignsIn(t *testing.T) {
	b := newBench(t)
	for algorithm := range pairs() {
		a, secret := b.account(algorithm, "etl", "admin")
		key := b.register(t, a, algorithm)
		for name, r := range map[string]TokenRequest{
			"client": asserting(b.sign(t, a, algorithm, nil)), "grant": granting(b.sign(t, a, algorithm, nil)),
			"with client_id": asserting(b.sign(t, a, algorithm, nil), "client_id", a.ClientID),
			"its kid":        asserting(b.sign(t, a, algorithm, func(_ jwt.MapClaims, h map[string]any) { h["kid"] = key.ID })),
			"own kid":        asserting(b.sign(t, a, algorithm, func(_ jwt.MapClaims, h map[string]any) { h["kid"] = "../../etc/passwd' OR 1=1 --" })),
			"issuer":         asserting(b.sign(t, a, algorithm, func(c jwt.MapClaims, _ map[string]any) { c["aud"] = "https://lake.example/api/catalog/" })),
			"both":           asserting(b.sign(t, a, algorithm, func(c jwt.MapClaims, _ map[string]any) { c["aud"] = []string{here, "https://lake.example/api/catalog"} })),
			"stale bearer":   {Form: asserting(b.sign(t, a, algorithm, nil)).Form, Audiences: []string{here}, Authorization: "Bearer None"},
		} {
			answer, err := b.tokens.Issue(t.Context(), r)
			if err != nil {
				t.Errorf("%s %s: %v", algorithm, name, err)
				continue
			}
			p, err := b.tokens.Authenticate(t.Context(), "Bearer "+answer.AccessToken)
			if err != nil || p.ID != a.ID || p.SecretMark != KeyMark(key.ID) || answer.ExpiresIn != 3600 || answer.IssuedTokenType != tokenTypeAccess {
				t.Errorf("%s %s: %+v, %v", algorithm, name, p, err)
			}
		}
		narrow := b.issue(t, asserting(b.sign(t, a, algorithm, nil), "scope", "PRINCIPAL_ROLE:etl"))
		if narrow.Scope != "PRINCIPAL_ROLE:etl" {
			t.Errorf("%s: scope %q", algorithm, narrow.Scope)
		}
		refreshed := b.issue(t, TokenRequest{Form: exchangeForm(narrow.AccessToken), Authorization: "Bearer " + narrow.AccessToken})
		if p, err := b.tokens.Authenticate(t.Context(), "Bearer "+refreshed.AccessToken); err != nil || p.SecretMark != KeyMark(key.ID) {
			t.Errorf("%s: a refreshed token rests on %q, %v", algorithm, p.SecretMark, err)
		}
		// A token of the secret is none of the key, and the other way round.
		if p, _ := b.tokens.Authenticate(t.Context(), "Bearer "+b.login(t, a, secret, "").AccessToken); p.SecretMark != a.Secret.Mark() {
			t.Errorf("%s: %q", algorithm, p.SecretMark)
		}
		b.store.clients[a.ID] = nil
		_, err := b.tokens.Issue(t.Context(), TokenRequest{Form: exchangeForm(refreshed.AccessToken), Authorization: "Bearer " + refreshed.AccessToken})
		wantRefused(t, err, codeInvalidClient, 401)
	}
}

// An expired token is refreshed by its principal's assertion as by its secret.
func TestAssertion_RefreshesAnExpiredToken(t *testing.T) {
	b := newBench(t)
	a, _ := b.account("etl")
	b.register(t, a, AlgorithmES256)
	old := b.issue(t, asserting(b.sign(t, a, AlgorithmES256, nil)))
	b.now = b.now.Add(2 * time.Hour)
	r := asserting(b.sign(t, a, AlgorithmES256, nil))
	r.Form.Set("grant_type", grantTokenExchange)
	r.Form.Set("subject_token", old.AccessToken)
	b.issue(t, r)
}

// Each assertion counts once on all servers, whichever way it comes.
func TestAssertion_CountsOnce(t *testing.T) {
	b := newBench(t)
	a, _ := b.account("etl")
	b.register(t, a, AlgorithmEdDSA)
	second := b.server()
	text := b.sign(t, a, AlgorithmEdDSA, nil)
	b.issue(t, asserting(text))
	for _, at := range []*Tokens{b.tokens, second} {
		for _, r := range []TokenRequest{asserting(text), granting(text)} {
			_, err := at.Issue(t.Context(), r)
			wantRefused(t, err, codeInvalidClient, 401)
			if !strings.Contains(err.Error(), "used before") {
				t.Error(err)
			}
		}
	}
	// The same jti in other words is the same.
	jti := jwt.MapClaims{}
	_, _, _ = jwt.NewParser().ParseUnverified(text, jti)
	again := b.sign(t, a, AlgorithmEdDSA, func(c jwt.MapClaims, _ map[string]any) {
		c["jti"], c["exp"] = jti["jti"], b.now.Add(5*time.Minute).Unix()
	})
	_, err := b.tokens.Issue(t.Context(), asserting(again))
	wantRefused(t, err, codeInvalidClient, 401)
	// An outage while it is remembered is no refusal, and lets nobody in.
	b.store.problem = fault.New(fault.Busy, "away")
	if _, err := b.tokens.Issue(t.Context(), asserting(b.sign(t, a, AlgorithmEdDSA, nil))); !fault.Is(err, fault.Busy) {
		t.Error(err)
	}
}

// segment writes a part of a JWT as it is, doubled members and all.
func segment(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func TestAssertion_Hostile(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	victim, _ := b.account("root")
	ended, _ := b.account("ended")
	b.register(t, a, AlgorithmEdDSA)
	rsaKey := b.register(t, a, AlgorithmRS256)
	b.register(t, ended, AlgorithmEdDSA)
	b.store.clients[ended.ID][0].EndsAt = b.now
	b.register(t, victim, AlgorithmES256)
	access := b.login(t, a, secret, "").AccessToken
	with := func(change func(c jwt.MapClaims, h map[string]any)) string {
		return b.sign(t, a, AlgorithmEdDSA, change)
	}
	claim := func(name string, value any) string {
		return with(func(c jwt.MapClaims, _ map[string]any) { c[name] = value })
	}
	without := func(name string) string { return with(func(c jwt.MapClaims, _ map[string]any) { delete(c, name) }) }
	good := with(nil)
	parts := strings.Split(good, ".")
	claimsText, _ := base64.RawURLEncoding.DecodeString(parts[1])
	resigned := func(header, claims string) string {
		signed := segment(header) + "." + segment(claims)
		raw, err := jwt.SigningMethodEdDSA.Sign(signed, pairs()[AlgorithmEdDSA])
		if err != nil {
			t.Fatal(err)
		}
		return signed + "." + base64.RawURLEncoding.EncodeToString(raw)
	}
	hmacBy := func(key []byte) string {
		c := jwt.MapClaims{}
		_ = json.Unmarshal(claimsText, &c)
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	b.issue(t, asserting(resigned(`{"alg":"EdDSA","typ":"JWT"}`, string(claimsText)))) // the forger works
	turns := 0
	for name, text := range map[string]string{
		"alg none":            segment(`{"alg":"none"}`) + "." + parts[1] + ".",
		"alg none, signed":    segment(`{"alg":"none"}`) + "." + parts[1] + "." + parts[2],
		"HS256, public DER":   hmacBy(rsaKey.Public),
		"HS256, public PEM":   hmacBy([]byte(publicPEM(t, pairs()[AlgorithmRS256].Public()))),
		"HS256, own secret":   hmacBy([]byte(secret.Reveal())),
		"victim's name":       with(func(c jwt.MapClaims, _ map[string]any) { c["iss"], c["sub"] = victim.ClientID, victim.ClientID }),
		"victim as sub":       claim("sub", victim.ClientID),
		"victim as iss":       claim("iss", victim.ClientID),
		"nobody":              with(func(c jwt.MapClaims, _ map[string]any) { c["iss"], c["sub"] = "nobody", "nobody" }),
		"no iss":              without("iss"),
		"no sub":              without("sub"),
		"ended key":           b.sign(t, ended, AlgorithmEdDSA, nil),
		"another's key":       b.sign(t, victim, AlgorithmEdDSA, nil),
		"no aud":              without("aud"),
		"other aud":           claim("aud", "https://other.example/api/catalog/v1/oauth/tokens"),
		"aud of ours":         claim("aud", audience),
		"ours and others":     claim("aud", []string{here, "https://other.example"}),
		"empty aud":           claim("aud", []string{}),
		"aud a number":        claim("aud", 7),
		"no exp":              without("exp"),
		"expired":             claim("exp", b.now.Unix()),
		"exp far away":        claim("exp", b.now.Add(time.Hour).Unix()),
		"exp a text":          claim("exp", "tomorrow"),
		"exp huge":            claim("exp", 1e300),
		"future nbf":          claim("nbf", b.now.Add(2*time.Minute).Unix()),
		"future iat":          claim("iat", b.now.Add(2*time.Minute).Unix()),
		"no jti":              without("jti"),
		"jti a number":        claim("jti", 7),
		"long jti":            claim("jti", strings.Repeat("x", assertionIDBytesMax+1)),
		"wrong kid of ours":   with(func(_ jwt.MapClaims, h map[string]any) { h["kid"] = rsaKey.ID }),
		"crit":                with(func(_ jwt.MapClaims, h map[string]any) { h["crit"] = []string{"exp"} }),
		"an access token":     access,
		"typ of tokens":       with(func(_ jwt.MapClaims, h map[string]any) { h["typ"] = tokenType }),
		"doubled sub":         resigned(`{"alg":"EdDSA"}`, `{"sub":"`+victim.ClientID+`",`+string(claimsText[1:])),
		"doubled, other case": resigned(`{"alg":"EdDSA"}`, `{"SUB":"`+victim.ClientID+`",`+string(claimsText[1:])),
		"doubled alg":         resigned(`{"alg":"none","alg":"EdDSA"}`, string(claimsText)),
		"many members":        resigned(`{"alg":"EdDSA"}`, `{`+strings.Repeat(`"`+rand43()+`":1,`, 1)+manyMembers()+string(claimsText[1:])),
		"signature cut":       good[:len(good)-10],
		"signature missing":   parts[0] + "." + parts[1] + ".",
		"two parts":           parts[0] + "." + parts[1],
		"JWE":                 good + ".x.y",
		"1 MB":                parts[0] + "." + strings.Repeat("A", 1<<20) + "." + parts[2],
		"no JSON":             segment("{") + "." + parts[1] + "." + parts[2],
		"embedded key": with(func(_ jwt.MapClaims, h map[string]any) {
			h["jwk"] = jwkOf(pairs()[AlgorithmEdDSA].Public(), "", "")
			h["kid"] = rsaKey.ID
		}),
	} {
		b.now = b.now.Add(time.Millisecond) // nothing is throttled here
		b.tokens.throttle = newThrottle()
		// Both ways lead through the same checks; each refusal costs a hash.
		turns++
		r := asserting(text)
		if turns%2 == 0 {
			r = granting(text)
		}
		_, err := b.tokens.Issue(t.Context(), r)
		if err == nil {
			t.Errorf("%s: let in", name)
			continue
		}
		wantRefused(t, err, codeInvalidClient, 401)
		if len(text) > 60 && strings.Contains(err.Error(), text[30:60]) {
			t.Errorf("%s: repeated", name)
		}
	}
	for name, r := range map[string]struct {
		TokenRequest
		code string
	}{
		"other client_id":   {asserting(with(nil), "client_id", victim.ClientID), codeInvalidClient},
		"a secret too":      {asserting(with(nil), "client_secret", secret.Reveal()), codeInvalidRequest},
		"other type":        {asserting(with(nil), "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"), codeInvalidRequest},
		"no type":           {TokenRequest{Form: url.Values{"grant_type": {"client_credentials"}, "client_assertion": {with(nil)}}, Audiences: []string{here}}, codeInvalidRequest},
		"grant without":     {TokenRequest{Form: url.Values{"grant_type": {grantJWTBearer}}}, codeInvalidRequest},
		"server has no URL": {TokenRequest{Form: asserting(with(nil)).Form}, codeInvalidClient},
	} {
		if _, err := b.tokens.Issue(t.Context(), r.TokenRequest); err == nil || !strings.HasPrefix(err.Error(), r.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func manyMembers() string {
	var s strings.Builder
	for range assertionPartsMax {
		s.WriteString(`"` + rand43() + `":1,`)
	}
	return s.String()
}
