package catalogtest

import (
	"context"
	"slices"
	"sync"

	"catalogd/authz"
	"catalogd/catalog"
)

// What a store keeps in memory must never show: a lookup that begins after a change has returned sees it, in the store
// that made the change and in every other one on the same database, however many look at the same time.
var freshPromises = []promise{
	{"Field_C195_EveryReplicaSeesWhatHasReturned", func(b *bench) {
		w := newWatch(b)
		defer w.stop()
		for range 6 {
			for _, s := range w.steps() {
				b.must(s.do())
				w.sees(s)
			}
		}
	}},
	{"Field_C195_ManyWritersReadTheirOwnWrites", func(b *bench) {
		const writers, commits = 8, 12
		a, replica := b.namespace("a"), b.back.Replica(b)
		var all sync.WaitGroup
		for i := range writers {
			record := b.table(a, "t"+string(rune('0'+i)))
			all.Go(func() {
				for range commits {
					change := b.swap(record)
					if err := b.commit(change); err != nil {
						b.Error(err)
						return
					}
					record = change.Record
					for _, store := range []catalog.Store{b.store, replica} {
						res, err := store.Resolve(b.Context(), b.lookupOf(record.Ident))
						if err != nil || res.Table == nil || res.Table.MetadataLocation != record.MetadataLocation {
							b.Errorf("after a commit of %s: %+v, %v", record.MetadataLocation, res.Table, err)
							return
						}
					}
				}
			})
		}
		all.Wait()
	}},
	{"LookupsAreTheirOwn", func(b *bench) {
		a := b.namespace("a")
		var all sync.WaitGroup
		for i := range racersMax {
			name := "t" + string(rune('0'+i%40))
			var made catalog.TableRecord
			if i < 40 && i%2 == 0 {
				made = b.table(a, name)
			}
			all.Go(func() {
				for range roundsMax {
					res, err := b.store.Resolve(b.Context(), b.lookupOf(catalog.Identifier{Namespace: a.Levels, Name: name}))
					switch {
					case err != nil:
						b.Error(err)
					case i >= 40: // the name may be there or not
					case i%2 == 1 && res.Table != nil:
						b.Errorf("%s: got %+v", name, res.Table)
					case i%2 == 0 && (res.Table == nil || res.Table.ID != made.ID || res.Table.Ident.Name != name):
						b.Errorf("%s: got %+v", name, res.Table)
					}
				}
			})
		}
		all.Wait()
	}},
	{"WhoLeavesGetsAnErrorAndNobodyElseDoes", func(b *bench) {
		record := b.table(b.namespace("a"), "t")
		b.load(record.Ident)
		var all sync.WaitGroup
		for i := range racersMax {
			ctx, cancel := context.WithCancel(b.Context())
			all.Go(func() {
				defer cancel()
				if i%2 == 0 {
					go cancel()
				}
				res, err := b.store.Resolve(ctx, b.lookupOf(record.Ident))
				if i%2 == 1 && err != nil || err == nil && res.Table == nil {
					b.Errorf("lookup %d: %+v, %v", i, res.Table, err)
				}
			})
		}
		all.Wait()
	}},
	{"NobodySharesWhatHeMayChange", func(b *bench) {
		role, reader := b.addPrincipalRole("r"), b.addCatalogRole("c")
		b.addPrincipal(role)
		b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, reader.ID, b.fact("assign", "c")))
		b.grant(reader, authz.TableList, authz.Catalog, b.warehouse.ID)
		record := b.table(b.namespace("a"), "t")
		lookup := b.lookupOf(record.Ident)
		for range 3 {
			res := b.resolve(lookup)
			_ = append(res.Grants, authz.Grant{Privilege: authz.ServiceManageAccess})
			res.Table.MetadataLocation, res.Warehouse.Name, res.Namespace.Version = "changed", "changed", 77
			again := b.resolve(lookup)
			if len(again.Grants) != 1 || again.Table.MetadataLocation == "changed" || again.Warehouse.Name == "changed" ||
				again.Namespace.Version == 77 {
				b.Fatalf("somebody else's change is seen: %+v", again)
			}
		}
	}},
}

func (b *bench) lookupOf(id catalog.Identifier) catalog.Lookup {
	return catalog.Lookup{Principal: b.principal, Warehouse: b.warehouse.Name, Namespace: id.Namespace, Table: id.Name}
}

// watch is a table at the end of a path, everything that access to it hangs on, and readers who never rest.
type watch struct {
	*bench
	replica catalog.Store
	role    catalog.RoleRecord // of the principal
	reader  catalog.RoleRecord // of the catalog
	outer   catalog.NamespaceRecord
	record  catalog.TableRecord
	lookup  catalog.Lookup
	end     context.CancelFunc
	readers sync.WaitGroup
}

func newWatch(b *bench) *watch {
	w := &watch{bench: b, replica: b.back.Replica(b), role: b.addPrincipalRole("r"), reader: b.addCatalogRole("c")}
	b.addPrincipal(w.role)
	w.outer = b.namespace("a")
	w.record = b.table(b.namespace("a", "b"), "t")
	w.lookup = b.lookupOf(w.record.Ident)
	ctx, end := context.WithCancel(b.Context())
	w.end = end
	for i := range 6 {
		store := []catalog.Store{b.store, w.replica}[i%2]
		w.readers.Go(func() {
			for ctx.Err() == nil {
				if _, err := store.Resolve(ctx, w.lookup); err != nil && ctx.Err() == nil {
					b.Error(err)
					return
				}
			}
		})
	}
	return w
}

func (w *watch) stop() {
	w.end()
	w.readers.Wait()
}

// step is a change, and how a lookup shows it.
type step struct {
	name  string
	do    func() error
	shown func(res catalog.Resolution) bool
}

func (w *watch) sees(s step) {
	w.Helper()
	for i, store := range []catalog.Store{w.replica, w.store} {
		res, err := store.Resolve(w.Context(), w.lookup)
		w.must(err)
		if !s.shown(res) {
			w.Fatalf("store %d does not see: %s: %+v", i, s.name, res)
		}
	}
}

func granted(p authz.Privilege) func(catalog.Resolution) bool {
	return func(res catalog.Resolution) bool {
		return slices.ContainsFunc(res.Grants, func(g authz.Grant) bool { return g.Privilege == p })
	}
}

func not(shown func(catalog.Resolution) bool) func(catalog.Resolution) bool {
	return func(res catalog.Resolution) bool { return !shown(res) }
}

// steps change everything that a lookup shows and end where they began.
func (w *watch) steps() []step {
	ctx, record := w.Context(), w.record
	onTable := catalog.RoleGrant{Privilege: authz.TableReadData, Kind: authz.Table, ID: record.ID}
	onOuter := catalog.RoleGrant{Privilege: authz.TableList, Kind: authz.Namespace, ID: w.outer.ID}
	swap := w.swap(record)
	shortLived := w.newTable(catalog.NamespaceRecord{ID: w.record.NamespaceID, Levels: w.record.Ident.Namespace}, "t", "")
	owner := "owner-" + shortLived.Record.UUID.String()
	there := func(r catalog.TableRecord) func(catalog.Resolution) bool {
		return func(res catalog.Resolution) bool {
			return res.Table != nil && res.Table.ID == r.ID && res.Table.MetadataLocation == r.MetadataLocation
		}
	}
	steps := []step{
		{"a catalog role", func() error {
			return w.admin.AssignCatalogRole(ctx, w.role.ID, w.reader.ID, w.fact("assign", "c"))
		}, func(catalog.Resolution) bool { return true }},
		{"a grant on the table", func() error { return w.admin.AddGrant(ctx, w.reader, onTable, w.fact("grant", "c")) }, granted(onTable.Privilege)},
		{"a grant above", func() error { return w.admin.AddGrant(ctx, w.reader, onOuter, w.fact("grant", "c")) }, granted(onOuter.Privilege)},
		{"a commit", func() error { return w.commit(swap) }, there(swap.Record)},
		{"a revoke on the table", func() error { return w.admin.RevokeGrant(ctx, w.reader, onTable, w.fact("revoke", "c")) }, not(granted(onTable.Privilege))},
		{"a namespace's property", func() error {
			_, err := w.store.UpdateNamespace(ctx, catalog.NamespaceUpdate{
				ID: w.outer.ID, WarehouseID: w.warehouse.ID, Set: map[string]string{"owner": owner}, Fact: w.fact("update", "a"),
			})
			return err
		}, func(res catalog.Resolution) bool { return res.Ancestors[0].Properties["owner"] == owner }},
		{"a role taken from the principal", func() error {
			return w.admin.RevokePrincipalRole(ctx, w.principal.ID, w.role.ID, w.fact("revoke", "r"))
		}, not(granted(onOuter.Privilege))},
		{"a role given to the principal", func() error {
			return w.admin.AssignPrincipalRole(ctx, w.principal.ID, w.role.ID, w.fact("assign", "r"))
		}, granted(onOuter.Privilege)},
		{"a revoke above", func() error { return w.admin.RevokeGrant(ctx, w.reader, onOuter, w.fact("revoke", "c")) }, not(granted(onOuter.Privilege))},
		{"a catalog role taken", func() error {
			return w.admin.RevokeCatalogRole(ctx, w.role.ID, w.reader.ID, w.fact("revoke", "c"))
		}, func(res catalog.Resolution) bool { return len(res.Grants) == 0 }},
		{"a drop", func() error {
			return w.store.DropTable(ctx, catalog.TableDrop{ID: record.ID, Kind: catalog.KindTable, Ident: record.Ident, Fact: w.fact("drop-table", "t")})
		}, func(res catalog.Resolution) bool { return res.Table == nil && res.Namespace != nil }},
		{"a create", func() error { return w.commit(shortLived) }, there(shortLived.Record)},
	}
	w.record = shortLived.Record
	return steps
}
