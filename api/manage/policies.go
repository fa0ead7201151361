package manage

import (
	"net/http"
	"net/url"
	"strings"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// Polaris keeps policies and tables of other formats beside its catalog. This server has neither. Its clients list both
// all the same, in the middle of other things: a list is answered, empty, to who may see what it is of; what would make
// one is refused with the reason.
const (
	polarisV1      = api.CatalogBase + "/polaris/v1/{prefix}"
	policiesRoute  = polarisV1 + "/namespaces/{namespace}/policies"
	policyRoute    = policiesRoute + "/{policy}"
	genericRoute   = polarisV1 + "/namespaces/{namespace}/generic-tables"
	policiesRemedy = "this server has no policies: maintenance is set with the properties catalogd.maintenance.* of a table, or with `catalogd maintenance set`"
	genericRemedy  = "this server keeps Iceberg tables and views; generic tables of other formats are not served"
)

// policyRows are Polaris' calls on policies and generic tables.
func (h *handlers) policyRows() []api.Endpoint {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	row := func(method, pattern, operation string, handler api.HandlerFunc) api.Endpoint {
		return api.Endpoint{Method: method, Pattern: pattern, Operation: operation, Handler: handler}
	}
	noPolicy := missingOf("policy", fault.NotFound, "Policy does not exist: %s ("+policiesRemedy+")")
	noTable := missingOf("table", fault.NoSuchTable, "Table does not exist: %s ("+genericRemedy+")")
	return []api.Endpoint{
		row(get, policiesRoute, "list-policies", h.listNone("identifiers")),
		row(post, policiesRoute, "create-policy", unserved(policiesRemedy)),
		row(get, policyRoute, "load-policy", noPolicy),
		row(put, policyRoute, "update-policy", noPolicy),
		row(del, policyRoute, "drop-policy", noPolicy),
		row(put, policyRoute+"/mappings", "attach-policy", noPolicy),
		row(post, policyRoute+"/mappings", "detach-policy", noPolicy),
		row(get, polarisV1+"/applicable-policies", "list-applicable-policies", h.listApplicable),
		row(get, genericRoute, "list-generic-tables", h.listNone("identifiers")),
		row(post, genericRoute, "create-generic-table", unserved(genericRemedy)),
		row(get, genericRoute+"/{table}", "load-generic-table", noTable),
		row(del, genericRoute+"/{table}", "drop-generic-table", noTable),
	}
}

// unserved refuses what the server does not do.
func unserved(why string) api.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) error { return fault.New(fault.Unsupported, "%s", why) }
}

// missingOf answers that what the segment names is not there, whatever it names: nothing is looked up, so nothing is told.
func missingOf(segment string, kind fault.Kind, format string) api.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) error {
		name, err := param(r, segment)
		if err != nil {
			return err
		}
		return fault.New(kind, format, name)
	}
}

// answerNone answers an empty list.
func answerNone(w http.ResponseWriter, r *http.Request, field string) error {
	return api.JSON(w, r, http.StatusOK, map[string]any{field: []string{}, "next-page-token": nil})
}

// listNone answers an empty list of a namespace that the caller may see.
func (h *handlers) listNone(field string) api.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		names, err := params(r, "prefix", "namespace")
		if err != nil {
			return err
		}
		if err := h.service.NamespaceExists(r.Context(), api.CallerOf(r), names[0], levelsOf(names[1])); err != nil {
			return err
		}
		return answerNone(w, r, field)
	}
}

// listApplicable answers that no policy applies to a warehouse, a namespace or a table that the caller may see.
func (h *handlers) listApplicable(w http.ResponseWriter, r *http.Request) error {
	prefix, err := param(r, "prefix")
	if err != nil {
		return err
	}
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	if err := h.seesTarget(r, prefix, query); err != nil {
		return err
	}
	return answerNone(w, r, "applicable-policies")
}

func (h *handlers) seesTarget(r *http.Request, prefix string, query url.Values) error {
	ctx, caller, ns, name := r.Context(), api.CallerOf(r), levelsOf(query.Get("namespace")), query.Get("target-name")
	switch {
	case len(ns) == 0:
		_, err := h.service.FindWarehouse(ctx, caller, prefix)
		return err
	case name == "":
		return h.service.NamespaceExists(ctx, caller, prefix, ns)
	}
	return h.service.TableExists(ctx, caller, prefix, catalog.Identifier{Namespace: ns, Name: name})
}

// levelsOf splits a namespace as paths and queries spell it; "" has no level.
func levelsOf(text string) catalog.Namespace {
	if text == "" {
		return nil
	}
	return strings.Split(text, namespaceSeparator)
}
