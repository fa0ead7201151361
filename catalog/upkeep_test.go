package catalog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

func TestUnregister_LosesToACommit(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	var once sync.Once
	moved := ""
	b.Service.Store = &hooked{Store: b.store, drop: func() {
		once.Do(func() {
			if err := b.commitAs(system, "t", b.properties(`"k":"v"`)); err != nil {
				t.Error(err)
			}
			moved = b.load("t").MetadataLocation
		})
	}}
	last, err := b.UnregisterTable(ctx, system, "w", id("t"))
	if err != nil || last.MetadataLocation != moved || !strings.Contains(string(last.Metadata), `"k":"v"`) {
		t.Errorf("%v: answered %s, the last commit is %s", err, last.MetadataLocation, moved)
	}
}

// hooked calls drop before each drop of a table.
type hooked struct {
	catalog.Store
	drop func()
}

func (h *hooked) DropTable(ctx context.Context, d catalog.TableDrop) error {
	h.drop()
	return h.Store.DropTable(ctx, d)
}

func TestOutdated_FilesGoAfterTheirGrace(t *testing.T) {
	b := newBench(t)
	if _, err := b.create("t", `,"properties":{"write.metadata.previous-versions-max":"2","write.metadata.delete-after-commit.enabled":"true"}`); err != nil {
		t.Fatal(err)
	}
	var versions []string
	for i := range 5 {
		versions = append(versions, b.load("t").MetadataLocation)
		if err := b.commitAs(system, "t", b.properties(fmt.Sprintf(`"k":"%d"`, i))); err != nil {
			t.Fatal(err)
		}
	}
	log, err := b.load("t").Document.MetadataLog()
	if err != nil || fmt.Sprint(log) != fmt.Sprint(versions[3:]) {
		t.Fatalf("%v: the log holds %q, want %q", err, log, versions[3:])
	}
	if n, err := b.RemoveOutdated(ctx, system, 10); n != 0 || err != nil {
		t.Fatalf("%d files went before their grace: %v", n, err)
	}
	b.store.LapseOutdated(t)
	if n, err := b.RemoveOutdated(ctx, system, 10); n != 3 || err != nil {
		t.Fatalf("%d files went: %v", n, err)
	}
	if got := b.files.Files(); fmt.Sprint(got) != fmt.Sprint(append(versions[3:], b.load("t").MetadataLocation)) {
		t.Errorf("left: %q", got)
	}
	if _, err := b.RemoveOutdated(ctx, catalog.Caller{Principal: auth.Principal{Name: "ann"}}, 10); !fault.Is(err, fault.Forbidden) {
		t.Errorf("anybody may: %v", err)
	}
}

// slowRemovals is a storage that takes half a minute for each removal, whoever gives up.
type slowRemovals struct{ catalog.MetadataIO }

func (s slowRemovals) RemoveMetadata(ctx context.Context, at vending.FilePlace) {
	<-time.After(30 * time.Second)
	s.MetadataIO.RemoveMetadata(context.WithoutCancel(ctx), at)
}

// A round of removals ends before the claims of its files do: a file that is registered then would go under its table.
func TestOutdated_NothingGoesAfterItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if _, err := b.create("t", `,"properties":{"write.metadata.previous-versions-max":"1","write.metadata.delete-after-commit.enabled":"true"}`); err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			if err := b.commitAs(system, "t", b.properties(fmt.Sprintf(`"k":"%d"`, i))); err != nil {
				t.Fatal(err)
			}
		}
		b.store.LapseOutdated(t)
		before := len(b.files.Files())
		b.Metadata = slowRemovals{b.files}
		if _, err := b.RemoveOutdated(ctx, system, 10); err != nil {
			t.Fatal(err)
		}
		if gone := before - len(b.files.Files()); gone != 2 {
			t.Errorf("%d files went in a round of forty seconds", gone)
		}
	})
}

// What a registered file's log names is removed only when it has a metadata file's name.
func TestOutdated_ALogNamesNothingElse(t *testing.T) {
	b := newBench(t)
	const place = "s3a://bucket/w/forged"
	list, old := b.file(place+"/metadata/snap-1.avro", "list"), b.file("s3://bucket/w/forged/metadata/0.metadata.json", "{}")
	text := tableFile(uuid.NewString(), place, `"write.metadata.delete-after-commit.enabled":"true","write.metadata.previous-versions-max":"1"`,
		fmt.Sprintf(`,"metadata-log":[{"timestamp-ms":1,"metadata-file":%q},{"timestamp-ms":1,"metadata-file":%q}]`,
			list, place+"/metadata/0.metadata.json"))
	b.mustRegister("t", b.file(place+"/metadata/1.metadata.json", text))
	if err := b.commitAs(system, "t", b.properties(`"k":"v"`)); err != nil {
		t.Fatal(err)
	}
	b.store.LapseOutdated(t)
	if n, err := b.RemoveOutdated(ctx, system, 10); n != 1 || err != nil {
		t.Fatalf("%d files went: %v", n, err)
	}
	if got := b.files.Files(); !slices.Contains(got, list) || slices.Contains(got, old) {
		t.Errorf("left: %q", got)
	}
}

// A warehouse may keep dropped tables' files for a while.
func TestDrop_PurgeWaits(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 0, "3600": time.Hour, "-1": 0, "soon": 0} {
		b := newBench(t)
		b.option("purge-delay-seconds", text)
		b.mustCreate("t")
		res, err := b.store.Resolve(ctx, catalog.Lookup{Principal: system.Principal, Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: "t"})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.DropTable(ctx, system, catalog.DropTableRequest{Warehouse: "w", Ident: id("t"), Purge: true}); err != nil {
			t.Fatal(err)
		}
		if job, found := b.store.PurgeOf(t, res.Table.ID); !found || job.Delay != want {
			t.Errorf("%q: %v %v", text, job, found)
		}
	}
}
