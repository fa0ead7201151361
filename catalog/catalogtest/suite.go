package catalogtest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// Run holds a store against the promises of catalog's ports. newStore gives an empty store for each test; it also is
// a Backdoor and a catalog.AdminStore. Tests run in parallel.
func Run(t *testing.T, newStore func(t *testing.T) catalog.Store) { run(t, newStore, false) }

// RunFolded is Run on a warehouse that compares names without regard to case: the same promises hold there, and what
// was made is found under a name spelled otherwise.
func RunFolded(t *testing.T, newStore func(t *testing.T) catalog.Store) { run(t, newStore, true) }

func run(t *testing.T, newStore func(t *testing.T) catalog.Store, folds bool) {
	groups := map[string][]promise{
		"Namespaces": namespacePromises, "Tables": tablePromises, "Commits": commitPromises, "Locations": locationPromises,
		"Staged": stagedPromises, "Warehouses": warehousePromises, "Resolve": resolvePromises, "Races": racePromises,
		"Names": namesPromises(folds), "Views": viewPromises, "Metadata": metadataPromises, "Outcomes": outcomePromises,
		"Fresh": freshPromises, "Upkeep": upkeepPromises,
		"Metrics": metricsPromises, "Access": accessPromises, "Keys": keyPromises, "Identities": identityPromises, "Callers": callerPromises, "Grants": grantPromises, "Owners": ownerPromises,
		"Feeds": feedPromises, "Webhooks": webhookPromises,
	}
	for group, promises := range groups {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			for _, p := range promises {
				t.Run(p.name, func(t *testing.T) {
					t.Parallel()
					p.check(newBench(t, newStore(t), folds))
				})
			}
		})
	}
}

// promise is one sentence about a store, and its check.
type promise struct {
	name  string
	check func(b *bench)
}

// bench is a store with a warehouse in it, and words to work on it.
type bench struct {
	*testing.T
	store     catalog.Store
	admin     catalog.AdminStore
	back      Backdoor
	folds     bool // whether warehouses fold names
	warehouse catalog.Warehouse
	principal auth.Principal
}

func newBench(t *testing.T, store catalog.Store, folds bool) *bench {
	t.Helper()
	back, ok := store.(Backdoor)
	if !ok {
		t.Fatalf("%T is no Backdoor", store)
	}
	admin, ok := store.(catalog.AdminStore)
	if !ok {
		t.Fatalf("%T is no catalog.AdminStore", store)
	}
	b := &bench{T: t, store: store, admin: admin, back: back, folds: folds}
	b.principal = auth.Principal{ID: uuid.New(), Name: "alice", Kind: auth.Service, Roles: auth.RoleScope{All: true}, TokenID: "jti-1"}
	b.warehouse = b.addWarehouse("w", "s3://bucket/base")
	return b
}

// at is the time of every fact; Postgres keeps microseconds.
var at = time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)

func (b *bench) fact(operation, subject string) catalog.Fact {
	return catalog.Fact{
		ID: uuid.New(), At: at, Operation: operation, Subject: subject, Warehouse: b.warehouse.ID,
		Caller:  catalog.Caller{Principal: b.principal, RequestID: "request-1", Client: "127.0.0.1"},
		Details: map[string]any{"n": 1},
	}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// refused wants the kind and, when it is not "", exactly the message.
func (b *bench) refused(err error, kind fault.Kind, message string) {
	b.Helper()
	if !fault.Is(err, kind) {
		b.Fatalf("got %v (%s), want %s", err, fault.KindOf(err), kind)
	}
	if message != "" && fault.Message(err) != message {
		b.Fatalf("message %q, want %q", fault.Message(err), message)
	}
}

func (b *bench) addWarehouse(name, location string) catalog.Warehouse {
	b.Helper()
	w := catalog.Warehouse{
		ID: uuid.New(), Name: name, Location: location, Properties: map[string]string{"p": name}, FoldsNames: b.folds,
		Storage: vending.Profile{
			StorageType: "S3", AllowedLocations: []string{"s3://bucket"}, Region: "eu-central-1", PathStyleAccess: true,
		},
	}
	b.must(b.store.CreateWarehouse(b.Context(), w, b.fact("create-warehouse", name)))
	w.Version, w.CreatedAt, w.UpdatedAt = 1, at, at
	return w
}

func (b *bench) createNamespace(levels ...string) error {
	_, err := b.tryNamespace("", levels...)
	return err
}

// tryNamespace makes a namespace, with a location unless that is "".
func (b *bench) tryNamespace(location string, levels ...string) (catalog.NamespaceRecord, error) {
	record := catalog.NamespaceRecord{
		ID: uuid.New(), Levels: levels, Properties: map[string]string{"owner": "alice"}, Version: 1,
	}
	if location != "" {
		record.Properties["location"] = location
	}
	return record, b.store.CreateNamespace(b.Context(), catalog.NamespaceCreate{
		Record: record, WarehouseID: b.warehouse.ID, Location: location,
		Fact: b.fact("create-namespace", record.Levels.String()),
	})
}

func (b *bench) namespace(levels ...string) catalog.NamespaceRecord {
	b.Helper()
	record, err := b.tryNamespace("", levels...)
	b.must(err)
	return record
}

// newTable says what a table would be; location "" is the server's own choice.
func (b *bench) newTable(n catalog.NamespaceRecord, name, location string) catalog.PointerChange {
	id := uuid.New()
	if location == "" {
		location = b.warehouse.Location + "/" + id.String()
	}
	ident := catalog.Identifier{Namespace: n.Levels, Name: name}
	return catalog.PointerChange{
		WarehouseID: b.warehouse.ID, Fact: b.fact("create-table", ident.String()),
		Record: catalog.TableRecord{
			ID: uuid.New(), Kind: catalog.KindTable, NamespaceID: n.ID, Ident: ident, UUID: id, Location: location,
			MetadataLocation: location + "/metadata/00000-a.metadata.json", FormatVersion: 2, Version: 1,
		},
	}
}

func (b *bench) commit(changes ...catalog.PointerChange) error {
	return b.store.CommitPointers(b.Context(), changes, catalog.Fence{})
}

func (b *bench) table(n catalog.NamespaceRecord, name string) catalog.TableRecord {
	b.Helper()
	change := b.newTable(n, name, "")
	b.must(b.commit(change))
	return change.Record
}

// swap says that a table's pointer is to move to another file.
func (b *bench) swap(r catalog.TableRecord) catalog.PointerChange {
	change := catalog.PointerChange{
		Record: r, WarehouseID: b.warehouse.ID, Old: r.MetadataLocation, Fact: b.fact("commit-table", r.Ident.String()),
	}
	change.Record.MetadataLocation = r.Location + "/metadata/" + uuid.NewString() + ".metadata.json"
	change.Record.Version++
	return change
}

func (b *bench) drop(r catalog.TableRecord) {
	b.Helper()
	b.must(b.tryDrop(r))
}

func (b *bench) resolve(l catalog.Lookup) catalog.Resolution {
	b.Helper()
	if l.Principal.Name == "" {
		l.Principal = b.principal
	}
	if l.Warehouse == "" {
		l.Warehouse = b.warehouse.Name
	}
	if b.folds { // whatever a promise looks for, it looks for in another spelling
		l.Table = strings.ToUpper(l.Table)
		l.Namespace = slices.Clone(l.Namespace)
		for i, level := range l.Namespace {
			l.Namespace[i] = strings.ToUpper(level)
		}
	}
	res, err := b.store.Resolve(b.Context(), l)
	b.must(err)
	return res
}

// load gives a table's row by its name; nil when there is none.
func (b *bench) load(id catalog.Identifier) *catalog.TableRecord {
	b.Helper()
	return b.resolve(catalog.Lookup{Namespace: id.Namespace, Table: id.Name}).Table
}

func (b *bench) tables(n catalog.NamespaceRecord) []string {
	b.Helper()
	return b.names(inNamespace(n.ID, catalog.KindTable, catalog.Page{}))
}

// events gives the events of an operation.
func (b *bench) events(operation string) []Event {
	b.Helper()
	var found []Event
	for _, e := range b.back.EventRows(b) {
		if e.Operation == operation {
			found = append(found, e)
		}
	}
	return found
}

// leavesNoTrace wants that fn writes neither an event nor an audit row.
func (b *bench) leavesNoTrace(fn func()) {
	b.Helper()
	events, audits := len(b.back.EventRows(b)), len(b.back.AuditRows(b))
	fn()
	if got := len(b.back.EventRows(b)); got != events {
		b.Errorf("%d events were written by what was refused", got-events)
	}
	if got := len(b.back.AuditRows(b)); got != audits {
		b.Errorf("%d audit rows were written by what was refused", got-audits)
	}
}

// race runs fn n times at once and gives the answers. Each racer asks the store for something first, so that all have
// what they need (a connection, for one) when the race begins.
func (b *bench) race(n int, fn func(i int) error) []error {
	answers := make([]error, n)
	start := make(chan struct{})
	var ready, group sync.WaitGroup
	ready.Add(n)
	for i := range n {
		group.Go(func() {
			_, err := Names(b.Context(), b.store, inNamespace(uuid.Nil, catalog.KindTable, catalog.Page{}))
			ready.Done()
			<-start
			if answers[i] = err; err == nil {
				answers[i] = fn(i)
			}
		})
	}
	ready.Wait()
	close(start)
	group.Wait()
	return answers
}

// one wants that exactly one answer is nil and that all others are of one of the kinds. It gives the winner.
func (b *bench) one(answers []error, kinds ...fault.Kind) int {
	b.Helper()
	winner, winners := -1, 0
	for i, err := range answers {
		if err == nil {
			winner = i
			winners++
			continue
		}
		if !slices.Contains(kinds, fault.KindOf(err)) {
			b.Errorf("answer %d is %v (%s), want one of %v", i, err, fault.KindOf(err), kinds)
		}
	}
	if winners != 1 {
		b.Fatalf("%d of %d won, want exactly one", winners, len(answers))
	}
	return winner
}

// sameGrants compares grants without their order.
func (b *bench) sameGrants(got, want []authz.Grant) {
	b.Helper()
	order := func(x, y authz.Grant) int {
		text := func(g authz.Grant) string {
			return string(g.Privilege) + string(g.Kind) + g.SecurableID.String() + g.Role
		}
		return strings.Compare(text(x), text(y))
	}
	got, want = slices.Clone(got), slices.Clone(want)
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		b.Errorf("grants %v, want %v", got, want)
	}
}

// storeAs gives the store under test as one of the interfaces that it must have.
func storeAs[T any](b *bench) T {
	b.Helper()
	as, ok := b.store.(T)
	if !ok {
		b.Fatalf("%T is no %T", b.store, (*T)(nil))
	}
	return as
}
