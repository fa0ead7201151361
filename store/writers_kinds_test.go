package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/commit"
)

// silent runs what answers nothing.
func (w *writer) silent(run func(s *catalog.Service, c catalog.Caller) error) error {
	_, err := w.asked(func(s *catalog.Service, c catalog.Caller) (string, error) { return "", run(s, c) })
	return err
}

func (w *writer) renamed(from, to catalog.Identifier) error {
	return w.silent(func(s *catalog.Service, c catalog.Caller) error {
		return s.RenameTable(context.Background(), c, catalog.RenameTableRequest{Warehouse: "w", From: from, To: to})
	})
}

// renames gives a table another name and its own back.
func (w *writer) renames() error {
	from := w.table()
	to := catalog.Identifier{Namespace: from.Namespace, Name: from.Name + "_away"}
	if err := w.renamed(from, to); err != nil {
		return err
	}
	return w.renamed(to, from)
}

func (w *writer) dropped(id catalog.Identifier) error {
	return w.silent(func(s *catalog.Service, c catalog.Caller) error {
		return s.DropTable(context.Background(), c, catalog.DropTableRequest{Warehouse: "w", Ident: id})
	})
}

// dropsAndCreates takes a table away and makes another one of its name.
func (w *writer) dropsAndCreates() error {
	id := catalog.Identifier{Namespace: catalog.Namespace{"a"}, Name: "d"}
	if w.n%4 == 0 {
		id = tableAt(tablesOfWriters - 1)
	}
	if err := w.dropped(id); err != nil && !refused(err) {
		return err
	}
	return w.silent(func(s *catalog.Service, c catalog.Caller) error { return w.create(s, c, id) })
}

func viewVersionOf(sql string) string {
	return fmt.Sprintf(`{"version-id":1,"timestamp-ms":1573518431292,"schema-id":0,"summary":{},"default-namespace":["a"],
		"representations":[{"type":"sql","sql":%q,"dialect":"spark"}]}`, sql)
}

// replacesView gives the view another query and a property.
func (w *writer) replacesView() error {
	key, value := fmt.Sprintf("w%d", w.number), fmt.Sprint(w.n)
	change, err := commit.DecodeViewRequest([]byte(fmt.Sprintf(`{"updates":[{"action":"set-properties","updates":{%q:%q}},
		{"action":"add-view-version","view-version":%s},{"action":"set-current-view-version","view-version-id":-1}]}`,
		key, value, viewVersionOf("SELECT "+key+value))))
	if err != nil {
		return err
	}
	var hit string
	_, err = w.asked(func(s *catalog.Service, c catalog.Caller) (string, error) {
		loaded, err := s.ReplaceView(context.Background(), c, catalog.ReplaceViewRequest{
			Warehouse: "w", Ident: catalog.Identifier{Namespace: catalog.Namespace{"a"}, Name: "v"}, Change: change,
		})
		if err != nil {
			return "", err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		hit = loaded.View.UUID()
		return loaded.MetadataLocation, nil
	})
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.of(hit).commits++
		w.of(hit).properties[key] = value
	}
	return err
}

// transacts appends to several tables, all or none, and sometimes makes one with them.
func (w *writer) transacts() error {
	var changes []catalog.TableChange
	landed := map[string]int64{}
	for _, i := range w.rnd.Perm(tablesOfWriters)[:1+w.rnd.IntN(3)] {
		d, err := w.load(tableAt(i))
		if err != nil {
			return err
		}
		body, snapshot := w.appendTo(d)
		change, err := commit.DecodeRequest([]byte(body))
		if err != nil {
			return err
		}
		changes = append(changes, catalog.TableChange{Ident: tableAt(i), Change: change})
		landed[d.UUID()] = snapshot
	}
	if w.n%4 == 3 {
		made := uuid.NewString()
		change, err := commit.DecodeRequest([]byte(fmt.Sprintf(`{"requirements":[{"type":"assert-create"}],"updates":[{"action":"assign-uuid","uuid":%q},
			{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","type":"long","required":false}]}},
			{"action":"set-current-schema","schema-id":-1},{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},
			{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1}]}`, made)))
		if err != nil {
			return err
		}
		id := catalog.Identifier{Namespace: catalog.Namespace{"a"}, Name: fmt.Sprintf("m%d_%d", w.number, w.n)}
		changes = append(changes, catalog.TableChange{Ident: id, Change: change})
		landed[made] = 0
	}
	err := w.silent(func(s *catalog.Service, c catalog.Caller) error {
		return s.CommitTransaction(context.Background(), c, "w", changes)
	})
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		for table, snapshot := range landed {
			if t := w.of(table); snapshot != 0 {
				t.commits++
				t.snapshots = append(t.snapshots, snapshot)
			}
		}
	}
	return err
}

// dropsNamespaces makes a namespace with something in it and takes it away, against others that do the same.
func (w *writer) dropsNamespaces() error {
	ns := catalog.Namespace{"n"}
	inside := catalog.Identifier{Namespace: ns, Name: "t"}
	steps := []func(s *catalog.Service, c catalog.Caller) error{
		func(s *catalog.Service, c catalog.Caller) error {
			_, err := s.CreateNamespace(context.Background(), c, "w", ns, nil)
			return err
		},
		func(s *catalog.Service, c catalog.Caller) error { return w.create(s, c, inside) },
		func(s *catalog.Service, c catalog.Caller) error {
			_, err := s.CreateNamespace(context.Background(), c, "w", catalog.Namespace{"n", "child"}, nil)
			return err
		},
		func(s *catalog.Service, c catalog.Caller) error {
			return s.DropNamespace(context.Background(), c, "w", catalog.Namespace{"n", "child"})
		},
		func(s *catalog.Service, c catalog.Caller) error {
			return s.DropTable(context.Background(), c, catalog.DropTableRequest{Warehouse: "w", Ident: inside})
		},
		func(s *catalog.Service, c catalog.Caller) error {
			return s.DropNamespace(context.Background(), c, "w", ns)
		},
	}
	for _, step := range steps {
		if err := w.silent(step); err != nil && !refused(err) {
			return err
		}
	}
	away := catalog.Identifier{Namespace: ns, Name: "moved"}
	from := w.table()
	if err := w.renamed(from, away); err != nil {
		return err
	}
	return w.renamed(away, from)
}

// grants gives a right on a table and takes it back, while the table is renamed and dropped by others.
func (w *writer) grants() error {
	_, record, err := w.server().AuthorizeTable(context.Background(), w.caller, "w", w.table(), authz.TableReadProperties)
	if err != nil {
		return err
	}
	g := catalog.RoleGrant{Privilege: authz.TableReadData, Kind: authz.Table, ID: record.ID}
	err = w.stores[0].AddGrant(context.Background(), w.rightsOf, g, catalog.Fact{ID: uuid.New(), Operation: "add-grant"})
	if err != nil {
		return err
	}
	return w.stores[1].RevokeGrant(context.Background(), w.rightsOf, g, catalog.Fact{ID: uuid.New(), Operation: "revoke-grant"})
}
