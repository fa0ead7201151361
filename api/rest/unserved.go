package rest

import (
	"net/http"

	"catalogd/api"
	"catalogd/internal/fault"
)

// unserved are the routes that the specification has and this server does not do yet. They are not announced; clients
// that call them all the same get an answer of the right shape, so that engines which probe for functions go on.
func (h *handlers) unserved() []api.Endpoint {
	const get, head, post, del = http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete
	return v1(
		refused(post, tableRoute+"/sign", "sign-request", "remote signing"),
		refused(post, "/aws/s3/sign", "sign-s3-request", "remote signing"),
		refused(post, tableRoute+"/plan", "plan-scan", "scan planning"),
		refused(get, tableRoute+"/plan/{plan-id}", "fetch-plan", "scan planning"),
		refused(del, tableRoute+"/plan/{plan-id}", "cancel-plan", "scan planning"),
		refused(post, tableRoute+"/tasks", "fetch-scan-tasks", "scan planning"),
		api.Endpoint{Method: get, Pattern: namespaceRoute + "/functions", Operation: "list-functions", Handler: h.listNoFunctions},
		api.Endpoint{Method: get, Pattern: namespaceRoute + "/functions/{function}", Operation: "load-function", Handler: h.noSuchFunction},

		// A client that does not escape a slash in a name ends up below the name's first half.
		api.Endpoint{Method: get, Pattern: tableRoute + "/*", Operation: "load-table-below", Handler: noSuchTable},
		api.Endpoint{Method: head, Pattern: tableRoute + "/*", Operation: "table-exists-below", Handler: noSuchTable},
		api.Endpoint{Method: del, Pattern: tableRoute + "/*", Operation: "drop-table-below", Handler: noSuchTable},
		api.Endpoint{Method: get, Pattern: viewRoute + "/*", Operation: "load-view-below", Handler: noSuchView},
		api.Endpoint{Method: head, Pattern: viewRoute + "/*", Operation: "view-exists-below", Handler: noSuchView},
		api.Endpoint{Method: del, Pattern: viewRoute + "/*", Operation: "drop-view-below", Handler: noSuchView},
	)
}

// refused is a row that answers 406.
func refused(method, pattern, operation, what string) api.Endpoint {
	return api.Endpoint{Method: method, Pattern: pattern, Operation: operation,
		Handler: func(http.ResponseWriter, *http.Request) error {
			return fault.New(fault.Unsupported, "this server does not do %s yet; %s/config lists what it does", what, catalogV1)
		}}
}

func noSuchTable(_ http.ResponseWriter, r *http.Request) error {
	return missingBelow(r, "table", "Table", fault.NoSuchTable)
}

func noSuchView(_ http.ResponseWriter, r *http.Request) error {
	return missingBelow(r, "view", "View", fault.NoSuchView)
}

func missingBelow(r *http.Request, param, what string, kind fault.Kind) error {
	_, ident, err := identifierOf(r, param)
	if err != nil {
		return err
	}
	rest, err := api.Param(r, "*")
	if err != nil {
		return err
	}
	return fault.New(kind, "%s does not exist: %s/%s (a slash in a name is written %%2F in paths)", what, ident, rest)
}
