package store

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/vending"
)

// TestStore_AnswersAsTheOneInMemory does random things to the store in Postgres and to the one in memory, few names
// and few places, so that things meet. Every answer must have the same kind and message, and both must show the same.
// Whatever is tested on the store in memory then holds for this one.
func TestStore_AnswersAsTheOneInMemory(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		// Each check makes a hundred round trips; -rapid.checks=400 -rapid.steps=60 is for a longer look.
		if err := checks.Value.Set("30"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Value.Set(checks.DefValue) })
	}
	real := openAt(t, Config{URL: pgtest.Database(t)})
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t, real)
		t.Repeat(map[string]func(*rapid.T){
			"create namespace": p.createNamespace,
			"update namespace": p.updateNamespace,
			"drop namespace":   p.dropNamespace,
			"create table":     p.createTable,
			"swap":             p.swap,
			"rename":           p.rename,
			"drop table":       p.dropTable,
			"stage":            p.stage,
			"commit staged":    p.commitStaged,
			"landed":           p.landed,
			"":                 p.compare,
		})
	})
}

// pair is both stores and what the test knows of them, wrong as it may be by now.
type pair struct {
	stores     [2]catalog.Store
	warehouses []catalog.Warehouse
	people     []uuid.UUID
	namespaces []catalog.NamespaceRecord // by warehouse in homes
	homes      []int
	tables     []catalog.PointerChange
	staged     []catalog.StagedTable
	commits    []uuid.UUID
	count      int
}

// newPair begins with two warehouses whose names and places no earlier run has used.
func newPair(t *rapid.T, real *Store) *pair {
	p := &pair{stores: [2]catalog.Store{real, catalogtest.NewStore()}, people: []uuid.UUID{uuid.New(), uuid.New()}}
	run := uuid.NewString()
	for i := range 2 {
		w := catalog.Warehouse{
			ID: uuid.New(), Name: fmt.Sprintf("%s-%d", run, i), Location: fmt.Sprintf("s3://%s/w%d", run, i),
			Storage: vending.Profile{StorageType: "S3"},
		}
		p.same(t, func(s catalog.Store) error { return s.CreateWarehouse(t.Context(), w, p.fact(0)) })
		p.warehouses = append(p.warehouses, w)
	}
	return p
}

// fact gives both stores a fact of the same id for one operation.
func (p *pair) fact(person int) catalog.Fact {
	return catalog.Fact{
		ID: uuid.NewSHA1(uuid.Nil, fmt.Append(nil, p.warehousesID(), p.count)), At: time.Unix(1e9, 0), Operation: "x", Subject: "subject",
		Caller: catalog.Caller{Principal: auth.Principal{ID: p.people[person]}},
	}
}

func (p *pair) warehousesID() string { return p.people[0].String() }

// same asks both stores and wants one answer.
func (p *pair) same(t *rapid.T, ask func(s catalog.Store) error) error {
	p.count++
	real, memory := ask(p.stores[0]), ask(p.stores[1])
	if fault.KindOf(real) != fault.KindOf(memory) || real != nil && fault.Message(real) != fault.Message(memory) {
		t.Fatalf("Postgres says %v (%s)\nmemory says   %v (%s)", real, fault.KindOf(real), memory, fault.KindOf(memory))
	}
	return real
}

func (p *pair) person(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "person") }

// place gives "" or a location: in the warehouse's base, in the other one's, or outside of both.
func (p *pair) place(t *rapid.T, home int) string {
	base := rapid.SampledFrom([]string{
		"", p.warehouses[home].Location, p.warehouses[home].Location, p.warehouses[1-home].Location,
		strings.TrimSuffix(p.warehouses[0].Location, "/w0") + "/far",
	}).Draw(t, "base")
	if base == "" {
		return ""
	}
	for range rapid.IntRange(0, 3).Draw(t, "depth") {
		base += "/" + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "segment")
	}
	return base
}

func (p *pair) createNamespace(t *rapid.T) {
	home := rapid.IntRange(0, 1).Draw(t, "warehouse")
	levels := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 2).Draw(t, "levels")
	location := p.place(t, home)
	record := catalog.NamespaceRecord{ID: uuid.New(), Levels: levels, Properties: map[string]string{}}
	if location != "" {
		record.Properties["location"] = location
	}
	err := p.same(t, func(s catalog.Store) error {
		return s.CreateNamespace(t.Context(), catalog.NamespaceCreate{
			Record: record, WarehouseID: p.warehouses[home].ID, Location: location, Fact: p.fact(0),
		})
	})
	if err == nil || len(p.namespaces) == 0 {
		p.namespaces, p.homes = append(p.namespaces, record), append(p.homes, home)
	}
}

// The skips below are rapid's, not testing's: they take back one drawn step whose subject does not exist yet, and
// rapid draws another. No test is skipped and no service is asked for: without Postgres this test has failed already.

// some gives the index of a namespace that was made, there or not. The first is made here: a run in which rapid draws
// too many steps that must be taken back fails.
func (p *pair) some(t *rapid.T) int {
	if len(p.namespaces) == 0 {
		p.createNamespace(t)
	}
	return rapid.IntRange(0, len(p.namespaces)-1).Draw(t, "namespace")
}

func (p *pair) updateNamespace(t *rapid.T) {
	i := p.some(t)
	u := catalog.NamespaceUpdate{ID: p.namespaces[i].ID, WarehouseID: p.warehouses[p.homes[i]].ID, Set: map[string]string{}}
	if location := p.place(t, p.homes[i]); location != "" {
		u.Set["location"] = location
	} else {
		u.Remove = []string{"location"}
	}
	var before []string
	p.same(t, func(s catalog.Store) error {
		u.Fact = p.fact(0)
		properties, err := s.UpdateNamespace(t.Context(), u)
		before = append(before, fmt.Sprint(properties))
		return err
	})
	if before[0] != before[1] {
		t.Fatalf("before: %s in Postgres, %s in memory", before[0], before[1])
	}
}

func (p *pair) dropNamespace(t *rapid.T) {
	i := p.some(t)
	p.same(t, func(s catalog.Store) error { return s.DropNamespace(t.Context(), p.namespaces[i].ID, p.fact(0)) })
}

var kinds = []catalog.Kind{catalog.KindTable, catalog.KindTable, catalog.KindView}

func (p *pair) change(t *rapid.T, i int) catalog.PointerChange {
	w := p.warehouses[p.homes[i]]
	c := catalog.PointerChange{WarehouseID: w.ID, Record: catalog.TableRecord{
		ID: uuid.New(), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), NamespaceID: p.namespaces[i].ID, UUID: uuid.New(), MetadataLocation: "m0", FormatVersion: 2,
		Ident: catalog.Identifier{Namespace: p.namespaces[i].Levels, Name: rapid.SampledFrom([]string{"t", "u"}).Draw(t, "name")},
	}}
	if c.Record.Location = p.place(t, p.homes[i]); c.Record.Location == "" {
		c.Record.Location = w.Location + "/" + c.Record.UUID.String()
	}
	return c
}

func (p *pair) commit(t *rapid.T, c catalog.PointerChange, person int) error {
	err := p.same(t, func(s catalog.Store) error {
		c.Fact = p.fact(person)
		return s.CommitPointers(t.Context(), []catalog.PointerChange{c}, catalog.Fence{})
	})
	p.commits = append(p.commits, c.Fact.ID)
	if err == nil {
		p.tables = append(p.tables, c)
	}
	return err
}

func (p *pair) createTable(t *rapid.T) { p.commit(t, p.change(t, p.some(t)), p.person(t)) }

// table gives a table as it was at some time; while there has been none, the step makes one instead.
func (p *pair) table(t *rapid.T) (c catalog.PointerChange, ok bool) {
	if len(p.tables) == 0 {
		p.createTable(t)
		return c, false
	}
	return p.tables[rapid.IntRange(0, len(p.tables)-1).Draw(t, "table")], true
}

func (p *pair) swap(t *rapid.T) {
	c, ok := p.table(t)
	if !ok {
		return
	}
	c.Old, c.StagedUUID, c.OldLocation = c.Record.MetadataLocation, uuid.Nil, ""
	c.Record.MetadataLocation = uuid.NewString()
	home := slices.IndexFunc(p.warehouses, func(w catalog.Warehouse) bool { return w.ID == c.WarehouseID })
	if location := p.place(t, home); location != "" && rapid.Bool().Draw(t, "move") {
		c.OldLocation, c.Record.Location = c.Record.Location, location
	}
	p.commit(t, c, p.person(t))
}

func (p *pair) rename(t *rapid.T) {
	c, ok := p.table(t)
	if !ok {
		return
	}
	i := p.some(t)
	target := catalog.Identifier{Namespace: p.namespaces[i].Levels, Name: rapid.SampledFrom([]string{"t", "u", "v"}).Draw(t, "name")}
	p.same(t, func(s catalog.Store) error {
		return s.RenameTable(t.Context(), catalog.TableRename{
			ID: c.Record.ID, Kind: c.Record.Kind, TargetNamespaceID: p.namespaces[i].ID, Source: c.Record.Ident, Target: target, Fact: p.fact(0),
		})
	})
}

func (p *pair) dropTable(t *rapid.T) {
	c, ok := p.table(t)
	if !ok {
		return
	}
	p.same(t, func(s catalog.Store) error {
		return s.DropTable(t.Context(), catalog.TableDrop{ID: c.Record.ID, Kind: c.Record.Kind, Ident: c.Record.Ident, Fact: p.fact(0)})
	})
}

func (p *pair) stage(t *rapid.T) {
	c := p.change(t, p.some(t))
	staged := catalog.StagedTable{
		UUID: c.Record.UUID, WarehouseID: c.WarehouseID, Ident: c.Record.Ident, Location: c.Record.Location,
		PrincipalID: p.people[p.person(t)], TTL: time.Hour,
	}
	err := p.same(t, func(s catalog.Store) error { return s.StageTable(t.Context(), staged) })
	if err == nil {
		p.staged = append(p.staged, staged)
	}
}

func (p *pair) commitStaged(t *rapid.T) {
	if len(p.staged) == 0 {
		p.stage(t)
		return
	}
	staged := p.staged[rapid.IntRange(0, len(p.staged)-1).Draw(t, "staged")]
	c := p.change(t, p.some(t))
	c.Record.Kind = catalog.KindTable
	c.WarehouseID, c.StagedUUID, c.Record.UUID, c.Record.Ident = staged.WarehouseID, staged.UUID, staged.UUID, staged.Ident
	i := slices.IndexFunc(p.namespaces, func(n catalog.NamespaceRecord) bool { return slices.Equal(n.Levels, staged.Ident.Namespace) })
	if i < 0 || p.warehouses[p.homes[i]].ID != staged.WarehouseID {
		p.stage(t) // no namespace of its warehouse has that name
		return
	}
	c.Record.NamespaceID = p.namespaces[i].ID
	if rapid.IntRange(0, 3).Draw(t, "elsewhere") > 0 {
		c.Record.Location = staged.Location
	}
	person := slices.Index(p.people, staged.PrincipalID)
	p.commit(t, c, person)
}

func (p *pair) landed(t *rapid.T) {
	if len(p.commits) == 0 {
		p.createTable(t)
		return
	}
	id := p.commits[rapid.IntRange(0, len(p.commits)-1).Draw(t, "commit")]
	var answers []bool
	p.same(t, func(s catalog.Store) error {
		landed, err := s.CommitLanded(t.Context(), id)
		answers = append(answers, landed)
		return err
	})
	if answers[0] != answers[1] {
		t.Fatalf("landed: %t in Postgres, %t in memory", answers[0], answers[1])
	}
}

// compare looks at everything that both stores show.
func (p *pair) compare(t *rapid.T) {
	real, memory := p.show(t, p.stores[0]), p.show(t, p.stores[1])
	if real != memory {
		t.Fatalf("Postgres shows\n%s\nmemory shows\n%s", real, memory)
	}
}

func (p *pair) show(t *rapid.T, s catalog.Store) string {
	var out strings.Builder
	for _, w := range p.warehouses {
		p.showBelow(t, s, w, catalog.NamespaceRecord{}, &out)
	}
	return out.String()
}

func (p *pair) showBelow(t *rapid.T, s catalog.Store, w catalog.Warehouse, parent catalog.NamespaceRecord, out *strings.Builder) {
	children, err := catalogtest.Names(t.Context(), s, catalog.NamesWanted{WarehouseID: w.ID, In: parent.ID, Kind: catalog.KindNamespace})
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range children {
		res, err := s.Resolve(t.Context(), catalog.Lookup{Warehouse: w.Name, Namespace: append(slices.Clone(parent.Levels), child)})
		if err != nil || res.Namespace == nil {
			t.Fatalf("resolve %s below %s: %v", child, parent.Levels, err)
		}
		n := *res.Namespace
		fmt.Fprintf(out, "%v\n", n)
		for _, kind := range kinds[1:] {
			names, err := catalogtest.Names(t.Context(), s, catalog.NamesWanted{In: n.ID, Kind: kind})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				res, err := s.Resolve(t.Context(), catalog.Lookup{Warehouse: w.Name, Namespace: n.Levels, Table: name})
				found := res.Table
				if kind == catalog.KindView {
					found = res.View
				}
				if err != nil || found == nil || found.Kind != kind {
					t.Fatalf("resolve %s.%s: %v, %+v", n.Levels, name, err, res)
				}
				fmt.Fprintf(out, "  %+v\n", *found)
			}
		}
		p.showBelow(t, s, w, n, out)
	}
}
