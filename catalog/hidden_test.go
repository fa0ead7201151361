package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

// viewCalls are all calls that name a view, with the right that each wants. They fail, or change nothing that matters.
func viewCalls(b *bench, c catalog.Caller) map[authz.Privilege]func(catalog.Identifier) error {
	return map[authz.Privilege]func(catalog.Identifier) error{
		authz.ViewReadProperties: func(id catalog.Identifier) error {
			_, err := b.LoadView(ctx, c, "w", id)
			return err
		},
		authz.ViewList: func(id catalog.Identifier) error { return b.ViewExists(ctx, c, "w", id) },
		authz.ViewDrop: func(id catalog.Identifier) error { // its own name: no change
			return b.RenameView(ctx, c, catalog.RenameTableRequest{Warehouse: "w", From: id, To: id})
		},
		authz.ViewWriteProperties: func(id catalog.Identifier) error {
			change, err := commit.DecodeViewRequest([]byte(`{"updates":[]}`))
			if err == nil {
				_, err = b.ReplaceView(ctx, c, catalog.ReplaceViewRequest{Warehouse: "w", Ident: id, Change: change})
			}
			return err
		},
	}
}

// Whatever somebody was granted: a view that he may not list answers as a name that nobody has, and so does a table
// that is asked for as a view; a list holds exactly what he may list; and who may list a view is never told that it is
// missing.
func TestField_C154_ViewsAndAnyGrants(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"v", "w", "x"} {
		b.mustCreateView(name)
	}
	b.mustCreate("t")
	names := []string{"v", "w", "x", "t", ""} // "": on the namespace
	var privileges []authz.Privilege
	for _, row := range authz.Rows() {
		if slices.Contains(row.On, authz.View) || slices.Contains(row.On, authz.Table) || slices.Contains(row.On, authz.Namespace) {
			privileges = append(privileges, row.Name)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := *b
		c := b.principal(uuid.NewString(), authz.CatalogListGrants, "") // says nothing about what is in the warehouse
		for range rapid.IntRange(0, 3).Draw(rt, "grants") {
			p := rapid.SampledFrom(privileges).Draw(rt, "privilege")
			b.grantOn(rt, c, p, rapid.SampledFrom(names).Draw(rt, "on"))
		}
		may := func(p authz.Privilege, name string) bool {
			res, err := b.store.Resolve(ctx, catalog.Lookup{Principal: c.Principal, Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: name})
			if err != nil {
				rt.Fatal(err)
			}
			return authz.Decide(res.Grants, res.Path(), p).Allowed
		}
		var visible []string
		for wanted, call := range viewCalls(&b, c) {
			missing := call(id("none"))
			for _, name := range []string{"v", "w", "x", "t"} {
				err := call(id(name))
				switch {
				case name != "t" && may(authz.ViewList, name):
					if fault.Is(err, fault.NoSuchView) || may(wanted, name) && wanted != authz.ViewDrop && err != nil {
						rt.Fatalf("%s on %s, which may be listed: %v", wanted, name, err)
					}
				case name != "t" && may(wanted, name):
				case fault.KindOf(err) != fault.KindOf(missing) || strings.ReplaceAll(err.Error(), "a."+name, "X") != strings.ReplaceAll(missing.Error(), "a.none", "X"):
					rt.Fatalf("%s on %s: %v\non a missing view: %v", wanted, name, err, missing)
				}
			}
		}
		for _, name := range []string{"v", "w", "x"} {
			if may(authz.ViewList, name) {
				visible = append(visible, name)
			}
		}
		list, err := b.ListViews(ctx, c, "w", catalog.Namespace{"a"}, catalog.Page{})
		var listed []string
		for _, id := range list {
			listed = append(listed, id.Name)
		}
		if err != nil && !fault.Is(err, fault.Forbidden) || err != nil && may(authz.NamespaceList, "") || !slices.Equal(listed, visible) {
			rt.Fatalf("listed %q, may see %q: %v", listed, visible, err)
		}
	})
}

// grantOn grants a privilege on a table or view of the namespace, or on the namespace, where it can be granted there.
func (b *bench) grantOn(rt *rapid.T, c catalog.Caller, p authz.Privilege, name string) {
	res, err := b.store.Resolve(ctx, catalog.Lookup{Principal: auth.MaintenancePrincipal(), Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: name})
	if err != nil {
		rt.Fatal(err)
	}
	path := res.Path()
	on := path[len(path)-1]
	if !authz.Grantable(p, on.Kind) {
		return
	}
	role, err := b.store.FindRole(ctx, res.Warehouse.ID, c.Principal.Name)
	if err == nil {
		err = b.store.AddGrant(ctx, role, catalog.RoleGrant{Privilege: p, Kind: on.Kind, ID: on.ID}, catalog.Fact{ID: uuid.New()})
	}
	if err != nil {
		rt.Fatal(err)
	}
}
