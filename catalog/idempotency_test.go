package catalog_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// withKey is a caller with a key of its own, for one request.
func withKey(c catalog.Caller) catalog.Caller {
	c.Key = catalog.RequestKey{ID: uuid.New(), Operation: "test"}
	return c
}

// counting vends keys that are never the same twice.
type counting struct {
	stub
	n *atomic.Int64
}

func (c counting) Vend(context.Context, vending.Profile, vending.Scope) (vending.Credentials, error) {
	return vending.Credentials{ExpiresAt: time.Now().Add(time.Hour), Config: map[string]string{"s3.access-key-id": fmt.Sprint(c.n.Add(1))}}, nil
}

// replica is another server on the same database and store.
func (b *bench) replica(p vending.Provider) *catalog.Service {
	return catalog.New(catalog.Config{
		Store: b.store, Admin: b.store, Metadata: b.files, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Providers: map[string]vending.Provider{"S3": p},
	})
}

func TestField_C173_ReplaysVendAfresh(t *testing.T) {
	b := newBench(t)
	b.Service = b.replica(counting{n: &atomic.Int64{}})
	caller := withKey(system)
	create := func() catalog.LoadedTable {
		loaded, err := b.CreateTable(ctx, caller, catalog.CreateTableRequest{
			Warehouse: "w", Namespace: catalog.Namespace{"a"}, Delegated: true, Body: b.createBody("t"),
		})
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	first, again := create(), create()
	if one, two := first.Config["s3.access-key-id"], again.Config["s3.access-key-id"]; one == "" || two == "" || one == two {
		t.Errorf("first %q, again %q", one, two)
	}
	if first.MetadataLocation != again.MetadataLocation || string(first.Metadata) != string(again.Metadata) {
		t.Errorf("first %s, again %s", first.MetadataLocation, again.MetadataLocation)
	}
	if err := b.DropTable(ctx, system, catalog.DropTableRequest{Warehouse: "w", Ident: id("t")}); err != nil {
		t.Fatal(err)
	}
	if gone := create(); gone.Credentials != nil || gone.MetadataLocation != first.MetadataLocation {
		t.Errorf("a dropped table's replay: %+v, %s", gone.Credentials, gone.MetadataLocation)
	}
}

// The client never learned what became of its commit. Whatever it was in truth: the repeat with the key is answered, and
// the commit is there once.
func TestIdempotency_RepeatAfterAnUnknownOutcome(t *testing.T) {
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) { repeatedAfterUnknown(t, applied) })
	}
}

func repeatedAfterUnknown(t *testing.T, applied bool) {
	b := newBench(t)
	table := b.mustCreate("t")
	b.loseOutcome(applied)
	caller, change := withKey(system), b.appendTo(table, 1)
	err := b.commitAs(caller, "t", change)
	if applied && err != nil { // the key was found before the answer was given
		t.Errorf("a commit that landed with its key: %v", err)
	}
	if !applied {
		wantKind(t, err, fault.CommitUnknown)
	}
	b.store.Inject(nil)
	if err := b.commitAs(caller, "t", change); err != nil {
		t.Errorf("applied %v: the repeat: %v", applied, err)
	}
	if err := b.commitAs(system, "t", b.properties(`"later":"1"`)); err != nil {
		t.Fatal(err)
	}
	if err := b.commitAs(caller, "t", change); err != nil {
		t.Errorf("applied %v: the later repeat: %v", applied, err)
	}
	if d := b.load("t").Document; d.SnapshotCount() != 1 || d.Properties()["later"] != "1" {
		t.Errorf("applied %v: %d snapshots, %v", applied, d.SnapshotCount(), d.Properties())
	}
}

// commits counts the events of landed commits.
func (b *bench) commits() (n int) {
	for _, e := range b.store.Events() {
		if e.Operation == "commit-table" {
			n++
		}
	}
	return n
}

// Every call to the store fails once, cleanly or after it was applied; the repeat with the key always ends well, and
// everything is there once.
func TestIdempotency_EveryCallFailsOnce(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for n := 1; ; n++ {
			b := newBench(t)
			b.mustCreate("t")
			calls := 0
			b.store.Inject(func(method string, number int) (f catalogtest.Failure) {
				calls = number
				if number == n && method != "CommitPointers" {
					return catalogtest.Failure{Err: fault.New(fault.Busy, "away"), Applied: applied}
				}
				if number == n {
					return catalogtest.Failure{Err: catalogtest.Unknown(), Applied: applied}
				}
				return f
			})
			caller, change := withKey(system), b.properties(`"k":"v"`)
			first := b.commitAs(caller, "t", change)
			b.store.Inject(nil)
			if calls < n {
				break
			}
			if err := b.commitAs(caller, "t", change); err != nil {
				t.Errorf("call %d, applied %t: first %v, then %v", n, applied, first, err)
			}
			if got := b.commits(); got != 1 {
				t.Errorf("call %d, applied %t: %d commits", n, applied, got)
			}
			if files := len(b.files.Files()); files != 2 {
				t.Errorf("call %d, applied %t: %d files", n, applied, files)
			}
		}
	}
}

// meanwhile is a file system while whose writes something else happens.
type meanwhile struct {
	catalog.MetadataIO
	happens func()
}

func (m meanwhile) WriteMetadata(ctx context.Context, at vending.FilePlace, body []byte) error {
	m.happens()
	return m.MetadataIO.WriteMetadata(ctx, at, body)
}

// Two servers run the same request at once: the second finds out when it writes, takes its own file back and answers as
// the first one.
func TestIdempotency_ReplicasRunTheSameRequest(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	other := b.replica(stub{})
	caller, change := withKey(system), b.properties(`"k":"v"`)
	request := catalog.CommitTableRequest{Warehouse: "w", Ident: id("t"), Change: change}
	var theirs catalog.LoadedTable
	var theirErr error
	b.Metadata = meanwhile{b.files, func() { theirs, theirErr = other.CommitTable(ctx, caller, request) }}
	ours, err := b.CommitTable(ctx, caller, request)
	if err != nil || theirErr != nil {
		t.Fatalf("ours %v, theirs %v", err, theirErr)
	}
	if ours.MetadataLocation != theirs.MetadataLocation || string(ours.Metadata) != string(theirs.Metadata) {
		t.Errorf("ours %s, theirs %s", ours.MetadataLocation, theirs.MetadataLocation)
	}
	if n := len(b.files.Files()); n != 2 {
		t.Errorf("%d metadata files, wanted the table's first and the commit's", n)
	}
}

// A conflict that says only that others were faster is not final: the repeat may do better.
func TestIdempotency_LostRacesAreNotKept(t *testing.T) {
	synctest.Test(t, lostRacesAreNotKept)
}

func lostRacesAreNotKept(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	b.store.Inject(catalogtest.FailMethod("CommitPointers", fault.New(fault.CommitRace, "somebody was faster")))
	caller, change := withKey(system), b.properties(`"k":"v"`)
	wantKind(t, b.commitAs(caller, "t", change), fault.CommitConflict)
	b.store.Inject(nil)
	if err := b.commitAs(caller, "t", change); err != nil {
		t.Error(err)
	}
}

// The table has another name by the time of the repeat: who may see what lies in its old namespace is answered.
func TestIdempotency_ReplayOfARenamedTable(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	caller, change := withKey(system), b.properties(`"k":"v"`)
	if err := b.commitAs(caller, "t", change); err != nil {
		t.Fatal(err)
	}
	if err := b.RenameTable(ctx, system, catalog.RenameTableRequest{Warehouse: "w", From: id("t"), To: id("u")}); err != nil {
		t.Fatal(err)
	}
	b.mustCreate("t")
	if err := b.commitAs(caller, "t", change); err != nil {
		t.Error(err)
	}
	if _, ok := b.load("t").Document.Property("k"); ok {
		t.Error("the repeat changed the table that has the name now")
	}
	foreign := b.principal("foreign", authz.TableCreate, "")
	foreign.Key = caller.Key
	wantKind(t, b.commitAs(foreign, "t", change), fault.Forbidden)
}

// A replay shows nobody what others made of a table since, unless he may load it.
func TestIdempotency_ReplaysDiscloseNothing(t *testing.T) {
	b := newBench(t)
	maker := withKey(b.principal("maker", authz.TableCreate, ""))
	request := catalog.CreateTableRequest{Warehouse: "w", Namespace: catalog.Namespace{"a"}, Body: b.createBody("t")}
	first, err := b.CreateTable(ctx, maker, request)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.commitAs(system, "t", b.properties(`"secret":"s"`)); err != nil {
		t.Fatal(err)
	}
	if again, err := b.start().CreateTable(ctx, maker, request); err != nil || again.MetadataLocation != first.MetadataLocation {
		t.Fatalf("the replay: %v", err)
	}
	b.files.RemoveMetadata(ctx, vending.FilePlace{Path: first.MetadataLocation})
	// It was the maker's own till then.
	res, err := b.store.Resolve(ctx, catalog.Lookup{Principal: system.Principal, Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: "t"})
	if err != nil || res.Table.OwnerID != maker.Principal.ID {
		t.Fatalf("%+v %v", res.Table, err)
	}
	on := authz.Securable{Kind: authz.Table, ID: res.Table.ID}
	if err := b.store.SetOwner(ctx, catalog.OwnerChange{On: on, Fact: catalog.Fact{ID: uuid.New()}}); err != nil {
		t.Fatal(err)
	}
	if again, err := b.start().CreateTable(ctx, maker, request); !fault.Is(err, fault.Forbidden) {
		t.Errorf("the replay of what is gone: %v, %s", err, again.Metadata)
	}

	dropper := b.principal("dropper", authz.TableFullMetadata, "")
	dropper = withKey(dropper)
	if _, err := b.UnregisterTable(ctx, dropper, "w", id("t")); err != nil {
		t.Fatal(err)
	}
	w, err := b.store.FindWarehouse(ctx, "w")
	if err != nil {
		t.Fatal(err)
	}
	role, err := b.store.FindRole(ctx, w.ID, "dropper")
	if err != nil {
		t.Fatal(err)
	}
	for privilege, change := range map[authz.Privilege]func(context.Context, catalog.RoleRecord, catalog.RoleGrant, catalog.Fact) error{
		authz.TableFullMetadata: b.store.RevokeGrant, authz.TableDrop: b.store.AddGrant,
	} {
		if err := change(ctx, role, catalog.RoleGrant{Privilege: privilege, Kind: authz.Catalog, ID: w.ID}, catalog.Fact{ID: uuid.New()}); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := b.UnregisterTable(ctx, dropper, "w", id("t")); !fault.Is(err, fault.Forbidden) {
		t.Errorf("the replay after a revoke: %v, %s", err, again.Metadata)
	}
}
