package catalogtest

import (
	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// The owner is there at every level, cold and kept, in every answer about access, and changes at once.
var ownerPromises = []promise{
	{"AnOwnerIsResolvedListedAndReached", func(b *bench) {
		b.addPrincipal()
		table := b.table(b.namespace("a"), "t")
		view := b.view(b.namespace("c"), "v")
		res := b.resolve(catalog.Lookup{Namespace: table.Ident.Namespace, Table: "t"})
		path := res.Path()
		for _, on := range path[1:] {
			b.own(on, b.principal.ID)
		}
		b.own(authz.Securable{Kind: authz.View, ID: view.ID}, b.principal.ID)
		for range 2 { // once by the whole statement, once from what is kept
			res = b.resolve(catalog.Lookup{Namespace: table.Ident.Namespace, Table: "t"})
			if res.Warehouse.OwnerID != b.principal.ID || res.Namespace.OwnerID != b.principal.ID || res.Table.OwnerID != b.principal.ID {
				b.Errorf("owners %v %v %v", res.Warehouse.OwnerID, res.Namespace.OwnerID, res.Table.OwnerID)
			}
		}
		held, err := b.admin.Holdings(b.Context(), catalog.Holder{ID: b.principal.ID}, b.warehouse.ID, path)
		b.must(err)
		if len(held.Grants) != 3 || held.Grants[0].Kind != authz.Catalog || held.Grants[2] != ownership(path[3]) {
			b.Errorf("holds %+v", held.Grants)
		}
		who, err := b.admin.WhoCan(b.Context(), catalog.AccessQuery{WarehouseID: b.warehouse.ID, Wishes: []catalog.AccessWish{
			{Privileges: authz.Implying(authz.TableReadData), Path: path},
		}}, catalog.Page{})
		b.must(err)
		if len(who) != 1 || who[0].Principal != b.principal.Name || len(who[0].By) != 3 {
			b.Errorf("may read: %+v", who)
		}
		b.wantReach(catalog.ReachQuery{}, "catalog w   / OWNERSHIP", "namespace w a  / OWNERSHIP", "table w a t / OWNERSHIP", "view w c v / OWNERSHIP")
		b.own(path[3], uuid.Nil)
		b.wantReach(catalog.ReachQuery{}, "catalog w   / OWNERSHIP", "namespace w a  / OWNERSHIP", "view w c v / OWNERSHIP")
		if res = b.resolve(catalog.Lookup{Namespace: table.Ident.Namespace, Table: "t"}); res.Table.OwnerID != uuid.Nil {
			b.Errorf("owner %v after it was given up", res.Table.OwnerID)
		}
	}},
	{"AnOwnerSeesItsOwnInLists", func(b *bench) {
		b.addPrincipal()
		n := b.namespace("a")
		mine := b.table(n, "mine")
		b.table(n, "other")
		b.own(authz.Securable{Kind: authz.Table, ID: mine.ID}, b.principal.ID)
		for all, want := range map[bool]int{true: 1, false: 0} {
			principal := b.principal
			principal.Roles = auth.RoleScope{All: all}
			w := inNamespace(n.ID, catalog.KindTable, catalog.Page{})
			w.GrantedTo = &catalog.GrantedTo{Principal: principal, Privileges: authz.Implying(authz.TableList)}
			if names := b.names(w); len(names) != want {
				b.Errorf("all roles %v: listed %v", all, names)
			}
		}
	}},
	{"AnOwnerMustBeThereAndSoMustTheThing", func(b *bench) {
		n := b.namespace("a")
		on := authz.Securable{Kind: authz.Namespace, ID: n.ID}
		b.refused(b.admin.SetOwner(b.Context(), catalog.OwnerChange{On: on, Owner: uuid.New(), Fact: b.fact("set-owner", "a")}), fault.NotFound, "")
		on.ID = uuid.New()
		b.refused(b.admin.SetOwner(b.Context(), catalog.OwnerChange{On: on, Fact: b.fact("set-owner", "b")}), fault.NotFound, "")
	}},
}

func (b *bench) own(on authz.Securable, owner uuid.UUID) {
	b.Helper()
	b.must(b.admin.SetOwner(b.Context(), catalog.OwnerChange{On: on, Owner: owner, Fact: b.fact("set-owner", on.Name)}))
}
