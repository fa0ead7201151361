package manage

import (
	"context"
	"net/http"
	"net/url"

	"catalogd/api"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

func (h *handlers) grantRows() []api.Endpoint {
	const route = catalogRoleRoute + "/grants"
	return []api.Endpoint{
		row(http.MethodGet, route, "list-grants", h.listGrants),
		row(http.MethodPut, route, "add-grant", h.addGrant),
		row(http.MethodGet, catalogRoute+"/grants", "list-grants-on", h.listGrantsOn),
		row(http.MethodPost, catalogRoute+"/grants", "change-grants", h.changeGrants),
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

var grantsList = listOf[catalog.RoleGrant, grantBody]{
	"grants", newGrantBody, func(g catalog.RoleGrant) string { return catalog.PageKey(g.Key()) },
}

func (h *handlers) listGrants(w http.ResponseWriter, r *http.Request) error {
	role, err := roleOf(r)
	if err != nil {
		return err
	}
	_, paging, err := listAsked(r)
	if err != nil {
		return err
	}
	grants, err := h.service.ListGrants(r.Context(), api.CallerOf(r), role, paging.Page())
	if err != nil {
		return err
	}
	return grantsList.answer(w, r, paging, grants)
}

// granteeAnswer is a grant on what was asked about, by who holds it.
type granteeAnswer struct {
	CatalogRole string          `json:"catalogRole"`
	Privilege   authz.Privilege `json:"privilege"`
}

var granteesList = listOf[catalog.GrantOn, granteeAnswer]{
	"grants", func(g catalog.GrantOn) granteeAnswer { return granteeAnswer{g.Role, g.Privilege} }, catalog.PageKey[catalog.GrantOn],
}

// securableOf gives what a request is about, in the path's warehouse by the query's names, and the query.
func securableOf(r *http.Request) (on catalog.SecurableName, query url.Values, err error) {
	warehouse, err := param(r, "catalog")
	if err != nil {
		return on, nil, err
	}
	if query, err = api.Query(r); err != nil {
		return on, nil, err
	}
	on = catalog.SecurableName{
		Warehouse: warehouse, Namespace: levelsOf(query.Get("namespace")), Table: query.Get("table"), View: query.Get("view"),
	}
	api.Annotate(r, warehouse, on.String())
	return on, query, nil
}

func (h *handlers) listGrantsOn(w http.ResponseWriter, r *http.Request) error {
	on, query, err := securableOf(r)
	if err != nil {
		return err
	}
	paging, err := pagingOf(query)
	if err != nil {
		return err
	}
	grants, err := h.service.ListGrantsOn(r.Context(), api.CallerOf(r), on, paging.Page())
	if err != nil {
		return err
	}
	return granteesList.answer(w, r, paging, grants)
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

// grantChangeBody is one of many changes.
type grantChangeBody struct {
	Action string     `json:"action"`
	Role   string     `json:"catalogRole"`
	Grant  *grantBody `json:"grant"`
}

func (b grantChangeBody) change() (catalog.GrantChange, error) {
	if b.Grant == nil {
		return catalog.GrantChange{}, missing("grant")
	}
	if b.Action != "add" && b.Action != "revoke" {
		return catalog.GrantChange{}, fault.New(fault.BadRequest, "action is %q; add and revoke are served", b.Action)
	}
	return catalog.GrantChange{Role: b.Role, Revoke: b.Action == "revoke", Target: b.Grant.target()}, nil
}

// changeGrants makes many changes in one transaction.
func (h *handlers) changeGrants(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := param(r, "catalog")
	if err != nil {
		return err
	}
	var body struct {
		Changes []grantChangeBody `json:"changes"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	changes := make([]catalog.GrantChange, len(body.Changes))
	for i, b := range body.Changes {
		if changes[i], err = b.change(); err != nil {
			return fault.New(fault.BadRequest, "changes[%d]: %s", i, fault.Message(err))
		}
	}
	if err := h.service.ChangeGrants(r.Context(), api.CallerOf(r), warehouse, changes); err != nil {
		return err
	}
	return api.NoContent(w)
}
