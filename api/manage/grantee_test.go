package manage_test

import (
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
)

// grantee is a caller without rights, and two roles of its own through which it is given some.
type grantee struct {
	*office
	caller *person
	role   catalog.RoleRecord // of the warehouse lake
	holder catalog.RoleRecord // the caller's principal role, for what is held on the service
}

// newGrantee hires somebody whose names begin with x.
func newGrantee(o *office, root *person, x string) *grantee {
	o.t.Helper()
	g := &grantee{office: o, caller: o.login(o.hire(x+"-caller", x+"-holder"), "")}
	root.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":`+quote(x+"-rights")+`}}`)
	root.want(201, put, "/principal-roles/"+x+"-holder/catalog-roles/lake", `{"catalogRole":{"name":`+quote(x+"-rights")+`}}`)
	lake := g.path(catalog.SecurableName{Warehouse: "lake"})[1].ID
	g.holder, g.role = g.find(uuid.Nil, x+"-holder"), g.find(lake, x+"-rights")
	return g
}

func (g *grantee) find(warehouse uuid.UUID, name string) catalog.RoleRecord {
	g.t.Helper()
	r, err := g.store.FindRole(g.t.Context(), warehouse, name)
	if err != nil {
		g.t.Fatal(err)
	}
	return r
}

// path is the securable with all that it lies in, the service first.
func (o *office) path(on catalog.SecurableName) []authz.Securable {
	o.t.Helper()
	res, err := o.store.Resolve(o.t.Context(), catalog.Lookup{Warehouse: on.Warehouse, Namespace: on.Namespace, Table: on.Table + on.View})
	if err != nil {
		o.t.Fatal(err)
	}
	return res.Path()
}

// change grants all of that to the caller, or takes all of it back: what is in the warehouse at once.
func (g *grantee) change(take bool, grants ...catalog.RoleGrant) {
	g.t.Helper()
	service := g.store.AddGrant
	if take {
		service = g.store.RevokeGrant
	}
	var inside []catalog.GrantWrite
	for _, grant := range grants {
		fact := catalog.Fact{ID: uuid.New(), At: time.Now()}
		if grant.Kind != authz.Root {
			inside = append(inside, catalog.GrantWrite{Role: g.role, Grant: grant, Revoke: take, Fact: fact})
		} else if err := service(g.t.Context(), g.holder, grant, fact); err != nil {
			g.t.Fatal(err)
		}
	}
	if err := g.store.ChangeGrants(g.t.Context(), inside); err != nil {
		g.t.Fatal(err)
	}
}

// but are all grants that there can be in these places, without those that contain the wanted privilege.
func but(wanted authz.Privilege, places ...authz.Securable) (grants []catalog.RoleGrant) {
	for _, row := range authz.Rows() {
		for _, at := range places {
			if authz.Grantable(row.Name, at.Kind) && !authz.Implies(row.Name, wanted) {
				grants = append(grants, catalog.RoleGrant{Privilege: row.Name, Kind: at.Kind, ID: at.ID})
			}
		}
	}
	return grants
}

func isRefusal(status int) bool { return status == 403 || status == 404 }
