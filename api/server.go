package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-chi/chi/v5"

	"catalogd/auth"
	"catalogd/internal/telemetry"
)

// ServerConfig is what a Server needs. All fields are required but for those that say otherwise.
type ServerConfig struct {
	Endpoints     []Endpoint
	Authenticator Authenticator
	// Anonymous tells who a request without a token is from; nil: such requests are refused.
	Anonymous func(context.Context) (auth.Principal, error)
	// KeepPagesOut refuses what browsers send on behalf of other sites' pages: for servers that let everybody in who is on this machine.
	KeepPagesOut bool
	Audit        Auditor // nil keeps nothing
	Log          *slog.Logger
	Metrics      *telemetry.Metrics
	// TrustedProxies are the networks of proxies whose X-Forwarded-For and Forwarded headers are believed; may be nil.
	TrustedProxies []netip.Prefix
	// Used, unless nil, is told of each request of a signed-in caller that was let in. It must not wait for anything.
	Used func(Use)
}

// Use is a request of a signed-in caller.
type Use struct {
	Principal auth.Principal
	Client    string // address
	UserAgent string
}

// Server answers HTTP requests by a table of endpoints.
type Server struct {
	handler   http.Handler
	router    *chi.Mux // finds patterns
	handlers  map[routeKey]http.HandlerFunc
	admission *admission
}

// NewServer builds the router. It refuses a table with a faulty row: the program must not start with it.
func NewServer(c ServerConfig) (*Server, error) {
	if err := checkEndpoints(c.Endpoints); err != nil {
		return nil, err
	}
	s := &Server{router: chi.NewRouter(), handlers: map[routeKey]http.HandlerFunc{}, admission: newAdmission()}
	for _, e := range c.Endpoints {
		handler := s.endpointHandler(e, c)
		for _, pattern := range patternsOf(e) {
			s.router.Method(e.Method, pattern, handler)
			s.handlers[routeKey{e.Method, pattern}] = handler
		}
	}
	s.handler = record(c, identify(recoverPanics(c.Metrics, http.HandlerFunc(s.serveRoute))))
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// endpointHandler wraps a row's handler, outermost first: operation's name, limits, authentication, the key
// of a repeatable mutation, admission of large bodies, the handler.
func (s *Server) endpointHandler(e Endpoint, c ServerConfig) http.HandlerFunc {
	next := s.admission.admit(e, e.Handler)
	if e.Access != Public {
		next = authenticate(c, takeIdempotencyKey(next))
	}
	next = limit(e, next)
	return func(w http.ResponseWriter, r *http.Request) {
		if hasEmptyParam(r) {
			notFound(w, r)
			return
		}
		eventOf(r.Context()).operation = e.Operation
		if c.KeepPagesOut {
			if err := notByPage(r); err != nil {
				fail(w, r, err)
				return
			}
		}
		if err := next(w, r); err != nil {
			fail(w, r, err)
		}
	}
}

// patternsOf gives all patterns under which a row is served.
func patternsOf(e Endpoint) []string {
	patterns := []string{e.Pattern}
	if route, ok := strings.CutPrefix(e.Pattern, CatalogBase+"/v1/"); ok {
		for _, base := range catalogAliases {
			patterns = append(patterns, base+"/v1/"+route)
		}
	}
	return patterns
}

// checkEndpoints finds rows that cannot be meant. A route may not be there twice; an operation's name may, because a
// thing can have two addresses.
func checkEndpoints(endpoints []Endpoint) error {
	var errs []error
	routes := map[string]bool{}
	for _, e := range endpoints {
		route := e.Method + " " + e.Pattern
		switch {
		case e.Method == "" || !strings.HasPrefix(e.Pattern, "/"):
			errs = append(errs, fmt.Errorf("endpoint %q (%s): method or pattern is missing", route, e.Operation))
		case e.Operation == "" || e.Operation == operationUnmatched:
			errs = append(errs, fmt.Errorf("endpoint %q: operation is missing", route))
		case e.Handler == nil:
			errs = append(errs, fmt.Errorf("endpoint %q: handler is missing", route))
		case routes[route]:
			errs = append(errs, fmt.Errorf("endpoint %q is there twice", route))
		}
		routes[route] = true
	}
	return errors.Join(errs...)
}
