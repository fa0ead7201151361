package rest

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// tokenRefusal is RFC 6749's error body. The token routes are the only ones with it: OAuth clients do not read the catalog's.
type tokenRefusal struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// IssueTokens answers POST /v1/oauth/tokens. What the server could not decide (the database is away, too much to do)
// is never a refusal: clients take 400 and 401 as final and end their sessions for good.
//
// publicURL is where clients reach the server; "" where that is not set.
func IssueTokens(tokens *auth.Tokens, publicURL string) api.HandlerFunc {
	return oauthRoute(publicURL, "issue", func(w http.ResponseWriter, r *http.Request, asked auth.TokenRequest) error {
		answer, err := tokens.Issue(r.Context(), asked)
		if err != nil {
			return err
		}
		return api.JSON(w, r, http.StatusOK, answer)
	})
}

// Revoker ends the token that its caller showed.
type Revoker interface {
	RevokeShown(ctx context.Context, c catalog.Caller) error
}

// RevokeTokens answers POST /v1/oauth/revoke (RFC 7009): 200 without a body, also for a token that counts nowhere any more.
// token_type_hint is ignored, as the RFC allows: each kind of token is told by its text.
func RevokeTokens(tokens *auth.Tokens, revoker Revoker, publicURL string) api.HandlerFunc {
	return oauthRoute(publicURL, "revoke", func(w http.ResponseWriter, r *http.Request, asked auth.TokenRequest) error {
		principal, live, err := tokens.Revocable(r.Context(), asked)
		if err != nil {
			return err
		}
		if live {
			caller := api.CallerOf(r)
			caller.Principal = principal
			if err := revoker.RevokeShown(r.Context(), caller); err != nil {
				return err
			}
		}
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusOK)
		return nil
	})
}

// oauthRoute reads a form and answers refusals as RFC 6749 writes them; what is said in verb is what could not be done.
func oauthRoute(publicURL, verb string, answer func(http.ResponseWriter, *http.Request, auth.TokenRequest) error) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Pragma", "no-cache")
		form, err := readForm(r)
		if err == nil {
			caller := api.CallerOf(r)
			err = answer(w, r, auth.TokenRequest{
				Form: form, Authorization: r.Header.Get("Authorization"), Address: api.Address(r),
				RequestID: caller.RequestID, UserAgent: caller.UserAgent,
				Audiences: audiences(r, publicURL), Seen: func(clientID string) { api.AnnotateClient(r, clientID) },
			})
		}
		var refused *auth.OAuthError
		if errors.As(err, &refused) {
			api.Annotate(r, "", "refused: "+refused.Code)
			return api.JSON(w, r, refused.Status, tokenRefusal{Error: refused.Code, Description: refused.Description})
		}
		if fault.Is(err, fault.Internal) {
			// Whatever it is: clients repeat a request that was answered 503, and end their sessions for good after a 500.
			return fault.Wrap(fault.Busy, err, "the server cannot %s tokens now; try again in a moment", verb)
		}
		return err
	}
}

// audiences are what assertions may be meant for. Without a public_url the server does not know what it is called, and believes the
// request only where the name cannot be another server's.
func audiences(r *http.Request, publicURL string) []string {
	base := publicURL
	if base == "" {
		name, err := url.Parse("http://" + r.Host)
		if err != nil {
			return nil
		}
		if ip := net.ParseIP(name.Hostname()); name.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return nil
		}
		base = "http://" + r.Host
	}
	return []string{base + catalogV1 + "/oauth/tokens", base + api.CatalogBase}
}

// readForm reads the request's form: *auth.OAuthError when it is none.
func readForm(r *http.Request) (url.Values, error) {
	invalid := func(description string) error {
		return &auth.OAuthError{Code: "invalid_request", Description: description, Status: http.StatusBadRequest}
	}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		media, _, err := mime.ParseMediaType(kind)
		if err != nil || media != "application/x-www-form-urlencoded" {
			return nil, invalid("the body must be a form: Content-Type: application/x-www-form-urlencoded")
		}
	}
	if len(r.Header.Values("Authorization")) > 1 {
		return nil, invalid("more than one Authorization header")
	}
	body, err := io.ReadAll(r.Body)
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return nil, &auth.OAuthError{
			Code: "invalid_request", Description: "the body is too long", Status: http.StatusRequestEntityTooLarge,
		}
	}
	if err != nil {
		return nil, fault.Wrap(fault.BadRequest, err, "the body could not be read to its end")
	}
	return auth.ParseTokenForm(string(body))
}
