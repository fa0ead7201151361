package manage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
)

// levelOperations are operations that read one thing and need one privilege on it, so that thousands of cells can be tried.
var levelOperations = []struct {
	operation, method, path string
	wanted                  authz.Privilege
	on                      authz.SecurableKind
}{
	{"load-warehouse", get, "/api/management/v1/catalogs/lake", authz.CatalogReadProperties, authz.Catalog},
	{"list-catalog-roles", get, "/api/management/v1/catalogs/lake/catalog-roles", authz.CatalogRoleList, authz.Catalog},
	{"namespace-exists", "HEAD", "/api/catalog/v1/lake/namespaces/a", authz.NamespaceList, authz.Namespace},
	{"load-namespace", get, "/api/catalog/v1/lake/namespaces/a", authz.NamespaceReadProperties, authz.Namespace},
	{"list-grants-on", get, "/api/management/v1/catalogs/lake/grants?namespace=a", authz.NamespaceListGrants, authz.Namespace},
	{"table-exists", "HEAD", "/api/catalog/v1/lake/namespaces/a/tables/t", authz.TableList, authz.Table},
	{"load-table", get, "/api/catalog/v1/lake/namespaces/a/tables/t", authz.TableReadProperties, authz.Table},
	{"load-credentials", get, "/api/catalog/v1/lake/namespaces/a/tables/t/credentials", authz.TableReadData, authz.Table},
	{"list-metrics", get, "/api/management/v1/catalogs/lake/namespaces/a/tables/t/metrics", authz.TableWriteData, authz.Table},
	{"load-owner", get, "/api/management/v1/catalogs/lake/owner?namespace=a&table=t", authz.TableListGrants, authz.Table},
	{"load-view", get, "/api/catalog/v1/lake/namespaces/a/views/v", authz.ViewReadProperties, authz.View},
}

// TestMatrix_PrivilegesAtEveryLevel grants each privilege of the table where it can be granted: on the service, the
// warehouse, the namespace, the thing itself, and on a sibling of each. A grant opens an operation when its privilege
// contains the wanted one and it is on the thing or on what this lies in; on a sibling never. Taking it back closes it.
func TestMatrix_PrivilegesAtEveryLevel(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	for _, w := range []string{"lake", "pond"} {
		o.open(w)
	}
	o.furnish(root, "lake", "a")
	o.furnish(root, "lake", "b")
	caller := o.login(o.hire("ann", "anns"), "")
	holder, err := o.store.FindRole(t.Context(), uuid.Nil, "anns")
	if err != nil {
		t.Fatal(err)
	}
	root.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"r"}}`)
	root.want(201, put, "/principal-roles/anns/catalog-roles/lake", `{"catalogRole":{"name":"r"}}`)
	paths := map[string][]authz.Securable{}
	for _, name := range []string{"a.t", "a.v", "b.t", "b.v"} {
		ns, thing, _ := strings.Cut(name, ".")
		res, err := o.store.Resolve(t.Context(), catalog.Lookup{Warehouse: "lake", Namespace: catalog.Namespace{ns}, Table: thing})
		if err != nil {
			t.Fatal(err)
		}
		paths[name] = res.Path()
	}
	role, err := o.store.FindRole(t.Context(), paths["a.t"][1].ID, "r")
	if err != nil {
		t.Fatal(err)
	}
	cells, opened := 0, 0
	for _, p := range authz.Rows() {
		for _, at := range places(paths) {
			if !authz.Grantable(p.Name, at.Kind) {
				continue
			}
			to := role
			if at.Kind == authz.Root {
				to = holder
			}
			grant := catalog.RoleGrant{Privilege: p.Name, Kind: at.Kind, ID: at.ID}
			fact := func() catalog.Fact { return catalog.Fact{ID: uuid.New(), At: time.Now()} }
			if err := o.store.AddGrant(t.Context(), to, grant, fact()); err != nil {
				t.Fatal(err)
			}
			var open []string
			for _, op := range levelOperations {
				cells++
				status := o.send(op.method, op.path, caller.token, "", "").status
				path := paths["a.t"]
				switch op.on {
				case authz.Catalog:
					path = path[:2]
				case authz.Namespace:
					path = path[:3]
				case authz.View:
					path = paths["a.v"]
				}
				want := authz.Implies(p.Name, op.wanted) && contains(path, at)
				if (status < 300) != want || status >= 500 {
					t.Errorf("%s on %s: %s answers %d, allowed should be %v", p.Name, at, op.operation, status, want)
				}
				if status < 300 {
					opened++
					open = append(open, op.path)
				}
			}
			if err := o.store.RevokeGrant(t.Context(), to, grant, fact()); err != nil {
				t.Fatal(err)
			}
			for _, path := range open {
				if status := o.send(get, path, caller.token, "", "").status; status < 400 {
					t.Errorf("%s on %s was taken back: %s answers %d", p.Name, at, path, status)
				}
			}
		}
	}
	if cells < 3000 {
		t.Errorf("%d cells", cells)
	}
	matrix{"reading operations: each privilege at every level, and beside it", len(levelOperations), cells + opened, cells}.hold(t)
}

func contains(path []authz.Securable, at authz.Securable) bool {
	for _, on := range path {
		if on.Kind == at.Kind && on.ID == at.ID {
			return true
		}
	}
	return false
}

// places are all elements of the paths, each once.
func places(paths map[string][]authz.Securable) (all []authz.Securable) {
	for _, path := range paths {
		for _, on := range path {
			if !contains(all, on) {
				all = append(all, on)
			}
		}
	}
	return all
}
