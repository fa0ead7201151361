package rest

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
	"catalogd/vending"
	"catalogd/vending/local"
)

// lake is a service with one warehouse, "lake", and its door. ann may do everything, nobody nothing.
type lake struct {
	*door
	store *catalogtest.Store
	files *catalogtest.Metadata
}

func newLake(t *testing.T) *lake {
	t.Helper()
	l := &lake{store: catalogtest.NewStore(), files: catalogtest.NewMetadata()}
	l.addPrincipal(t, "ann", "service_admin")
	l.addPrincipal(t, "nobody", "")
	l.addWarehouse(t, "lake")
	l.door = newDoor(t, Config{Service: catalog.New(catalog.Config{
		Store: l.store, Admin: l.store, Metadata: l.files, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Providers: map[string]vending.Provider{"FILE": local.Provider{}, "S3": fakeVendor{}},
	})})
	return l
}

// traces counts what mutations leave behind: events in the store and metadata files.
func (l *lake) traces() (events, files int) { return len(l.store.Events()), len(l.files.Files()) }

func fact(operation string) catalog.Fact {
	return catalog.Fact{ID: uuid.New(), At: time.Now(), Operation: operation}
}

// addPrincipal makes a principal with a principal role of its own name, or of the name given.
func (l *lake) addPrincipal(t *testing.T, name, role string) catalog.RoleRecord {
	t.Helper()
	ctx := t.Context()
	record := catalog.PrincipalRecord{ID: idOf(name), Name: name, ClientID: name, Kind: auth.Service}
	secret := auth.StoredSecret{Algorithm: "hmac-sha256", Form: []byte("x")}
	if err := l.store.CreatePrincipal(ctx, record, secret, fact("create-principal")); err != nil {
		t.Fatal(err)
	}
	if role == "" {
		return catalog.RoleRecord{}
	}
	r, err := l.store.FindRole(ctx, uuid.Nil, role)
	if fault.Is(err, fault.NotFound) {
		r = catalog.RoleRecord{ID: uuid.New(), Name: role}
		err = l.store.CreateRole(ctx, r, fact("create-role"))
	}
	if err == nil {
		err = l.store.AssignPrincipalRole(ctx, record.ID, r.ID, fact("assign-role"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (l *lake) addWarehouse(t *testing.T, name string) {
	t.Helper()
	id := uuid.New()
	l.createWarehouse(t, catalog.Warehouse{
		ID: id, Name: name, Location: "file:///lakes/" + id.String(), Storage: vending.Profile{StorageType: "FILE"},
	})
}

func (l *lake) addVendingWarehouse(t *testing.T, name string) {
	t.Helper()
	l.createWarehouse(t, catalog.Warehouse{
		ID: uuid.New(), Name: name, Location: "s3://bucket/" + name,
		Storage: vending.Profile{StorageType: "S3", RoleARN: "arn:aws:iam::1:role/hidden", Region: "eu-west-1"},
	})
}

func (l *lake) createWarehouse(t *testing.T, w catalog.Warehouse) {
	t.Helper()
	w.Storage.AllowedLocations = []string{w.Location}
	if w.Storage.StorageType == "FILE" {
		w.Storage.AllowedLocations = append(w.Storage.AllowedLocations, "file:///registered")
	}
	if err := l.store.CreateWarehouse(t.Context(), w, fact("create-warehouse")); err != nil {
		t.Fatal(err)
	}
}

// letOnly makes a principal that has one privilege on the warehouse lake.
func (l *lake) letOnly(t *testing.T, name string, privilege authz.Privilege) {
	t.Helper()
	l.letOnlyOn(t, name, privilege, authz.Catalog, "")
}

// letOnlyOn makes a principal that has one privilege: on the warehouse lake, or on a table or view of its namespace a.
func (l *lake) letOnlyOn(t *testing.T, name string, privilege authz.Privilege, kind authz.SecurableKind, on string) {
	t.Helper()
	ctx := t.Context()
	principalRole := l.addPrincipal(t, name, name+"s")
	res, err := l.store.Resolve(ctx, catalog.Lookup{Warehouse: "lake", Namespace: catalog.Namespace{"a"}, Table: on})
	if err != nil {
		t.Fatal(err)
	}
	w, path := res.Warehouse, res.Path()
	last := path[len(path)-1]
	if kind == authz.Catalog {
		last = path[1]
	}
	if last.Kind != kind {
		t.Fatalf("%q is a %s, not a %s", on, last.Kind, kind)
	}
	role := catalog.RoleRecord{ID: uuid.New(), WarehouseID: w.ID, Name: name + "s"}
	if err := l.store.CreateRole(ctx, role, fact("create-role")); err != nil {
		t.Fatal(err)
	}
	grant := catalog.RoleGrant{Privilege: privilege, Kind: kind, ID: last.ID}
	if err := l.store.AddGrant(ctx, role, grant, fact("add-grant")); err != nil {
		t.Fatal(err)
	}
	if err := l.store.AssignCatalogRole(ctx, principalRole.ID, role.ID, fact("assign-role")); err != nil {
		t.Fatal(err)
	}
}

// grantMore gives a principal of letOnlyOn one more privilege, on a table of the namespace a.
func (l *lake) grantMore(t *testing.T, name string, privilege authz.Privilege, table string) {
	t.Helper()
	res, err := l.store.Resolve(t.Context(), catalog.Lookup{Warehouse: "lake", Namespace: catalog.Namespace{"a"}, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	role, err := l.store.FindRole(t.Context(), res.Warehouse.ID, name+"s")
	if err == nil {
		err = l.store.AddGrant(t.Context(), role, catalog.RoleGrant{Privilege: privilege, Kind: authz.Table, ID: res.Table.ID}, fact("add-grant"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fakeVendor vends keys that say what they are for.
type fakeVendor struct{}

func (fakeVendor) Validate(vending.Profile) error { return nil }
func (fakeVendor) CanVend(vending.Profile) bool   { return true }

func (fakeVendor) Vend(_ context.Context, _ vending.Profile, s vending.Scope) (vending.Credentials, error) {
	return vending.Credentials{
		Prefix: s.Location + "/", ExpiresAt: time.Now().Add(time.Hour),
		Config: map[string]string{
			"s3.access-key-id": "id", "s3.secret-access-key": "hush-" + string(s.Access), "s3.session-token": "hush",
			"s3.session-token-expires-at-ms": "1", "prefix-of": s.Location,
		},
	}, nil
}

func (fakeVendor) ClientConfig(p vending.Profile) map[string]string {
	return map[string]string{"client.region": p.Region, "s3.region": p.Region}
}
