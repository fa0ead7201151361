package manage

import (
	"net/http"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/catalog"
)

func (h *handlers) principalRows() []api.Endpoint {
	return []api.Endpoint{
		row(http.MethodGet, "/principals", "list-principals", listAll(h.service.ListPrincipals, principalsList)),
		row(http.MethodPost, "/principals", "create-principal", h.createPrincipal),
		row(http.MethodGet, principalRoute, "load-principal", load(named("principal"), h.service.FindPrincipal, shown(newPrincipalAnswer))),
		row(http.MethodPut, principalRoute, "update-principal", update(named("principal"), h.service.UpdatePrincipal, shown(newPrincipalAnswer))),
		row(http.MethodDelete, principalRoute, "drop-principal", drop(named("principal"), h.service.DropPrincipal)),
		row(http.MethodPost, principalRoute+"/rotate", "rotate-secret", h.rotateSecret),
		row(http.MethodPost, principalRoute+"/reset", "reset-secret", h.resetSecret),
	}
}

type principalAnswer struct {
	Name     string `json:"name"`
	ClientID string `json:"clientId"`
	entity
}

func newPrincipalAnswer(p catalog.PrincipalRecord) principalAnswer {
	return principalAnswer{Name: p.Name, ClientID: p.ClientID, entity: newEntity(p.Properties, p.CreatedAt, p.UpdatedAt, p.Version)}
}

var principalsList = listOf[catalog.PrincipalRecord, principalAnswer]{
	"principals", newPrincipalAnswer, func(p catalog.PrincipalRecord) string { return p.Name },
}

// answerSecret shows a principal with its new secret: the only answer that holds one.
func answerSecret(w http.ResponseWriter, r *http.Request, status int, p catalog.PrincipalRecord, secret auth.Secret) error {
	type credentials struct {
		ClientID string `json:"clientId"`
		Secret   string `json:"clientSecret"`
	}
	api.NoStore(w)
	return api.JSON(w, r, status, struct {
		Principal   principalAnswer `json:"principal"`
		Credentials credentials     `json:"credentials"`
	}{newPrincipalAnswer(p), credentials{p.ClientID, secret.Reveal()}})
}

// createPrincipal ignores a clientId in the body: Polaris' command line sends its own there.
func (h *handlers) createPrincipal(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Principal *struct {
			Name       string            `json:"name"`
			Properties map[string]string `json:"properties"`
		} `json:"principal"`
		RotationRequired bool `json:"credentialRotationRequired"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.Principal == nil {
		return missing("principal")
	}
	api.Annotate(r, "", body.Principal.Name)
	p, secret, err := h.service.CreatePrincipal(r.Context(), api.CallerOf(r), catalog.PrincipalDraft{
		Name: body.Principal.Name, Properties: body.Principal.Properties, RotationRequired: body.RotationRequired,
	})
	if err != nil {
		return err
	}
	return answerSecret(w, r, http.StatusCreated, p, secret)
}

func (h *handlers) rotateSecret(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "principal")
	if err != nil {
		return err
	}
	p, secret, err := h.service.RotateSecret(r.Context(), api.CallerOf(r), name)
	if err != nil {
		return err
	}
	return answerSecret(w, r, http.StatusOK, p, secret)
}

// resetSecret takes a body or none.
func (h *handlers) resetSecret(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "principal")
	if err != nil {
		return err
	}
	var body struct {
		ClientID string `json:"clientId"`
		Secret   string `json:"clientSecret"`
	}
	if r.ContentLength != 0 {
		if err := api.DecodeJSON(r, &body); err != nil {
			return err
		}
	}
	p, secret, err := h.service.ResetSecret(r.Context(), api.CallerOf(r), name, catalog.Credential{
		ClientID: body.ClientID, Secret: auth.Secret(body.Secret),
	})
	if err != nil {
		return err
	}
	return answerSecret(w, r, http.StatusOK, p, secret)
}
