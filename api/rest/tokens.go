package rest

import (
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/internal/fault"
)

// tokenRefusal is RFC 6749's error body. This route is the only one with it: OAuth clients do not read the catalog's.
type tokenRefusal struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// IssueTokens answers POST /v1/oauth/tokens. What the server could not decide (the database is away, too much to do)
// is never a refusal: clients take 400 and 401 as final and end their sessions for good.
//
// publicURL is where clients reach the server; "" where that is not set.
func IssueTokens(tokens *auth.Tokens, publicURL string) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		answer, err := issueToken(tokens, r, audiences(r, publicURL))
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Pragma", "no-cache")
		var refused *auth.OAuthError
		if errors.As(err, &refused) {
			api.Annotate(r, "", "refused: "+refused.Code)
			return api.JSON(w, r, refused.Status, tokenRefusal{Error: refused.Code, Description: refused.Description})
		}
		if fault.Is(err, fault.Internal) {
			// Whatever it is: clients repeat a request that was answered 503, and end their sessions for good after a 500.
			return fault.Wrap(fault.Busy, err, "the server cannot issue tokens now; try again in a moment")
		}
		if err != nil {
			return err
		}
		return api.JSON(w, r, http.StatusOK, answer)
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

func issueToken(tokens *auth.Tokens, r *http.Request, audiences []string) (auth.TokenAnswer, error) {
	invalid := func(description string) error {
		return &auth.OAuthError{Code: "invalid_request", Description: description, Status: http.StatusBadRequest}
	}
	if kind := r.Header.Get("Content-Type"); kind != "" {
		media, _, err := mime.ParseMediaType(kind)
		if err != nil || media != "application/x-www-form-urlencoded" {
			return auth.TokenAnswer{}, invalid("the body must be a form: Content-Type: application/x-www-form-urlencoded")
		}
	}
	if len(r.Header.Values("Authorization")) > 1 {
		return auth.TokenAnswer{}, invalid("more than one Authorization header")
	}
	body, err := io.ReadAll(r.Body)
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return auth.TokenAnswer{}, &auth.OAuthError{
			Code: "invalid_request", Description: "the body is too long", Status: http.StatusRequestEntityTooLarge,
		}
	}
	if err != nil {
		return auth.TokenAnswer{}, fault.Wrap(fault.BadRequest, err, "the body could not be read to its end")
	}
	form, err := auth.ParseTokenForm(string(body))
	if err != nil {
		return auth.TokenAnswer{}, err
	}
	return tokens.Issue(r.Context(), auth.TokenRequest{
		Form: form, Authorization: r.Header.Get("Authorization"), Address: api.Address(r), RequestID: api.CallerOf(r).RequestID, Audiences: audiences,
		Seen: func(clientID string) { api.AnnotateClient(r, clientID) },
	})
}
