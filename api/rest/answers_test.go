package rest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// The metadata's text goes out as it is: 19-digit ids, unknown members, zeros and empty lists.
func TestTrap08_MetadataIsNotEncodedAgain(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	created := d.mustCreateTable(t, "a", "t")
	metadata := created.json()["metadata"].(map[string]any)
	location := metadata["location"].(string)
	const id = "9223372036854775801"
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	d.expect(t, "POST", namespacesOfLake+"/a/tables/t", `{"requirements":[],"updates":[`+
		`{"action":"add-snapshot","snapshot":{"snapshot-id":`+id+`,"sequence-number":1,"timestamp-ms":`+now+`,`+
		`"manifest-list":"`+location+`/metadata/snap.avro","summary":{"operation":"append"},"schema-id":0,"key-id":"k1"}},`+
		`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":`+id+`},`+
		`{"action":"set-properties","updates":{"q":"a=<&>"}}]}`, 200, "")
	for _, query := range []string{"", "?snapshots=all", "?snapshots=refs"} {
		a := d.expect(t, "GET", namespacesOfLake+"/a/tables/t"+query, "", 200, "")
		for _, want := range []string{
			`"snapshot-id":` + id, `"current-snapshot-id":` + id, `"key-id":"k1"`, `"q":"a=<&>"`, `"schema-id":0`, `"storage-credentials":[]`,
		} {
			if !strings.Contains(strings.ReplaceAll(a.body, `": `, `":`), want) {
				t.Errorf("%s: %s is not in the answer: %s", query, want, a.body)
			}
		}
		if strings.Contains(a.body, ":null") {
			t.Errorf("%s: null in the answer: %s", query, a.body)
		}
	}
	pointer := d.send(t, "GET", namespacesOfLake+"/a/tables/t", "").json()["metadata-location"].(string)
	stored, err := l.files.ReadMetadata(t.Context(), vending.FilePlace{Scope: vending.Scope{Location: location}, Path: pointer})
	if err != nil {
		t.Fatal(err)
	}
	if a := d.send(t, "GET", namespacesOfLake+"/a/tables/t", ""); !strings.Contains(a.body, `"metadata":`+string(stored)+`,"config"`) {
		t.Errorf("the answer does not hold the file's text as it is")
	}
}

func TestTrap43_BigAnswersAreCompressed(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	d.expect(t, "POST", namespacesOfLake+"/a/tables/t", `{"requirements":[],"updates":[{"action":"set-properties","updates":{"comment":"`+
		strings.Repeat("long ", 4000)+`"}}]}`, 200, "")
	const at = namespacesOfLake + "/a/tables/t"
	a := d.send(t, "GET", at, "", "Accept-Encoding", "gzip")
	if a.header.Get("Content-Encoding") != "gzip" || len(a.body) > 4000 || !strings.Contains(a.unpacked(t).body, "long long") {
		t.Errorf("%d bytes, headers %v", len(a.body), a.header)
	}

	// Packed and plain are two texts of one meaning, so their tag is a weak one, and it holds for both.
	plain := d.send(t, "GET", at, "", "Accept-Encoding", "identity")
	tag := a.header.Get("ETag")
	if plain.header.Get("Content-Encoding") != "" || plain.body != a.unpacked(t).body || plain.header.Get("ETag") != tag || !strings.HasPrefix(tag, "W/") {
		t.Errorf("packed %v, plain %v", a.header, plain.header)
	}
	for _, accept := range []string{"gzip", "identity"} {
		if same := d.send(t, "GET", at, "", "Accept-Encoding", accept, "If-None-Match", tag); same.status != 304 || same.header.Get("ETag") != tag {
			t.Errorf("%s: %d, headers %v", accept, same.status, same.header)
		}
	}
}

const setProperty = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`

// A commit that was refused after its file was written takes the file with it; no answer asks to send it again.
func TestTrap01_RefusedCommitsLeaveNothing(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		kind   string
	}{
		{fault.New(fault.NoSuchTable, "Table does not exist: a.t"), 404, "NoSuchTableException"},
		{fault.New(fault.VersionConflict, "the lease is gone"), 409, "CommitFailedException"},
		{fault.New(fault.Internal, "disk"), 500, "InternalServerError"},
	} {
		l := newLake(t)
		l.mustCreateNamespace(t, "a")
		l.mustCreateTable(t, "a", "t")
		events, files := l.traces()
		l.store.Inject(catalogtest.FailMethod("CommitPointers", c.err))
		a := l.expect(t, "POST", namespacesOfLake+"/a/tables/t", setProperty, c.status, c.kind)
		if a.header.Get("Retry-After") != "" {
			t.Errorf("%v: a client would send the commit again", c.err)
		}
		if eventsNow, filesNow := l.traces(); eventsNow != events || filesNow != files {
			t.Errorf("%v: left %d events and %d files", c.err, eventsNow-events, filesNow-files)
		}
	}
}

// The database's answer to a commit is lost. Whether it had landed or not, the client gets 200 and it is there once.
func TestTrap02_LostAnswersAreSettled(t *testing.T) {
	for _, landed := range []bool{true, false} {
		l := newLake(t)
		l.mustCreateNamespace(t, "a")
		l.mustCreateTable(t, "a", "t")
		_, files := l.traces()
		l.store.Inject(catalogtest.LoseAnswer("CommitPointers", 1, landed))
		l.expect(t, "POST", namespacesOfLake+"/a/tables/t", setProperty, 200, "")
		a := l.expect(t, "GET", namespacesOfLake+"/a/tables/t", "", 200, "")
		if !strings.Contains(a.body, `"k":"v"`) {
			t.Errorf("landed %v: the commit is not there: %s", landed, a.body)
		}
		commits := 0
		for _, e := range l.store.Events() {
			if e.Operation == "commit-table" {
				commits++
			}
		}
		if _, filesNow := l.traces(); commits != 1 || filesNow != files+1 {
			t.Errorf("landed %v: %d commits and %d files", landed, commits, filesNow-files)
		}
	}
}

// Every call to the store fails once, on every route: the answer is an error of the right shape or a success, and a
// mutation that was not acknowledged has left nothing.
func TestFaults_EveryCallOfEveryRoute(t *testing.T) {
	for _, e := range (&handlers{}).served() {
		if e.Access == api.Public {
			continue
		}
		for n := 1; ; n++ {
			l := newLake(t)
			l.furnish(t, "a")
			events, _ := l.traces()
			calls := 0
			l.store.Inject(func(_ string, number int) (f catalogtest.Failure) {
				calls = number
				if number == n {
					f.Err = fault.Wrap(fault.Busy, errors.New("hidden cause"), "the database does not answer")
				}
				return f
			})
			target, body := requestOf(e, "a")
			a := l.send(t, e.Method, target, body)
			if strings.Contains(a.body, "hidden cause") {
				t.Errorf("%s, call %d: the cause went to the client: %s", e.Operation, n, a.body)
			}
			if calls < n {
				break // nothing failed any more
			}
			if a.status == 200 || a.status == 204 {
				continue
			}
			if a.status != 503 && a.status != 500 && a.status != 409 {
				t.Errorf("%s, call %d: %d %s", e.Operation, n, a.status, a.body)
			}
			if eventsNow, _ := l.traces(); eventsNow != events {
				t.Errorf("%s, call %d: answered %d and left %d events", e.Operation, n, a.status, eventsNow-events)
			}
		}
	}
}

type oneKey struct{}

func (oneKey) JWKS(context.Context) (auth.JWKS, error) {
	return auth.JWKS{Keys: []auth.JWK{{Type: "OKP", Curve: "Ed25519", X: "AA", KeyID: "k", Use: "sig", Algorithm: "EdDSA"}}}, nil
}

func TestWellKnown_ForStrangers(t *testing.T) {
	d := newDoor(t, Config{Keys: oneKey{}, PublicURL: "https://catalog.example"}).as("")
	for _, path := range []string{"/.well-known/jwks.json", "/api/catalog/.well-known/jwks.json"} {
		if a := d.send(t, "GET", path, ""); a.status != 200 || !strings.Contains(a.body, `"kid":"k"`) {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for _, path := range []string{
		"/api/catalog/.well-known/openid-configuration", "/api/catalog/.well-known/oauth-authorization-server",
		"/.well-known/oauth-authorization-server/api/catalog",
	} {
		a := d.send(t, "GET", path, "")
		v := a.json()
		if v["issuer"] != "https://catalog.example/api/catalog" || v["jwks_uri"] != "https://catalog.example/.well-known/jwks.json" ||
			v["token_endpoint"] != "https://catalog.example/api/catalog/v1/oauth/tokens" ||
			v["revocation_endpoint"] != "https://catalog.example/api/catalog/v1/oauth/revoke" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	a := newDoor(t, Config{}).as("").send(t, "GET", "/api/catalog/.well-known/openid-configuration", "")
	if issuer, _ := a.json()["issuer"].(string); !strings.HasPrefix(issuer, "http://127.0.0.1:") {
		t.Errorf("without a public URL the issuer is %q", issuer)
	}
}

// Public routes do not look at who calls; the token route is one of them.
func TestTokens_ArePublicOnEveryAlias(t *testing.T) {
	called := 0
	d := newDoor(t, Config{Tokens: func(w http.ResponseWriter, _ *http.Request) error {
		called++
		w.WriteHeader(http.StatusTeapot)
		return nil
	}}).as("")
	for i, base := range []string{"/api/catalog", "", "/catalog", "/polaris/api/catalog", "/iceberg"} {
		a := d.send(t, "POST", base+"/v1/oauth/tokens", "grant_type=x", "Authorization", "Bearer stale")
		if a.status != http.StatusTeapot || called != i+1 {
			t.Errorf("%s: %d", base, a.status)
		}
	}
}
