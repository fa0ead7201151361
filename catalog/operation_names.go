package catalog

import (
	"maps"
	"slices"
	"strings"

	"catalogd/internal/fault"
	"catalogd/internal/spelling"
)

// otherOperations are the names that the audit can have beside those of operationNeeds: of what needs no right that could be asked
// about, of what the server does by itself, and of routes where nobody gets further than a token that is refused.
var otherOperations = []string{
	"attach-policy", "bootstrap", "can-i", "cancel-plan", "create-generic-table", "create-policy", "detach-policy", "disable-webhook",
	"drop-generic-table", "drop-policy", "drop-table-below", "drop-view-below", "drop-webhook", "fetch-plan", "fetch-scan-tasks",
	"issue-token", "list-applicable-policies", "list-functions", "list-generic-tables", "list-policies", "list-reach", "load-config",
	"load-function", "load-generic-table", "load-job", "load-policy", "load-table-below", "load-view-below", "load-webhook", "maintain",
	"plan-scan", "redeliver-webhook", "retry-job", "revoke-token", "show-issuer", "show-keys", "sign-request", "sign-s3-request",
	"table-exists-below", "test-webhook", "update-policy", "update-webhook", "view-exists-below", "who-am-i",
}

// checkOperations is checkOperation for all of a filter.
func checkOperations(names []string) error {
	for _, name := range names {
		if err := checkOperation(name); err != nil {
			return err
		}
	}
	return nil
}

// KnownOperations gives the names of all operations that the audit can have, in order.
func KnownOperations() []string {
	return slices.Sorted(maps.Keys(knownOperations))
}

var knownOperations = func() map[string]bool {
	known := map[string]bool{}
	for name := range operationNeeds {
		known[name] = true
	}
	for _, name := range otherOperations {
		known[name] = true
	}
	return known
}()

// checkOperation refuses the name of no operation: no row would ever have it, and an empty answer reads as if nothing had happened.
func checkOperation(name string) error {
	if name == "" || knownOperations[name] {
		return nil
	}
	known := KnownOperations()
	near := ""
	if meant := spelling.Nearest(name, known); meant != "" {
		near = "did you mean " + meant + "? "
	}
	return fault.New(fault.BadRequest, "there is no operation %q; %sThere are: %s", name, near, strings.Join(known, ", "))
}
