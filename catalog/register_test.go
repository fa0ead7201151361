package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// tableFile is a metadata file of a table; more holds further members.
func tableFile(uuid, location, properties, more string) string {
	return fmt.Sprintf(`{"format-version":2,"table-uuid":%q,"location":%q,"last-sequence-number":0,"last-updated-ms":1700000000000,`+
		`"last-column-id":1,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}],`+
		`"current-schema-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"default-spec-id":0,"last-partition-id":999,`+
		`"sort-orders":[{"order-id":0,"fields":[]}],"default-sort-order-id":0,"properties":{%s}%s}`, uuid, location, properties, more)
}

const (
	someUUID  = "11111111-2222-4333-8444-555555555555"
	otherUUID = "99999999-2222-4333-8444-555555555555"
)

// file puts a metadata file where somebody else would have.
func (b *bench) file(path, text string) string {
	b.files.Forge(path, []byte(text))
	return path
}

func (b *bench) registerAs(c catalog.Caller, name, location string, overwrite bool) (catalog.LoadedTable, error) {
	return b.RegisterTable(ctx, c, catalog.RegisterRequest{
		Warehouse: "w", Ident: id(name), MetadataLocation: location, Overwrite: overwrite, Delegated: true,
	})
}

func (b *bench) register(name, location string) (catalog.LoadedTable, error) {
	return b.registerAs(system, name, location, false)
}

func (b *bench) mustRegister(name, location string) catalog.LoadedTable {
	b.Helper()
	loaded, err := b.register(name, location)
	if err != nil {
		b.Fatal(err)
	}
	return loaded
}

// refusedRegister wants a refusal of the kind whose message has the words, and nothing stored.
func (b *bench) refusedRegister(name, location string, kind fault.Kind, words ...string) {
	b.Helper()
	events := len(b.store.Events())
	_, err := b.register(name, location)
	if !fault.Is(err, kind) {
		b.Errorf("%s: got %v (%s), want %s", location, err, fault.KindOf(err), kind)
	}
	for _, word := range words {
		if !strings.Contains(fault.Message(err), word) {
			b.Errorf("%s: the message %q does not say %q", location, fault.Message(err), word)
		}
	}
	if len(b.store.Events()) != events {
		b.Errorf("%s: something was stored", location)
	}
	if err := b.TableExists(ctx, system, "w", id(name)); !fault.Is(err, fault.NoSuchTable) {
		b.Errorf("%s: %v", location, err)
	}
}

func TestField_C069_SchemesAreOne(t *testing.T) {
	b := newBench(t)
	path := b.file("s3://bucket/w/t/metadata/00003-x.metadata.json", tableFile(someUUID, "s3a://bucket/w/t", `"write.data.path":"s3n://bucket/w/t/d"`,
		`,"snapshots":[{"snapshot-id":1,"sequence-number":0,"timestamp-ms":1700000000000,"manifest-list":"s3a://bucket/w/t/metadata/1.avro","summary":{"operation":"append"}}]`))
	loaded := b.mustRegister("t", path)
	if loaded.MetadataLocation != path || loaded.Document.Location() != "s3a://bucket/w/t" || !strings.Contains(string(loaded.Metadata), "s3a://bucket/w/t/metadata/1.avro") {
		t.Errorf("rewritten: %s %s", loaded.MetadataLocation, loaded.Metadata)
	}
	if loaded.Credentials == nil || loaded.Credentials.Prefix != "s3a://bucket/w/t/" {
		t.Errorf("credentials for %+v", loaded.Credentials)
	}
	if err := b.commitAs(system, "t", b.properties(`"k":"v"`)); err != nil {
		t.Fatal(err)
	}
	if got := b.load("t").MetadataLocation; !strings.HasPrefix(got, "s3a://bucket/w/t/metadata/00004-") {
		t.Errorf("the next file is %s", got)
	}
}

func TestField_C071_RegisterFromEveryAllowedLocation(t *testing.T) {
	b := newBench(t)
	b.mustRegister("t", b.file("s3://old/w/t/metadata/v1.metadata.json", tableFile(someUUID, "s3://old/w/t", "", "")))
	for _, path := range []string{"s3://third/w/t/metadata/v1.metadata.json", "s3://old/w2/t/v1.metadata.json", "s3://bucket/v1.metadata.json"} {
		b.file(path, tableFile(otherUUID, "s3://third/w/t", "", ""))
		b.refusedRegister("u", path, fault.Forbidden, "s3://bucket/w", "s3://old/w")
	}
	for _, path := range []string{"", "v1.metadata.json", "s3://old/w/../x/v1.metadata.json", "http://x/y.metadata.json", "s3://old/w/t/" + strings.Repeat("x", 2100)} {
		b.refusedRegister("u", path, fault.BadRequest)
	}
}

func TestField_C073_ForeignPlacesInTheFile(t *testing.T) {
	b := newBench(t)
	for name, text := range map[string]string{
		"location":  tableFile(someUUID, "s3://finance/ledger", "", ""),
		"data":      tableFile(someUUID, "s3://bucket/w/data", `"write.data.path":"s3://finance/ledger"`, ""),
		"neighbour": tableFile(someUUID, "s3://bucket/w/neighbour", `"write.data.path":"s3://bucket/w/other"`, ""),
		"metadata":  tableFile(someUUID, "s3://bucket/w/metadata", `"write.metadata.path":"s3://finance/ledger"`, ""),
		"objects":   tableFile(someUUID, "s3://bucket/w/objects", `"write.object-storage.path":"s3://finance/ledger"`, ""),
	} {
		b.refusedRegister("t", b.file("s3://bucket/w/"+name+"/metadata/1.metadata.json", text), fault.Forbidden, "s3://")
	}
	b.refusedRegister("t", b.file("s3://bucket/w/steer/metadata/1.metadata.json",
		tableFile(someUUID, "s3://bucket/w/steer", `"s3.endpoint":"http://evil"`, "")), fault.BadRequest, `"s3.endpoint"`)
	b.refusedRegister("t", b.file("s3://bucket/w/code/metadata/1.metadata.json",
		tableFile(someUUID, "s3://bucket/w/code", `"write.location-provider.impl":"org.evil.Provider"`, "")), fault.BadRequest, "write.location-provider.impl")
	b.refusedRegister("t", b.file("s3://bucket/w/elsewhere/1.metadata.json",
		tableFile(someUUID, "s3://bucket/w/there", "", "")), fault.BadRequest, "s3://bucket/w/there")
	b.refusedRegister("t", b.file("s3://bucket/w/dots/1.metadata.json",
		tableFile(someUUID, "s3://bucket/w/dots/../x", "", "")), fault.BadRequest)
	table := b.mustCreate("owned")
	b.refusedRegister("t", table.MetadataLocation, fault.BadRequest, "overlaps")
	b.refusedRegister("t", b.file(table.Document.Location()+"/below/metadata/1.metadata.json",
		tableFile(someUUID, table.Document.Location()+"/below", "", "")), fault.BadRequest, "overlaps")
}

func TestField_C076_AnyReadableName(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("n", 950) + ".metadata.json"
	for i, c := range []struct{ name, next string }{
		{"00012-5c0e7d2a-6d5b-4f8e-9a57-0d8c2a3b4c5d.metadata.json", "00013-"}, {"v7.metadata.json", "00008-"},
		{"current.json", "00001-"}, {"a%20b.json", "00001-"}, {long, "00001-"}, {"no-suffix", "00001-"},
	} {
		location := fmt.Sprintf("s3://bucket/w/%d", i)
		name := fmt.Sprintf("t%d", i)
		path := b.file(location+"/metadata/"+c.name, tableFile(uuid.NewString(), location, "", ""))
		if got := b.mustRegister(name, path).MetadataLocation; got != path {
			t.Errorf("answered %s for %s", got, path)
		}
		if err := b.commitAs(system, name, b.properties(`"k":"v"`)); err != nil {
			t.Fatal(err)
		}
		if got := b.load(name).MetadataLocation; !strings.HasPrefix(got, location+"/metadata/"+c.next) {
			t.Errorf("after %s comes %s", c.name, got)
		}
	}
}

func TestRegister_WhatIsNoMetadata(t *testing.T) {
	b := newBench(t)
	b.refusedRegister("t", "s3://bucket/w/t/metadata/gone.metadata.json", fault.FileNotFound, "s3://bucket/w/t/metadata/gone.metadata.json")
	for text, word := range map[string]string{
		"": "ends too early", "PAR1": "not JSON", "[]": "", "{}": "format-version", "\xff": "UTF-8",
		strings.Replace(tableFile(someUUID, "s3://bucket/w/t", "", ""), `"format-version":2`, `"format-version":4`, 1): "format-version 4",
		`{"view-uuid":"x","format-version":1}`: "",
	} {
		b.refusedRegister("t", b.file("s3://bucket/w/t/metadata/x.metadata.json", text), fault.Validation, word)
	}
}

// Of large files one is read at a time: the next waits, then is refused untouched. Small ones pass beside it.
func TestRegister_LargeFilesOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		gate, padding := make(chan struct{}), `,"x":"`+strings.Repeat("x", 5<<20)+`"`
		large := func(n int) string {
			place := fmt.Sprintf("s3://bucket/w/large%d", n)
			return b.file(place+"/metadata/1.metadata.json", tableFile(uuid.NewString(), place, "", padding))
		}
		b.Metadata = heldReads{b.files, gate}
		first, second := large(1), large(2)
		done := make(chan error, 1)
		go func() {
			_, err := b.register("t1", first)
			done <- err
		}()
		synctest.Wait()
		b.Metadata = b.files
		began := time.Now()
		b.refusedRegister("t2", second, fault.Busy, "nothing was changed")
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("waited %v", waited)
		}
		b.mustRegister("small", b.file("s3://bucket/w/small/metadata/1.metadata.json", tableFile(uuid.NewString(), "s3://bucket/w/small", "", "")))
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.mustRegister("t2", second)
	})
}

// heldReads is a file system whose reads of clients' files, once they have their turn, wait for a gate.
type heldReads struct {
	catalog.MetadataIO
	gate chan struct{}
}

func (h heldReads) ReadForeign(
	ctx context.Context, at vending.FilePlace, free int64, larger func(context.Context) error,
) ([]byte, error) {
	body, err := h.MetadataIO.ReadForeign(ctx, at, free, larger)
	<-h.gate
	return body, err
}

// Registers at a time are bounded, small ones too.
func TestRegister_AtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		gate, done := make(chan struct{}), make(chan error, 32)
		b.Metadata = heldReads{b.files, gate}
		register := func(n int) error {
			place := fmt.Sprintf("s3://bucket/w/t%d", n)
			_, err := b.register(fmt.Sprintf("t%d", n), b.file(place+"/metadata/1.metadata.json", tableFile(uuid.NewString(), place, "", "")))
			return err
		}
		for n := range cap(done) {
			go func() { done <- register(n) }()
		}
		synctest.Wait()
		wantKind(t, register(99), fault.Busy)
		close(gate)
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := register(99); err != nil {
			t.Errorf("a place was lost: %v", err)
		}
	})
}

func TestField_C078_Overwrite(t *testing.T) {
	b := newBench(t)
	first := b.mustCreate("t")
	second := b.file("s3://bucket/w/second/metadata/v1.metadata.json", tableFile(otherUUID, "s3://bucket/w/second", "", ""))
	if _, err := b.registerAs(system, "t", second, false); !fault.Is(err, fault.AlreadyExists) || fault.Message(err) != "Table already exists: a.t" {
		t.Errorf("without overwrite: %v", err)
	}
	if err := b.commitAs(system, "t", b.properties(`"k":"v"`)); err != nil {
		t.Fatal(err)
	}
	head := b.load("t").MetadataLocation
	for _, c := range []struct{ location, uuid string }{
		{first.MetadataLocation, first.Document.UUID()}, {second, otherUUID}, {head, first.Document.UUID()}, {head, first.Document.UUID()},
	} {
		if _, err := b.registerAs(system, "t", c.location, true); err != nil {
			t.Fatalf("%s: %v", c.location, err)
		}
		if got := b.load("t"); got.MetadataLocation != c.location || got.Document.UUID() != c.uuid {
			t.Errorf("the table is %s at %s, want %+v", got.Document.UUID(), got.MetadataLocation, c)
		}
		if !slices.Contains(b.files.Files(), head) {
			t.Errorf("an old file is gone: %s", head)
		}
	}
	if _, err := b.registerAs(system, "new", b.file("s3://bucket/w/new/v1.metadata.json", tableFile(someUUID, "s3://bucket/w/new", "", "")), true); err != nil {
		t.Errorf("overwrite of nothing: %v", err)
	}
	b.mustCreateView("v")
	for _, overwrite := range []bool{true, false} {
		if _, err := b.registerAs(system, "v", second, overwrite); fault.Message(err) != "View with same name already exists: a.v" {
			t.Errorf("over a view: %v", err)
		}
	}
	if _, err := b.create("inner", `,"location":"s3://bucket/w/second/inner"`); !fault.Is(err, fault.BadRequest) {
		t.Errorf("the place of a table that was replaced is free: %v", err)
	}
}

func TestField_C078_OneWinner(t *testing.T) {
	for _, overwrite := range []bool{false, true} {
		b := newBench(t)
		var group sync.WaitGroup
		answers := make([]error, 8)
		for i := range answers {
			location := fmt.Sprintf("s3://bucket/w/t%d", i)
			path := b.file(location+"/v1.metadata.json", tableFile(uuid.NewString(), location, "", ""))
			group.Go(func() { _, answers[i] = b.registerAs(system, "t", path, overwrite) })
		}
		group.Wait()
		won := 0
		for _, err := range answers {
			if err == nil {
				won++
			} else if !fault.Is(err, fault.AlreadyExists) {
				t.Errorf("overwrite %v: %v", overwrite, err)
			}
		}
		if want := map[bool]int{false: 1, true: len(answers)}[overwrite]; won != want {
			t.Errorf("overwrite %v: %d won, want %d", overwrite, won, want)
		}
	}
}

func TestRegister_OverwriteNeedsTheRightsOfARewrite(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	path := b.file("s3://bucket/w/x/v1.metadata.json", tableFile(someUUID, "s3://bucket/w/x", "", ""))
	for privilege, want := range map[authz.Privilege]fault.Kind{
		authz.TableCreate: fault.Forbidden, authz.TableFullMetadata: fault.Forbidden, authz.TableWriteData: fault.Forbidden,
		authz.CatalogManageContent: "",
	} {
		c := b.principal(string(privilege), privilege, "")
		if _, err := b.registerAs(c, "t", path, true); fault.KindOf(err) != want {
			t.Errorf("%s: %v", privilege, err)
		}
	}
}

func TestRegister_VersionsOfTheWarehouse(t *testing.T) {
	b := newBench(t)
	b.option("allowed-format-versions", "1,3")
	b.refusedRegister("t", b.file("s3://bucket/w/t/v1.metadata.json", tableFile(someUUID, "s3://bucket/w/t", "", "")), fault.BadRequest, "allows 1, 3")
}

// A v1 table may have no uuid: it gets the same one whenever it is registered, and its next file holds it.
func TestRegister_V1WithoutUUID(t *testing.T) {
	b := newBench(t)
	path := b.file("s3://bucket/w/t/metadata/v3.metadata.json", `{"format-version":1,"location":"s3://bucket/w/t/","last-updated-ms":1700000000000,
		"last-column-id":1,"schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"}]},"partition-spec":[],"properties":{}}`)
	id1 := b.mustRegister("t", path).Document.UUID()
	if _, err := uuid.Parse(id1); err != nil || b.load("t").Document.UUID() != id1 {
		t.Fatalf("uuid %q", id1)
	}
	if _, err := b.UnregisterTable(ctx, system, "w", id("t")); err != nil {
		t.Fatal(err)
	}
	if got := b.mustRegister("u", path).Document.UUID(); got != id1 {
		t.Errorf("registered again it has %s, not %s", got, id1)
	}
	loaded, err := b.start().LoadTable(ctx, system, catalog.LoadTableRequest{Warehouse: "w", Ident: id("u")})
	if err != nil || loaded.Document.UUID() != id1 {
		t.Fatalf("another server loads %v", err)
	}
	if err := b.commitAs(system, "u", b.properties(`"k":"v"`)); err != nil {
		t.Fatal(err)
	}
	raw, err := b.files.ReadMetadata(ctx, vending.FilePlace{Path: b.load("u").MetadataLocation, Scope: vending.Scope{Location: "s3://bucket/w/t"}})
	if err != nil || !strings.Contains(string(raw), id1) {
		t.Errorf("%v: the next file is %s", err, raw)
	}
}

// Undoing a drop is what users do with register.
func TestRegister_UndoesADrop(t *testing.T) {
	b := newBench(t)
	if _, err := b.CreateNamespace(ctx, system, "w", catalog.Namespace{"b"}, nil); err != nil {
		t.Fatal(err)
	}
	table := b.mustCreate("t")
	if err := b.DropTable(ctx, system, catalog.DropTableRequest{Warehouse: "w", Ident: id("t")}); err != nil {
		t.Fatal(err)
	}
	_, err := b.RegisterTable(ctx, system, catalog.RegisterRequest{
		Warehouse: "w", Ident: catalog.Identifier{Namespace: catalog.Namespace{"b"}, Name: "t"}, MetadataLocation: table.MetadataLocation,
	})
	if !fault.Is(err, fault.BadRequest) {
		t.Errorf("it is back in a namespace of other people: %v", err)
	}
	back := b.mustRegister("back", table.MetadataLocation)
	if back.Document.UUID() != table.Document.UUID() {
		t.Error("it is another table")
	}
	b.refusedRegister("twice", table.MetadataLocation, fault.BadRequest, "overlaps")
}

// A namespace that somebody makes anew inherits no dropped table of the one that had its name.
func TestRegister_OfANamespaceThatIsGone(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	if err := b.DropTable(ctx, system, catalog.DropTableRequest{Warehouse: "w", Ident: id("t")}); err != nil {
		t.Fatal(err)
	}
	if err := b.DropNamespace(ctx, system, "w", catalog.Namespace{"a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateNamespace(ctx, system, "w", catalog.Namespace{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, privilege := range []authz.Privilege{authz.TableCreate, authz.TableFullMetadata, authz.CatalogManageMetadata} {
		c := b.principal(string(privilege), privilege, "")
		if _, err := b.registerAs(c, "t", table.MetadataLocation, false); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: %v", privilege, err)
		}
	}
	owner := b.principal("owner", authz.CatalogManageContent, "")
	if _, err := b.registerAs(owner, "t", table.MetadataLocation, false); err != nil {
		t.Errorf("who manages the warehouse's content: %v", err)
	}
}
