package catalog_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// bench is a service over the store and the files in memory, with one warehouse `w` and one namespace `a`.
type bench struct {
	*testing.T
	store *catalogtest.Store
	files *catalogtest.Metadata
	*catalog.Service
	began time.Time // of the test: the time of its snapshots, so that a request made again is the same request
}

var (
	ctx    = context.Background()
	system = catalog.Caller{Principal: auth.MaintenancePrincipal(), RequestID: "test"}
)

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, store: catalogtest.NewStore(), files: catalogtest.NewMetadata(), began: time.Now()}
	b.Service = b.start()
	w := catalog.Warehouse{
		ID: uuid.New(), Name: "w", Location: "s3://bucket/w",
		Storage: vending.Profile{StorageType: "S3", AllowedLocations: []string{"s3://bucket/w", "s3://old/w"}},
	}
	if err := b.store.CreateWarehouse(ctx, w, catalog.Fact{ID: uuid.New()}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateNamespace(ctx, system, "w", catalog.Namespace{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

// start gives one more server over the same store and files, with nothing in memory.
func (b *bench) start() *catalog.Service {
	return catalog.New(catalog.Config{
		Store: b.store, Admin: b.store, Metadata: b.files, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Providers: map[string]vending.Provider{"S3": stub{}},
	})
}

// stub vends keys that name their scope.
type stub struct{}

func (stub) Validate(vending.Profile) error { return nil }
func (stub) CanVend(vending.Profile) bool   { return true }
func (stub) Vend(_ context.Context, _ vending.Profile, s vending.Scope) (vending.Credentials, error) {
	return vending.Credentials{
		Prefix: s.Location + "/", ExpiresAt: time.Now().Add(time.Hour),
		Config: map[string]string{"s3.access-key-id": string(s.Access) + " " + s.Location},
	}, nil
}
func (stub) ClientConfig(vending.Profile) map[string]string {
	return map[string]string{"s3.region": "r"}
}

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

func id(name string) catalog.Identifier {
	return catalog.Identifier{Namespace: catalog.Namespace{"a"}, Name: name}
}

func (b *bench) createBody(name string) commit.CreateRequest {
	b.Helper()
	body, err := commit.DecodeCreate([]byte(fmt.Sprintf(
		`{"name":%q,"schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}}`, name)))
	if err != nil {
		b.Fatal(err)
	}
	return body
}

func (b *bench) create(name, more string) (catalog.LoadedTable, error) {
	b.Helper()
	body, err := commit.DecodeCreate([]byte(fmt.Sprintf(
		`{"name":%q,"schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}%s}`, name, more)))
	if err != nil {
		b.Fatal(err)
	}
	return b.CreateTable(ctx, system, catalog.CreateTableRequest{
		Warehouse: "w", Namespace: catalog.Namespace{"a"}, Body: body, Delegated: true,
	})
}

func (b *bench) mustCreate(name string) catalog.LoadedTable {
	b.Helper()
	loaded, err := b.create(name, "")
	if err != nil {
		b.Fatal(err)
	}
	return loaded
}

func (b *bench) decode(text string) commit.Request {
	b.Helper()
	r, err := commit.DecodeRequest([]byte(text))
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// appendTo is a commit of one snapshot on a table that has none yet.
func (b *bench) appendTo(t catalog.LoadedTable, snapshot int) commit.Request {
	b.Helper()
	return b.decode(fmt.Sprintf(`{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}],
		"updates":[{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"sequence-number":1,"timestamp-ms":%d,
		"manifest-list":"%s/metadata/%d.avro","schema-id":0,"summary":{"operation":"append"}}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]}`,
		snapshot, b.began.UnixMilli(), t.Document.Location(), snapshot, snapshot))
}

func (b *bench) commitAs(c catalog.Caller, name string, r commit.Request) error {
	_, err := b.CommitTable(ctx, c, catalog.CommitTableRequest{Warehouse: "w", Ident: id(name), Change: r})
	return err
}

func (b *bench) properties(pairs string) commit.Request {
	return b.decode(`{"requirements":[],"updates":[{"action":"set-properties","updates":{` + pairs + `}}]}`)
}

func (b *bench) load(name string) catalog.LoadedTable {
	b.Helper()
	loaded, err := b.LoadTable(ctx, system, catalog.LoadTableRequest{Warehouse: "w", Ident: id(name)})
	if err != nil {
		b.Fatal(err)
	}
	return loaded
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if fault.KindOf(err) != kind {
		t.Errorf("got %v (%s), wanted %s", err, fault.KindOf(err), kind)
	}
}

func TestField_C088_RacingAppendsHaveOneWinner(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	const writers = 50
	errs := make([]error, writers)
	requests := make([]commit.Request, writers)
	for i := range requests {
		requests[i] = b.appendTo(table, i+1)
	}
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() { errs[i] = b.commitAs(system, "t", requests[i]) })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		wantKind(t, err, fault.CommitConflict)
	}
	if won != 1 || b.load("t").Document.SnapshotCount() != 1 {
		t.Errorf("%d writers won; %d snapshots", won, b.load("t").Document.SnapshotCount())
	}
	if n := len(b.files.Files()); n != 2 {
		t.Errorf("%d metadata files are left, wanted the first and the winner's", n)
	}
}

func TestCommit_ConcurrentPropertiesAllLand(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	const writers = 32
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			if err := b.commitAs(system, "t", b.properties(fmt.Sprintf(`"k%d":"v"`, i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(b.load("t").Document.Properties()); n < writers {
		t.Errorf("%d properties, wanted %d", n, writers)
	}
}

func TestField_C121_TransactionIsAllOrNothing(t *testing.T) {
	b := newBench(t)
	one, two := b.mustCreate("one"), b.mustCreate("two")
	if err := b.commitAs(system, "two", b.appendTo(two, 7)); err != nil {
		t.Fatal(err)
	}
	changes := func(second string) []catalog.TableChange {
		return []catalog.TableChange{{Ident: id("one"), Change: b.appendTo(one, 1)}, {Ident: id(second), Change: b.appendTo(two, 2)}}
	}
	wantKind(t, b.CommitTransaction(ctx, system, "w", changes("two")), fault.CommitConflict)
	wantKind(t, b.CommitTransaction(ctx, system, "w", changes("missing")), fault.NoSuchTable)
	wantKind(t, b.CommitTransaction(ctx, system, "w", changes("one")), fault.BadRequest)
	if n := b.load("one").Document.SnapshotCount(); n != 0 {
		t.Errorf("the first table has %d snapshots after refused transactions", n)
	}
}

// principal makes a caller with one privilege on one table, or, with table "", on the warehouse.
func (b *bench) principal(name string, privilege authz.Privilege, table string) catalog.Caller {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Helper()
			b.Fatal(err)
		}
	}
	w, err := b.store.FindWarehouse(ctx, "w")
	must(err)
	p := catalog.PrincipalRecord{ID: uuid.New(), Name: name, ClientID: name, Kind: auth.Service}
	must(b.store.CreatePrincipal(ctx, p, auth.StoredSecret{}, catalog.Fact{ID: uuid.New()}))
	role := catalog.RoleRecord{ID: uuid.New(), Name: name}
	inside := catalog.RoleRecord{ID: uuid.New(), WarehouseID: w.ID, Name: name}
	must(b.store.CreateRole(ctx, role, catalog.Fact{ID: uuid.New()}))
	must(b.store.CreateRole(ctx, inside, catalog.Fact{ID: uuid.New()}))
	must(b.store.AssignPrincipalRole(ctx, p.ID, role.ID, catalog.Fact{ID: uuid.New()}))
	must(b.store.AssignCatalogRole(ctx, role.ID, inside.ID, catalog.Fact{ID: uuid.New()}))
	grant := catalog.RoleGrant{Privilege: privilege, Kind: authz.Catalog, ID: w.ID}
	if table != "" {
		res, err := b.store.Resolve(ctx, catalog.Lookup{Principal: system.Principal, Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: table})
		must(err)
		grant = catalog.RoleGrant{Privilege: privilege, Kind: authz.Table, ID: res.Table.ID, Namespace: catalog.Namespace{"a"}, Name: table}
	}
	must(b.store.AddGrant(ctx, inside, grant, catalog.Fact{ID: uuid.New()}))
	return catalog.Caller{Principal: auth.Principal{ID: p.ID, Name: name, Kind: auth.Service, Roles: auth.RoleScope{All: true}}}
}

func TestField_C123_EveryTableOfATransactionIsAuthorised(t *testing.T) {
	b := newBench(t)
	one, two := b.mustCreate("one"), b.mustCreate("two")
	writer := b.principal("writer", authz.TableWriteData, "one")
	err := b.CommitTransaction(ctx, writer, "w", []catalog.TableChange{
		{Ident: id("one"), Change: b.appendTo(one, 1)}, {Ident: id("two"), Change: b.appendTo(two, 2)}})
	wantKind(t, err, fault.Forbidden)
	if n := b.load("one").Document.SnapshotCount(); n != 0 {
		t.Errorf("the table that the caller may write has %d snapshots", n)
	}
	if err := b.commitAs(writer, "one", b.appendTo(one, 1)); err != nil {
		t.Error(err)
	}
	audits := b.store.Audits()
	if !slices.ContainsFunc(audits, func(a catalogtest.Audit) bool { return !a.Allowed && a.Principal == "writer" }) {
		t.Error("the refusal left no audit row")
	}
}

// The audit and a refusal name a namespace as it is called, without a dot behind it.
func TestGrant_SubjectsNameWhatIsMeant(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	reader := b.principal("reader", authz.TableReadData, "t")
	a, role := catalog.Namespace{"a"}, catalog.RoleName{Warehouse: "w", Name: "r"}
	for want, target := range map[string]catalog.GrantTarget{
		"TABLE_LIST on namespace a to w/r": {Privilege: authz.TableList, Kind: authz.Namespace, Namespace: a},
		"TABLE_LIST on table a.t to w/r":   {Privilege: authz.TableList, Kind: authz.Table, Namespace: a, Name: "t"},
		"TABLE_LIST on catalog w to w/r":   {Privilege: authz.TableList, Kind: authz.Catalog},
	} {
		err := b.Grant(ctx, reader, role, target)
		wantKind(t, err, fault.Forbidden)
		audits := b.store.Audits()
		if last := audits[len(audits)-1]; last.Subject != want || !strings.Contains(err.Error(), want) {
			t.Errorf("audited is %q, and said %v; want %q", last.Subject, err, want)
		}
	}
}

func TestField_C154_HiddenAndMissingLookTheSame(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	b.mustCreate("mine")
	stranger := b.principal("stranger", authz.TableReadData, "mine")
	lister := b.principal("lister", authz.TableList, "")
	load := func(c catalog.Caller, name string) error {
		_, err := b.LoadTable(ctx, c, catalog.LoadTableRequest{Warehouse: "w", Ident: id(name)})
		return err
	}
	hidden, missing := load(stranger, "t"), load(stranger, "none")
	wantKind(t, hidden, fault.Forbidden)
	wantKind(t, missing, fault.Forbidden)
	if a, c := strings.ReplaceAll(hidden.Error(), "a.t", "X"), strings.ReplaceAll(missing.Error(), "a.none", "X"); a != c {
		t.Errorf("%q differs from %q", a, c)
	}
	wantKind(t, load(lister, "none"), fault.NoSuchTable)
	wantKind(t, load(lister, "t"), fault.Forbidden)
	_, err := b.LoadTable(ctx, stranger, catalog.LoadTableRequest{
		Warehouse: "w", Ident: catalog.Identifier{Namespace: catalog.Namespace{"a", "mine"}, Name: "files"}})
	wantKind(t, err, fault.NoSuchTable)
}

func TestField_C166_CredentialsFollowTheGrant(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	for name, want := range map[string]string{"reader": "read ", "writer": "read-write ", "lister": ""} {
		privilege := map[string]authz.Privilege{
			"reader": authz.TableReadData, "writer": authz.TableWriteData, "lister": authz.TableReadProperties}[name]
		caller := b.principal(name, privilege, "t")
		loaded, err := b.LoadTable(ctx, caller, catalog.LoadTableRequest{Warehouse: "w", Ident: id("t"), Delegated: true})
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			want += table.Document.Location()
		}
		if got := loaded.Config["s3.access-key-id"]; got != want {
			t.Errorf("%s got keys for %q, wanted %q", name, got, want)
		}
		if loaded.Config["s3.region"] != "r" {
			t.Errorf("%s was not told the region", name)
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

// A refusal speaks of the report and not of how it is read.
func TestReportMetrics_RefusesWhatIsNoReport(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	for body, want := range map[string]string{
		`{"report-type":"scan-report","new":[1]}`: "", `{"report-type":"of another kind"}`: "",
		`{`: "not a JSON object", `[]`: "not a JSON object", `{"report-type":5}`: "not a JSON object", `{}`: "no report-type", `null`: "no report-type",
	} {
		err := b.ReportMetrics(ctx, system, "w", id("t"), []byte(body))
		if want == "" && err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if message := fault.Message(err); want != "" && (!fault.Is(err, fault.BadRequest) || !strings.Contains(message, want) || strings.Contains(message, "Go ")) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Readers of JSON stop at some depth, most at 1,000: one report that is deeper would hide all others from them.
func TestReportMetrics_DepthIsBounded(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	nested := func(depth int, around string) []byte {
		return []byte(fmt.Sprintf(`{"report-type":"x","note":"\\\"[[{{","a":`+around+`}`, strings.Repeat("[", depth)+strings.Repeat("]", depth)))
	}
	flat := []byte(`{"report-type":"x","a":[` + strings.Repeat(`{"b":[]},`, 2000) + `{}]}`)
	for _, body := range [][]byte{nested(499, "%s"), nested(498, `{"b":%s}`), nested(9000, `"%s"`), flat} {
		if err := b.ReportMetrics(ctx, system, "w", id("t"), body); err != nil {
			t.Errorf("%.60s: %v", body, err)
		}
	}
	for _, body := range [][]byte{nested(500, "%s"), nested(499, `{"b":%s}`), nested(1200, "%s"), nested(9000, "%s"), nested(50_000, "%s")} {
		if err := b.ReportMetrics(ctx, system, "w", id("t"), body); !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), "500 deep") {
			t.Errorf("%.60s: %v", body, err)
		}
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

// Z13: COMMIT was sent and the connection is gone.
func TestField_Z13_LostAnswerIsSettled(t *testing.T) {
	for _, applied := range []bool{true, false} {
		b := newBench(t)
		table := b.mustCreate("t")
		b.store.Inject(catalogtest.LoseAnswer("CommitPointers", 1, applied))
		if err := b.commitAs(system, "t", b.appendTo(table, 1)); err != nil {
			t.Errorf("applied %v: %v", applied, err)
		}
		b.store.Inject(nil)
		loaded := b.load("t")
		if loaded.Document.SnapshotCount() != 1 || !slices.Contains(b.files.Files(), loaded.MetadataLocation) {
			t.Errorf("applied %v: %d snapshots", applied, loaded.Document.SnapshotCount())
		}
	}
}

// The clock is the test's, so that the deadline passes while the outcome is asked for and at no other time.
func TestField_C259_UnknownForGoodDeletesNothing(t *testing.T) {
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) { unknownForGood(t, applied) })
	}
}

func unknownForGood(t *testing.T, applied bool) {
	b := newBench(t)
	table := b.mustCreate("t")
	b.store.Inject(func(method string, _ int) catalogtest.Failure {
		switch method {
		case "CommitPointers":
			return catalogtest.Failure{Err: catalogtest.Unknown(), Applied: applied}
		case "CommitLanded":
			return catalogtest.Failure{Err: fault.New(fault.Busy, "away")}
		}
		return catalogtest.Failure{}
	})
	change := b.appendTo(table, 1)
	wantKind(t, b.commitAs(system, "t", change), fault.CommitUnknown)
	if n := len(b.files.Files()); n != 2 {
		t.Errorf("applied %v: %d files are left, wanted both", applied, n)
	}
	b.store.Inject(nil)
	if err := b.commitAs(system, "t", change); err != nil {
		t.Errorf("applied %v: the repeat: %v", applied, err)
	}
	if n := b.load("t").Document.SnapshotCount(); n != 1 {
		t.Errorf("applied %v: %d snapshots", applied, n)
	}
}

// A commit that is sent whole waits for its row's lock with an outcome that nobody knows, maybe until its time is over.
func TestCommit_WhoseTimeIsOverIsStillSettled(t *testing.T) {
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			table := b.mustCreate("t")
			sent := 0
			b.store.Inject(func(method string, _ int) catalogtest.Failure {
				if method != "CommitPointers" || sent > 0 {
					return catalogtest.Failure{}
				}
				sent++
				<-time.After(2 * time.Minute) // by the clock of the test
				return catalogtest.Failure{Err: catalogtest.Unknown(), Applied: applied}
			})
			if err := b.commitAs(system, "t", b.appendTo(table, 1)); err != nil {
				t.Errorf("applied %v: %v", applied, err)
			}
			if n := b.load("t").Document.SnapshotCount(); n != 1 {
				t.Errorf("applied %v: %d snapshots", applied, n)
			}
		})
	}
}

func TestStage_TakesNoNameAndCommitsOnce(t *testing.T) {
	b := newBench(t)
	staged, err := b.create("t", `,"stage-create":true`)
	if err != nil || staged.MetadataLocation != "" || staged.Credentials == nil {
		t.Fatalf("staged: %v, %q", err, staged.MetadataLocation)
	}
	if len(b.files.Files()) != 0 {
		t.Errorf("a staged create wrote %v", b.files.Files())
	}
	creds, err := b.LoadCredentials(ctx, system, "w", id("t"))
	if err != nil || len(creds) != 1 || !strings.HasPrefix(creds[0].Prefix, staged.Document.Location()) {
		t.Errorf("credentials of a staged create: %v, %v", creds, err)
	}
	create := b.decode(fmt.Sprintf(`{"requirements":[{"type":"assert-create"}],"updates":[
		{"action":"assign-uuid","uuid":%q},{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","type":"long","required":false}]}},
		{"action":"set-current-schema","schema-id":-1},{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},
		{"action":"set-default-spec","spec-id":-1},{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},
		{"action":"set-default-sort-order","sort-order-id":-1},{"action":"set-location","location":%q}]}`,
		staged.Document.UUID(), staged.Document.Location()))
	for range 2 { // the second is the repeat of a landed commit
		if err := b.commitAs(system, "t", create); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.load("t").Document; got.UUID() != staged.Document.UUID() || got.Location() != staged.Document.Location() {
		t.Errorf("committed as %s at %s", got.UUID(), got.Location())
	}
	wantKind(t, b.DropNamespace(ctx, system, "w", catalog.Namespace{"a"}), fault.NamespaceNotEmpty)
}

func TestField_C021_StagedCreateDoesNotHoldANamespace(t *testing.T) {
	b := newBench(t)
	if _, err := b.create("t", `,"stage-create":true`); err != nil {
		t.Fatal(err)
	}
	if err := b.DropNamespace(ctx, system, "w", catalog.Namespace{"a"}); err != nil {
		t.Error(err)
	}
}
