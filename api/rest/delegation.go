package rest

import (
	"net/http"
	"strings"
)

// delegationHeader is how a client asks for access to a table's files. It is a hint: what cannot be granted is left
// out of the answer without an error. Java sends it with every request, so only routes that vend look at it.
const delegationHeader = "X-Iceberg-Access-Delegation"

// delegationVended is the one mode that this server grants.
const delegationVended = "vended-credentials"

// delegated tells whether the client asked for vended credentials, among whatever else it asked for.
func delegated(r *http.Request) bool {
	for _, value := range r.Header.Values(delegationHeader) {
		for _, mode := range strings.Split(value, ",") {
			if strings.EqualFold(strings.TrimSpace(mode), delegationVended) {
				return true
			}
		}
	}
	return false
}
