package manage

import (
	"net/http"
	"time"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/catalog"
)

func (h *handlers) identityRows() []api.Endpoint {
	const route = principalRoute + "/identities"
	return []api.Endpoint{
		row(http.MethodGet, route, "list-identities", h.listIdentities),
		row(http.MethodPost, route, "link-identity", h.linkIdentity),
		row(http.MethodDelete, route, "unlink-identity", h.unlinkIdentity),
	}
}

// identityBody is a subject of an identity provider.
type identityBody struct {
	Issuer   string     `json:"issuer"`
	Subject  string     `json:"subject"`
	LinkedAt *time.Time `json:"linkedAt,omitempty"` // of answers
}

func newIdentityAnswer(l catalog.LinkedIdentity) identityBody {
	return identityBody{l.Issuer, l.Subject, &l.LinkedAt}
}

func (h *handlers) listIdentities(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "principal")
	if err != nil {
		return err
	}
	linked, err := h.service.LinkedIdentities(r.Context(), api.CallerOf(r), name)
	if err != nil {
		return err
	}
	answer := struct {
		Identities []identityBody `json:"identities"`
	}{[]identityBody{}}
	for _, l := range linked {
		answer.Identities = append(answer.Identities, newIdentityAnswer(l))
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

func (h *handlers) linkIdentity(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "principal")
	if err != nil {
		return err
	}
	var body identityBody
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	linked, err := h.service.LinkIdentity(r.Context(), api.CallerOf(r), name, auth.IdentityLink{Issuer: body.Issuer, Subject: body.Subject})
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusCreated, newIdentityAnswer(linked))
}

// unlinkIdentity takes the subject as parameters: it may have slashes, and a DELETE has no body.
func (h *handlers) unlinkIdentity(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "principal")
	if err != nil {
		return err
	}
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	link := auth.IdentityLink{Issuer: query.Get("issuer"), Subject: query.Get("subject")}
	if err := h.service.UnlinkIdentity(r.Context(), api.CallerOf(r), name, link); err != nil {
		return err
	}
	return api.NoContent(w)
}
