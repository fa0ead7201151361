package catalog_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

const viewBody = `{"name":%q,"schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]},` +
	`"properties":{},"view-version":{"version-id":1,"schema-id":0,"timestamp-ms":1,"summary":{},"default-namespace":["a"],` +
	`"representations":[{"type":"sql","sql":"SELECT 1","dialect":"spark"}]}}`

func (b *bench) mustCreateView(name string) catalog.LoadedView {
	b.Helper()
	body, err := commit.DecodeCreateView([]byte(fmt.Sprintf(viewBody, name)))
	if err != nil {
		b.Fatal(err)
	}
	loaded, err := b.CreateView(ctx, system, catalog.CreateViewRequest{Warehouse: "w", Namespace: catalog.Namespace{"a"}, Body: body})
	if err != nil {
		b.Fatal(err)
	}
	return loaded
}

func (b *bench) replaceView(name, body string) (catalog.LoadedView, error) {
	b.Helper()
	change, err := commit.DecodeViewRequest([]byte(body))
	if err != nil {
		b.Fatal(err)
	}
	return b.ReplaceView(ctx, system, catalog.ReplaceViewRequest{Warehouse: "w", Ident: id(name), Change: change})
}

const viewReplace = `{"updates":[{"action":"add-view-version","view-version":{"version-id":1,"schema-id":0,"timestamp-ms":1,"summary":{},` +
	`"default-namespace":["a"],"representations":[{"type":"sql","sql":"SELECT 1","dialect":"spark"}]}},` +
	`{"action":"set-current-view-version","view-version-id":-1}]}`

const viewProperty = `{"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`

// A server that has just started loads views without one look at the storage, and replaces them with one write each.
func TestField_C066_ViewsAreLoadedWithoutTheStorage(t *testing.T) {
	b := newBench(t)
	const views = 500
	made := map[string]catalog.LoadedView{}
	for i := range views {
		name := fmt.Sprintf("v%03d", i)
		made[name] = b.mustCreateView(name)
	}
	started := b.start()
	var calls []string
	b.files.Inject(func(method string, _ int) (f catalogtest.Failure) {
		calls = append(calls, method)
		return f
	})
	var listed []catalog.Identifier
	err := started.ListViews(ctx, system, "w", catalog.Namespace{"a"}, catalog.Page{}, func(below catalog.Namespace, names []string) bool {
		for _, name := range names {
			listed = append(listed, catalog.Identifier{Namespace: below, Name: name})
		}
		return true
	})
	if err != nil || len(listed) != views {
		t.Fatalf("%d views, %v", len(listed), err)
	}
	for _, id := range listed {
		name := id.Name
		loaded, err := started.LoadView(ctx, system, "w", id)
		if err != nil {
			t.Fatal(err)
		}
		if want := made[name]; string(loaded.Metadata) != string(want.Metadata) || loaded.MetadataLocation != want.MetadataLocation {
			t.Errorf("%s is at %s, made at %s", name, loaded.MetadataLocation, want.MetadataLocation)
		}
	}
	if len(calls) != 0 {
		t.Errorf("the storage was asked %d times: %s first", len(calls), calls[0])
	}
	b.Service = started
	if _, err := b.replaceView("v007", viewProperty); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 1 || calls[0] != "WriteMetadata" {
		t.Errorf("a replace did %q", calls)
	}
}

// Replaces on several servers lose races against each other and are tried again: each that was acknowledged is in the
// history once, in a line, and no attempt has left a file.
func TestViews_ReplacesOnSeveralServersAllLand(t *testing.T) {
	const servers, writers = 4, 16
	b := newBench(t)
	b.mustCreateView("v")
	if _, err := b.replaceView("v", `{"updates":[{"action":"set-properties","updates":{"version.history.num-entries":"100"}}]}`); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range servers {
		server := *b
		server.Service = b.start()
		for i := range writers / servers {
			all.Go(func() {
				sql := strings.Replace(viewReplace, "SELECT 1", fmt.Sprintf("SELECT 'writer %d of server %d'", i, n), 1)
				if _, err := server.replaceView("v", sql); err != nil {
					t.Errorf("writer %d of server %d: %v", i, n, err)
				}
			})
		}
	}
	all.Wait()
	loaded, err := b.start().LoadView(ctx, system, "w", id("v"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range servers {
		for i := range writers / servers {
			if times := strings.Count(string(loaded.Metadata), fmt.Sprintf("SELECT 'writer %d of server %d'", i, n)); times != 1 {
				t.Errorf("writer %d of server %d is there %d times", i, n, times)
			}
		}
	}
	if loaded.View.CurrentVersionID() != writers+1 {
		t.Errorf("the current version is %d", loaded.View.CurrentVersionID())
	}
	if files := b.files.Files(); len(files) != writers+2 || !strings.Contains(loaded.MetadataLocation, "/000"+fmt.Sprint(writers+1)+"-") {
		t.Errorf("%d files, the last at %s", len(files), loaded.MetadataLocation)
	}
}

// A replace that meets a drop ends as one of both happened first, and leaves nothing behind when it was the drop.
func TestViews_ReplaceAgainstDrop(t *testing.T) {
	for range 20 {
		b := newBench(t)
		b.mustCreateView("v")
		other := b.start()
		var all sync.WaitGroup
		var replaced error
		all.Go(func() { _, replaced = b.replaceView("v", viewProperty) })
		all.Go(func() {
			if err := other.DropView(ctx, system, "w", id("v")); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		files := 2
		if replaced != nil {
			wantKind(t, replaced, fault.NoSuchView)
			files = 1
		}
		if got := b.files.Files(); len(got) != files {
			t.Errorf("replaced: %v; files %q", replaced, got)
		}
		b.mustCreate("v") // the name is free
	}
}

// Whoever may write a view's files cannot put another view, or a table, in its place.
func TestViews_ForgedMetadataIsRefused(t *testing.T) {
	for name, forge := range map[string]func(b *bench, own catalog.LoadedView) []byte{
		"another view": func(b *bench, _ catalog.LoadedView) []byte { return b.mustCreateView("other").Metadata },
		"a table":      func(b *bench, _ catalog.LoadedView) []byte { return b.mustCreate("t").Metadata },
		"nothing":      func(*bench, catalog.LoadedView) []byte { return []byte("{") },
	} {
		b := newBench(t)
		made := b.mustCreateView("v")
		b.files.Forge(made.MetadataLocation, forge(b, made))
		b.store.ForgetCopies()
		_, err := b.start().LoadView(ctx, system, "w", id("v"))
		if !fault.Is(err, fault.Validation) && !fault.Is(err, fault.Internal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
