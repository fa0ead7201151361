package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"catalogd/openapi"
	"catalogd/openapi/openapitest"
)

// What a recorder keeps, at most.
const (
	recordedBytesMax = 8 << 20 // of one answer; a longer one is passed on and counted, and not looked at
	recordedKindsMax = 20      // different deviations from the document; the others are counted
	// recordedIdleMax is how long a connection to the server is kept for later: well below the two minutes after which the
	// server closes it, or a request could meet that.
	recordedIdleMax = 30 * time.Second
)

// slips are the places where the document says otherwise than every server and client do; answers that deviate there
// are right.
var slips = []struct {
	name   string
	covers func(operation string, status int, missing string) bool
}{
	{"errors of view routes are wrapped like all others; the document shows them bare", func(operation string, status int, missing string) bool {
		return strings.Contains(operation, "view") && status >= 400 && missing == "$.message"
	}},
	{"snapshots of format version 1 have no summary; the document requires one", func(_ string, _ int, missing string) bool {
		return strings.HasSuffix(missing, "].summary")
	}},
}

// recorder stands between clients and a server, passes everything on as it is, and holds each answer against the
// document of the Iceberg REST catalog.
type recorder struct {
	suite     string
	server    *url.URL
	base      string // of the catalog's routes, such as "/api/catalog"
	document  *openapitest.Document
	transport *http.Transport

	mu       sync.Mutex
	answers  map[string]int // by "METHOD template"
	statuses map[int]int
	slipped  map[string]int
	outside  map[string]int // requests that the document does not have
	wrong    map[string]int
	long     int
}

// touched says which suites reached an operation of the document.
var touched = struct {
	mu     sync.Mutex
	suites map[string]map[string]bool
}{suites: map[string]map[string]bool{}}

// recorded gives the server as clients see it through a recorder; what the recorder found is reported when the test ends.
func recorded(t *testing.T, s *server, suite string) *server {
	t.Helper()
	document, err := openapitest.Load(openapi.IcebergFile)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse(s.env["CATALOG_URI"])
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{
		suite: suite, server: &url.URL{Scheme: uri.Scheme, Host: uri.Host}, base: uri.Path, document: document,
		transport: &http.Transport{DisableCompression: true, IdleConnTimeout: recordedIdleMax},
		answers:   map[string]int{}, statuses: map[int]int{}, slipped: map[string]int{}, outside: map[string]int{}, wrong: map[string]int{},
	}
	front := httptest.NewServer(r)
	t.Cleanup(func() {
		front.Close()
		r.transport.CloseIdleConnections()
		r.report(t)
	})
	seen := *s
	seen.env = maps.Clone(s.env)
	for _, key := range []string{"CATALOG_URI", "CATALOG_OAUTH2__SERVER__URI"} {
		seen.env[key] = strings.Replace(s.env[key], r.server.String(), front.URL, 1)
	}
	return &seen
}

// ServeHTTP passes a request on, byte for byte where HTTP allows, and keeps a copy of the answer.
func (r *recorder) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	out := in.Clone(in.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host = "", r.server.Scheme, r.server.Host
	out.Header.Del("Connection")
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "")
	}
	answer, err := r.transport.RoundTrip(out)
	if err != nil {
		if in.Context().Err() == nil {
			r.note("no answer: " + err.Error())
		}
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	for name, values := range answer.Header {
		if name == "Etag" {
			name = "ETag" // as the server writes it; some clients look for exactly that
		}
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	kept := &firstBytes{max: recordedBytesMax}
	if _, err := io.Copy(w, io.TeeReader(answer.Body, kept)); err != nil {
		return // the client went away; half an answer says nothing
	}
	r.look(in.Method, in.URL.EscapedPath(), answer, kept)
}

// firstBytes keeps the beginning of what is written to it.
type firstBytes struct {
	bytes.Buffer
	max  int
	over bool
}

func (b *firstBytes) Write(p []byte) (int, error) {
	if b.over = b.over || b.Len()+len(p) > b.max; !b.over {
		b.Buffer.Write(p)
	}
	return len(p), nil
}

// look holds one answer against the document.
func (r *recorder) look(method, path string, answer *http.Response, kept *firstBytes) {
	path, ours := strings.CutPrefix(path, r.base)
	template, err := r.document.Template(method, path)
	r.mu.Lock()
	r.statuses[answer.StatusCode]++
	if err != nil || !ours {
		r.outside[method+" "+path]++
	} else {
		r.answers[method+" "+template]++
	}
	if kept.over {
		r.long++
	}
	r.mu.Unlock()
	operation := method + " " + template
	if answer.StatusCode >= http.StatusInternalServerError {
		r.note(fmt.Sprintf("%s: status %d: %.300s", operation, answer.StatusCode, kept.String()))
	}
	if err != nil || kept.over {
		return
	}
	body := kept.Bytes()
	if answer.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(io.LimitReader(unpacked, 4*recordedBytesMax))
		}
		if err != nil {
			r.note(fmt.Sprintf("%s: %d: not gzip: %v", operation, answer.StatusCode, err))
			return
		}
	}
	if err := r.document.CheckAnswer(method, path, answer.StatusCode, body); err != nil {
		r.deviates(operation, answer.StatusCode, err)
	}
}

// indexes are what makes the same deviation look different each time.
var indexes = regexp.MustCompile(`\[\d+\]|/v1/[^ :]*`)

func (r *recorder) deviates(operation string, status int, err error) {
	var missing *openapitest.MissingError
	if errors.As(err, &missing) {
		for _, slip := range slips {
			if slip.covers(operation, status, missing.At) {
				r.mu.Lock()
				r.slipped[slip.name]++
				r.mu.Unlock()
				return
			}
		}
	}
	r.note(operation + ": " + indexes.ReplaceAllString(err.Error(), "[]"))
}

// note counts one kind of deviation.
func (r *recorder) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.wrong[what]; !known && len(r.wrong) >= recordedKindsMax {
		what = "others"
	}
	r.wrong[what]++
}

// report fails the test for each kind of deviation, and remembers what the suite reached.
func (r *recorder) report(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(r.wrong)) {
		t.Errorf("%s, %d times: %s", r.suite, r.wrong[what], what)
	}
	total := 0
	touched.mu.Lock()
	defer touched.mu.Unlock()
	for operation, n := range r.answers {
		total += n
		if touched.suites[operation] == nil {
			touched.suites[operation] = map[string]bool{}
		}
		touched.suites[operation][r.suite] = true
	}
	called(t, r.suite, r.document, slices.Collect(maps.Keys(r.answers)))
	t.Logf("%s: %d answers of %d operations match the document; statuses %v; known slips of the document %v; not in the document %v; too long to look at: %d",
		r.suite, total, len(r.answers), r.statuses, r.slipped, r.outside, r.long)
}

// printUntouched lists the operations of the document that no client of this run called.
func printUntouched() {
	touched.mu.Lock()
	defer touched.mu.Unlock()
	document, err := openapitest.Load(openapi.IcebergFile)
	if err != nil || len(touched.suites) == 0 {
		return
	}
	fmt.Fprintln(os.Stdout, "operations of the Iceberg REST document that no recorded client called in this run:")
	for _, operation := range document.Operations() {
		if touched.suites[operation] == nil {
			fmt.Fprintln(os.Stdout, "   ", operation)
		}
	}
}

// The recorder passes bytes on and sees what deviates.
func TestRecorder(t *testing.T) {
	answers := map[string]struct {
		status int
		body   string
	}{
		"/api/catalog/v1/w/namespaces/a%1Fb%2Fc": {200, `{"namespace":["a","b/c"],"properties":{}}`},
		"/api/catalog/v1/w/namespaces/bad":       {200, `{"namespace":"bad"}`},
		"/api/catalog/v1/w/namespaces/broken":    {500, `{"error":{"message":"m","type":"T","code":500}}`},
		"/api/catalog/v1/w/namespaces/a/views/v": {404, `{"error":{"message":"m","type":"NoSuchViewException","code":404}}`},
	}
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[r.URL.EscapedPath()]
		w.Header()["ETag"] = []string{`"e"`}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	defer back.Close()
	document, err := openapitest.Load(openapi.IcebergFile)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(back.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{suite: "self", server: target, base: "/api/catalog", document: document, transport: &http.Transport{DisableCompression: true},
		answers: map[string]int{}, statuses: map[int]int{}, slipped: map[string]int{}, outside: map[string]int{}, wrong: map[string]int{}}
	front := httptest.NewServer(r)
	defer front.Close()
	for path, want := range answers {
		answer, err := http.Get(front.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != want.status || string(body) != want.body || answer.Header.Get("ETag") == "" {
			t.Errorf("%s: %d %s %v", path, answer.StatusCode, body, answer.Header)
		}
	}
	if len(r.wrong) != 2 || len(r.slipped) != 1 || r.answers["GET /v1/{prefix}/namespaces/{namespace}"] != 3 || r.statuses[500] != 1 {
		t.Errorf("deviations %v, slips %v, answers %v, statuses %v", r.wrong, r.slipped, r.answers, r.statuses)
	}
}
