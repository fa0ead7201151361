package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

// A store may fold case in its policies, so a location of another case is another place, to be checked as such.
func TestLocations_CaseIsNotTheSamePlace(t *testing.T) {
	b := newBench(t)
	loaded, err := b.create("t", `,"location":"s3://bucket/w/finance"`)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"s3://bucket/W/finance", "s3://BUCKET/w/finance", "s3://bucket/W/Finance"} {
		err := b.commitAs(system, "t", b.decode(fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-location","location":%q}]}`, bad)))
		wantKind(t, err, fault.BadRequest)
	}
	if got := b.load("t").Document.Location(); got != loaded.Document.Location() {
		t.Errorf("the table moved to %s", got)
	}
}

// A commit whose snapshot is in the table but whose other changes are not was never applied whole: it is neither
// acknowledged nor cleanly refused.
func TestCommit_PartlyThereIsUnknown(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	if err := b.commitAs(system, "t", b.appendTo(table, 7)); err != nil {
		t.Fatal(err)
	}
	more := b.appendTo(table, 7)
	more.Updates = append(more.Updates, b.properties(`"x":"y"`).Updates...)
	before := b.load("t").MetadataLocation
	wantKind(t, b.commitAs(system, "t", more), fault.CommitUnknown)
	wantKind(t, b.CommitTransaction(ctx, system, "w", []catalog.TableChange{{Ident: id("t"), Change: more}}), fault.CommitUnknown)
	foreign := b.appendTo(table, 7)
	foreign.Requirements = append(foreign.Requirements,
		b.decode(`{"requirements":[{"type":"assert-table-uuid","uuid":"11111111-1111-1111-1111-111111111111"}],"updates":[]}`).Requirements...)
	wantKind(t, b.commitAs(system, "t", foreign), fault.CommitConflict)
	if b.load("t").MetadataLocation != before {
		t.Error("a refused commit moved the pointer")
	}
	if err := b.commitAs(system, "t", b.appendTo(table, 7)); err != nil {
		t.Errorf("the true repeat: %v", err)
	}
}

// The snapshot of a landed commit stays in the table when its branch is set back: a late repeat must not make the
// client delete its files.
func TestCommit_RepeatAfterRollbackIsUnknown(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	if err := b.commitAs(system, "t", b.appendTo(table, 7)); err != nil {
		t.Fatal(err)
	}
	back := b.decode(`{"requirements":[],"updates":[{"action":"remove-snapshot-ref","ref-name":"main"}]}`)
	if err := b.commitAs(system, "t", back); err != nil {
		t.Fatal(err)
	}
	wantKind(t, b.commitAs(system, "t", b.appendTo(table, 7)), fault.CommitUnknown)
}

// createCommit is the commit of a create transaction under a uuid of the client's, with more updates behind it.
func createCommit(uuid, more string) string {
	return fmt.Sprintf(`{"requirements":[{"type":"assert-create"}],"updates":[
		{"action":"assign-uuid","uuid":%q},
		{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","type":"long","required":false}]}},
		{"action":"set-current-schema","schema-id":-1},{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},
		{"action":"set-default-spec","spec-id":-1},{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},
		{"action":"set-default-sort-order","sort-order-id":-1}%s]}`, uuid, more)
}

func TestCommit_RepeatedCreateIsHeldAgainstWhatIsThere(t *testing.T) {
	const id1 = "22222222-2222-4222-8222-222222222222"
	b := newBench(t)
	create := b.decode(createCommit(id1, ""))
	for range 2 {
		if err := b.commitAs(system, "t", create); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := strings.ReplaceAll(`,{"action":"add-snapshot","snapshot":{"snapshot-id":5,"sequence-number":1,"timestamp-ms":1790000000000,
		"manifest-list":"LOCATION/metadata/5.avro","schema-id":0,"summary":{"operation":"append"}}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":5}`, "LOCATION", b.load("t").Document.Location())
	wantKind(t, b.commitAs(system, "t", b.decode(createCommit(id1, snapshot))), fault.AlreadyExists)
	wantKind(t, b.commitAs(system, "t", b.decode(createCommit(id1, `,{"action":"set-properties","updates":{"x":"y"}}`))), fault.CommitUnknown)

	creator := b.principal("creator", authz.TableCreate, "")
	wantKind(t, b.commitAs(creator, "t", create), fault.Forbidden)
}

// Whoever may write a table's files could replace its metadata file; the catalog then serves nothing of it: what was
// committed where it has a copy, else a refusal.
func TestLoad_ForgedMetadataIsRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"location": {`"location":"s3://bucket/w/`, `"location":"s3://bucket/w/other/`},
		"property": {`"properties":{`, `"properties":{"py-io-impl":"evil",`},
		"path":     {`"properties":{`, `"properties":{"write.data.path":"s3://bucket/w/other",`},
		"content":  {`"properties":{`, `"properties":{"owner":"mallory",`},
		"uuid":     {`"table-uuid":"`, `"table-uuid":"00000000-0000-4000-8000-000000000000","was":"`},
	} {
		b := newBench(t)
		loaded := b.mustCreate("t")
		forged := strings.Replace(string(loaded.Metadata), change[0], change[1], 1)
		if forged == string(loaded.Metadata) {
			t.Fatalf("%s: nothing to forge in %s", name, loaded.Metadata)
		}
		b.files.Forge(loaded.MetadataLocation, []byte(forged))
		load := func() (catalog.LoadedTable, error) {
			other := catalog.New(catalog.Config{Store: b.store, Metadata: b.files, Providers: b.Providers})
			return other.LoadTable(ctx, system, catalog.LoadTableRequest{Warehouse: "w", Ident: id("t")})
		}
		if got, err := load(); err != nil || !bytes.Equal(got.Metadata, loaded.Metadata) {
			t.Errorf("%s: with a copy of what was committed: %v, %s", name, err, got.Metadata)
		}
		b.store.ForgetCopies()
		_, err := load()
		wantKind(t, err, fault.Validation)
		b.store.ForgetDigests()
		if _, err := load(); name != "content" || err != nil { // without a digest, what could lead readers elsewhere is refused
			wantKind(t, err, fault.Validation)
		}
	}
}

// A commit whose time is over before its file is written does not land any more.
func TestCommit_NothingLandsAfterTheDeadline(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	late, cancel := context.WithCancel(ctx)
	clock := b.Now
	b.Now = func() time.Time { cancel(); return clock() } // it is asked while the change is computed
	_, err := b.CommitTable(late, system, catalog.CommitTableRequest{Warehouse: "w", Ident: id("t"), Change: b.properties(`"a":"b"`)})
	b.Now = clock
	wantKind(t, err, fault.Busy)
	if b.load("t").MetadataLocation != table.MetadataLocation {
		t.Error("it landed")
	}
}

// No table may close the folder of the namespaces' locations to the warehouse.
func TestLocations_TheNamespacesFolderStaysOpen(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	properties, err := b.LoadNamespace(ctx, system, "w", catalog.Namespace{"a"})
	if err != nil {
		t.Fatal(err)
	}
	own := properties["location"]
	for _, bad := range []string{"s3://bucket/w/ns", "s3://bucket/w/NS", "s3a://bucket/w/ns/", "s3://bucket/w/ns/x", "s3://bucket/w/ns/x/y", own,
		"s3://bucket/w/ns/11111111-1111-4111-8111-111111111111/t", strings.ReplaceAll(own, "-", "") + "/t"} {
		err := b.commitAs(system, "t", b.decode(fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-location","location":%q}]}`, bad)))
		wantKind(t, err, fault.BadRequest)
		_, err = b.create("u", fmt.Sprintf(`,"location":%q`, bad))
		wantKind(t, err, fault.BadRequest)
	}
	for name, good := range map[string]string{"v": own + "/v-1", "x": "s3://bucket/w/nsx", "y": "s3://old/w/ns"} {
		if _, err := b.create(name, fmt.Sprintf(`,"location":%q`, good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// A namespace takes no place that another one gives to its tables; the folder that another one has by itself is no choice.
func TestLocations_NamespacesStayOutOfOthersFolders(t *testing.T) {
	b := newBench(t)
	of := func(levels ...string) string {
		t.Helper()
		properties, err := b.LoadNamespace(ctx, system, "w", levels)
		if err != nil {
			t.Fatal(err)
		}
		return properties["location"]
	}
	try := func(location string, levels ...string) error {
		_, err := b.CreateNamespace(ctx, system, "w", levels, map[string]string{"location": location})
		return err
	}
	a := of("a")
	for _, bad := range []string{a + "/orders", "s3a" + a[2:] + "/orders", "s3://bucket/w/" + strings.ToUpper(a[len("s3://bucket/w/"):]) + "/orders", "s3://bucket/w/ns", "s3://bucket/w/ns/x"} {
		wantKind(t, try(bad, "b"), fault.BadRequest)
	}
	if err := try(a, "b"); err != nil || of("b") == a || !strings.HasPrefix(of("b"), "s3://bucket/w/ns/") {
		t.Fatalf("with a's properties: %v, at %s", err, of("b"))
	}
	if _, err := b.create("u", fmt.Sprintf(`,"location":%q`, a+"/u")); err != nil {
		t.Errorf("a table of a's own: %v", err)
	}
	if err := try(a+"/inner", "a", "inner"); err != nil || of("a", "inner") != a+"/inner" {
		t.Errorf("below its parent: %v", err)
	}
	for location, ok := range map[string]bool{a: false, a + "/x": false, of("b") + "/x": true, "s3://bucket/w/elsewhere": true} {
		_, err := b.UpdateNamespaceProperties(ctx, system, "w", catalog.Namespace{"b"}, nil, map[string]string{"location": location})
		if ok != (err == nil) {
			t.Errorf("to %s: %v", location, err)
		}
	}
}

// A table around the warehouse's base, where an allowed location lets it lie, would close the warehouse to all others.
func TestLocations_NoTableLiesAroundTheBase(t *testing.T) {
	b := newBench(t)
	w, err := b.store.FindWarehouse(ctx, "w")
	if err != nil {
		t.Fatal(err)
	}
	w.ID, w.Name, w.Location = uuid.New(), "deep", "s3://deep/tenants/one/lake"
	w.Storage.AllowedLocations = []string{"s3://deep/"}
	if err := b.store.CreateWarehouse(ctx, w, catalog.Fact{ID: uuid.New()}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateNamespace(ctx, system, "deep", catalog.Namespace{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	for location, ok := range map[string]bool{
		"s3://deep/tenants/one/lake": false, "s3a://deep/tenants/one": false, "s3://deep/TENANTS": false,
		"s3://deep/tenants/one/lak": true, "s3://deep/other": true,
	} {
		body := b.createBody("t" + location[len(location)-3:])
		body.Location = location
		_, err := b.CreateTable(ctx, system, catalog.CreateTableRequest{Warehouse: "deep", Namespace: catalog.Namespace{"a"}, Body: body})
		if ok != (err == nil) || !ok && !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: %v", location, err)
		}
	}
}

// Whose rights ended after the commit had landed is not refused cleanly: the client would delete files of the table.
func TestCommit_RepeatAfterARevokeIsUnknown(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	if err := b.commitAs(system, "t", b.appendTo(table, 7)); err != nil {
		t.Fatal(err)
	}
	for name, privilege := range map[string]authz.Privilege{"reader": authz.TableReadData, "stranger": authz.TableCreate} {
		revoked := b.principal(name, privilege, "")
		wantKind(t, b.commitAs(revoked, "t", b.appendTo(table, 7)), fault.CommitUnknown)
		wantKind(t, b.commitAs(revoked, "t", b.appendTo(table, 8)), fault.Forbidden)
		wantKind(t, b.commitAs(revoked, "t", b.properties(`"a":"b"`)), fault.Forbidden)
	}
}

// A landed snapshot that was expired since lives on in its child; the repeat of its commit is no clean refusal either.
func TestCommit_RepeatOfAnExpiredSnapshotIsUnknown(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	first := b.appendTo(table, 7)
	if err := b.commitAs(system, "t", first); err != nil {
		t.Fatal(err)
	}
	child := b.decode(fmt.Sprintf(`{"requirements":[],"updates":[{"action":"add-snapshot","snapshot":{"snapshot-id":8,"parent-snapshot-id":7,
		"sequence-number":2,"timestamp-ms":%d,"manifest-list":"%s/metadata/8.avro","schema-id":0,"summary":{"operation":"append"}}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":8}]}`, b.began.UnixMilli(), table.Document.Location()))
	for _, change := range []commit.Request{child, b.decode(`{"requirements":[],"updates":[{"action":"remove-snapshots","snapshot-ids":[7]}]}`)} {
		if err := b.commitAs(system, "t", change); err != nil {
			t.Fatal(err)
		}
	}
	wantKind(t, b.commitAs(system, "t", first), fault.CommitUnknown)
	wantKind(t, b.commitAs(system, "t", b.appendTo(table, 9)), fault.CommitConflict)
}
