package api

import (
	"context"
	"net"
	"net/http"
	"strings"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// Authenticator tells who sends a request. It is given the whole Authorization header, which is never empty.
// fault.Unauthenticated when the header does not prove anybody; the message must not tell more than the client knows.
type Authenticator interface {
	Authenticate(ctx context.Context, authorization string) (auth.Principal, error)
}

// Auditor keeps attempts that came to no operation. subject and reason hold no secret.
type Auditor interface {
	RecordRefusal(ctx context.Context, c catalog.Caller, operation, subject, reason string)
}

// authenticate lets only signed-in callers through. Who shows something that proves nobody is kept in the audit; who
// shows nothing has tried nothing.
func authenticate(c ServerConfig, next HandlerFunc) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		authorization, err := authorizationOf(r)
		open := err != nil && c.Anonymous != nil && showsNothing(r)
		if err != nil && !open {
			return err
		}
		refused := func(err error) error {
			if c.Audit != nil && fault.Is(err, fault.Unauthenticated) {
				c.Audit.RecordRefusal(r.Context(), CallerOf(r), eventOf(r.Context()).operation, "", fault.Message(err))
			}
			return err
		}
		var principal auth.Principal
		if open {
			principal, err = c.Anonymous(r.Context())
		} else {
			principal, err = c.Authenticator.Authenticate(r.Context(), authorization)
		}
		if err != nil {
			return refused(err)
		}
		principal.Address = Address(r)
		e := eventOf(r.Context())
		e.principal = principal
		err = next(w, r)
		if c.Used != nil && !fault.Is(err, fault.Unauthenticated) {
			c.Used(Use{Principal: principal, Client: e.origin.text, UserAgent: r.UserAgent()})
		}
		return refused(err) // of a token that was revoked, or that may not come from there: the operation finds that out
	}
}

// authorizationOf gives the request's one Authorization header. PyIceberg sends "Bearer None" when it has no
// credential; that is no token and is refused before anything is looked up.
func authorizationOf(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) > 1 {
		return "", fault.New(fault.Unauthenticated, "more than one Authorization header")
	}
	if len(values) == 0 || strings.TrimSpace(values[0]) == "" {
		return "", fault.New(fault.Unauthenticated, "not signed in: the Authorization header is missing")
	}
	if showsNothing(r) {
		return "", fault.New(fault.Unauthenticated, "not signed in: the bearer token is missing; does the client have a credential?")
	}
	return values[0], nil
}

// showsNothing tells whether a request bears no token: it has no Authorization header, or one of a client without a credential.
func showsNothing(r *http.Request) bool {
	values := r.Header.Values("Authorization")
	return len(values) == 0 || len(values) == 1 && auth.BearsNothing(values[0])
}

// crossSite knows requests of other sites' pages by the headers of their browsers.
var crossSite = http.NewCrossOriginProtection()

// notByPage refuses requests that a page of another site made its reader's browser send: those whose browser says so, and those that
// call this machine by another name, which is how a page is read that is not the site's own (DNS rebinding).
func notByPage(r *http.Request) error {
	if err := crossSite.Check(r); err != nil {
		return fault.Wrap(fault.Forbidden, err, "this server is open to everybody on its machine, and so it takes nothing from other sites' pages")
	}
	name := r.Host
	if host, _, err := net.SplitHostPort(name); err == nil {
		name = host
	}
	name = strings.Trim(name, "[]")
	if name == "" || strings.EqualFold(name, "localhost") || net.ParseIP(name) != nil {
		return nil
	}
	return fault.New(fault.Forbidden, "this server is open to everybody on its machine, and so it answers as localhost and by its address alone, not as %q; "+
		"open.public lifts that", name)
}

// challenge adds the header that a 401 must have (RFC 9110, RFC 6750).
func challenge(w http.ResponseWriter, r *http.Request) {
	value := `Bearer realm="catalogd"`
	if _, err := authorizationOf(r); err == nil {
		value += `, error="invalid_token"`
	}
	w.Header()["WWW-Authenticate"] = []string{value}
}
