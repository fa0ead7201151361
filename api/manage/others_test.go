package manage_test

import (
	"fmt"
	"slices"
	"strings"

	"catalogd/authz"
	"catalogd/catalog"
)

// alsoOpens are the privileges that open an operation beside those that the answer about it names, as docs/access.md says.
var alsoOpens = map[string]authz.Privilege{
	"commit-table":                 authz.TableSetProperties, // of the update that is sent
	"commit-transaction":           authz.TableSetProperties,
	"list-catalog-roles-of-holder": authz.PrincipalRoleListGrants,
}

// isShut tells whether nothing was done or told. Who may see something in a namespace is answered its tables and views, as far
// as he may see them.
func (s *trial) isShut(r reply) bool {
	seesNone := strings.Contains(r.body, `"identifiers":[]`) && slices.Contains([]string{"list-tables", "list-views"}, s.e.Operation)
	return isRefusal(r.status) || seesNone
}

// nothingElseOpens tries the operation with every privilege that does not contain a need, for each of the needs: on the service,
// the warehouses, the namespaces and the things. A refused request changes nothing, so the same one can be sent again. It tells
// whether all were refused.
func (s *trial) nothingElseOpens(needs catalog.Answer, m *matrix) bool {
	s.t.Helper()
	for i, lack := range needs.Missing {
		held := s.others(lack.Privilege)
		m.requests++
		m.cells += len(held)
		other := newGrantee(s.office, s.root, fmt.Sprintf("%s-other%d", s.x, i)) // quicker than taking all back
		other.change(false, held...)
		r := s.answer(other.caller)
		if !s.isShut(r) {
			s.t.Errorf("%s with everything but %s: %d; opened by %s", s.e.Operation, lack.Privilege, r.status, s.culprits(i, held))
			return false
		}
	}
	return true
}

// others are all grants that there can be around the trial's things but those that contain the wanted privilege, or open the operation too.
func (s *trial) others(wanted authz.Privilege) []catalog.RoleGrant {
	s.t.Helper()
	var places []authz.Securable
	for _, on := range []catalog.SecurableName{inLake(s.x, "t", ""), inLake(s.x, "", "v"), inLake(s.x+"-empty", "", ""), {Warehouse: s.warehouse}} {
		for _, at := range s.path(on) {
			if !contains(places, at) {
				places = append(places, at)
			}
		}
	}
	return slices.DeleteFunc(but(wanted, places...), func(g catalog.RoleGrant) bool {
		return authz.Implies(g.Privilege, alsoOpens[s.e.Operation])
	})
}

// culprits tries the privileges one by one beside the needs but one, on new things after each that opens the operation, and names these.
func (s *trial) culprits(without int, held []catalog.RoleGrant) string {
	s.t.Helper()
	var names []string
	fresh, needs := (*trial)(nil), catalog.Answer{}
	for i, grant := range held {
		same := func(g catalog.RoleGrant) bool { return g.Privilege == grant.Privilege && g.Kind == grant.Kind }
		if slices.IndexFunc(held, same) < i {
			continue
		}
		if fresh == nil {
			fresh = newTrial(s.office, s.root, s.e, fmt.Sprintf("%s-%d", s.x, len(names)))
			needs, _ = askedOf(fresh, question(fresh.e.Operation, fresh.securable()))
		}
		fresh.giveAll(needs, without)
		one := slices.DeleteFunc(fresh.others(""), func(g catalog.RoleGrant) bool { return !same(g) })
		fresh.change(false, one...)
		if !fresh.isShut(fresh.answer(fresh.caller)) {
			names = append(names, fmt.Sprintf("%s on %s", grant.Privilege, grant.Kind))
			fresh = nil
			continue
		}
		fresh.change(true, one...)
	}
	if names == nil {
		return "several together"
	}
	return strings.Join(names, ", ")
}
