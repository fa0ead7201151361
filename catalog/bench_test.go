package catalog_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
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

// loseOutcome lets commits end with an outcome that cannot be asked for either; applied says what it was in truth.
func (b *bench) loseOutcome(applied bool) {
	b.store.Inject(func(method string, _ int) (f catalogtest.Failure) {
		switch method {
		case "CommitPointers":
			f = catalogtest.Failure{Err: catalogtest.Unknown(), Applied: applied}
		case "CommitLanded":
			f.Err = fault.New(fault.Busy, "away")
		}
		return f
	})
}

// option sets a property of the warehouse, its only one.
func (b *bench) option(name, value string) {
	b.Helper()
	w, err := b.store.FindWarehouse(ctx, "w")
	if err != nil {
		b.Fatal(err)
	}
	w.Properties = map[string]string{name: value}
	if err := b.store.UpdateWarehouse(ctx, w, catalog.Fact{ID: uuid.New()}); err != nil {
		b.Fatal(err)
	}
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
