package rest

import (
	"context"
	"net/http"

	"catalogd/api"
	"catalogd/auth"
)

// KeySet gives the public keys that our tokens are signed with: those that are active and those whose tokens may still
// live.
type KeySet interface {
	JWKS(ctx context.Context) (auth.JWKS, error)
}

// issuerMetadata is RFC 8414's document, as far as it is true of this server.
type issuerMetadata struct {
	Issuer             string   `json:"issuer"`
	TokenEndpoint      string   `json:"token_endpoint"`
	JWKSURI            string   `json:"jwks_uri"`
	RevocationEndpoint string   `json:"revocation_endpoint"`
	RevocationAuth     []string `json:"revocation_endpoint_auth_methods_supported"`
	GrantTypes         []string `json:"grant_types_supported"`
	TokenEndpointAuth  []string `json:"token_endpoint_auth_methods_supported"`
	AssertionAlgs      []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	Scopes             []string `json:"scopes_supported"`
	ResponseTypes      []string `json:"response_types_supported"`
	SubjectTypes       []string `json:"subject_types_supported"`
	IDTokenSigningAlgs []string `json:"id_token_signing_alg_values_supported"`
}

// wellKnown are the addresses that token validators look at. A document has several, by different standards.
func (h *handlers) wellKnown() []api.Endpoint {
	row := func(pattern, operation string, handler api.HandlerFunc) api.Endpoint {
		return api.Endpoint{Method: http.MethodGet, Pattern: pattern, Operation: operation, Access: api.Public, Handler: handler}
	}
	return []api.Endpoint{
		row("/.well-known/jwks.json", "show-keys", h.showKeys),
		row(api.CatalogBase+"/.well-known/jwks.json", "show-keys", h.showKeys),
		row(api.CatalogBase+"/.well-known/openid-configuration", "show-issuer", h.showIssuer),
		row(api.CatalogBase+"/.well-known/oauth-authorization-server", "show-issuer", h.showIssuer),
		row("/.well-known/oauth-authorization-server"+api.CatalogBase, "show-issuer", h.showIssuer),
	}
}

func (h *handlers) showKeys(w http.ResponseWriter, r *http.Request) error {
	keys, err := h.Keys.JWKS(r.Context())
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, keys)
}

func (h *handlers) showIssuer(w http.ResponseWriter, r *http.Request) error {
	base := h.publicURL(r)
	return api.JSON(w, r, http.StatusOK, issuerMetadata{
		Issuer:        base + api.CatalogBase,
		TokenEndpoint: base + catalogV1 + "/oauth/tokens",
		JWKSURI:       base + "/.well-known/jwks.json",

		RevocationEndpoint: base + catalogV1 + "/oauth/revoke",
		RevocationAuth:     []string{"client_secret_basic", "client_secret_post", "private_key_jwt", "none"},
		GrantTypes: []string{
			"client_credentials", "urn:ietf:params:oauth:grant-type:token-exchange", "refresh_token", "urn:ietf:params:oauth:grant-type:jwt-bearer",
		},
		TokenEndpointAuth:  []string{"client_secret_basic", "client_secret_post", "private_key_jwt"},
		AssertionAlgs:      []string{auth.AlgorithmEdDSA, auth.AlgorithmES256, auth.AlgorithmRS256},
		Scopes:             []string{"catalog", "PRINCIPAL_ROLE:ALL"},
		ResponseTypes:      []string{},
		SubjectTypes:       []string{"public"},
		IDTokenSigningAlgs: []string{auth.AlgorithmEdDSA, auth.AlgorithmRS256},
	})
}

// publicURL is where clients reach this server: as configured, else as the request says.
func (h *handlers) publicURL(r *http.Request) string {
	if h.PublicURL != "" {
		return h.PublicURL
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
