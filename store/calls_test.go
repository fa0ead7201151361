package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/vending"
)

// calls is the service on Postgres and on an object store that counts its calls, with two tables.
type calls struct {
	*catalog.Service
	store *Store
	files *catalogtest.Metadata
}

// objectStore is a provider that vends nothing.
type objectStore struct{}

func (objectStore) Validate(vending.Profile) error                 { return nil }
func (objectStore) CanVend(vending.Profile) bool                   { return false }
func (objectStore) ClientConfig(vending.Profile) map[string]string { return map[string]string{} }
func (objectStore) Vend(context.Context, vending.Profile, vending.Scope) (vending.Credentials, error) {
	return vending.Credentials{}, fault.New(fault.Unsupported, "no credentials here")
}

var callsCaller = catalog.Caller{Principal: auth.MaintenancePrincipal(), RequestID: "calls"}

func newCalls(t *testing.T, s *Store) *calls {
	t.Helper()
	c := &calls{store: s, files: catalogtest.NewMetadata()}
	c.Service = c.server()
	w := catalog.Warehouse{
		ID: uuid.New(), Name: "w", Location: "s3://bucket/w", Storage: vending.Profile{StorageType: "S3", AllowedLocations: []string{"s3://bucket/w"}},
	}
	if err := s.CreateWarehouse(t.Context(), w, catalog.Fact{ID: uuid.New(), At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateNamespace(t.Context(), callsCaller, "w", catalog.Namespace{"a"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"t", "u"} {
		body, err := commit.DecodeCreate([]byte(fmt.Sprintf(
			`{"name":%q,"schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}}`, name)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CreateTable(t.Context(), callsCaller, catalog.CreateTableRequest{Warehouse: "w", Namespace: catalog.Namespace{"a"}, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// server is another server's service on the same database and object store.
func (c *calls) server() *catalog.Service {
	return catalog.New(catalog.Config{
		Store: c.store, Admin: c.store, Metadata: c.files, Providers: map[string]vending.Provider{"S3": objectStore{}},
	})
}

func ident(name string) catalog.Identifier {
	return catalog.Identifier{Namespace: catalog.Namespace{"a"}, Name: name}
}

func (c *calls) load(name string, tags ...string) (catalog.LoadedTable, error) {
	return c.LoadTable(context.Background(), callsCaller, catalog.LoadTableRequest{Warehouse: "w", Ident: ident(name), IfNoneMatch: tags})
}

// counted gives the calls that fn made.
func (c *calls) counted(fn func()) (roundTrips, objectCalls int64) {
	c.files.Inject(nil)
	before := c.store.RoundTrips()
	fn()
	return c.store.RoundTrips() - before, int64(c.files.Calls())
}

func TestField_C196_WarmRequestsAskOnceAndReadNothing(t *testing.T) {
	c := newCalls(t, openStore(t))
	loaded, err := c.load("t")
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string]func() error{
		"load": func() error { _, err := c.load("t"); return err },
		"refs": func() error {
			_, err := c.LoadTable(t.Context(), callsCaller, catalog.LoadTableRequest{Warehouse: "w", Ident: ident("t"), Snapshots: catalog.SnapshotsRefs})
			return err
		},
		"HEAD": func() error { return c.TableExists(t.Context(), callsCaller, "w", ident("t")) },
		"304": func() error {
			got, err := c.load("t", loaded.ETag)
			if err == nil && !got.NotModified {
				t.Error("not answered as unchanged")
			}
			return err
		},
		"404": func() error {
			_, err := c.load("nothing")
			if !fault.Is(err, fault.NoSuchTable) {
				return fmt.Errorf("a missing table: %w", err)
			}
			return nil
		},
		"404 of a namespace": func() error {
			_, err := c.LoadNamespace(t.Context(), callsCaller, "w", catalog.Namespace{"nothing"})
			if !fault.Is(err, fault.NoSuchNamespace) {
				return fmt.Errorf("a missing namespace: %w", err)
			}
			return nil
		},
	}
	const together = 200
	for name, request := range requests {
		for warm := range 3 {
			trips, objects := c.counted(func() {
				if err := request(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			if warm > 0 && (trips != 1 || objects != 0) {
				t.Errorf("%s: %d round trips and %d calls of the object store", name, trips, objects)
			}
		}
		trips, objects := c.counted(func() {
			var all sync.WaitGroup
			for range together {
				all.Go(func() {
					if err := request(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			all.Wait()
		})
		if trips >= together || objects != 0 {
			t.Errorf("%d times %s: %d round trips and %d calls of the object store", together, name, trips, objects)
		}
	}
}

// Every list of a caller whose rights are known is one statement, which also tells whether they still are.
func TestField_C196_WarmListsAskOnce(t *testing.T) {
	c := newCalls(t, openStore(t))
	for name, list := range map[string]func(each catalog.EachNames) error{
		"tables": func(each catalog.EachNames) error {
			return c.ListTables(t.Context(), callsCaller, "w", catalog.Namespace{"a"}, catalog.Page{Limit: 1001}, each)
		},
		"all tables": func(each catalog.EachNames) error {
			return c.ListTables(t.Context(), callsCaller, "w", catalog.Namespace{"a"}, catalog.Page{}, each)
		},
		"views": func(each catalog.EachNames) error {
			return c.ListViews(t.Context(), callsCaller, "w", catalog.Namespace{"a"}, catalog.Page{}, each)
		},
		"namespaces": func(each catalog.EachNames) error {
			return c.ListNamespaces(t.Context(), callsCaller, "w", nil, catalog.Page{}, each)
		},
		"namespaces in one": func(each catalog.EachNames) error {
			return c.ListNamespaces(t.Context(), callsCaller, "w", catalog.Namespace{"a"}, catalog.Page{Limit: 1}, each)
		},
	} {
		for warm := range 3 {
			got := 0
			trips, objects := c.counted(func() {
				err := list(func(_ catalog.Namespace, names []string) bool { got += len(names); return true })
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			if warm > 0 && (trips != 1 || objects != 0) {
				t.Errorf("%s: %d round trips and %d calls of the object store", name, trips, objects)
			}
		}
	}
}

// A server that has just started reads the copy beside the pointer and not the file.
func TestField_C066_AColdServerReadsNoFile(t *testing.T) {
	c := newCalls(t, openStore(t))
	warm, err := c.load("t")
	if err != nil {
		t.Fatal(err)
	}
	c.Service = c.server()
	trips, objects := c.counted(func() {
		cold, err := c.load("t")
		if err != nil || string(cold.Metadata) != string(warm.Metadata) || cold.ETag != warm.ETag {
			t.Errorf("another answer: %s, %v", cold.Metadata, err)
		}
	})
	if trips > 3 || objects != 0 { // the lookup, the copy, and its statement's preparation
		t.Errorf("%d round trips and %d calls of the object store", trips, objects)
	}
}

// A commit is a lookup and one statement.
func TestCommit_MakesTwoRoundTrips(t *testing.T) {
	c := newCalls(t, openStore(t))
	change := func(n int) {
		r, err := commit.DecodeRequest([]byte(fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"n":"%d"}}]}`, n)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CommitTable(t.Context(), callsCaller, catalog.CommitTableRequest{Warehouse: "w", Ident: ident("t"), Change: r}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 4 {
		change(n)
	}
	trips, objects := c.counted(func() { change(9) })
	if trips != 2 || objects != 1 {
		t.Errorf("%d round trips and %d calls of the object store", trips, objects)
	}
}

// Planning costs more than running, so the statements that run all day must not be planned anew each time.
func TestHotStatements_AreNotPlannedAnew(t *testing.T) {
	s := openAt(t, Config{URL: pgtest.Database(t), MaxConns: 1})
	c := newCalls(t, s)
	home := uuid.New()
	for i := range 40 {
		wanted := make([]tableWanted, 1+i%7)
		for j := range wanted {
			wanted[j] = tableWanted{namespace: uuid.New(), name: "t"}
			if i%2 == 0 {
				wanted[j].roles = idArray(slices.Values([]uuid.UUID{uuid.New()}))
			}
		}
		if _, err := s.findTables(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []catalog.Kind{catalog.KindTable, catalog.KindView, catalog.KindNamespace} {
			for _, in := range []uuid.UUID{uuid.Nil, home} {
				w := catalog.NamesWanted{WarehouseID: home, In: in, Kind: kind, Page: catalog.Page{Limit: 1 + 100*i}}
				if _, err := catalogtest.Names(t.Context(), s, w); err != nil {
					t.Fatal(err)
				}
			}
		}
		askAboutAccess(t, s, catalog.Lookup{
			Warehouse: "w", Namespace: catalog.Namespace{"a", "b", "c"}[:i%4], Table: "t",
			Principal: auth.Principal{ID: uuid.New(), Kind: auth.Service, Roles: auth.RoleScope{All: i%3 == 0, Names: []string{"r", "s"}[:i%2+1]}},
		})
		r, err := commit.DecodeRequest([]byte(fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"n":"%d"}}]}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CommitTable(t.Context(), callsCaller, catalog.CommitTableRequest{Warehouse: "w", Ident: ident("t"), Change: r}); err != nil {
			t.Fatal(err)
		}
	}
	wantFewPlans(t, s)
}

// wantFewPlans looks at how often a store's only connection has made plans.
func wantFewPlans(t *testing.T, s *Store) {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), `SELECT left(statement, 60), generic_plans, custom_plans FROM pg_prepared_statements`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		var generic, custom int
		if err := rows.Scan(&text, &generic, &custom); err != nil {
			t.Fatal(err)
		}
		if custom > 5 {
			t.Errorf("%q: planned once for %d runs, anew for %d", text, generic, custom)
		}
	}
}

// askAboutAccess runs each of the statements that decide about access.
func askAboutAccess(t *testing.T, s *Store, l catalog.Lookup) {
	t.Helper()
	_, resolved := s.Resolve(t.Context(), l)
	_, _, granted := s.ResolveGrants(t.Context(), l)
	_, named := s.ResolveWarehouses(t.Context(), l.Principal)
	_, listed := catalogtest.Names(t.Context(), s, catalog.NamesWanted{
		WarehouseID: uuid.New(), In: uuid.New(), Kind: catalog.KindTable, Page: catalog.Page{Limit: 1000},
		GrantedTo: &catalog.GrantedTo{Principal: l.Principal, Privileges: []authz.Privilege{authz.TableList}},
	})
	for _, err := range []error{resolved, granted, named, listed} {
		if err != nil {
			t.Fatal(err)
		}
	}
}
