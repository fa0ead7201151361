package rest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/internal/fault"
	"catalogd/internal/telemetry"
	"catalogd/openapi"
	"catalogd/openapi/openapitest"
)

// names lets everybody in under the name that the token is: "Bearer ann" is ann.
type names struct{}

func (names) Authenticate(_ context.Context, authorization string) (auth.Principal, error) {
	name, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return auth.Principal{}, fault.New(fault.Unauthenticated, "the token is not valid")
	}
	return auth.Principal{ID: idOf(name), Name: name, Kind: auth.Service, Roles: auth.RoleScope{All: true}}, nil
}

// idOf gives the id of a test's principal.
func idOf(name string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(name)) }

// noKeys is an empty key set.
type noKeys struct{}

func (noKeys) JWKS(context.Context) (auth.JWKS, error) { return auth.JWKS{Keys: []auth.JWK{}}, nil }

// door is the whole HTTP side over a real listener: names go over the wire as a client writes them.
type door struct {
	server *httptest.Server
	bearer string
	log    *bytes.Buffer // to be read when the server is closed: a line is written after its answer
}

func newDoor(t *testing.T, c Config) *door {
	t.Helper()
	if c.Revocations == nil {
		c.Revocations = func(http.ResponseWriter, *http.Request) error { return fault.New(fault.Unsupported, "no tokens here") }
	}
	if c.Tokens == nil {
		c.Tokens = func(http.ResponseWriter, *http.Request) error { return fault.New(fault.Unsupported, "no tokens here") }
	}
	if c.Keys == nil {
		c.Keys = noKeys{}
	}
	log := &bytes.Buffer{}
	server, err := api.NewServer(api.ServerConfig{
		Endpoints: Endpoints(c), Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Authenticator: names{},
		Log:           slog.New(slog.NewJSONHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &door{server: httptest.NewServer(server), bearer: "ann", log: log}
	t.Cleanup(d.server.Close)
	return d
}

// as gives the same door for another caller; "" for a stranger.
func (d *door) as(name string) *door { return &door{server: d.server, bearer: name, log: d.log} }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) json() (v map[string]any) {
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.UseNumber()
	if decoder.Decode(&v) != nil {
		return nil
	}
	return v
}

// unpacked gives the answer without its compression.
func (a answer) unpacked(t *testing.T) answer {
	t.Helper()
	if a.header.Get("Content-Encoding") != "gzip" {
		return a
	}
	reader, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	a.body = string(text)
	return a
}

func (a answer) errorType() string {
	e, _ := a.json()["error"].(map[string]any)
	name, _ := e["type"].(string)
	return name
}

func (a answer) errorCode() int {
	e, _ := a.json()["error"].(map[string]any)
	code, _ := e["code"].(json.Number)
	n, _ := code.Int64()
	return int(n)
}

// send sends a request whose path and query go out byte by byte as given.
func (d *door) send(t *testing.T, method, target, body string, headers ...string) answer {
	t.Helper()
	r, err := http.NewRequest(method, d.server.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(target, "?")
	r.URL.Opaque = path
	r.URL.RawQuery = query
	if d.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+d.bearer)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := d.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(text)}
	checkDocumented(t, method, path, a.unpacked(t))
	return a
}

// pinned is the specification's document.
var pinned = sync.OnceValues(func() (*openapitest.Document, error) { return openapitest.Load(openapi.IcebergFile) })

// checkDocumented holds every answer of every test against the document: successes must be described for their route,
// errors must have the error model's shape.
func checkDocumented(t *testing.T, method, path string, a answer) {
	t.Helper()
	document, err := pinned()
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.Index(path, "/v1/"); i > 0 {
		path = path[i:]
	}
	path = strings.TrimSuffix(path, "/")
	isError := a.status >= 400
	switch {
	case isError && method == http.MethodHead:
		if a.body != "" {
			t.Errorf("HEAD %s: %d has a body", path, a.status)
		}
		return
	case isError && strings.HasSuffix(path, "/oauth/tokens"):
	case isError:
		err = document.CheckAnswer("GET", "/v1/any/namespaces", 400, []byte(a.body))
	default:
		err = document.CheckAnswer(method, path, a.status, []byte(a.body))
	}
	if err != nil && !errors.Is(err, openapitest.ErrUndescribed) {
		t.Errorf("%s %s: %v", method, path, err)
	}
	if a.status == http.StatusCreated {
		t.Errorf("%s %s: 201 is an error to Java", method, path)
	}
}
