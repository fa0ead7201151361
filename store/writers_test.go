package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/vending"
)

// Sizes of the writers' test: writersMax writers in all, each with stepsOfWriter steps, on tablesOfWriters tables.
const (
	writersMax      = 32
	stepsOfWriter   = 8
	tablesOfWriters = 4
)

// fray is many writers on few tables, on two servers that share a database and a storage, and what they were told.
type fray struct {
	*testing.T
	stores   []*Store
	servers  []*catalog.Service
	files    *catalogtest.Metadata
	caller   catalog.Caller
	mu       sync.Mutex
	acked    map[string]*told // by table uuid
	rightsOf catalog.RoleRecord
}

// told is what writers were told of one table.
type told struct {
	snapshots  []int64
	properties map[string]string
	columns    []string
	commits    int
}

// writer is one of them.
type writer struct {
	*fray
	number int
	rnd    *rand.Rand
	n      int
}

// TestField_C258_ManyWritersOfAllKinds lets writers of all kinds work on few tables at once, repeats included. Nobody is
// told of a failure of the server; afterwards every history is one line and holds what was acknowledged exactly once.
func TestField_C258_ManyWritersOfAllKinds(t *testing.T) {
	f := newFrayAt(t, pgtest.Database(t))
	kinds := []func(*writer) error{
		(*writer).appends, (*writer).appends, (*writer).setsProperties, (*writer).addsColumns, (*writer).replaces, (*writer).renames,
		(*writer).dropsAndCreates, (*writer).replacesView, (*writer).transacts, (*writer).transacts, (*writer).dropsNamespaces, (*writer).grants,
	}
	var all sync.WaitGroup
	for i := range writersMax {
		all.Go(func() {
			w := f.writer(i)
			for w.n = range stepsOfWriter {
				if err := kinds[i%len(kinds)](w); err != nil && !refused(err) {
					t.Errorf("writer %d, step %d: %v (%s)", i, w.n, err, fault.KindOf(err))
				}
			}
		})
	}
	all.Wait()
	f.checkHistories()
	f.checkRows()
}

// refused tells that a writer was refused for what others did: that is how it should be.
func refused(err error) bool {
	return slices.Contains([]fault.Kind{
		fault.CommitConflict, fault.NoSuchTable, fault.NoSuchView, fault.NoSuchNamespace, fault.AlreadyExists, fault.NamespaceNotEmpty,
	}, fault.KindOf(err))
}

// writer makes one, who does the same whenever he has the number.
func (f *fray) writer(number int) *writer {
	return &writer{fray: f, number: number, rnd: rand.New(rand.NewPCG(uint64(number), 7))}
}

func newFrayAt(t *testing.T, url string) *fray {
	t.Helper()
	f := &fray{T: t, files: catalogtest.NewMetadata(), acked: map[string]*told{}}
	for range 2 {
		s := openAt(t, Config{URL: url})
		f.stores = append(f.stores, s)
		f.servers = append(f.servers, catalog.New(catalog.Config{
			Store: s, Admin: s, Metadata: f.files, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Providers: map[string]vending.Provider{"S3": noKeys{}},
		}))
	}
	f.caller = catalog.Caller{Principal: auth.MaintenancePrincipal(), RequestID: "fray"}
	id := uuid.New()
	f.must(f.stores[0].CreateWarehouse(t.Context(), catalog.Warehouse{
		ID: id, Name: "w", Location: "s3://bucket/w",
		Storage: vending.Profile{StorageType: "S3", AllowedLocations: []string{"s3://bucket/w"}},
	}, catalog.Fact{ID: uuid.New(), Operation: "set-up"}))
	f.rightsOf = catalog.RoleRecord{ID: uuid.New(), WarehouseID: id, Name: "readers"}
	f.must(f.stores[0].CreateRole(t.Context(), f.rightsOf, catalog.Fact{ID: uuid.New(), Operation: "set-up"}))
	_, err := f.servers[0].CreateNamespace(t.Context(), f.caller, "w", catalog.Namespace{"a"}, nil)
	f.must(err)
	for i := range tablesOfWriters {
		f.must(f.create(f.servers[0], f.caller, tableAt(i)))
	}
	body, err := commit.DecodeCreateView([]byte(`{"name":"v","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","type":"long","required":false}]},
		"properties":{},"view-version":` + viewVersionOf("SELECT 0") + `}`))
	f.must(err)
	made, err := f.servers[0].CreateView(t.Context(), f.caller, catalog.CreateViewRequest{Warehouse: "w", Namespace: catalog.Namespace{"a"}, Body: body})
	f.must(err)
	f.of(made.View.UUID())
	return f
}

func (f *fray) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func tableAt(i int) catalog.Identifier {
	return catalog.Identifier{Namespace: catalog.Namespace{"a"}, Name: fmt.Sprintf("t%d", i)}
}

// noKeys vends nothing.
type noKeys struct{}

func (noKeys) Validate(vending.Profile) error { return nil }
func (noKeys) CanVend(vending.Profile) bool   { return false }
func (noKeys) Vend(context.Context, vending.Profile, vending.Scope) (vending.Credentials, error) {
	return vending.Credentials{}, errors.New("nothing is vended here")
}
func (noKeys) ClientConfig(vending.Profile) map[string]string { return nil }

// of gives what was told of a table.
func (f *fray) of(uuid string) *told {
	if f.acked[uuid] == nil {
		f.acked[uuid] = &told{properties: map[string]string{}}
	}
	return f.acked[uuid]
}

// server is one of the two.
func (w *writer) server() *catalog.Service { return w.servers[w.rnd.IntN(len(w.servers))] }

// table is one of the few.
func (w *writer) table() catalog.Identifier { return tableAt(w.rnd.IntN(tablesOfWriters)) }

// asked runs a request under a key of its own on one server and, sometimes, again on another: both answer alike.
func (w *writer) asked(run func(s *catalog.Service, c catalog.Caller) (string, error)) (string, error) {
	c := w.caller
	c.Key = catalog.RequestKey{ID: uuid.New(), Operation: "fray"}
	if w.rnd.IntN(3) == 0 { // both at once
		var theirs string
		var theirErr error
		var other sync.WaitGroup
		s := w.server()
		other.Go(func() { theirs, theirErr = run(s, c) })
		ours, err := run(w.server(), c)
		other.Wait()
		if ours != theirs || fault.KindOf(err) != fault.KindOf(theirErr) {
			w.Errorf("writer %d: %q, %v beside %q, %v", w.number, ours, err, theirs, theirErr)
		}
		return ours, err
	}
	ours, err := run(w.server(), c)
	if w.rnd.IntN(3) == 0 {
		again, againErr := run(w.server(), c)
		if final := refused(err) || err == nil; final && (again != ours || fault.KindOf(err) != fault.KindOf(againErr)) {
			w.Errorf("writer %d: %q, %v and then %q, %v", w.number, ours, err, again, againErr)
		}
	}
	return ours, err
}

// commits sends a commit and tells, under the lock, which table took it.
func (w *writer) commits(id catalog.Identifier, body string, landed func(t *told)) error {
	change, err := commit.DecodeRequest([]byte(body))
	if err != nil {
		return err
	}
	var hit string
	_, err = w.asked(func(s *catalog.Service, c catalog.Caller) (string, error) {
		loaded, err := s.CommitTable(context.Background(), c, catalog.CommitTableRequest{Warehouse: "w", Ident: id, Change: change})
		if err != nil {
			return "", err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		hit = loaded.Document.UUID()
		return loaded.MetadataLocation, nil
	})
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.of(hit).commits++
		landed(w.of(hit))
	}
	return err
}

func (w *writer) load(id catalog.Identifier) (*commit.Document, error) {
	loaded, err := w.server().LoadTable(context.Background(), w.caller, catalog.LoadTableRequest{Warehouse: "w", Ident: id})
	return loaded.Document, err
}

// appendTo is a commit of one snapshot on the table's head, and the snapshot's id.
func (w *writer) appendTo(d *commit.Document) (string, int64) {
	id := w.rnd.Int64N(1 << 62)
	snapshot := map[string]any{
		"snapshot-id": id, "sequence-number": d.LastSequenceNumber() + 1, "timestamp-ms": d.LastUpdated().UnixMilli() + 1,
		"manifest-list": fmt.Sprintf("%s/metadata/snap-%d.avro", d.Location(), id), "schema-id": 0,
		"summary": map[string]string{"operation": "append"},
	}
	var head any
	if current, ok := d.CurrentSnapshotID(); ok {
		snapshot["parent-snapshot-id"], head = current, current
	}
	text, err := json.Marshal(snapshot)
	if err != nil {
		panic(err)
	}
	before, err := json.Marshal(head)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"requirements":[{"type":"assert-table-uuid","uuid":%q},{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%s}],
		"updates":[{"action":"add-snapshot","snapshot":%s},{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}]}`,
		d.UUID(), before, text, id), id
}

func (w *writer) appends() error {
	id := w.table()
	d, err := w.load(id)
	if err != nil {
		return err
	}
	body, snapshot := w.appendTo(d)
	return w.commits(id, body, func(t *told) { t.snapshots = append(t.snapshots, snapshot) })
}

func (w *writer) setsProperties() error {
	key, value := fmt.Sprintf("w%d", w.number), fmt.Sprint(w.n)
	body := fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{%q:%q}}]}`, key, value)
	return w.commits(w.table(), body, func(t *told) { t.properties[key] = value })
}

// addColumn is the updates that add a column to a table's schema and make it current.
func addColumn(d *commit.Document, name string) (string, int, error) {
	var schema struct {
		ID     int              `json:"schema-id"`
		Type   string           `json:"type"`
		Fields []map[string]any `json:"fields"`
	}
	if err := json.Unmarshal(d.CurrentSchemaJSON(), &schema); err != nil {
		return "", 0, err
	}
	current, last := schema.ID, 0
	for _, field := range schema.Fields {
		last = max(last, int(field["id"].(float64)))
	}
	schema.Fields = append(schema.Fields, map[string]any{"id": last + 1, "name": name, "type": "long", "required": false})
	text, err := json.Marshal(schema)
	return fmt.Sprintf(`{"action":"add-schema","schema":%s},{"action":"set-current-schema","schema-id":-1}`, text), current, err
}

func (w *writer) addsColumns() error {
	id, name := w.table(), fmt.Sprintf("c%d_%d", w.number, w.n)
	d, err := w.load(id)
	if err != nil {
		return err
	}
	updates, current, err := addColumn(d, name)
	if err != nil {
		return err
	}
	body := fmt.Sprintf(`{"requirements":[{"type":"assert-table-uuid","uuid":%q},{"type":"assert-current-schema-id","current-schema-id":%d}],"updates":[%s]}`,
		d.UUID(), current, updates)
	return w.commits(id, body, func(t *told) { t.columns = append(t.columns, name) })
}

// replaces is REPLACE TABLE: its new schema, and nothing on main.
func (w *writer) replaces() error {
	id := w.table()
	d, err := w.load(id)
	if err != nil {
		return err
	}
	return w.commits(id, fmt.Sprintf(`{"requirements":[{"type":"assert-table-uuid","uuid":%q}],"updates":[{"action":"remove-snapshot-ref","ref-name":"main"},
		{"action":"set-properties","updates":{"r%d":"%d"}}]}`, d.UUID(), w.number, w.n),
		func(t *told) { t.properties[fmt.Sprintf("r%d", w.number)] = fmt.Sprint(w.n) })
}

func (f *fray) create(s *catalog.Service, c catalog.Caller, id catalog.Identifier) error {
	body, err := commit.DecodeCreate([]byte(fmt.Sprintf(
		`{"name":%q,"schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}}`, id.Name)))
	if err != nil {
		return err
	}
	loaded, err := s.CreateTable(context.Background(), c, catalog.CreateTableRequest{Warehouse: "w", Namespace: id.Namespace, Body: body})
	if err == nil {
		f.mu.Lock()
		f.of(loaded.Document.UUID())
		f.mu.Unlock()
	}
	return err
}
