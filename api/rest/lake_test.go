package rest

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/store"
	"catalogd/vending"
	"catalogd/vending/local"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m, store.Migrate)) }

// lake is a service with one warehouse, "lake", and its door. ann may do everything, nobody nothing.
type lake struct {
	*door
	store   *store.Store
	watched *watchedStore
	files   *memoryFiles
}

func newLake(t *testing.T) *lake {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: pgtest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	l := &lake{store: s, files: &memoryFiles{bodies: map[string][]byte{}}}
	l.addPrincipal(t, "ann", "service_admin")
	l.addPrincipal(t, "nobody", "")
	l.addWarehouse(t, "lake")
	l.watched = &watchedStore{Store: s}
	l.door = newDoor(t, Config{Service: l.newService(l.watched)})
	return l
}

// newService makes a service over the lake's files and the store given.
func (l *lake) newService(s catalog.Store) *catalog.Service {
	return catalog.New(catalog.Config{
		Store: s, Admin: l.store, Metadata: l.files, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Providers: map[string]vending.Provider{"FILE": local.Provider{}, "S3": fakeVendor{}},
	})
}

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
	if err := l.store.CreateWarehouse(t.Context(), w, fact("create-warehouse")); err != nil {
		t.Fatal(err)
	}
}

// letRead makes a principal that may read the data of all tables of the warehouse lake.
func (l *lake) letRead(t *testing.T, name string) {
	t.Helper()
	ctx := t.Context()
	principalRole := l.addPrincipal(t, name, name+"s")
	w, err := l.store.FindWarehouse(ctx, "lake")
	if err != nil {
		t.Fatal(err)
	}
	role := catalog.RoleRecord{ID: uuid.New(), WarehouseID: w.ID, Name: name + "s"}
	if err := l.store.CreateRole(ctx, role, fact("create-role")); err != nil {
		t.Fatal(err)
	}
	grant := catalog.RoleGrant{Privilege: authz.TableReadData, Kind: authz.Catalog, ID: w.ID}
	if err := l.store.AddGrant(ctx, role, grant, fact("add-grant")); err != nil {
		t.Fatal(err)
	}
	if err := l.store.AssignCatalogRole(ctx, principalRole.ID, role.ID, fact("assign-role")); err != nil {
		t.Fatal(err)
	}
}

// memoryFiles keeps metadata files in memory and counts what is written.
type memoryFiles struct {
	mu      sync.Mutex
	bodies  map[string][]byte
	written int
}

func (m *memoryFiles) WriteMetadata(_ context.Context, at vending.FilePlace, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.bodies[at.Path]; there {
		return fault.New(fault.Internal, "%s is there already", path.Base(at.Path))
	}
	m.bodies[at.Path] = append([]byte(nil), body...)
	m.written++
	return nil
}

func (m *memoryFiles) ReadMetadata(_ context.Context, at vending.FilePlace) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, there := m.bodies[at.Path]
	if !there {
		return nil, fault.New(fault.FileNotFound, "File does not exist: %s", at.Path)
	}
	return body, nil
}

func (m *memoryFiles) StatMetadata(ctx context.Context, at vending.FilePlace) error {
	_, err := m.ReadMetadata(ctx, at)
	return err
}

func (m *memoryFiles) RemoveMetadata(_ context.Context, at vending.FilePlace) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.bodies, at.Path)
}

func (m *memoryFiles) PrepareTable(context.Context, vending.FilePlace) error { return nil }

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
