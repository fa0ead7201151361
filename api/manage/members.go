package manage

import (
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
)

func (h *handlers) memberRows() []api.Endpoint {
	return []api.Endpoint{
		row(http.MethodGet, principalRoute+"/principal-roles", "list-roles-of-principal", list(named("principal"), h.service.ListPrincipalRolesOf, rolesList)),
		row(http.MethodPut, principalRoute+"/principal-roles", "assign-principal-role", h.assignPrincipalRole),
		row(http.MethodDelete, principalRoute+"/principal-roles/{role}", "revoke-principal-role", h.revokePrincipalRole),
		row(http.MethodGet, roleRoute+"/principals", "list-principals-with-role", list(roleOf, h.service.ListPrincipalsWith, principalsList)),

		row(http.MethodGet, holderRoute, "list-catalog-roles-of-holder", list(holderOf, h.service.ListCatalogRolesOf, rolesList)),
		row(http.MethodPut, holderRoute, "assign-catalog-role", h.assignCatalogRole),
		row(http.MethodDelete, holderRoute+"/{catalogRole}", "revoke-catalog-role", h.revokeCatalogRole),
		row(http.MethodGet, catalogRoleRoute+"/principal-roles", "list-holders-of-catalog-role", list(roleOf, h.service.ListPrincipalRolesWith, rolesList)),
	}
}

func (h *handlers) assignPrincipalRole(w http.ResponseWriter, r *http.Request) error {
	principal, err := param(r, "principal")
	if err != nil {
		return err
	}
	var body roleBodies
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.PrincipalRole == nil || body.PrincipalRole.Name == "" {
		return missing("principalRole.name")
	}
	member := catalog.PrincipalRoleMember{Principal: principal, Role: body.PrincipalRole.Name}
	if err := h.service.AssignPrincipalRole(r.Context(), api.CallerOf(r), member); err != nil {
		return err
	}
	return created(w)
}

func (h *handlers) revokePrincipalRole(w http.ResponseWriter, r *http.Request) error {
	names, err := params(r, "principal", "role")
	if err != nil {
		return err
	}
	member := catalog.PrincipalRoleMember{Principal: names[0], Role: names[1]}
	if err := h.service.RevokePrincipalRole(r.Context(), api.CallerOf(r), member); err != nil {
		return err
	}
	return api.NoContent(w)
}

// holderOf reads the principal role and the warehouse whose roles it has.
func holderOf(r *http.Request) (catalog.CatalogRoleMember, error) {
	names, err := params(r, "role", "catalog")
	if err != nil {
		return catalog.CatalogRoleMember{}, err
	}
	return catalog.CatalogRoleMember{PrincipalRole: names[0], Warehouse: names[1]}, nil
}

func (h *handlers) assignCatalogRole(w http.ResponseWriter, r *http.Request) error {
	names, err := params(r, "role", "catalog")
	if err != nil {
		return err
	}
	var body roleBodies
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.CatalogRole == nil || body.CatalogRole.Name == "" {
		return missing("catalogRole.name")
	}
	member := catalog.CatalogRoleMember{PrincipalRole: names[0], Warehouse: names[1], CatalogRole: body.CatalogRole.Name}
	if err := h.service.AssignCatalogRole(r.Context(), api.CallerOf(r), member); err != nil {
		return err
	}
	return created(w)
}

func (h *handlers) revokeCatalogRole(w http.ResponseWriter, r *http.Request) error {
	names, err := params(r, "role", "catalog", "catalogRole")
	if err != nil {
		return err
	}
	member := catalog.CatalogRoleMember{PrincipalRole: names[0], Warehouse: names[1], CatalogRole: names[2]}
	if err := h.service.RevokeCatalogRole(r.Context(), api.CallerOf(r), member); err != nil {
		return err
	}
	return api.NoContent(w)
}
