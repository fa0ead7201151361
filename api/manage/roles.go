package manage

import (
	"net/http"

	"catalogd/api"
	"catalogd/catalog"
)

func (h *handlers) roleRows() []api.Endpoint {
	return []api.Endpoint{
		row(http.MethodGet, "/principal-roles", "list-principal-roles", list(noWarehouse, h.service.ListRoles, rolesList)),
		row(http.MethodPost, "/principal-roles", "create-principal-role", h.createPrincipalRole),
		row(http.MethodGet, roleRoute, "load-principal-role", load(roleOf, h.service.FindRole, shown(newRoleAnswer))),
		row(http.MethodPut, roleRoute, "update-principal-role", update(roleOf, h.service.UpdateRole, shown(newRoleAnswer))),
		row(http.MethodDelete, roleRoute, "drop-principal-role", drop(roleOf, h.service.DropRole)),

		row(http.MethodGet, catalogRolesRoute, "list-catalog-roles", list(named("catalog"), h.service.ListRoles, rolesList)),
		row(http.MethodPost, catalogRolesRoute, "create-catalog-role", h.createCatalogRole),
		row(http.MethodGet, catalogRoleRoute, "load-catalog-role", load(roleOf, h.service.FindRole, shown(newRoleAnswer))),
		row(http.MethodPut, catalogRoleRoute, "update-catalog-role", update(roleOf, h.service.UpdateRole, shown(newRoleAnswer))),
		row(http.MethodDelete, catalogRoleRoute, "drop-catalog-role", drop(roleOf, h.service.DropRole)),
	}
}

// roleAnswer is a principal role or a catalog role; only the first can be federated.
type roleAnswer struct {
	Name      string `json:"name"`
	Federated *bool  `json:"federated,omitempty"`
	entity
}

func newRoleAnswer(role catalog.RoleRecord) roleAnswer {
	answer := roleAnswer{Name: role.Name, entity: newEntity(role.Properties, role.CreatedAt, role.UpdatedAt, role.Version)}
	if role.IsPrincipalRole() {
		answer.Federated = &role.Federated
	}
	return answer
}

var rolesList = listOf[catalog.RoleRecord, roleAnswer]{
	"roles", newRoleAnswer, func(role catalog.RoleRecord) string { return role.Name },
}

// noWarehouse is where principal roles are.
func noWarehouse(*http.Request) (string, error) { return "", nil }

// roleBody is a role in a request.
type roleBody struct {
	Name       string            `json:"name"`
	Federated  bool              `json:"federated"`
	Properties map[string]string `json:"properties"`
}

// roleBodies has the role under the name that its kind has.
type roleBodies struct {
	PrincipalRole *roleBody `json:"principalRole"`
	CatalogRole   *roleBody `json:"catalogRole"`
}

// roleOf reads from the path which role is meant: one of a catalog where the pattern has a catalog.
func roleOf(r *http.Request) (catalog.RoleName, error) {
	warehouse, err := api.Param(r, "catalog")
	if err != nil {
		return catalog.RoleName{}, err
	}
	segment := "role"
	if warehouse != "" {
		segment = "catalogRole"
	}
	name, err := api.Param(r, segment)
	api.Annotate(r, warehouse, name)
	return catalog.RoleName{Warehouse: warehouse, Name: name}, err
}

func (h *handlers) createPrincipalRole(w http.ResponseWriter, r *http.Request) error {
	var body roleBodies
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.PrincipalRole == nil {
		return missing("principalRole")
	}
	return h.createRole(w, r, catalog.RoleName{Name: body.PrincipalRole.Name}, *body.PrincipalRole)
}

func (h *handlers) createCatalogRole(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := param(r, "catalog")
	if err != nil {
		return err
	}
	var body roleBodies
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.CatalogRole == nil {
		return missing("catalogRole")
	}
	return h.createRole(w, r, catalog.RoleName{Warehouse: warehouse, Name: body.CatalogRole.Name}, *body.CatalogRole)
}

func (h *handlers) createRole(w http.ResponseWriter, r *http.Request, name catalog.RoleName, body roleBody) error {
	api.Annotate(r, name.Warehouse, name.Name)
	role, err := h.service.CreateRole(r.Context(), api.CallerOf(r), name,
		catalog.RoleDraft{Properties: body.Properties, Federated: body.Federated})
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusCreated, newRoleAnswer(role))
}
