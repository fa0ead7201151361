package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"catalogd/auth"
)

// signingKey gives the server's own key, as somebody would have it who has both the database and secrets.key: only so
// can a test show that a token is refused for its age and not for its signature.
func (b *badInput) signingKey() (kid string, private ed25519.PrivateKey) {
	b.t.Helper()
	kids, err := rowsOf[string](b.t.Context(), b.db, `SELECT kid FROM signing_keys`)
	if err != nil || len(kids) != 1 {
		b.t.Fatalf("signing keys: %v %v", kids, err)
	}
	sealed, err := rowsOf[[]byte](b.t.Context(), b.db, `SELECT private_key FROM signing_keys`)
	if err != nil {
		b.t.Fatal(err)
	}
	secret, err := os.ReadFile(filepath.Join(b.folder, "data", "secrets.key"))
	if err != nil {
		b.t.Fatal(err)
	}
	ring, err := auth.NewRing(strings.TrimSpace(string(secret)))
	if err != nil {
		b.t.Fatal(err)
	}
	seed, err := ring.Open(auth.Place{Table: "signing_keys", Row: kids[0]}, sealed[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return kids[0], ed25519.NewKeyFromSeed(seed)
}

// forger makes tokens like a good one, with some of it changed.
type forger struct {
	b      *badInput
	claims jwt.MapClaims // of a good token
	header object
	key    ed25519.PrivateKey
}

func (b *badInput) forger() forger {
	b.t.Helper()
	f := forger{b: b, claims: jwt.MapClaims{}, header: object{}}
	parts := strings.Split(b.rest.token, ".")
	for i, into := range []any{&f.header, &f.claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			b.t.Fatal(err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			b.t.Fatal(err)
		}
	}
	_, f.key = b.signingKey()
	// What is changed below is refused for the change only if the same token without it is good.
	if status, _, raw := b.send(b.t,
		badCall{method: "GET", path: "/dev/namespaces", header: bearer(f.sign(jwt.SigningMethodEdDSA, f.key, nil, nil))}); status != 200 {
		b.t.Fatalf("a token made with the server's own key was answered %d %s", status, raw)
	}
	return f
}

// sign signs the good token's claims and header with changes; nil takes a claim away.
func (f forger) sign(method jwt.SigningMethod, key any, claims, header object) string {
	f.b.t.Helper()
	all := jwt.MapClaims{}
	for name, value := range f.claims {
		all[name] = value
	}
	token := jwt.NewWithClaims(method, all)
	for name, value := range f.header {
		if name != "alg" {
			token.Header[name] = value
		}
	}
	for into, change := range map[string]object{"claims": claims, "header": header} {
		target := map[string]any(all)
		if into == "header" {
			target = token.Header
		}
		for name, value := range change {
			if target[name] = value; value == nil {
				delete(target, name)
			}
		}
	}
	text, err := token.SignedString(key)
	if err != nil {
		f.b.t.Fatal(err)
	}
	return text
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// badTokens: whatever a request carries as proof and is none. Each is tried with a request that reads and one that
// would write.
func (b *badInput) badTokens() []badCall {
	f := b.forger()
	own := func(claims object) http.Header { return bearer(f.sign(jwt.SigningMethodEdDSA, f.key, claims, nil)) }
	at := func(d time.Duration) float64 { return float64(time.Now().Add(d).Unix()) }
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	public := []byte(f.key.Public().(ed25519.PublicKey))
	parts := strings.Split(b.rest.token, ".")
	unsigned := f.sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, nil)
	swapped := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"x"}`))
	headers := map[string]http.Header{
		"none":                  {"Authorization": nil},
		"an empty header":       {"Authorization": {""}},
		"a bare word":           bearer("nonsense"),
		"Python's None":         bearer("None"),
		"a null":                bearer("null"),
		"no token":              {"Authorization": {"Bearer"}},
		"Basic with the secret": {"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(b.server.env["CATALOG_CREDENTIAL"]))}},
		"the credential itself": bearer(b.server.env["CATALOG_CREDENTIAL"]),
		"another scheme":        {"Authorization": {"Negotiate " + b.rest.token}},
		"two headers":           {"Authorization": {"Bearer " + b.rest.token, "Bearer " + b.rest.token}},
		"8 kB and one":          bearer(b.rest.token + strings.Repeat("A", 8<<10)),
		"50 kB":                 bearer(strings.Repeat("A", 50_000)),
		"a million dots":        bearer(strings.Repeat(".", 40_000)),
		"two parts":             bearer(parts[0] + "." + parts[1]),
		"four parts":            bearer(b.rest.token + ".x"),
		"no signature":          bearer(parts[0] + "." + parts[1] + "."),
		"a cut signature":       bearer(b.rest.token[:len(b.rest.token)-4]),
		"another's signature":   bearer(parts[0] + "." + swapped + "." + parts[2]),
		"padding":               bearer(b.rest.token + "="),

		"expired":               own(object{"exp": at(-time.Second), "iat": at(-time.Hour)}),
		"expired for years":     own(object{"exp": 1.0, "iat": 0.0}),
		"no expiry":             own(object{"exp": nil}),
		"an expiry as text":     own(object{"exp": "never"}),
		"not yet valid":         own(object{"nbf": at(time.Hour)}),
		"issued in the future":  own(object{"iat": at(time.Hour)}),
		"another issuer":        own(object{"iss": "https://elsewhere"}),
		"no issuer":             own(object{"iss": nil}),
		"another audience":      own(object{"aud": "elsewhere"}),
		"one more audience":     own(object{"aud": list{"catalogd", "elsewhere"}}),
		"no audience":           own(object{"aud": nil}),
		"no subject":            own(object{"sub": nil}),
		"a subject that is bad": own(object{"sub": "root"}),
		"nobody's subject":      own(object{"sub": "0198e7a0-0000-7000-8000-000000000000"}),

		"alg none":                 bearer(unsigned),
		"alg none in capitals":     bearer(withHeader(unsigned, `{"alg":"NONE","typ":"at+jwt","kid":"`+f.header["kid"].(string)+`"}`)),
		"alg none, its signature":  bearer(withHeader(b.rest.token, `{"alg":"none","typ":"at+jwt","kid":"`+f.header["kid"].(string)+`"}`)),
		"the public key as secret": bearer(f.sign(jwt.SigningMethodHS256, public, nil, nil)),
		"its text as secret":       bearer(f.sign(jwt.SigningMethodHS256, []byte(hex.EncodeToString(public)), nil, nil)),
		"an empty secret":          bearer(f.sign(jwt.SigningMethodHS256, []byte{}, nil, nil)),
		"a foreign key":            bearer(f.sign(jwt.SigningMethodEdDSA, foreign, nil, nil)),
		"a foreign key's id":       bearer(f.sign(jwt.SigningMethodEdDSA, foreign, nil, object{"kid": "0000"})),
		"no key id":                bearer(f.sign(jwt.SigningMethodEdDSA, f.key, nil, object{"kid": nil})),
		"a path as key id":         bearer(f.sign(jwt.SigningMethodEdDSA, f.key, nil, object{"kid": "../../secrets.key"})),
		"a key of its own": bearer(f.sign(jwt.SigningMethodEdDSA, foreign, nil, object{"kid": nil,
			"jwk": object{"kty": "OKP", "crv": "Ed25519",
				"x": base64.RawURLEncoding.EncodeToString(foreign.Public().(ed25519.PublicKey))}})),
		"a key from elsewhere": bearer(f.sign(jwt.SigningMethodEdDSA, foreign, nil,
			object{"kid": "x", "jku": "http://127.0.0.1:1/jwks.json"})),
		"another type": bearer(f.sign(jwt.SigningMethodEdDSA, f.key, nil, object{"typ": "JWT"})),
		"no type":      bearer(f.sign(jwt.SigningMethodEdDSA, f.key, nil, object{"typ": nil})),
	}
	var calls []badCall
	for what, header := range headers {
		for way, c := range map[string]badCall{
			"reading": {method: "GET", path: badTable}, "writing": {path: "/dev/namespaces", body: object{"namespace": list{"new"}}},
			"managing": {path: b.server.env["CATALOGD_MANAGEMENT_URI"] + "/principals", body: object{"principal": object{"name": "new"}}},
		} {
			c.name, c.header, c.status, c.typ, c.says = way+" with "+what, header, 401, "NotAuthorizedException",
				"token|not signed in|Authorization"
			calls = append(calls, c)
		}
	}
	return calls
}

// withHeader replaces a token's first part.
func withHeader(token, header string) string {
	_, rest, _ := strings.Cut(token, ".")
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + rest
}

// badLogins: requests to the token route. Its refusals are OAuth's.
func (b *badInput) badLogins() []badCall {
	f := b.forger()
	id, secret, _ := strings.Cut(b.server.env["CATALOG_CREDENTIAL"], ":")
	const exchange, access = "urn:ietf:params:oauth:grant-type:token-exchange", "urn:ietf:params:oauth:token-type:access_token"
	expired := f.sign(jwt.SigningMethodEdDSA, f.key, object{"exp": 1.0, "iat": 0.0}, nil)
	unsigned := f.sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, nil)
	form := func(pairs ...string) string {
		values := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			values.Add(pairs[i], pairs[i+1])
		}
		return values.Encode()
	}
	call := func(name string, status int, code string, body any, says string) badCall {
		return badCall{name: name, path: "/oauth/tokens", body: body, status: status, typ: code, says: says,
			header: http.Header{"Authorization": nil, "Content-Type": {"application/x-www-form-urlencoded"}}}
	}
	login := func(id, secret, scope string) string {
		return form("grant_type", "client_credentials", "client_id", id, "client_secret", secret, "scope", scope)
	}
	swap := func(token, kind string) string {
		return form("grant_type", exchange, "subject_token", token, "subject_token_type", kind)
	}
	json := call("JSON", 400, "invalid_request",
		object{"grant_type": "client_credentials", "client_id": id, "client_secret": secret}, "application/x-www-form-urlencoded")
	json.header = http.Header{"Authorization": nil, "Content-Type": {"application/json"}}
	broken := call("a content type that is none", 400, "invalid_request", login(id, secret, "catalog"), "application/x-www-form-urlencoded")
	broken.header = http.Header{"Authorization": nil, "Content-Type": {";;"}}
	return []badCall{
		json, broken,
		call("nothing", 400, "invalid_request", "", "grant_type"),
		call("no grant", 400, "invalid_request", form("client_id", id, "client_secret", secret), "grant_type"),
		call("a password", 400, "unsupported_grant_type", form("grant_type", "password", "username", id, "password", secret), "password"),
		call("an unknown grant with letters that are none", 400, "unsupported_grant_type", form("grant_type", "\x00\n\"<script>"),
			"is not supported"),
		call("a wrong secret", 401, "invalid_client", login(id, secret+"x", "catalog"), "client|token"),
		call("a secret cut short", 401, "invalid_client", login(id, secret[:len(secret)-1], "catalog"), "client|token"),
		call("an empty secret", 401, "invalid_client", login(id, "", "catalog"), "client|token"),
		call("no secret", 401, "invalid_client", form("grant_type", "client_credentials", "client_id", id), "client|token"),
		call("an unknown client", 401, "invalid_client", login("nobody", secret, "catalog"), "client|token"),
		call("U+0000 in the client", 401, "invalid_client", login(id+"\x00", secret, "catalog"), "client|token"),
		call("bytes that are no text", 401, "invalid_client", login(id+"\xff", secret, "catalog"), "client|token"),
		call("a broken escape", 401, "invalid_client", "grant_type=client_credentials&client_id="+id+"&client_secret=100%",
			"client_secret"),
		call("a field twice", 400, "invalid_request", login(id, secret, "catalog")+"&client_id=other", "client_id"),
		call("a hundred fields", 400, "invalid_request", login(id, secret, "catalog")+strings.Repeat("&", 1)+manyFields(100), "64 fields"),
		call("a role that is not held", 400, "invalid_scope", login(id, secret, "PRINCIPAL_ROLE:nobody"), "nobody"),
		call("100 kB", 413, "invalid_request", strings.Repeat("a", 100_000), "too long"),
		call("an exchange of nothing", 400, "invalid_request", form("grant_type", exchange), "subject_token"),
		call("an exchange of SAML", 400, "invalid_request", swap(b.rest.token, "urn:ietf:params:oauth:token-type:saml2"), "saml2"),
		call("an exchange of a word", 400, "invalid_grant", swap("nonsense", access), "client|token"),
		call("an exchange of an expired token alone", 401, "invalid_client", swap(expired, access), "expired"),
		call("an exchange of an unsigned token", 400, "invalid_grant", swap(unsigned, access), "client|token"),
		call("a refresh of nothing", 400, "invalid_request", form("grant_type", "refresh_token"), "refresh_token"),
		call("a refresh of a word", 400, "invalid_grant", form("grant_type", "refresh_token", "refresh_token", "nonsense", "client_id", id,
			"client_secret", secret), "client|token"),
	}
}

func manyFields(n int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = "f" + strings.Repeat("x", i) + "=1"
	}
	return strings.Join(fields, "&")
}

// badManagement: the management API takes the same care.
func (b *badInput) badManagement() []badCall {
	base := b.server.env["CATALOGD_MANAGEMENT_URI"]
	call := func(name, method, path string, body any, status int, typ, says string) badCall {
		return badCall{name: name, method: method, path: base + path, body: body, status: status, typ: typ, says: says}
	}
	bad := func(name, path string, body any, says string) badCall {
		return call(name, "POST", path, body, 400, "BadRequestException", says)
	}
	warehouse := func(location, kind string, storage object) object {
		info := object{"storageType": kind, "allowedLocations": list{location}}
		for key, value := range storage {
			info[key] = value
		}
		return object{"catalog": object{"type": "INTERNAL", "name": "new", "properties": object{"default-base-location": location},
			"storageConfigInfo": info}}
	}
	named := func(name string) object {
		body := warehouse(b.more+"/w", "FILE", nil)
		body["catalog"].(object)["name"] = name
		return body
	}
	return []badCall{
		bad("no JSON", "/catalogs", `{`, "JSON"),
		bad("no warehouse", "/catalogs", object{}, "catalog"),
		bad("a warehouse without storage", "/catalogs",
			object{"catalog": object{"name": "new", "properties": object{"default-base-location": b.more}}}, "storageConfigInfo"),
		bad("a storage that is not served", "/catalogs", warehouse(b.more+"/w", "GCS", nil), "GCS"),
		bad("a storage that nobody knows", "/catalogs", warehouse(b.more+"/w", "FLOPPY", nil), "FLOPPY"),
		bad("a warehouse at the root", "/catalogs", warehouse("file:///", "FILE", nil), "file:///"),
		bad("a warehouse with dots", "/catalogs", warehouse(b.more+"/../w", "FILE", nil), "location"),
		bad("a warehouse in another's", "/catalogs", warehouse(b.base+"/inner", "FILE", nil), "location"),
		bad("a warehouse around another", "/catalogs", warehouse("file://"+b.folder, "FILE", nil), "location"),
		bad("a warehouse outside its allowed locations", "/catalogs",
			object{"catalog": object{"name": "new", "properties": object{"default-base-location": b.more + "/w"},
				"storageConfigInfo": object{"storageType": "FILE", "allowedLocations": list{b.more + "/other"}}}}, "allowedLocations"),
		bad("an empty name", "/catalogs", named(""), "name"),
		bad("a name with a control character", "/catalogs", named("a\nb"), "name"),
		bad("a name of a megabyte less a bit", "/catalogs", named(strings.Repeat("n", 1_000_000)), "name"),
		bad("a name like an id", "/catalogs", named("0198e7a0-0000-7000-8000-000000000000"), "name"),
		call("a name of 2 MB", "POST", "/catalogs", named(strings.Repeat("n", 2*megabyte)), 413, "PayloadTooLargeException", "bytes"),
		call("a taken name", "POST", "/catalogs", func() object { body := named("dev"); return body }(), 409, "AlreadyExistsException",
			"dev"),
		call("a warehouse that is not there", "GET", "/catalogs/nowhere", nil, 404, "NoSuchWarehouseException", "nowhere"),
		bad("a principal without a name", "/principals", object{"principal": object{"name": ""}}, "name"),
		bad("a principal with a number as name", "/principals", object{"principal": object{"name": 5}}, "name"),
		call("a taken principal", "POST", "/principals",
			object{"principal": object{"name": "root"}}, 409, "AlreadyExistsException", "root"),
		bad("maintenance of an unknown kind", "/catalogs/dev/namespaces/ns/tables/t/maintenance/run", object{"job": "burn"}, "burn"),
		call("maintenance of no table", "POST", "/catalogs/dev/namespaces/ns/tables/none/maintenance/run",
			object{"job": "compaction"}, 404, "NoSuchTableException", "none"),
		call("an unknown setting", "PUT", "/catalogs/dev/namespaces/ns/tables/t/maintenance",
			object{"settings": object{"speed": "high"}}, 400, "BadRequestException", "speed"),
		call("a job that is none", "GET", "/maintenance/jobs/nonsense", nil, 400, "BadRequestException", "nonsense"),
		call("a job that is not there", "GET", "/maintenance/jobs/0198e7a0-0000-7000-8000-000000000000", nil, 404, "NotFoundException",
			"0198e7a0"),
	}
}
