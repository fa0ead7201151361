package catalogtest

import (
	"slices"
	"strconv"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/deflate"
	"catalogd/internal/fault"
)

// newView says what a view would be; location "" is the server's own choice.
func (b *bench) newView(n catalog.NamespaceRecord, name, location string) catalog.PointerChange {
	change := b.newTable(n, name, location)
	change.Record.Kind, change.Record.FormatVersion = catalog.KindView, 1
	change.Fact.Operation = "create-view"
	return change
}

func (b *bench) view(n catalog.NamespaceRecord, name string) catalog.TableRecord {
	b.Helper()
	change := b.newView(n, name, "")
	b.must(b.commit(change))
	return change.Record
}

// loadView gives a view's row by its name; nil when there is none.
func (b *bench) loadView(id catalog.Identifier) *catalog.TableRecord {
	b.Helper()
	res := b.resolve(catalog.Lookup{Namespace: id.Namespace, Table: id.Name})
	if res.View != nil && res.Table != nil {
		b.Errorf("%s is a table and a view", id)
	}
	return res.View
}

func (b *bench) views(n catalog.NamespaceRecord) []string {
	b.Helper()
	return b.names(inNamespace(n.ID, catalog.KindView, catalog.Page{}))
}

var viewPromises = []promise{
	{"CreateMakesTheRow", func(b *bench) {
		a := b.namespace("a")
		change := b.newView(a, "v", "")
		change.Packed = deflate.Pack([]byte("text"))
		b.must(b.commit(change))
		b.wantTable(b.loadView(change.Record.Ident), change.Record)
		if b.load(change.Record.Ident) != nil {
			b.Error("the view is a table")
		}
		b.wantKept(change.Record, "text")
		if e := b.events("create-view"); len(e) != 1 || e[0].ID != change.Fact.ID {
			b.Errorf("events %+v", e)
		}
		if _, dirty := b.back.MaintenanceOf(b, change.Record.ID); dirty {
			b.Error("the worker would look at a view")
		}
	}},
	{"NamesAreUniqueOverBothKinds", func(b *bench) {
		a := b.namespace("a")
		table, view := b.table(a, "t"), b.view(a, "v")
		b.leavesNoTrace(func() {
			b.refused(b.commit(b.newView(a, "v", "")), fault.AlreadyExists, "View already exists: a.v")
			b.refused(b.commit(b.newView(a, "t", "")), fault.AlreadyExists, "Table with same name already exists: a.t")
			b.refused(b.commit(b.newTable(a, "v", "")), fault.AlreadyExists, "View with same name already exists: a.v")
			b.refused(b.rename(view, a, "t"), fault.AlreadyExists, "Cannot rename a.v to a.t. Table already exists")
			b.refused(b.rename(table, a, "v"), fault.AlreadyExists, "Cannot rename a.t to a.v. View already exists")
		})
		b.wantTable(b.load(table.Ident), table)
		b.wantTable(b.loadView(view.Ident), view)
		if t, v := b.tables(a), b.views(a); !slices.Equal(t, []string{"t"}) || !slices.Equal(v, []string{"v"}) {
			b.Errorf("tables %q, views %q", t, v)
		}
	}},
	{"SwapMovesThePointer", func(b *bench) {
		made := b.view(b.namespace("a"), "v")
		first, second := b.swap(made), b.swap(made)
		b.must(b.commit(first))
		b.wantTable(b.loadView(made.Ident), first.Record)
		b.leavesNoTrace(func() { b.refused(b.commit(second), fault.CommitRace, "") })
		b.drop(first.Record)
		b.leavesNoTrace(func() { b.refused(b.commit(b.swap(first.Record)), fault.NoSuchView, "View does not exist: a.v") })
	}},
	{"AViewIsNotMovedAsATable", func(b *bench) {
		a := b.namespace("a")
		view, table := b.view(a, "v"), b.table(a, "t")
		asTable, asView := view, table
		asTable.Kind, asView.Kind = catalog.KindTable, catalog.KindView
		b.leavesNoTrace(func() {
			for _, r := range []catalog.TableRecord{asTable, asView} {
				if err := b.commit(b.swap(r)); err == nil {
					b.Errorf("%s was moved as a %s", r.Ident, r.Kind)
				}
			}
			b.refused(b.rename(asTable, a, "x"), fault.NoSuchTable, "Table does not exist: a.v")
			b.refused(b.rename(asView, a, "x"), fault.NoSuchView, "View does not exist: a.t")
			b.refused(b.tryDrop(asTable), fault.NoSuchTable, "Table does not exist: a.v")
			b.refused(b.tryDrop(asView), fault.NoSuchView, "View does not exist: a.t")
		})
	}},
	{"RenameKeepsEverythingButTheName", func(b *bench) {
		a, c := b.namespace("a"), b.namespace("a", "c")
		made := b.view(a, "v")
		b.must(b.rename(made, c, "w"))
		want := made
		want.NamespaceID, want.Ident, want.Version = c.ID, catalog.Identifier{Namespace: c.Levels, Name: "w"}, 2
		b.wantTable(b.loadView(want.Ident), want)
		b.table(a, "v") // the old name is free for either kind
		b.leavesNoTrace(func() {
			b.refused(b.rename(want, catalog.NamespaceRecord{ID: uuid.New(), Levels: []string{"x"}}, "w"),
				fault.NoSuchNamespace, "Namespace does not exist: x")
		})
	}},
	{"Field_C067_ADroppedNameIsFreeForEitherKind", func(b *bench) {
		a := b.namespace("a")
		place := ""
		for range 2 {
			view := b.newView(a, "m", place)
			b.must(b.commit(view))
			place = view.Record.Location
			b.drop(view.Record)
			b.leavesNoTrace(func() {
				b.refused(b.tryDrop(view.Record), fault.NoSuchView, "View does not exist: a.m")
				b.refused(b.commit(b.newView(a, "other", place)), fault.BadRequest, "") // its files are still there
			})
			table := b.newTable(a, "m", place)
			b.must(b.commit(table))
			b.wantTable(b.load(table.Record.Ident), table.Record)
			b.drop(table.Record)
		}
	}},
	{"LocationsAreReserved", func(b *bench) {
		a := b.namespace("a")
		view, table := b.view(a, "v"), b.table(a, "t")
		b.leavesNoTrace(func() {
			for i, location := range []string{view.Location, view.Location + "/metadata", table.Location + "/x", "s3://bucket"} {
				b.refused(b.commit(b.newView(a, "w"+strconv.Itoa(i), location)), fault.BadRequest, "")
				b.refused(b.commit(b.newTable(a, "u"+strconv.Itoa(i), location)), fault.BadRequest, "")
			}
			moved := b.swap(view)
			moved.OldLocation, moved.Record.Location = view.Location, table.Location+"/in"
			b.refused(b.commit(moved), fault.BadRequest, "")
		})
	}},
	{"DropNamespaceCountsViews", func(b *bench) {
		a := b.namespace("a")
		view := b.view(a, "v")
		drop := func() error { return b.store.DropNamespace(b.Context(), a.ID, b.fact("drop-namespace", "a")) }
		b.leavesNoTrace(func() { b.refused(drop(), fault.NamespaceNotEmpty, "Namespace a is not empty.") })
		b.drop(view)
		b.must(drop())
	}},
	{"GrantsAreOnTheView", grantsOnViews},
	{"WhatIsGrantedIsListed", whatIsGrantedIsListed},
	{"Race_OneGetsTheNameWhateverItsKind", func(b *bench) {
		a := b.namespace("a")
		for round := range roundsMax {
			name := "n" + strconv.Itoa(round)
			changes := make([]catalog.PointerChange, 12)
			for i := range changes {
				if changes[i] = b.newTable(a, name, ""); i%2 == 0 {
					changes[i] = b.newView(a, name, "")
				}
			}
			answers := b.race(len(changes), func(i int) error { return b.commit(changes[i]) })
			won := changes[b.one(answers, fault.AlreadyExists)].Record
			for i, err := range answers {
				if err != nil {
					want := changes[i].Record.Kind.Taken(won.Ident, won.Kind)
					b.refused(err, fault.AlreadyExists, fault.Message(want))
				}
			}
			found := b.load(won.Ident)
			if won.Kind == catalog.KindView {
				found = b.loadView(won.Ident)
			}
			b.wantTable(found, won)
		}
	}},
	{"Race_OneIsRenamedToTheName", func(b *bench) {
		a := b.namespace("a")
		for round := range roundsMax {
			var made []catalog.TableRecord
			for i := range 6 {
				name := strconv.Itoa(round) + "-" + strconv.Itoa(i)
				if i%2 == 0 {
					made = append(made, b.view(a, name))
				} else {
					made = append(made, b.table(a, name))
				}
			}
			target := catalog.Identifier{Namespace: a.Levels, Name: "target" + strconv.Itoa(round)}
			answers := b.race(len(made), func(i int) error { return b.rename(made[i], a, target.Name) })
			won := made[b.one(answers, fault.AlreadyExists)]
			for i, err := range answers {
				if err != nil {
					b.refused(err, fault.AlreadyExists, fault.Message(won.Kind.NotRenamed(made[i].Ident, target)))
				}
			}
		}
	}},
	{"Race_DropNamespaceAgainstCreateView", func(b *bench) {
		for i := range 20 {
			n := b.namespace("n" + strconv.Itoa(i))
			change := b.newView(n, "v", "")
			b.dropAgainst(n, func() error { return b.commit(change) })
		}
	}},
	{"Race_OneSwapWinsEachRound", func(b *bench) {
		made := b.view(b.namespace("a"), "v")
		for range 3 {
			changes := make([]catalog.PointerChange, 16)
			for i := range changes {
				changes[i] = b.swap(made)
			}
			winner := b.one(b.race(len(changes), func(i int) error { return b.commit(changes[i]) }), fault.CommitRace)
			made = changes[winner].Record
			b.wantTable(b.loadView(made.Ident), made)
		}
	}},
}

// grantsOnViews: a grant on a view is one on that view, and goes with it.
func grantsOnViews(b *bench) {
	role, reader := b.addPrincipalRole("r"), b.addCatalogRole("c")
	b.addPrincipal(role)
	b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, reader.ID, b.fact("assign", "c")))
	a := b.namespace("a")
	made, beside := b.view(a, "v"), b.view(a, "w")
	granted := b.grant(reader, authz.ViewReadProperties, authz.View, made.ID)
	b.grant(reader, authz.ViewDrop, authz.Table, made.ID) // an id of another kind is another securable
	b.sameGrants(b.resolve(catalog.Lookup{Namespace: a.Levels, Table: "v"}).Grants, []authz.Grant{granted})
	b.sameGrants(b.resolve(catalog.Lookup{Namespace: a.Levels, Table: "w"}).Grants, nil)
	b.must(b.rename(made, a, "x"))
	grants, err := b.admin.ListGrants(b.Context(), reader, catalog.GrantKey{}, 0)
	b.must(err)
	if len(grants) != 1 || grants[0].Kind != authz.View || grants[0].Name != "x" || !slices.Equal(grants[0].Namespace, a.Levels) {
		b.Errorf("grants %+v", grants)
	}
	b.drop(made)
	b.drop(beside)
	if grants, err = b.admin.ListGrants(b.Context(), reader, catalog.GrantKey{}, 0); err != nil || len(grants) != 0 {
		b.Errorf("grants %+v, %v", grants, err)
	}
}

// whatIsGrantedIsListed has grants of several sorts beside each other; only those on the very things count.
func whatIsGrantedIsListed(b *bench) {
	role, other := b.addPrincipalRole("r"), b.addPrincipalRole("other")
	b.addPrincipal(role)
	reader, foreign := b.addCatalogRole("reader"), b.addCatalogRole("foreign")
	b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, reader.ID, b.fact("assign", "reader")))
	b.must(b.admin.AssignCatalogRole(b.Context(), other.ID, foreign.ID, b.fact("assign", "foreign")))
	a := b.namespace("a")
	ask := func(kind catalog.Kind, p catalog.Page, wanted ...authz.Privilege) []string {
		w := inNamespace(a.ID, kind, p)
		w.GrantedTo = &catalog.GrantedTo{Principal: b.principal, Privileges: wanted}
		return b.names(w)
	}
	want := func(got []string, names ...string) {
		b.Helper()
		if !slices.Equal(got, names) {
			b.Errorf("listed %q, want %q", got, names)
		}
	}
	lists := append(authz.Implying(authz.TableList), authz.Implying(authz.ViewList)...)
	b.grant(reader, authz.CatalogManageContent, authz.Namespace, a.ID) // on more than one thing
	for i := range 3 {
		n := strconv.Itoa(i)
		b.grant(reader, authz.TableReadData, authz.Table, b.table(a, "t"+n).ID)
		b.grant(reader, authz.ViewReadProperties, authz.View, b.view(a, "v"+n).ID)
	}
	hidden, wrong := b.table(a, "hidden"), b.view(a, "wrong")
	b.grant(foreign, authz.TableReadData, authz.Table, hidden.ID)
	b.grant(reader, authz.TableReadData, authz.Table, wrong.ID)
	b.grant(reader, authz.TableListGrants, authz.Table, hidden.ID)
	want(ask(catalog.KindTable, catalog.Page{}, lists...), "t0", "t1", "t2")
	want(ask(catalog.KindView, catalog.Page{}, lists...), "v0", "v1", "v2")
	want(ask("", catalog.Page{}, lists...), "t0", "t1", "t2", "v0", "v1", "v2")
	want(ask("", catalog.Page{After: "t0", Limit: 3}, lists...), "t1", "t2", "v0")
	want(ask(catalog.KindView, catalog.Page{}, authz.ViewDrop))
	want(ask(catalog.KindView, catalog.Page{}))
	b.principal.Roles = auth.RoleScope{Names: []string{"other"}}
	want(ask("", catalog.Page{}, lists...))
	b.principal = auth.MaintenancePrincipal()
	want(ask("", catalog.Page{}, lists...))
}

func (b *bench) tryDrop(r catalog.TableRecord) error {
	return b.store.DropTable(b.Context(), catalog.TableDrop{
		ID: r.ID, Kind: r.Kind, Ident: r.Ident, Fact: b.fact("drop-"+string(r.Kind), r.Ident.String()),
	})
}
