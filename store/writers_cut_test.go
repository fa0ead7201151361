package store

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/internal/pgserver/pgtest"
)

// newFrayBehindProxy is a fray whose servers both reach the database through a proxy.
func newFrayBehindProxy(t *testing.T) (*fray, *proxy) {
	t.Helper()
	proxy, url := startProxy(t, pgtest.Database(t))
	return newFrayAt(t, url), proxy
}

func (f *fray) decode(text string) commit.Request {
	f.Helper()
	r, err := commit.DecodeRequest([]byte(text))
	f.must(err)
	return r
}

// TestField_Z13_EveryMutationUnderAKey cuts the connection at the COMMIT of each kind of mutation, once before Postgres
// sees it and once after. What the client is told agrees with what is there, or is "unknown"; its repeat under the key
// is done, and one event tells of it.
func TestField_Z13_EveryMutationUnderAKey(t *testing.T) {
	set := `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`
	mutations := map[string]func(f *fray, c catalog.Caller) error{
		"commit-table": func(f *fray, c catalog.Caller) error {
			_, err := f.servers[0].CommitTable(f.Context(), c, catalog.CommitTableRequest{Warehouse: "w", Ident: tableAt(0), Change: f.decode(set)})
			return err
		},
		"commit-table, several": func(f *fray, c catalog.Caller) error {
			return f.servers[0].CommitTransaction(f.Context(), c, "w", []catalog.TableChange{
				{Ident: tableAt(0), Change: f.decode(set)}, {Ident: tableAt(1), Change: f.decode(set)},
			})
		},
		"create-table": func(f *fray, c catalog.Caller) error { return f.create(f.servers[0], c, tableAt(99)) },
		"drop-table": func(f *fray, c catalog.Caller) error {
			return f.servers[0].DropTable(f.Context(), c, catalog.DropTableRequest{Warehouse: "w", Ident: tableAt(0), Purge: true})
		},
		"rename-table": func(f *fray, c catalog.Caller) error {
			return f.servers[0].RenameTable(f.Context(), c, catalog.RenameTableRequest{Warehouse: "w", From: tableAt(0), To: tableAt(99)})
		},
		"create-namespace": func(f *fray, c catalog.Caller) error {
			_, err := f.servers[0].CreateNamespace(f.Context(), c, "w", catalog.Namespace{"b"}, nil)
			return err
		},
		"update-namespace": func(f *fray, c catalog.Caller) error {
			_, err := f.servers[0].UpdateNamespaceProperties(f.Context(), c, "w", catalog.Namespace{"a"}, nil, map[string]string{"k": "v"})
			return err
		},
		"drop-namespace": func(f *fray, c catalog.Caller) error {
			return f.servers[0].DropNamespace(f.Context(), c, "w", catalog.Namespace{"empty"})
		},
	}
	for name, mutate := range mutations {
		for _, at := range []cut{loseRequest, loseAnswer} {
			t.Run(fmt.Sprintf("%s/%d", name, at), func(t *testing.T) {
				t.Parallel()
				f, proxy := newFrayBehindProxy(t)
				_, err := f.servers[0].CreateNamespace(t.Context(), f.caller, "w", catalog.Namespace{"empty"}, nil)
				f.must(err)
				before := f.events()
				c := f.caller
				c.Key = catalog.RequestKey{ID: uuid.New(), Operation: name}
				proxy.atNextCommit(at)
				err = mutate(f, c)
				if err != nil && !fault.Is(err, fault.CommitUnknown) {
					t.Errorf("the cut request: %v (%s)", err, fault.KindOf(err))
				}
				if at == loseAnswer {
					<-proxy.answered
				}
				if landed := f.events() > before; err == nil && !landed {
					t.Error("an acknowledged change is not there")
				}
				for range 2 {
					if err := mutate(f, c); err != nil {
						t.Errorf("the repeat: %v", err)
					}
				}
				want := 1
				if name == "commit-table, several" {
					want = 2
				}
				if got := f.events() - before; got != want {
					t.Errorf("%d events, want %d", got, want)
				}
				f.checkRows()
			})
		}
	}
}

// events counts the events of changes that were made.
func (f *fray) events() (n int) {
	f.Helper()
	f.must(f.stores[0].pool.QueryRow(f.Context(), `SELECT count(*) FROM events WHERE operation <> 'commit-abandoned'`).Scan(&n))
	return n
}

// TestField_C088_AppendsOnTwoServers: of fifty appends that want the same head, on two servers, one lands in each round.
func TestField_C088_AppendsOnTwoServers(t *testing.T) {
	f := newFrayAt(t, pgtest.Database(t))
	for round := range 3 {
		writers := make([]*writer, 50)
		bodies := make([]commit.Request, len(writers))
		for i := range writers {
			writers[i] = f.writer(i + 100*round)
			d, err := writers[i].load(tableAt(0))
			f.must(err)
			body, _ := writers[i].appendTo(d)
			bodies[i] = f.decode(body)
		}
		errs := make([]error, len(writers))
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				_, errs[i] = f.servers[i%2].CommitTable(t.Context(), f.caller, catalog.CommitTableRequest{Warehouse: "w", Ident: tableAt(0), Change: bodies[i]})
			})
		}
		all.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !fault.Is(err, fault.CommitConflict) {
				t.Errorf("round %d: %v (%s)", round, err, fault.KindOf(err))
			}
		}
		d, err := writers[0].load(tableAt(0))
		f.must(err)
		if won != 1 || d.SnapshotCount() != round+1 {
			t.Errorf("round %d: %d won, %d snapshots", round, won, d.SnapshotCount())
		}
	}
}
