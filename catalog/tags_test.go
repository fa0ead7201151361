package catalog_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// ask loads table t as somebody, with tags that he has.
func (b *bench) ask(c catalog.Caller, mode catalog.SnapshotsMode, delegated bool, tags ...string) (catalog.LoadedTable, error) {
	return b.LoadTable(ctx, c, catalog.LoadTableRequest{
		Warehouse: "w", Ident: id("t"), Snapshots: mode, Delegated: delegated, IfNoneMatch: tags,
	})
}

func TestField_C190_TheTagCoversTheSnapshotsMode(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	for _, pair := range [][2]catalog.SnapshotsMode{{catalog.SnapshotsAll, catalog.SnapshotsRefs}, {catalog.SnapshotsRefs, catalog.SnapshotsAll}} {
		first, err := b.ask(system, pair[0], false)
		if err != nil {
			t.Fatal(err)
		}
		if other, err := b.ask(system, pair[1], false, first.ETag); err != nil || other.NotModified {
			t.Errorf("%s is taken for %s: %v", pair[0], pair[1], err)
		}
		if same, err := b.ask(system, pair[0], false, first.ETag); err != nil || !same.NotModified {
			t.Errorf("%s is not known again: %v", pair[0], err)
		}
	}
}

func TestField_C193_ATagOpensNothing(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	reader := b.principal("reader", authz.TableReadData, "")
	stranger := b.principal("stranger", authz.NamespaceCreate, "")
	plain, err := b.ask(reader, catalog.SnapshotsAll, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.ask(stranger, catalog.SnapshotsAll, false, plain.ETag)
	wantKind(t, err, fault.Forbidden)

	// Answers with secrets are somebody's own, and so are their tags.
	other := b.principal("other", authz.TableReadData, "")
	vended, err := b.ask(reader, catalog.SnapshotsAll, true)
	if err != nil || vended.Credentials == nil {
		t.Fatalf("no credentials: %v", err)
	}
	if got, err := b.ask(other, catalog.SnapshotsAll, true, vended.ETag); err != nil || got.NotModified {
		t.Errorf("somebody else's credentials are called unchanged: %v", err)
	}
	if got, err := b.ask(reader, catalog.SnapshotsAll, true, plain.ETag); err != nil || got.NotModified {
		t.Errorf("an answer without credentials is taken for one with them: %v", err)
	}

	if err := b.store.DropPrincipal(ctx, reader.Principal.ID, catalog.Fact{ID: uuid.New()}); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{plain.ETag, vended.ETag} {
		_, err = b.ask(reader, catalog.SnapshotsAll, false, tag)
		wantKind(t, err, fault.Unauthenticated)
	}
}

// A client keeps the credentials of the answer that it has when it is told that nothing changed: it must be given new ones
// long before those end, however often it asks.
func TestTrap03_ATagEndsBeforeItsCredentials(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	began := time.Unix(1_700_000_000, 0)
	life := time.Duration(vending.SessionSecondsDefault) * time.Second
	for offset := time.Duration(0); offset < life; offset += 7 * time.Minute {
		at := began.Add(offset)
		b.Service.Now = func() time.Time { return at }
		vended, err := b.ask(system, catalog.SnapshotsAll, true)
		if err != nil || vended.Credentials == nil {
			t.Fatalf("no credentials: %v", err)
		}
		if same, err := b.ask(system, catalog.SnapshotsAll, true, vended.ETag); err != nil || !same.NotModified {
			t.Errorf("after %s: not known again at once: %v", offset, err)
		}
		at = at.Add(life / 2)
		if got, err := b.ask(system, catalog.SnapshotsAll, true, vended.ETag); err != nil || got.NotModified || got.Credentials == nil {
			t.Errorf("after %s: half of the credentials' life later they are called unchanged: %v", offset, err)
		}
	}
	plain, err := b.ask(system, catalog.SnapshotsAll, false)
	if err != nil {
		t.Fatal(err)
	}
	b.Service.Now = func() time.Time { return began.Add(100 * life) }
	if got, err := b.ask(system, catalog.SnapshotsAll, false, plain.ETag); err != nil || !got.NotModified {
		t.Errorf("without credentials nothing ends: %v", err)
	}
}

// A 304 costs neither the metadata file nor its copy: both are gone here.
func TestField_C196_AnUnchangedTableIsNotRead(t *testing.T) {
	b := newBench(t)
	loaded := b.mustCreate("t")
	plain, err := b.ask(system, catalog.SnapshotsAll, false)
	if err != nil {
		t.Fatal(err)
	}
	b.files.Lose(loaded.MetadataLocation)
	b.store.ForgetCopies()
	cold := catalog.New(catalog.Config{Store: b.store, Metadata: b.files, Providers: b.Providers})
	got, err := cold.LoadTable(context.Background(), system, catalog.LoadTableRequest{
		Warehouse: "w", Ident: id("t"), Snapshots: catalog.SnapshotsAll, IfNoneMatch: []string{plain.ETag},
	})
	if err != nil || !got.NotModified {
		t.Errorf("got %+v, %v", got, err)
	}
}
