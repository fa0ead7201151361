package rest

import (
	"errors"
	"io"
	"mime"
	"net/http"

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
func IssueTokens(tokens *auth.Tokens) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		answer, err := issueToken(tokens, r)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Pragma", "no-cache")
		var refused *auth.OAuthError
		if errors.As(err, &refused) {
			api.Annotate(r, "", "refused: "+refused.Code)
			return api.JSON(w, r, refused.Status, tokenRefusal{Error: refused.Code, Description: refused.Description})
		}
		if err != nil {
			return err
		}
		return api.JSON(w, r, http.StatusOK, answer)
	}
}

func issueToken(tokens *auth.Tokens, r *http.Request) (auth.TokenAnswer, error) {
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
		Form: form, Authorization: r.Header.Get("Authorization"), Address: api.Address(r),
		Seen: func(clientID string) { api.AnnotateClient(r, clientID) },
	})
}
