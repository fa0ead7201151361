package catalog_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

// A commit whose snapshot is in the table but whose other changes are not was never applied whole: it is neither
// acknowledged nor cleanly refused.
func TestCommit_PartlyThereIsUnknown(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	if err := b.commitAs(system, "t", b.appendTo(table, 7)); err != nil {
		t.Fatal(err)
	}
	more := b.appendTo(table, 7)
	more.Updates = append(more.Updates, b.properties(`"x":"y"`).Updates...)
	before := b.load("t").MetadataLocation
	wantKind(t, b.commitAs(system, "t", more), fault.CommitUnknown)
	wantKind(t, b.CommitTransaction(ctx, system, "w", []catalog.TableChange{{Ident: id("t"), Change: more}}), fault.CommitUnknown)
	foreign := b.appendTo(table, 7)
	foreign.Requirements = append(foreign.Requirements,
		b.decode(`{"requirements":[{"type":"assert-table-uuid","uuid":"11111111-1111-1111-1111-111111111111"}],"updates":[]}`).Requirements...)
	wantKind(t, b.commitAs(system, "t", foreign), fault.CommitConflict)
	if b.load("t").MetadataLocation != before {
		t.Error("a refused commit moved the pointer")
	}
	if err := b.commitAs(system, "t", b.appendTo(table, 7)); err != nil {
		t.Errorf("the true repeat: %v", err)
	}
}

// The snapshot of a landed commit stays in the table when its branch is set back: a late repeat must not make the
// client delete its files.
func TestCommit_RepeatAfterRollbackIsUnknown(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	if err := b.commitAs(system, "t", b.appendTo(table, 7)); err != nil {
		t.Fatal(err)
	}
	back := b.decode(`{"requirements":[],"updates":[{"action":"remove-snapshot-ref","ref-name":"main"}]}`)
	if err := b.commitAs(system, "t", back); err != nil {
		t.Fatal(err)
	}
	wantKind(t, b.commitAs(system, "t", b.appendTo(table, 7)), fault.CommitUnknown)
}

// createCommit is the commit of a create transaction under a uuid of the client's, with more updates behind it.
func createCommit(uuid, more string) string {
	return fmt.Sprintf(`{"requirements":[{"type":"assert-create"}],"updates":[
		{"action":"assign-uuid","uuid":%q},
		{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","type":"long","required":false}]}},
		{"action":"set-current-schema","schema-id":-1},{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},
		{"action":"set-default-spec","spec-id":-1},{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},
		{"action":"set-default-sort-order","sort-order-id":-1}%s]}`, uuid, more)
}

func TestCommit_RepeatedCreateIsHeldAgainstWhatIsThere(t *testing.T) {
	const id1 = "22222222-2222-4222-8222-222222222222"
	b := newBench(t)
	create := b.decode(createCommit(id1, ""))
	for range 2 {
		if err := b.commitAs(system, "t", create); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := strings.ReplaceAll(`,{"action":"add-snapshot","snapshot":{"snapshot-id":5,"sequence-number":1,"timestamp-ms":1790000000000,
		"manifest-list":"LOCATION/metadata/5.avro","schema-id":0,"summary":{"operation":"append"}}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":5}`, "LOCATION", b.load("t").Document.Location())
	wantKind(t, b.commitAs(system, "t", b.decode(createCommit(id1, snapshot))), fault.AlreadyExists)
	wantKind(t, b.commitAs(system, "t", b.decode(createCommit(id1, `,{"action":"set-properties","updates":{"x":"y"}}`))), fault.CommitUnknown)

	creator := b.principal("creator", authz.TableCreate, "")
	wantKind(t, b.commitAs(creator, "t", create), fault.Forbidden)
}

// Whoever may write a table's files could replace its metadata file; the catalog then serves nothing of it: what was
// committed where it has a copy, else a refusal.
func TestLoad_ForgedMetadataIsRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"location": {`"location":"s3://bucket/w/`, `"location":"s3://bucket/w/other/`},
		"property": {`"properties":{`, `"properties":{"py-io-impl":"evil",`},
		"path":     {`"properties":{`, `"properties":{"write.data.path":"s3://bucket/w/other",`},
		"content":  {`"properties":{`, `"properties":{"owner":"mallory",`},
		"uuid":     {`"table-uuid":"`, `"table-uuid":"00000000-0000-4000-8000-000000000000","was":"`},
	} {
		b := newBench(t)
		loaded := b.mustCreate("t")
		forged := strings.Replace(string(loaded.Metadata), change[0], change[1], 1)
		if forged == string(loaded.Metadata) {
			t.Fatalf("%s: nothing to forge in %s", name, loaded.Metadata)
		}
		b.files.Forge(loaded.MetadataLocation, []byte(forged))
		load := func() (catalog.LoadedTable, error) {
			other := catalog.New(catalog.Config{Store: b.store, Metadata: b.files, Providers: b.Providers})
			return other.LoadTable(ctx, system, catalog.LoadTableRequest{Warehouse: "w", Ident: id("t")})
		}
		if got, err := load(); err != nil || !bytes.Equal(got.Metadata, loaded.Metadata) {
			t.Errorf("%s: with a copy of what was committed: %v, %s", name, err, got.Metadata)
		}
		b.store.ForgetCopies()
		_, err := load()
		wantKind(t, err, fault.Validation)
		b.store.ForgetDigests()
		if _, err := load(); name != "content" || err != nil { // without a digest, what could lead readers elsewhere is refused
			wantKind(t, err, fault.Validation)
		}
	}
}

// A commit whose time is over before its file is written does not land any more.
func TestCommit_NothingLandsAfterTheDeadline(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	late, cancel := context.WithCancel(ctx)
	clock := b.Now
	b.Now = func() time.Time { cancel(); return clock() } // it is asked while the change is computed
	_, err := b.CommitTable(late, system, catalog.CommitTableRequest{Warehouse: "w", Ident: id("t"), Change: b.properties(`"a":"b"`)})
	b.Now = clock
	wantKind(t, err, fault.Busy)
	if b.load("t").MetadataLocation != table.MetadataLocation {
		t.Error("it landed")
	}
}

// Whose rights ended after the commit had landed is not refused cleanly: the client would delete files of the table.
func TestCommit_RepeatAfterARevokeIsUnknown(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	if err := b.commitAs(system, "t", b.appendTo(table, 7)); err != nil {
		t.Fatal(err)
	}
	for name, privilege := range map[string]authz.Privilege{"reader": authz.TableReadData, "stranger": authz.TableCreate} {
		revoked := b.principal(name, privilege, "")
		wantKind(t, b.commitAs(revoked, "t", b.appendTo(table, 7)), fault.CommitUnknown)
		wantKind(t, b.commitAs(revoked, "t", b.appendTo(table, 8)), fault.Forbidden)
		wantKind(t, b.commitAs(revoked, "t", b.properties(`"a":"b"`)), fault.Forbidden)
	}
}

// A landed snapshot that was expired since lives on in its child; the repeat of its commit is no clean refusal either.
func TestCommit_RepeatOfAnExpiredSnapshotIsUnknown(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	first := b.appendTo(table, 7)
	if err := b.commitAs(system, "t", first); err != nil {
		t.Fatal(err)
	}
	child := b.decode(fmt.Sprintf(`{"requirements":[],"updates":[{"action":"add-snapshot","snapshot":{"snapshot-id":8,"parent-snapshot-id":7,
		"sequence-number":2,"timestamp-ms":%d,"manifest-list":"%s/metadata/8.avro","schema-id":0,"summary":{"operation":"append"}}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":8}]}`, b.began.UnixMilli(), table.Document.Location()))
	for _, change := range []commit.Request{child, b.decode(`{"requirements":[],"updates":[{"action":"remove-snapshots","snapshot-ids":[7]}]}`)} {
		if err := b.commitAs(system, "t", change); err != nil {
			t.Fatal(err)
		}
	}
	wantKind(t, b.commitAs(system, "t", first), fault.CommitUnknown)
	wantKind(t, b.commitAs(system, "t", b.appendTo(table, 9)), fault.CommitConflict)
}

// Nor is it one after the table got another name, after another table got its name, or after it was dropped.
func TestCommit_RepeatAfterARenameIsUnknown(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	landed := b.appendTo(table, 7)
	landed.Requirements = append(landed.Requirements,
		b.decode(fmt.Sprintf(`{"requirements":[{"type":"assert-table-uuid","uuid":%q}],"updates":[]}`, table.Document.UUID())).Requirements...)
	if err := b.commitAs(system, "t", landed); err != nil {
		t.Fatal(err)
	}
	again := func(when string) {
		t.Helper()
		for _, err := range []error{
			b.commitAs(system, "t", landed),
			b.transact(catalog.TableChange{Ident: id("t"), Change: landed}, b.change("t2", `{"requirements":[],"updates":[]}`)),
		} {
			if !fault.Is(err, fault.CommitUnknown) {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	b.mustCreate("t2")
	if err := b.RenameTable(ctx, system, catalog.RenameTableRequest{Warehouse: "w", From: id("t"), To: id("u")}); err != nil {
		t.Fatal(err)
	}
	again("renamed")
	wantKind(t, b.commitAs(system, "t", b.appendTo(table, 8)), fault.NoSuchTable)
	b.mustCreate("t")
	again("another one has the name")
	if err := b.DropTable(ctx, system, catalog.DropTableRequest{Warehouse: "w", Ident: id("u")}); err != nil {
		t.Fatal(err)
	}
	again("dropped")
	wantKind(t, b.commitAs(system, "u", b.appendTo(table, 8)), fault.NoSuchTable)
}

// createWithSnapshot is a create transaction that brings data.
func (b *bench) createWithSnapshot() commit.Request {
	const made = "33333333-3333-4333-8333-333333333333"
	return b.decode(createCommit(made, fmt.Sprintf(`,{"action":"add-snapshot","snapshot":{"snapshot-id":5,"sequence-number":1,"timestamp-ms":%d,
		"manifest-list":"s3://bucket/w/%s/metadata/5.avro","schema-id":0,"summary":{"operation":"append"}}},
		{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":5}`, b.began.UnixMilli(), made)))
}

// A table that a create transaction made is not refused cleanly either when it has another name by the time of the repeat.
func TestCommit_RepeatedCreateAfterARename(t *testing.T) {
	b := newBench(t)
	create := b.createWithSnapshot()
	for range 2 {
		if err := b.commitAs(system, "t", create); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.RenameTable(ctx, system, catalog.RenameTableRequest{Warehouse: "w", From: id("t"), To: id("u")}); err != nil {
		t.Fatal(err)
	}
	wantKind(t, b.commitAs(system, "t", create), fault.CommitUnknown)
	b.mustCreate("t")
	wantKind(t, b.commitAs(system, "t", create), fault.CommitUnknown)
}

// Nor when its maker lost the right to make tables, or never had that to read them.
func TestCommit_RepeatedCreateAfterARevoke(t *testing.T) {
	b := newBench(t)
	create := b.createWithSnapshot()
	if err := b.commitAs(system, "t", create); err != nil {
		t.Fatal(err)
	}
	for name, privilege := range map[string]authz.Privilege{"reader": authz.TableReadData, "maker": authz.TableCreate} {
		revoked := b.principal(name, privilege, "")
		wantKind(t, b.commitAs(revoked, "t", create), fault.CommitUnknown)
	}
}

// A commit is under way, its table gets another name, and the commit comes again: that one is refused, and the refusal must
// stay true.
func TestCommit_RefusedWhileUnderWay(t *testing.T) {
	b := newBench(t)
	landed := b.appendTo(b.mustCreate("t"), 7)
	other, writes := b.start(), 0
	b.Metadata = meanwhile{b.files, func() {
		if writes++; writes > 1 {
			return
		}
		if err := other.RenameTable(ctx, system, catalog.RenameTableRequest{Warehouse: "w", From: id("t"), To: id("u")}); err != nil {
			t.Fatal(err)
		}
		_, err := other.CommitTable(ctx, system, catalog.CommitTableRequest{Warehouse: "w", Ident: id("t"), Change: landed})
		wantKind(t, err, fault.NoSuchTable)
	}}
	wantKind(t, b.commitAs(system, "t", landed), fault.NoSuchTable)
	if n := b.load("u").Document.SnapshotCount(); n != 0 {
		t.Errorf("the renamed table has %d snapshots of it", n)
	}
}

// The client sent the commit of its create transaction again, to another server, before the first one had ended: the one
// that comes second is the repeat of the other, and no clean refusal.
func TestCommit_CreateUnderWayTwice(t *testing.T) {
	const made = "33333333-3333-4333-8333-333333333333"
	for _, alone := range []bool{true, false} {
		for location, set := range map[string]string{
			"s3://bucket/w/" + made: "", "s3://bucket/w/chosen": `,{"action":"set-location","location":"s3://bucket/w/chosen"}`,
		} {
			b := newBench(t)
			create := b.decode(createCommit(made, set+fmt.Sprintf(`,{"action":"add-snapshot","snapshot":{"snapshot-id":5,"sequence-number":1,
				"timestamp-ms":%d,"manifest-list":"%s/metadata/5.avro","schema-id":0,"summary":{"operation":"append"}}},
				{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":5}`, b.began.UnixMilli(), location)))
			commit := func(s *catalog.Service) error {
				if !alone {
					return s.CommitTransaction(ctx, system, "w", []catalog.TableChange{{Ident: id("t"), Change: create}})
				}
				_, err := s.CommitTable(ctx, system, catalog.CommitTableRequest{Warehouse: "w", Ident: id("t"), Change: create})
				return err
			}
			other, writes := b.start(), 0
			b.Metadata = meanwhile{b.files, func() {
				if writes++; writes > 1 {
					return
				}
				if err := commit(other); err != nil {
					t.Fatal(err)
				}
			}}
			if err := commit(b.Service); err != nil {
				t.Errorf("at %s, alone %t: %v", location, alone, err)
			}
			if snapshots, files := b.load("t").Document.SnapshotCount(), len(b.files.Files()); snapshots != 1 || files != 1 {
				t.Errorf("%d snapshots, %d metadata files", snapshots, files)
			}
		}
	}
}
