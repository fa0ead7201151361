package catalogtest

import (
	"slices"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

var grantPromises = []promise{
	{"ManyGrantsChangeTogether", func(b *bench) {
		reader, writer := b.addCatalogRole("reader"), b.addCatalogRole("writer")
		on := func(p authz.Privilege) catalog.RoleGrant {
			return catalog.RoleGrant{Privilege: p, Kind: authz.Catalog, ID: b.warehouse.ID}
		}
		write := func(r catalog.RoleRecord, p authz.Privilege, revoke bool) catalog.GrantWrite {
			return catalog.GrantWrite{Role: r, Grant: on(p), Revoke: revoke, Fact: b.fact("change", r.Name)}
		}
		held := func(want ...authz.Privilege) {
			b.Helper()
			grants, err := b.admin.ListGrants(b.Context(), reader, catalog.GrantKey{}, 0)
			b.must(err)
			for i := range grants {
				if len(grants) != len(want) || grants[i].Privilege != want[i] {
					b.Fatalf("%v, want %v", grants, want)
				}
			}
			if len(grants) != len(want) {
				b.Fatalf("%v, want %v", grants, want)
			}
		}
		b.must(b.admin.ChangeGrants(b.Context(), []catalog.GrantWrite{
			write(reader, authz.TableList, false), write(reader, authz.TableReadData, false), write(writer, authz.TableWriteData, false),
			write(reader, authz.TableList, true), write(reader, authz.TableDrop, false), write(reader, authz.TableDrop, true),
		}))
		held(authz.TableReadData)
		b.leavesNoTrace(func() {
			b.must(b.admin.ChangeGrants(b.Context(), []catalog.GrantWrite{
				write(reader, authz.TableReadData, false), write(reader, authz.TableList, true), // changes nothing
			}))
			gone := catalog.RoleRecord{ID: uuid.New(), WarehouseID: b.warehouse.ID, Name: "gone"}
			b.refused(b.admin.ChangeGrants(b.Context(), []catalog.GrantWrite{
				write(reader, authz.TableDrop, false), write(reader, authz.TableReadData, true), write(gone, authz.TableList, false),
			}), fault.NotFound, "")
		})
		held(authz.TableReadData)
	}},
	{"WhatIsGrantedIsListedWhereItIs", whatMovesIsListed},
	{"Race_WhatMovesWhileItIsGrantedIsListedWhereItIs", func(b *bench) {
		w := newGrantedList(b)
		from, to := b.namespace("a"), b.namespace("b")
		made := b.table(from, "t")
		on := catalog.RoleGrant{Privilege: authz.TableReadData, Kind: authz.Table, ID: made.ID}
		for range 4 * roundsMax {
			for _, err := range b.race(2, func(i int) error {
				if i == 0 {
					return b.rename(made, to, "t")
				}
				return b.admin.AddGrant(b.Context(), w.reader, on, b.fact("grant", "reader"))
			}) {
				b.must(err)
			}
			w.lists(to, "t")
			w.lists(from)
			b.must(b.admin.RevokeGrant(b.Context(), w.reader, on, b.fact("revoke", "reader")))
			w.lists(to)
			from, to = to, from
		}
	}},
}

// grantedList is a principal with a role, and asks what it may see.
type grantedList struct {
	*bench
	replica catalog.Store
	reader  catalog.RoleRecord
}

func newGrantedList(b *bench) grantedList {
	role, reader := b.addPrincipalRole("r"), b.addCatalogRole("reader")
	b.addPrincipal(role)
	b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, reader.ID, b.fact("assign", "reader")))
	return grantedList{b, b.back.Replica(b), reader}
}

// lists wants these names of a namespace, in every store: by themselves, and with a resolution that is new or kept.
func (w grantedList) lists(in catalog.NamespaceRecord, want ...string) {
	w.Helper()
	wanted := inNamespace(in.ID, "", catalog.Page{})
	wanted.WarehouseID = w.warehouse.ID
	wanted.GrantedTo = &catalog.GrantedTo{
		Principal: w.principal, Privileges: append(authz.Implying(authz.TableList), authz.Implying(authz.ViewList)...),
	}
	for i, store := range []catalog.Store{w.replica, w.store, w.replica, w.store} {
		names, err := Names(w.Context(), store, wanted)
		w.must(err)
		var together []string
		_, err = store.ResolveNames(w.Context(), catalog.Lookup{Principal: w.principal, Warehouse: w.warehouse.Name, Namespace: in.Levels},
			func(catalog.Resolution) (catalog.NamesWanted, bool) { together = nil; return wanted, true },
			func(piece []string) bool { together = append(together, piece...); return true })
		w.must(err)
		if !slices.Equal(names, want) || !slices.Equal(together, want) {
			w.Errorf("list %d of %s: %q and with a resolution %q, want %q", i, in.Levels, names, together, want)
		}
	}
}

// whatMovesIsListed takes tables and views with grants to other namespaces and back.
func whatMovesIsListed(b *bench) {
	w := newGrantedList(b)
	one, two := b.namespace("a"), b.namespace("b")
	table, view, other := b.table(one, "t"), b.view(one, "v"), b.table(one, "other")
	w.lists(one)
	b.grant(w.reader, authz.TableReadData, authz.Table, table.ID)
	w.lists(one, "t")
	b.grant(w.reader, authz.ViewReadProperties, authz.View, view.ID)
	w.lists(one, "t", "v")
	b.must(b.rename(table, two, "t"))
	w.lists(one, "v")
	w.lists(two, "t")
	b.must(b.rename(view, two, "w"))
	b.must(b.rename(other, two, "other")) // without a grant
	b.grant(w.reader, authz.TableWriteData, authz.Table, table.ID)
	w.lists(one)
	w.lists(two, "t", "w")
	b.must(b.rename(table, one, "back"))
	w.lists(one, "back")
	w.lists(two, "w")
	for _, p := range []authz.Privilege{authz.TableReadData, authz.TableWriteData} {
		b.must(b.admin.RevokeGrant(b.Context(), w.reader, catalog.RoleGrant{Privilege: p, Kind: authz.Table, ID: table.ID}, b.fact("revoke", "reader")))
	}
	w.lists(one)
	view.Ident = catalog.Identifier{Namespace: two.Levels, Name: "w"}
	b.drop(view)
	b.view(two, "w")
	w.lists(two)
}
