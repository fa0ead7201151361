package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// A server without folders says which setting would have them.
func TestCreateWarehouse_NamesTheSettingOfFolders(t *testing.T) {
	b := newBench(t)
	for kind, wanted := range map[string]bool{"FILE": true, "GCS": false} {
		_, _, err := b.EnsureWarehouse(ctx, catalog.WarehouseDraft{
			Name: "folders", Location: "file:///folders", Storage: vending.Profile{StorageType: kind},
		})
		if !fault.Is(err, fault.BadRequest) || strings.Contains(err.Error(), "storage.allow_file") != wanted {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestLocations_AreCheckedOnEveryPath(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	b.mustCreate("other")
	victim := b.load("other").Document.Location()
	for _, bad := range []string{"s3://foreign/x", "s3://bucket/w", "s3://bucket/w/../x", "s3://bucket/wx/t", "file:///etc", victim, victim + "/sub"} {
		if _, err := b.create("n", `,"location":"`+bad+`"`); fault.KindOf(err) != fault.BadRequest {
			t.Errorf("create at %s: %v", bad, err)
		}
		if _, err := b.create("n", `,"stage-create":true,"location":"`+bad+`"`); fault.KindOf(err) != fault.BadRequest {
			t.Errorf("stage at %s: %v", bad, err)
		}
		err := b.commitAs(system, "t", b.decode(`{"requirements":[],"updates":[{"action":"set-location","location":"`+bad+`"}]}`))
		wantKind(t, err, fault.BadRequest)
		for _, name := range []string{"write.data.path", "write.metadata.path"} {
			wantKind(t, b.commitAs(system, "t", b.properties(fmt.Sprintf("%q:%q", name, bad))), fault.BadRequest)
		}
	}
	for _, name := range []string{"s3.endpoint", "S3.Endpoint", "io-impl", "header.x", "token", "client.region",
		"write.location-provider.impl", "write.py-location-provider.impl", "Write.Location-Provider.Impl", "any-impl"} {
		wantKind(t, b.commitAs(system, "t", b.properties(fmt.Sprintf(`%q:"x"`, name))), fault.BadRequest)
		if _, err := b.create("n", fmt.Sprintf(`,"properties":{%q:"x"}`, name)); fault.KindOf(err) != fault.BadRequest {
			t.Errorf("create with %s: %v", name, err)
		}
	}
	outside := b.decode(strings.Replace(`{"requirements":[],"updates":[{"action":"set-statistics","statistics":{"snapshot-id":1,
		"statistics-path":"PATH","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]}}]}`, "PATH", victim+"/metadata/s.puffin", 1))
	wantKind(t, b.commitAs(system, "t", outside), fault.BadRequest)
	if got := b.load("t").MetadataLocation; got != table.MetadataLocation {
		t.Errorf("the table moved to %s", got)
	}
}

// The refusal comes before anything is written: not even a file that is removed again may appear among another
// table's.
func TestLocations_RefusedPlacesStayUntouched(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	b.mustCreate("other")
	victim := b.load("other").Document.Location()
	var touched []string
	b.files.Inject(func(method string, _ int) catalogtest.Failure {
		if method != "ReadMetadata" {
			touched = append(touched, method)
		}
		return catalogtest.Failure{}
	})
	createAt := func(location string) commit.Request {
		return b.decode(fmt.Sprintf(`{"requirements":[{"type":"assert-create"}],"updates":[
			{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}},
			{"action":"set-location","location":%q}]}`, location))
	}
	for _, bad := range []string{victim, victim + "/below", victim + "/data/x"} {
		_, err := b.create("n", `,"location":"`+bad+`"`)
		wantKind(t, err, fault.BadRequest)
		wantKind(t, b.commitAs(system, "n", createAt(bad)), fault.BadRequest)
		moved := b.decode(`{"requirements":[],"updates":[{"action":"set-location","location":"` + bad + `"}]}`)
		wantKind(t, b.commitAs(system, "t", moved), fault.BadRequest)
		wantKind(t, b.CommitTransaction(ctx, system, "w", []catalog.TableChange{
			{Ident: id("other"), Change: b.properties(`"a":"b"`)}, {Ident: id("n"), Change: createAt(bad)},
		}), fault.BadRequest)
	}
	twice := "s3://old/w/twice"
	wantKind(t, b.CommitTransaction(ctx, system, "w", []catalog.TableChange{
		{Ident: id("n"), Change: createAt(twice)}, {Ident: id("m"), Change: createAt(twice + "/below")},
	}), fault.BadRequest)
	wantKind(t, b.CommitTransaction(ctx, system, "w", []catalog.TableChange{
		{Ident: id("n"), Change: createAt(twice)}, {Ident: id("none"), Change: b.properties(`"a":"b"`)},
	}), fault.NoSuchTable)
	if len(touched) > 0 {
		t.Errorf("refused requests made %v", touched)
	}
}

func TestField_C080_PathInsideTheTableIsNoOverlap(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	err := b.commitAs(system, "t", b.properties(fmt.Sprintf(`"write.data.path":%q`, table.Document.Location()+"/alt")))
	if err != nil {
		t.Error(err)
	}
}

func TestField_C071_EveryAllowedLocationWorks(t *testing.T) {
	b := newBench(t)
	loaded, err := b.create("t", `,"location":"s3://old/w/t/"`)
	if err != nil || loaded.Document.Location() != "s3://old/w/t" {
		t.Errorf("got %v", err)
	}
}

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
