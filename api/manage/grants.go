package manage

import (
	"context"
	"net/http"

	"catalogd/api"
	"catalogd/authz"
	"catalogd/catalog"
)

func (h *handlers) grantRows() []api.Endpoint {
	const route = catalogRoleRoute + "/grants"
	return []api.Endpoint{
		row(http.MethodGet, route, "list-grants", load(roleOf, h.service.ListGrants, answerGrants)),
		row(http.MethodPut, route, "add-grant", h.addGrant),
		// Polaris revokes by POST, because a DELETE has no body.
		row(http.MethodPost, route, "revoke-grant", h.revokeGrant),
	}
}

// grantBody is one grant: catalog {privilege}, namespace {namespace, privilege}, table and view with their name too.
type grantBody struct {
	Type      string   `json:"type"`
	Namespace []string `json:"namespace,omitempty"`
	Table     string   `json:"tableName,omitempty"`
	View      string   `json:"viewName,omitempty"`
	Privilege string   `json:"privilege"`
}

func newGrantBody(g catalog.RoleGrant) grantBody {
	body := grantBody{Type: string(g.Kind), Namespace: g.Namespace, Privilege: string(g.Privilege)}
	switch g.Kind {
	case authz.Table:
		body.Table = g.Name
	case authz.View:
		body.View = g.Name
	}
	return body
}

func (b grantBody) target() catalog.GrantTarget {
	target := catalog.GrantTarget{
		Privilege: authz.Privilege(b.Privilege), Kind: authz.SecurableKind(b.Type), Namespace: b.Namespace, Name: b.Table,
	}
	if target.Kind == authz.View {
		target.Name = b.View
	}
	return target
}

func answerGrants(w http.ResponseWriter, r *http.Request, grants []catalog.RoleGrant) error {
	answer := struct {
		Grants []grantBody `json:"grants"`
	}{[]grantBody{}}
	for _, g := range grants {
		answer.Grants = append(answer.Grants, newGrantBody(g))
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

func (h *handlers) addGrant(w http.ResponseWriter, r *http.Request) error {
	return changeGrant(w, r, h.service.Grant)
}

func (h *handlers) revokeGrant(w http.ResponseWriter, r *http.Request) error {
	return changeGrant(w, r, h.service.Revoke)
}

func changeGrant(
	w http.ResponseWriter, r *http.Request,
	change func(context.Context, catalog.Caller, catalog.RoleName, catalog.GrantTarget) error,
) error {
	role, err := roleOf(r)
	if err != nil {
		return err
	}
	var body struct {
		Grant *grantBody `json:"grant"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.Grant == nil {
		return missing("grant")
	}
	if err := change(r.Context(), api.CallerOf(r), role, body.Grant.target()); err != nil {
		return err
	}
	return created(w)
}
