package manage

import (
	"net/http"

	"catalogd/api"
)

// ownerAnswer tells who owns something; null for nobody.
type ownerAnswer struct {
	On    securableAnswer `json:"securable"`
	Owner *string         `json:"owner"`
}

func (h *handlers) loadOwner(w http.ResponseWriter, r *http.Request) error {
	on, _, err := securableOf(r)
	if err != nil {
		return err
	}
	owner, err := h.service.Owner(r.Context(), api.CallerOf(r), on)
	if err != nil {
		return err
	}
	answer := ownerAnswer{On: newSecurableAnswer(on)}
	if owner != "" {
		answer.Owner = &owner
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// setOwner hands over what the body names in the warehouse; without a name the warehouse itself.
func (h *handlers) setOwner(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := param(r, "catalog")
	if err != nil {
		return err
	}
	var body struct {
		securableBody
		Owner *string `json:"owner"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	if body.Owner == nil {
		return missing("owner (a principal's name, or an empty text for nobody)")
	}
	on := body.name()
	on.Warehouse = warehouse
	api.Annotate(r, warehouse, on.String())
	if err := h.service.SetOwner(r.Context(), api.CallerOf(r), on, *body.Owner); err != nil {
		return err
	}
	return api.NoContent(w)
}
