package auth

import (
	"context"
	"encoding/base64"
	"net/url"
	"strings"

	"catalogd/internal/fault"
)

// presented is a client id and secret as a request may have meant them.
type presented struct {
	clientID string
	secret   Secret
}

// hasCredentials tells whether the request carries a client's credentials; a bearer token is not one.
func hasCredentials(r TokenRequest) bool {
	return r.Form.Get("client_secret") != "" || isBasic(r.Authorization) || assertionText(r) != ""
}

func isBasic(authorization string) bool {
	scheme, _, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	return strings.EqualFold(scheme, "Basic")
}

// client authenticates the client of a token request. Credentials in the form win over any header: clients send a
// stale bearer along. All refusals take the same time and say the same, whether or not the client exists.
func (t *Tokens) client(ctx context.Context, r TokenRequest) (session, error) {
	if assertionText(r) != "" {
		return t.asserted(ctx, r)
	}
	readings, refused := readCredentials(r)
	if refused != nil {
		return session{}, refused
	}
	for _, reading := range readings {
		if isPersonal(string(reading.secret)) {
			return t.clientByPersonal(ctx, r, reading)
		}
	}
	account, secret, err := t.checkSecret(ctx, r, readings)
	if err != nil {
		return session{}, err
	}
	t.renewForm(ctx, &account, secret)
	if err := account.State.Admit(Principal{ID: account.ID, Address: r.Address}, t.now()); err != nil {
		return session{}, t.notAdmitted(ctx, r, account, fault.Message(err))
	}
	return session{Account: account, mark: account.Secret.Mark(), within: RoleScope{All: true}, signedInAt: t.now()}, nil
}

// readCredentials gives the ways in which the request's credentials can be read, likeliest first.
func readCredentials(r TokenRequest) ([]presented, *OAuthError) {
	if secret := strings.TrimSpace(r.Form.Get("client_secret")); secret != "" {
		return named([]presented{{strings.TrimSpace(r.Form.Get("client_id")), Secret(secret)}})
	}
	if isBasic(r.Authorization) {
		return readBasic(r.Authorization)
	}
	if r.Form.Has("client_id") {
		return nil, oauthError(codeInvalidClient, "client_secret is missing: write the client's credential as client_id:client_secret")
	}
	return nil, oauthError(codeInvalidClient, "client_id and client_secret are missing")
}

// readBasic reads the header as it is and, because some clients encode id and secret before (RFC 6749, 2.3.1) and
// some do not, decoded as well. A text without a colon, or with nothing before it, is a secret alone.
func readBasic(authorization string) ([]presented, *OAuthError) {
	_, encoded, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	encoded = strings.TrimRight(strings.TrimSpace(encoded), "=")
	raw, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		if raw, err = base64.RawURLEncoding.DecodeString(encoded); err != nil {
			return nil, oauthError(codeInvalidClient, "the Authorization header is not correct Basic authentication")
		}
	}
	id, secret, colon := strings.Cut(strings.TrimSpace(string(raw)), ":")
	if !colon {
		id, secret = "", id
	}
	id, secret = strings.TrimSpace(id), strings.TrimSpace(secret)
	if secret == "" {
		return nil, oauthError(codeInvalidClient, "client_secret is missing: write the client's credential as client_id:client_secret")
	}
	readings := []presented{{id, Secret(secret)}}
	decodedID, idErr := url.QueryUnescape(id)
	decodedSecret, secretErr := url.QueryUnescape(secret)
	if idErr == nil && secretErr == nil && (decodedID != id || decodedSecret != secret) {
		readings = append(readings, presented{decodedID, Secret(decodedSecret)})
	}
	return named(readings)
}

// named finds the client id of secrets that came without one: generated secrets hold it, and personal access tokens
// need none.
func named(readings []presented) ([]presented, *OAuthError) {
	for i, reading := range readings {
		if len(reading.clientID) > clientIDBytesMax {
			return nil, oauthError(codeInvalidClient, "client id or client secret is wrong")
		}
		if reading.clientID != "" || isPersonal(string(reading.secret)) {
			continue
		}
		if readings[i].clientID = clientIDOf(reading.secret); readings[i].clientID == "" {
			return nil, oauthError(codeInvalidClient,
				"client_id is missing, and the secret does not tell whose it is: write the client's credential as client_id:client_secret")
		}
	}
	return readings, nil
}
