package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"catalogd/openapi"
	"catalogd/openapi/openapitest"
)

// front stands between Polaris' clients and a server: it remembers which calls were made since it was last asked, and
// holds the answers of the management API against its document.
type front struct {
	url       string
	documents map[string]*openapitest.Document // by the base of their paths

	mu    sync.Mutex
	calls []string
	wrong []string
}

// catalogsFront is the base of the Iceberg document's paths, managementFront of ours; Polaris' own routes are in ours
// with their whole path.
const (
	catalogFront    = "/api/catalog"
	managementFront = "/api/management"
)

func newFront(t *testing.T, s *server) *front {
	t.Helper()
	uri, err := url.Parse(s.env["CATALOG_URI"])
	if err != nil {
		t.Fatal(err)
	}
	f := &front{documents: map[string]*openapitest.Document{}}
	for base, file := range map[string]string{catalogFront: openapi.IcebergFile, managementFront: openapi.ManagementFile} {
		if f.documents[base], err = openapitest.Load(file); err != nil {
			t.Fatal(err)
		}
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: uri.Scheme, Host: uri.Host})
	proxy.ModifyResponse = f.look
	served := httptest.NewServer(proxy)
	t.Cleanup(served.Close)
	f.url = served.URL
	return f
}

// look notes the call, and what its answer has otherwise than the document.
func (f *front) look(answer *http.Response) error {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	method, path := answer.Request.Method, answer.Request.URL.EscapedPath()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, base := range []string{managementFront, catalogFront} {
		document, inside := f.documents[base], strings.TrimPrefix(path, base)
		if strings.HasPrefix(path, catalogFront+"/polaris") {
			document, inside = f.documents[managementFront], path
		}
		template, err := document.Template(method, inside)
		if err != nil {
			continue
		}
		if !strings.HasSuffix(template, "/oauth/tokens") {
			f.calls = append(f.calls, method+" "+strings.TrimPrefix(template, "/v1"))
		}
		if answer.Header.Get("Content-Encoding") != "" {
			return nil
		}
		if err := document.CheckAnswer(method, inside, answer.StatusCode, body); err != nil && answer.StatusCode < http.StatusBadRequest {
			f.wrong = append(f.wrong, err.Error())
		}
		return nil
	}
	f.wrong = append(f.wrong, method+" "+path+" is in no document")
	return nil
}

// taken gives the calls since the last time, each once and in order.
func (f *front) taken(t *testing.T) []string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, what := range f.wrong {
		t.Error(what)
	}
	slices.Sort(f.calls)
	calls := slices.Compact(f.calls)
	f.calls, f.wrong = nil, nil
	return calls
}
