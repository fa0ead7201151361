package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"catalogd/internal/fault"
)

// routeKey names a handler: a method and a pattern.
type routeKey struct{ method, pattern string }

// serveRoute calls the handler of a request's path as it came over the wire. net/http keeps the raw form only where it
// differs from its own way of escaping, and chi's own handler falls back to the decoded one: "%2525" would be decoded
// twice and "%2F" would split a name. It would also write each name into a map of the request's, which nobody reads.
func (s *Server) serveRoute(w http.ResponseWriter, r *http.Request) {
	path := routePath(r.URL)
	pattern := s.router.Find(chi.RouteContext(r.Context()), r.Method, path)
	if handler, ok := s.handlers[routeKey{r.Method, pattern}]; ok {
		handler(w, r)
		return
	}
	if allowed := s.methodsOf(path); len(allowed) > 0 {
		methodNotAllowed(w, r, allowed)
		return
	}
	notFound(w, r)
}

// routePath gives the escaped path, tolerant where clients join a base and a route: a slash at the end of the path and
// doubled slashes before the version are dropped. Later ones stay: an empty name is not the name behind it.
func routePath(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" || path[0] != '/' {
		path = "/" + path
	}
	head, tail := path, ""
	if i := strings.Index(path, "/v1/"); i >= 0 {
		head, tail = path[:i+1], path[i+1:]
	}
	for strings.Contains(head, "//") {
		head = strings.ReplaceAll(head, "//", "/")
	}
	path = head + tail
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// Param gives a segment of the path by its name in the pattern, decoded exactly once. A raw '+' is a space, as Java
// clients write it and the reference server reads it; "%2B" is a plus. Text that no name can hold is
// fault.BadRequest.
func Param(r *http.Request, name string) (string, error) {
	escaped := chi.URLParam(r, name)
	decoded, err := url.QueryUnescape(escaped)
	if err != nil {
		return "", fault.Wrap(fault.BadRequest, err, "%s in the path is not percent-encoded text", name)
	}
	if err := checkText(decoded); err != nil {
		return "", fault.Wrap(fault.BadRequest, err, "%s in the path is not valid Unicode text", name)
	}
	return decoded, nil
}

// hasEmptyParam tells that a segment which should be a name is empty: chi lets "//" pass as one.
func hasEmptyParam(r *http.Request) bool {
	return slices.Contains(chi.RouteContext(r.Context()).URLParams.Values, "")
}

// Query gives the parsed query. One that cannot be parsed is fault.BadRequest, not an empty one.
func Query(r *http.Request) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fault.Wrap(fault.BadRequest, err, "the query of the URL is not well-formed")
	}
	for name, list := range values {
		for _, value := range list {
			if err := checkText(value); err != nil {
				return nil, fault.Wrap(fault.BadRequest, err, "query parameter %q is not valid Unicode text", name)
			}
		}
	}
	return values, nil
}

// checkText refuses what neither a name nor a text column can hold.
func checkText(s string) error {
	if !utf8.ValidString(s) {
		return fault.New(fault.BadRequest, "not UTF-8")
	}
	if strings.ContainsRune(s, 0) {
		return fault.New(fault.BadRequest, "holds U+0000")
	}
	return nil
}

// notFound answers requests that no pattern matches. Most are settings with a wrong base, so it names the right one.
func notFound(w http.ResponseWriter, r *http.Request) {
	writeError(w, r, http.StatusNotFound, "NotFoundException",
		"no route for "+r.Method+" "+cut(r.URL.EscapedPath())+": the Iceberg REST catalog is at "+CatalogBase+
			" (set the client's uri to it, without /v1), the management API at "+ManagementBase+"/v1")
}

// methods are those that rows use; for the Allow header.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// methodsOf gives the methods that a path is served with.
func (s *Server) methodsOf(path string) []string {
	return slices.DeleteFunc(slices.Clone(methods), func(method string) bool {
		return !s.router.Match(chi.NewRouteContext(), method, path)
	})
}

// methodNotAllowed answers requests whose path is served with other methods.
func methodNotAllowed(w http.ResponseWriter, r *http.Request, allowed []string) {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	writeError(w, r, http.StatusMethodNotAllowed, "UnsupportedOperationException",
		cut(r.Method)+" is not served on this path; these are: "+strings.Join(allowed, ", "))
}
