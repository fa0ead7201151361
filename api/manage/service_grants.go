package manage

import (
	"context"
	"net/http"

	"catalogd/api"
	"catalogd/authz"
	"catalogd/catalog"
)

func (h *handlers) serviceGrantRows() []api.Endpoint {
	const list = roleRoute + "/service-privileges"
	const route = list + "/{privilege}"
	return []api.Endpoint{
		row(http.MethodGet, list, "list-grants-on-service", h.grantsOnService),
		row(http.MethodPut, route, "grant-on-service", changeOnService(h.service.GrantOnService)),
		row(http.MethodDelete, route, "revoke-on-service", changeOnService(h.service.RevokeOnService)),
	}
}

func changeOnService(change func(context.Context, catalog.Caller, catalog.ServiceGrant) error) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		names, err := params(r, "role", "privilege")
		if err != nil {
			return err
		}
		if err := change(r.Context(), api.CallerOf(r), catalog.ServiceGrant{Role: names[0], Privilege: authz.Privilege(names[1])}); err != nil {
			return err
		}
		return api.NoContent(w)
	}
}

func (h *handlers) grantsOnService(w http.ResponseWriter, r *http.Request) error {
	role, err := param(r, "role")
	if err != nil {
		return err
	}
	held, err := h.service.GrantsOnService(r.Context(), api.CallerOf(r), role)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, struct {
		Privileges []authz.Privilege `json:"privileges"`
	}{api.List(held)})
}
