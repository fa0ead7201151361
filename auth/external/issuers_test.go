package external

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"catalogd/auth"
	"catalogd/internal/fault"
	"catalogd/internal/oidctest"
)

// bench is one server with providers, and a clock that tests move.
type bench struct {
	t       *testing.T
	idp     *oidctest.Issuer
	issuers *Issuers
	now     time.Time
}

func newBench(t *testing.T, algorithm string, change func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, idp: oidctest.New(t, algorithm), now: time.Now()}
	c := Config{URL: b.idp.URL, Audiences: []string{"catalogd"}, GroupsClaim: "groups"}
	if change != nil {
		change(&c)
	}
	b.issuers = b.with(c)
	return b
}

func (b *bench) with(all ...Config) *Issuers {
	b.t.Helper()
	issuers, err := New(Settings{Issuers: all, Now: func() time.Time { return b.now }})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(issuers.Close)
	return issuers
}

func (b *bench) verify(token string) auth.Identity {
	b.t.Helper()
	identity, err := b.issuers.Verify(b.t.Context(), token)
	if err != nil {
		b.t.Fatal(err)
	}
	return identity
}

func (b *bench) refused(token string, kind fault.Kind, words ...string) {
	b.t.Helper()
	_, err := b.issuers.Verify(b.t.Context(), token)
	if !fault.Is(err, kind) {
		b.t.Fatalf("refused with %v, want %v", err, kind)
	}
	for _, word := range words {
		if !strings.Contains(fault.Message(err), word) {
			b.t.Errorf("the refusal %q does not have %q", fault.Message(err), word)
		}
	}
}

func TestVerify_TellsWhomATokenNames(t *testing.T) {
	for _, algorithm := range []string{"RS256", "PS256", "ES256", "EdDSA"} {
		b := newBench(t, algorithm, func(c *Config) { c.CreatePrincipals, c.NamePrefix = true, "kc:" })
		token := b.idp.Token("u-1", map[string]any{"preferred_username": "ann", "groups": []string{"analysts", "writers", "analysts"}, "jti": "t1"})
		got := b.verify(token)
		if got.Issuer != b.idp.URL || got.Subject != "u-1" || got.Name != "kc:ann" || !slices.Equal(got.Roles, []string{"analysts", "writers"}) ||
			got.TokenID != "t1" || !got.Create || got.ExpiresAt.Before(b.now.Add(50*time.Minute)) || got.IssuedAt.IsZero() {
			t.Errorf("%s: read %+v", algorithm, got)
		}
		if !b.issuers.Issues(token) || !b.issuers.Trusts(got.Issuer, got.Key) || b.issuers.Trusts(got.Issuer, "another") {
			t.Errorf("%s: the token's key is not trusted, or another is", algorithm)
		}
	}
}

func TestVerify_RefusesHostileTokens(t *testing.T) {
	b := newBench(t, "RS256", nil)
	other := oidctest.New(t, "RS256")
	foreign := other.Newest()
	small := func(more map[string]any) map[string]any { return b.idp.Claims("u-1", more) }
	good := b.idp.Token("u-1", nil)
	b.verify(good)
	many := make([]string, groupsMax+1)
	for i := range many {
		many[i] = fmt.Sprint("g", i)
	}
	for name, c := range map[string]struct {
		token string
		words string
	}{
		"another audience":       {b.idp.Token("u-1", map[string]any{"aud": "shop"}), "is for shop"},
		"no audience":            {b.idp.Token("u-1", map[string]any{"aud": nil}), "is for"},
		"another issuer's name":  {foreign.Sign(small(nil), nil), "not a good one"},
		"another issuer's kid":   {foreign.Sign(small(nil), map[string]any{"kid": b.idp.Newest().ID}), "not a good one"},
		"unsigned":               {oidctest.Unsigned(small(nil)), "not signed"},
		"the public key as HMAC": {b.idp.Newest().SignHMAC(small(nil)), "not signed"},
		"expired":                {b.idp.Token("u-1", map[string]any{"exp": b.now.Add(-time.Minute).Unix()}), "has expired"},
		"no end":                 {b.idp.Token("u-1", map[string]any{"exp": nil}), "has expired"},
		"not yet":                {b.idp.Token("u-1", map[string]any{"nbf": b.now.Add(time.Hour).Unix()}), "not a good one"},
		"made in the future":     {b.idp.Token("u-1", map[string]any{"iat": b.now.Add(time.Hour).Unix()}), "not valid yet"},
		"no subject":             {b.idp.Token("", map[string]any{"sub": nil}), "no subject"},
		"a long subject":         {b.idp.Token(strings.Repeat("x", 300), nil), "subject"},
		"a subject with a line":  {b.idp.Token("a\nb", nil), "subject"},
		"a number as subject":    {b.idp.Token("", map[string]any{"sub": 7}), "not a good one"},
		"control characters":     {b.idp.Token("u-1", map[string]any{"preferred_username": "ann\x00\x1b[2J"}), "cannot be shown"},
		"hidden characters":      {b.idp.Token("u-1", map[string]any{"preferred_username": "ann\u202e"}), "cannot be shown"},
		"a blank behind":         {b.idp.Token("u-1", map[string]any{"preferred_username": "ann "}), "blank"},
		"a reserved name":        {b.idp.Token("u-1", map[string]any{"preferred_username": "System:maintenance"}), "reserved"},
		"an empty name":          {b.idp.Token("u-1", map[string]any{"preferred_username": ""}), "empty"},
		"a name that is a list":  {b.idp.Token("u-1", map[string]any{"preferred_username": []string{"ann"}}), "no text"},
		"a long name":            {b.idp.Token("u-1", map[string]any{"preferred_username": strings.Repeat("x", 300)}), "name"},
		"groups of numbers":      {b.idp.Token("u-1", map[string]any{"groups": []int{1}}), "groups"},
		"too many groups":        {b.idp.Token("u-1", map[string]any{"groups": many}), "at most"},
		"more roles than count":  {b.idp.Token("u-1", map[string]any{"groups": many[:rolesMax+1]}), "more than"},
		"another claim set":      {oidctest.Tampered(good, small(map[string]any{"sub": "u-2"})), "not a good one"},
		"another purpose":        {b.idp.Newest().Sign(small(nil), map[string]any{"typ": "logout+jwt"}), "logout+jwt"},
		"critical extensions":    {b.idp.Newest().Sign(small(nil), map[string]any{"crit": []string{"x"}, "x": 1}), ""},
		"a key of its own":       {foreign.Sign(small(nil), map[string]any{"kid": b.idp.Newest().ID, "jku": other.URL + oidctest.KeysPath}), "not a good one"},
		"no signature":           {good[:strings.LastIndex(good, ".")+1], ""},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.refused(c.token, fault.Unauthenticated, c.words)
		})
	}
	b.t = t
	for _, token := range []string{"", "x", "a.b", "a.b.c", "..", strings.Repeat("x", 1<<20), other.Token("u-1", nil),
		b.idp.Token("u-1", map[string]any{"padding": strings.Repeat("x", 1<<20)}), b.idp.Token("u-1", map[string]any{"iss": b.idp.URL + "/"})} {
		if b.issuers.Issues(token) {
			t.Errorf("a token of %d bytes is said to be an issuer's", len(token))
		}
		b.refused(token, fault.Unauthenticated)
	}
	if hits := other.Hits(oidctest.KeysPath); hits != 0 {
		t.Errorf("a token made the server read another's keys %d times", hits)
	}
}

func TestRoles_OfGroups(t *testing.T) {
	rules := []Rule{{Group: "/dept/data", Role: "engineers"}, {Pattern: `iceberg-(\w+)`, Role: "$1"}, {Pattern: `iceberg-.*`, Role: "all"}}
	claims := func(text string) (c map[string]json.RawMessage) {
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, c := range []struct {
		claim, claims string
		rules         []Rule
		want          string
	}{
		{"realm_access.roles", `{"realm_access":{"roles":["a","b"]}}`, nil, "a b"},
		{"https://example.com/roles", `{"https://example.com/roles":["a"]}`, nil, "a"},
		{"kubernetes.io.serviceaccount.name", `{"kubernetes.io":{"serviceaccount":{"name":"spark"}}}`, nil, "spark"},
		{"resource_access.catalogd.roles", `{"resource_access":{"other":{"roles":["x"]}}}`, nil, ""},
		{"groups", `{"groups":["/dept/data","iceberg-readers","xiceberg-readers","other"]}`, rules, "engineers readers all"},
		{"groups", `{"groups":[]}`, rules, ""},
		{"groups", `{"groups":"iceberg-x"}`, rules, "x all"},
		{"groups", `{}`, nil, ""},
		{"", `{"groups":["a"]}`, nil, ""},
		{"groups", `{"groups":["` + strings.Repeat("x", 300) + `","a","a",""]}`, nil, "a"},
	} {
		k, err := compile(Config{URL: "https://idp", Audiences: []string{"a"}, GroupsClaim: c.claim, Rules: c.rules})
		if err != nil {
			t.Fatal(err)
		}
		roles, err := k.rolesOf(claims(c.claims))
		if err != nil || strings.Join(roles, " ") != c.want {
			t.Errorf("%s of %s: %v, %v; want %s", c.claim, c.claims, roles, err, c.want)
		}
	}
	k, err := compile(Config{URL: "https://idp", Audiences: []string{"a"}, GroupsClaim: "groups", Rules: rules, RefuseUnknownGroups: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.rolesOf(claims(`{"groups":["iceberg-x","other"]}`)); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("an unknown group: %v", err)
	}
}

// A Kubernetes service account's token names no user; its subject does.
func TestVerify_KubernetesServiceAccounts(t *testing.T) {
	b := newBench(t, "RS256", func(c *Config) {
		c.NamePrefix, c.GroupsClaim, c.Rules = "k8s:", "kubernetes.io.namespace", []Rule{{Pattern: "team-(.+)", Role: "$1"}}
	})
	got := b.verify(b.idp.Token("system:serviceaccount:team-etl:spark", map[string]any{
		"aud": []string{"https://kubernetes.default.svc", "catalogd"},
		"kubernetes.io": map[string]any{"namespace": "team-etl", "serviceaccount": map[string]any{"name": "spark", "uid": "0b1c"},
			"pod": map[string]any{"name": "spark-driver"}},
	}))
	if got.Name != "k8s:system:serviceaccount:team-etl:spark" || !slices.Equal(got.Roles, []string{"etl"}) {
		t.Errorf("read %+v", got)
	}
}

func TestNew_RefusesWhatIsNotSafe(t *testing.T) {
	for wrong, c := range map[string]Config{
		"must be https":      {URL: "http://idp.example.com", Audiences: []string{"a"}},
		"no URL":             {URL: "idp", Audiences: []string{"a"}},
		"audiences is empty": {URL: "https://idp"},
		"not allowed":        {URL: "https://idp", Audiences: []string{"a"}, Algorithms: []string{"HS256"}},
		`"none"`:             {URL: "https://idp", Audiences: []string{"a"}, Algorithms: []string{"none"}},
		"both given":         {URL: "https://idp", Audiences: []string{"a"}, KeySet: []byte("{}"), KeysURL: "https://idp/keys"},
		"jwks_url":           {URL: "https://idp", Audiences: []string{"a"}, KeysURL: "http://elsewhere/keys"},
		"no groups_claim":    {URL: "https://idp", Audiences: []string{"a"}, Rules: []Rule{{Group: "g", Role: "r"}}},
		"either group":       {URL: "https://idp", Audiences: []string{"a"}, GroupsClaim: "g", Rules: []Rule{{Role: "r"}}},
		"names no role":      {URL: "https://idp", Audiences: []string{"a"}, GroupsClaim: "g", Rules: []Rule{{Group: "g"}}},
		"regular expression": {URL: "https://idp", Audiences: []string{"a"}, GroupsClaim: "g", Rules: []Rule{{Pattern: "(", Role: "r"}}},
		"a pattern is":       {URL: "https://idp", Audiences: []string{"a"}, GroupsClaim: "g", Rules: []Rule{{Pattern: strings.Repeat("x", 300), Role: "r"}}},
		"certificate":        {URL: "https://idp", Audiences: []string{"a"}, CA: []byte("x")},
		"Web Key Set":        {URL: "https://idp", Audiences: []string{"a"}, KeySet: []byte("{}")},
		"none of 1 keys":     {URL: "https://idp", Audiences: []string{"a"}, KeySet: []byte(`{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`)},
	} {
		if _, err := New(Settings{Issuers: []Config{c}}); !fault.Is(err, fault.IllegalArgument) || !strings.Contains(fault.Message(err), wrong) {
			t.Errorf("%+v: %v, want %s", c, err, wrong)
		}
	}
	rules := []Rule{{Group: "g", Role: "r"}}
	one, two := Config{URL: "https://one", Audiences: []string{"a"}, GroupsClaim: "g", Rules: rules}, Config{URL: "https://two", Audiences: []string{"a"}, GroupsClaim: "g"}
	for _, pair := range [][]Config{{one, two}, {two, one}} {
		if _, err := New(Settings{Issuers: pair}); !fault.Is(err, fault.IllegalArgument) || !strings.Contains(fault.Message(err), "https://two: roles is missing") {
			t.Errorf("a second issuer whose groups are roles by their names alone: %v", err)
		}
	}
	two.Rules = rules
	if _, err := New(Settings{Issuers: []Config{one, two, {URL: "https://three", Audiences: []string{"a"}}}}); err != nil {
		t.Errorf("each with its own rules: %v", err)
	}
	twice := Config{URL: "https://idp", Audiences: []string{"a"}}
	if _, err := New(Settings{Issuers: []Config{twice, twice}}); !fault.Is(err, fault.IllegalArgument) {
		t.Errorf("one issuer twice: %v", err)
	}
}

// A provider that is down, or whose address is wrong, is told with the address and what was found there; nothing else stops.
func TestField_C149_WhatIsAnIssuersAddress(t *testing.T) {
	b := newBench(t, "ES256", nil)
	token := b.idp.Token("u-1", nil)
	discovery := func(fn http.HandlerFunc) { b.idp.Answer(oidctest.DiscoveryPath, fn) }
	document := func(issuer, keys string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": issuer, "jwks_uri": keys})
		}
	}
	elsewhere := oidctest.New(t, "ES256")
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		words  []string
	}{
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<!DOCTYPE html>\n<title>Sign in</title>\x1b")
		}, []string{"text/html", "<!DOCTYPE html> <title>Sign in</title>?"}},
		"an error as JSON": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			fmt.Fprint(w, `{"error":"Realm does not exist"}`)
		}, []string{"404", "Realm does not exist"}},
		"a slash at the end": {document(b.idp.URL+"/", b.idp.URL+oidctest.KeysPath), []string{"differ in the slash", b.idp.URL + "/"}},
		"another issuer":     {document("https://other", b.idp.URL+oidctest.KeysPath), []string{"https://other"}},
		"no issuer":          {document("", ""), []string{"without an issuer"}},
		"keys in the clear":  {document(b.idp.URL, "http://keys.example.com/"), []string{"jwks_uri", "https"}},
		"no keys there":      {document(b.idp.URL, b.idp.URL+"/nowhere"), []string{"/nowhere answers 404"}},
		"too much": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, fetchBytesMax+1))
		}, []string{"answers more than"}},
		"another server": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+oidctest.DiscoveryPath, http.StatusFound)
		}, []string{"redirects to another server"}},
		"a circle": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, oidctest.DiscoveryPath, http.StatusFound)
		}, []string{"again and again"}},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		}, []string{"ended early"}},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			b.now = b.now.Add(refetchPauseMin)
			discovery(c.answer)
			b.refused(token, fault.Busy, append(c.words, b.idp.URL)...)
			state := b.issuers.States()[0]
			if state.Ready || !strings.Contains(state.Problem, c.words[0]) {
				t.Errorf("the state is %+v", state)
			}
		})
	}
	b.t = t
	if elsewhere.Hits(oidctest.DiscoveryPath) != 0 {
		t.Error("a redirect to another server was followed")
	}
	discovery(nil)
	b.issuers.Read(t.Context())
	b.verify(token)
	if state := b.issuers.States()[0]; !state.Ready || state.Problem != "" || state.Keys != 1 {
		t.Errorf("the state is %+v", state)
	}
}

// Keys that rotate are found at once, and forged ids of keys cost the provider one question a minute.
func TestField_C150_KeysRotate(t *testing.T) {
	b := newBench(t, "ES256", nil)
	first := b.idp.Newest()
	old := b.idp.Token("u-1", nil)
	b.verify(old)
	asked := func(want int) {
		t.Helper()
		if got := b.idp.Hits(oidctest.KeysPath); got != want {
			t.Fatalf("the keys were read %d times, want %d", got, want)
		}
	}
	asked(1)
	forged := func(n int) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				token := first.Sign(b.idp.Claims("u-1", nil), map[string]any{"kid": fmt.Sprint("forged-", i)})
				if _, err := b.issuers.Verify(t.Context(), token); !fault.Is(err, fault.Unauthenticated) && !fault.Is(err, fault.Busy) {
					t.Errorf("a forged token: %v", err)
				}
			})
		}
		all.Wait()
	}
	forged(200)
	asked(1)
	b.now = b.now.Add(refetchPauseMin)
	forged(200)
	asked(2)

	second := b.idp.AddKey("ES256")
	b.now = b.now.Add(refetchPauseMin)
	b.verify(b.idp.Token("u-1", nil)) // the new key, at once
	asked(3)
	b.verify(old) // and the old one beside it
	b.idp.Withdraw(first)
	b.verify(old)
	b.issuers.Read(t.Context())
	b.refused(old, fault.Unauthenticated, "does not have")
	if identity := b.verify(b.idp.Token("u-2", nil)); !b.issuers.Trusts(b.idp.URL, identity.Key) {
		t.Error("the new key is not trusted")
	}

	// A provider that is away keeps nobody out whose key is known.
	b.idp.Answer(oidctest.KeysPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	b.now = b.now.Add(refetchPauseMin)
	third := b.idp.AddKey("ES256")
	b.refused(third.Sign(b.idp.Claims("u-1", nil), nil), fault.Busy, "500")
	b.verify(second.Sign(b.idp.Claims("u-1", nil), nil))
	if state := b.issuers.States()[0]; !state.Ready || state.Problem == "" {
		t.Errorf("the state is %+v", state)
	}
}

// Requests that need a slow provider's keys wait for one question together, and not more of them than a few.
func TestKeys_ASlowProviderHoldsFewRequests(t *testing.T) {
	b := newBench(t, "ES256", nil)
	reached, release := make(chan struct{}), make(chan struct{})
	b.idp.Answer(oidctest.KeysPath, func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-release
		_, _ = w.Write(b.idp.KeySet())
	})
	token := b.idp.Token("u-1", nil)
	answers := make(chan error, 100)
	ask := func() {
		_, err := b.issuers.Verify(t.Context(), token)
		answers <- err
	}
	go ask()
	<-reached
	for range cap(answers) - 1 {
		go ask()
	}
	for range cap(answers) - waitersMax {
		if err := <-answers; !fault.Is(err, fault.Busy) {
			t.Errorf("a request beyond those that wait: %v", err)
		}
	}
	close(release)
	for range waitersMax {
		if err := <-answers; err != nil {
			t.Errorf("a request that waited: %v", err)
		}
	}
	if hits := b.idp.Hits(oidctest.KeysPath); hits != 1 {
		t.Errorf("the keys were read %d times", hits)
	}
}

func TestKeys_GivenOnesAreNeverRead(t *testing.T) {
	b := newBench(t, "ES256", nil)
	issuers := b.with(Config{URL: b.idp.URL, Audiences: []string{"catalogd"}, KeySet: b.idp.KeySet()})
	issuers.Start()
	if _, err := issuers.Verify(t.Context(), b.idp.Token("u-1", nil)); err != nil {
		t.Fatal(err)
	}
	b.idp.AddKey("ES256")
	if _, err := issuers.Verify(t.Context(), b.idp.Token("u-1", nil)); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("a key that was not given: %v", err)
	}
	if b.idp.Hits(oidctest.KeysPath)+b.idp.Hits(oidctest.DiscoveryPath) != 0 {
		t.Error("the provider was asked")
	}
}

// The loop asks again by itself until the provider is there; it asks at growing distances.
func TestStart_AsksAgain(t *testing.T) {
	b := newBench(t, "ES256", nil)
	token := b.idp.Token("u-1", nil)
	came := make(chan struct{}, 100)
	b.idp.Answer(oidctest.DiscoveryPath, func(w http.ResponseWriter, _ *http.Request) {
		came <- struct{}{}
		w.WriteHeader(503)
	})
	b.issuers.Start()
	<-came
	b.idp.Answer(oidctest.DiscoveryPath, nil)
	read := make(chan struct{})
	b.idp.Answer(oidctest.KeysPath, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(b.idp.KeySet())
		close(read)
	})
	<-read
	b.now = b.now.Add(-time.Second) // within the minute: this one asks nobody
	b.verify(token)
	k := b.issuers.order[0].keys
	for failures, want := range map[int]time.Duration{0: keysAgeMax, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 7: time.Minute, 100: time.Minute} {
		if got := k.pause(failures); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
}

func TestParseKeys_LeavesOutWhatIsNotForSignatures(t *testing.T) {
	b := newBench(t, "ES256", nil)
	var set struct{ Keys []json.RawMessage }
	if err := json.Unmarshal(b.idp.KeySet(), &set); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{`{"kty":"new","kid":"x"}`, `{"kty":"oct","k":"c2VjcmV0","kid":"y"}`, `7`,
		`{"kty":"RSA","n":"AQAB","e":"AQAB","kid":"weak"}`} {
		set.Keys = append(set.Keys, json.RawMessage(more))
	}
	document, _ := json.Marshal(map[string]any{"keys": set.Keys})
	keys, err := parseKeys(document)
	if err != nil || len(keys) != 1 || keys[0].KeyID != "key-1" {
		t.Errorf("read %v, %v", keys, err)
	}
	crowd := slices.Repeat(set.Keys[:1], keysMax+1)
	document, _ = json.Marshal(map[string]any{"keys": crowd})
	if _, err := parseKeys(document); err == nil {
		t.Error("a crowd of keys was read")
	}
}
