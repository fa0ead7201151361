package manage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"catalogd/api"
	"catalogd/api/manage"
	"catalogd/api/rest"
	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
	"catalogd/internal/outbox"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/internal/telemetry"
	"catalogd/maintenance"
	"catalogd/openapi"
	"catalogd/openapi/openapitest"
	"catalogd/store"
	"catalogd/vending"
	"catalogd/vending/local"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m, store.Migrate)) }

// office is a whole server over a real database: token route, catalog and management. Only files are in memory.
type office struct {
	t        *testing.T
	store    *store.Store
	url      string // of the database
	files    *catalogtest.Metadata
	service  *catalog.Service
	tokens   *auth.Tokens
	server   *httptest.Server
	root     catalog.Credential
	ring     *auth.Ring
	ringKey  string        // its text
	issuers  auth.Issuers  // nil: none
	stopping chan struct{} // ends the requests that wait
	// plainHooks lets webhooks be without TLS.
	plainHooks bool
	openAs     string        // whose requests without a token are; "": nobody's
	log        *bytes.Buffer // of the requests; whole when their answers have been read
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, url: pgtest.Database(t), files: catalogtest.NewMetadata()}
	var err error
	if o.store, err = store.Open(t.Context(), store.Config{URL: o.url}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.store.Close)
	o.ringKey = auth.NewRingKey()
	ring, err := auth.NewRing(o.ringKey)
	if err != nil {
		t.Fatal(err)
	}
	o.ring, o.stopping = ring, make(chan struct{})
	o.serve()
	made, err := o.service.Bootstrap(t.Context(), catalog.Bootstrap{Accounts: o.store})
	if err != nil {
		t.Fatal(err)
	}
	o.root = made.Credential
	return o
}

// branch is one more server over the same database, with the same secrets.key.
func (o *office) branch() *office {
	o.t.Helper()
	other := *o
	var err error
	if other.store, err = store.Open(o.t.Context(), store.Config{URL: o.url}); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(other.store.Close)
	other.serve()
	return &other
}

// serve wires everything over the store and listens.
func (o *office) serve() {
	o.t.Helper()
	ring := o.ring
	secrets := auth.NewSecrets(ring)
	keys := auth.NewKeys(o.store, ring, nil)
	o.tokens = auth.NewTokens(auth.TokensConfig{Accounts: o.store, Keys: keys, Secrets: secrets, ClientKeys: o.store,
		Issuers: o.issuers, Identity: o.store, Anonymous: o.openAs,
		Denials: func(ctx context.Context, d auth.LoginDenial) { o.service.RecordLoginDenial(ctx, d) }})
	o.log = &bytes.Buffer{}
	log := telemetry.NewLogger(o.log, slog.LevelInfo, "text")
	o.service = catalog.New(catalog.Config{
		Store: o.store, Admin: o.store, Metadata: o.files, Secrets: secrets, SigningKeyMaker: keys, Log: log,
		Webhooks:  catalog.WebhookConfig{Ring: ring, Sender: outbox.NewSender(true, nil), AllowPrivate: o.plainHooks},
		Providers: map[string]vending.Provider{"FILE": local.Provider{}, "S3": paperS3{}},
	})
	config := api.ServerConfig{
		Endpoints: append(rest.Endpoints(rest.Config{Service: o.service, Tokens: rest.IssueTokens(o.tokens, ""), Revocations: rest.RevokeTokens(o.tokens, o.service, ""), Keys: o.tokens}),
			manage.Endpoints(manage.Config{Service: o.service, Cursors: o.ring, Stopping: o.stopping, Maintenance: &maintenance.Operations{Store: o.store, Tables: o.service, Now: time.Now}})...),
		Metrics: telemetry.NewMetrics(prometheus.NewRegistry()), Authenticator: o.tokens, Audit: o.service, Log: log,
	}
	if o.openAs != "" {
		config.Anonymous = o.tokens.Anonymous
	}
	server, err := api.NewServer(config)
	if err != nil {
		o.t.Fatal(err)
	}
	o.server = httptest.NewServer(server)
	o.t.Cleanup(o.server.Close)
}

// paperS3 is an object store that nobody ever calls.
type paperS3 struct{ local.Provider }

func (paperS3) Validate(p vending.Profile) error {
	if p.RoleARN == "" {
		return fault.New(fault.BadRequest, "roleArn is missing")
	}
	return nil
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
}

// object gives the answer as JSON.
func (r reply) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		t.Fatalf("answer %d %q is not JSON: %v", r.status, r.body, err)
	}
	return v
}

// at walks into the answer's objects.
func (r reply) at(t *testing.T, path ...string) any {
	t.Helper()
	var v any = r.object(t)
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("no %v in %s", path, r.body)
		}
		v = object[name]
	}
	return v
}

func (o *office) send(method, path, token, contentType, body string) reply {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), method, o.server.URL+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(text)}
}

// person is somebody who is logged in.
type person struct {
	office *office
	token  string
}

func (o *office) tryLogin(c catalog.Credential, scope string) reply {
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {c.ClientID}, "client_secret": {c.Secret.Reveal()}, "scope": {scope},
	}
	return o.send(http.MethodPost, "/api/catalog/v1/oauth/tokens", "", "application/x-www-form-urlencoded", form.Encode())
}

func (o *office) login(c catalog.Credential, scope string) *person {
	o.t.Helper()
	r := o.tryLogin(c, scope)
	if r.status != http.StatusOK {
		o.t.Fatalf("login: %d %s", r.status, r.body)
	}
	token, _ := r.at(o.t, "access_token").(string)
	return &person{o, "Bearer " + token}
}

func (o *office) admin() *person { return o.login(o.root, "PRINCIPAL_ROLE:ALL") }

// call sends JSON to a management path.
func (p *person) call(method, path, body string) reply {
	p.office.t.Helper()
	r := p.office.send(method, "/api/management/v1"+path, p.token, "application/json", body)
	described, _, _ := strings.Cut(path, "?")
	if err := document().CheckAnswer(method, "/v1"+described, r.status, []byte(r.body)); err != nil {
		p.office.t.Errorf("openapi/management.yaml: %v: %s", err, r.body)
	}
	return r
}

// document is the API's own description; every answer of every test is held against it.
var document = sync.OnceValue(func() *openapitest.Document {
	d, err := openapitest.Load(openapi.ManagementFile)
	if err != nil {
		panic(err)
	}
	return d
})

// want calls and fails the test on another status.
func (p *person) want(status int, method, path, body string) reply {
	p.office.t.Helper()
	r := p.call(method, path, body)
	if r.status != status {
		p.office.t.Fatalf("%s %s: %d %s, want %d", method, path, r.status, r.body, status)
	}
	return r
}

// catalogCall sends JSON to a path of the catalog.
func (p *person) catalogCall(method, path, body string) reply {
	p.office.t.Helper()
	return p.office.send(method, "/api/catalog/v1"+path, p.token, "application/json", body)
}

// hire makes a principal with principal roles and gives its credential.
func (o *office) hire(name string, roles ...string) catalog.Credential {
	o.t.Helper()
	root := o.admin()
	r := root.want(201, http.MethodPost, "/principals", `{"principal":{"name":`+quote(name)+`}}`)
	for _, role := range roles {
		if root.call(http.MethodGet, "/principal-roles/"+role, "").status == 404 {
			root.want(201, http.MethodPost, "/principal-roles", `{"principalRole":{"name":`+quote(role)+`}}`)
		}
		root.want(201, http.MethodPut, "/principals/"+name+"/principal-roles", `{"principalRole":{"name":`+quote(role)+`}}`)
	}
	return credentialOf(o.t, r)
}

func credentialOf(t *testing.T, r reply) catalog.Credential {
	t.Helper()
	id, _ := r.at(t, "credentials", "clientId").(string)
	secret, _ := r.at(t, "credentials", "clientSecret").(string)
	return catalog.Credential{ClientID: id, Secret: auth.Secret(secret)}
}

func quote(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// open makes a file: warehouse.
func (o *office) open(name string) {
	o.t.Helper()
	o.admin().want(201, http.MethodPost, "/catalogs", fileCatalog(name, "file:///lakes/"+name))
}

func fileCatalog(name, location string) string {
	return `{"catalog":{"type":"INTERNAL","name":` + quote(name) + `,"properties":{"default-base-location":` + quote(location) +
		`},"storageConfigInfo":{"storageType":"FILE"}}}`
}

// let gives a principal role one privilege on the warehouse through a catalog role of the same name.
func (o *office) let(role, warehouse, privilege string) {
	o.t.Helper()
	root := o.admin()
	base := "/catalogs/" + warehouse + "/catalog-roles"
	if root.call(http.MethodGet, base+"/"+role, "").status == 404 {
		root.want(201, http.MethodPost, base, `{"catalogRole":{"name":`+quote(role)+`}}`)
	}
	root.want(201, http.MethodPut, "/principal-roles/"+role+"/catalog-roles/"+warehouse, `{"catalogRole":{"name":`+quote(role)+`}}`)
	root.want(201, http.MethodPut, base+"/"+role+"/grants", `{"grant":{"type":"catalog","privilege":`+quote(privilege)+`}}`)
}

// count asks the database.
func (o *office) count(sql string) int {
	o.t.Helper()
	connection, err := pgx.Connect(o.t.Context(), o.url)
	if err != nil {
		o.t.Fatal(err)
	}
	defer connection.Close(context.Background())
	var n int
	if err := connection.QueryRow(o.t.Context(), sql).Scan(&n); err != nil {
		o.t.Fatal(err)
	}
	return n
}
