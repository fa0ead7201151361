package iceio_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	icebergio "github.com/apache/iceberg-go/io"

	"catalogd/internal/fault"
	"catalogd/internal/iceio"
	"catalogd/vending"
	"catalogd/vending/local"
)

// hostile is a `file:` warehouse in which somebody has put links. The table is at ns/t; the victims are a file beside
// the warehouse and another table's.
type hostile struct {
	lake
	top, base string // folders: of everything, of the warehouse
	victims   []string
}

const linkedName = "metadata/00000-a.metadata.json"

func newHostile(t *testing.T) hostile {
	t.Helper()
	h := hostile{lake: onFolder(t), top: t.TempDir()}
	h.base = filepath.Join(h.top, "warehouse")
	h.profile.AllowedLocations = []string{"file://" + h.base}
	h.scope.Location = "file://" + h.base + "/ns/t"
	for _, folder := range []string{h.top + "/outside", h.base + "/ns2/victim"} {
		// The same names as in the table, so that a link at any level would find a file.
		for _, below := range []string{linkedName, "t/" + linkedName, "00000-a.metadata.json"} {
			h.victims = append(h.victims, filepath.Join(folder, below))
			h.plant(t, "file://"+filepath.Join(folder, below), "victim")
		}
	}
	return h
}

// operations are everything that is done with a table's files, on the table's own names.
func (h hostile) operations(t *testing.T) map[string]func() error {
	at := h.at(linkedName)
	named := func(do func(files *iceio.Files, name string) error) func() error {
		return func() error { return do(h.files(t), at.Path) }
	}
	return map[string]func() error{
		"read metadata":    func() error { _, err := h.store.ReadMetadata(t.Context(), at); return err },
		"write metadata":   func() error { return h.store.WriteMetadata(t.Context(), at, []byte("{}")) },
		"look at metadata": func() error { return h.store.StatMetadata(t.Context(), at) },
		"register": func() error {
			foreign := at
			foreign.Scope.Location += "/metadata"
			_, err := h.store.ReadForeign(t.Context(), foreign, 1<<20, func(context.Context) error { return nil })
			return err
		},
		"open":       named(func(f *iceio.Files, name string) error { _, err := f.Open(name); return err }),
		"read":       named(func(f *iceio.Files, name string) error { _, err := f.ReadFile(name); return err }),
		"look":       named(func(f *iceio.Files, name string) error { _, err := f.Stat(name); return err }),
		"write":      named(func(f *iceio.Files, name string) error { return f.WriteFile(name, []byte("{}")) }),
		"write new":  named(func(f *iceio.Files, name string) error { return f.WriteFile(name+".new", []byte("{}")) }),
		"create new": named(func(f *iceio.Files, name string) error { _, err := f.Create(name + ".new"); return err }),
		"remove": named(func(f *iceio.Files, name string) error {
			var bulk icebergio.BulkRemovableIO = f
			_, err := bulk.DeleteFiles(t.Context(), []string{name})
			return err
		}),
	}
}

// A link at any level between the allowed location and the file, to a place outside or to another table's, by an
// absolute or a relative name: nothing is read through it, nothing written, nothing removed.
func TestLinks_LeadTheServerNowhere(t *testing.T) {
	for _, level := range []string{"ns", "ns/t", "ns/t/metadata", "ns/t/" + linkedName} {
		for _, kind := range []string{"outside", "outside, relative", "another table's", "another table's, relative"} {
			t.Run(level+" is a link to "+kind, func(t *testing.T) {
				h := newHostile(t)
				place := filepath.Join(h.base, level)
				target := h.top + "/outside"
				if strings.HasPrefix(kind, "another") {
					target = h.base + "/ns2/victim"
				}
				if level == "ns/t/metadata" {
					target += "/metadata"
				} else if strings.HasSuffix(level, ".json") {
					target += "/" + linkedName
				}
				if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
					t.Fatal(err)
				}
				if strings.HasSuffix(kind, "relative") {
					var err error
					if target, err = filepath.Rel(filepath.Dir(place), target); err != nil {
						t.Fatal(err)
					}
				}
				h.expectNothing(t, level, func() {
					if err := errors.Join(os.RemoveAll(place), os.Symlink(target, place)); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

// expectNothing tries everything, with the link there each time, and looks at the victims.
func (h hostile) expectNothing(t *testing.T, level string, link func()) {
	t.Helper()
	link()
	before := everything(t, h.top)
	for what, do := range h.operations(t) {
		link()
		err := do()
		own := strings.HasSuffix(level, ".json") && (strings.HasSuffix(what, " new") || what == "remove")
		if err == nil && !own { // the link itself may be removed, and files beside it written: they are the table's own
			t.Errorf("%s: no error", what)
		}
		if strings.Contains(what, "metadata") || what == "register" {
			written := what == "write metadata" && strings.HasSuffix(level, ".json") // the name is taken
			if !fault.Is(err, fault.Forbidden) && !written {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	link()
	h.store.RemoveMetadata(t.Context(), h.at(linkedName))
	if err := h.store.PrepareTable(t.Context(), h.at(linkedName)); err == nil && !strings.HasSuffix(level, ".json") {
		t.Error("its folders are made")
	}
	for _, victim := range h.victims {
		if body, err := os.ReadFile(victim); err != nil || string(body) != "victim" {
			t.Errorf("%s holds %q (%v)", victim, body, err)
		}
	}
	for name := range everything(t, h.top) {
		if !before[name] && !strings.HasPrefix(name, filepath.Join(h.base, "ns")+"/") {
			t.Errorf("%s was made", name)
		}
	}
}

func everything(t *testing.T, top string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(top, func(name string, _ fs.DirEntry, err error) error {
		names[name] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The allowed location is the operator's: it may be a link, and so may what is above it. What is missing is made.
func TestLinks_TheAllowedLocationMayBeOne(t *testing.T) {
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "disk"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("disk", filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	for _, allowed := range []string{top + "/link", top + "/link/deeper/warehouse"} {
		l := onFolder(t)
		l.profile.AllowedLocations = []string{"file://" + top + "/elsewhere", "file://" + allowed}
		l.scope.Location = "file://" + allowed + "/ns/deep/t"
		at := l.at(linkedName)
		if err := l.store.PrepareTable(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if err := l.store.WriteMetadata(t.Context(), at, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if body, err := l.store.ReadMetadata(t.Context(), at); err != nil || string(body) != "{}" {
			t.Errorf("%q, %v", body, err)
		}
	}
}

// The nearest allowed location counts where one lies in another: it may be a link, as a disk that an operator has put
// into a warehouse is.
func TestLinks_AnAllowedLocationInAnother(t *testing.T) {
	h := newHostile(t)
	disk := filepath.Join(h.base, "disk")
	if err := os.Symlink(h.top+"/outside", disk); err != nil {
		t.Fatal(err)
	}
	h.scope.Location = "file://" + disk + "/t"
	if _, err := h.store.ReadMetadata(t.Context(), h.at(linkedName)); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a link that nobody has named: %v", err)
	}
	h.profile.AllowedLocations = append(h.profile.AllowedLocations, "file://"+disk)
	if body, err := h.store.ReadMetadata(t.Context(), h.at(linkedName)); err != nil || string(body) != "victim" {
		t.Errorf("a link that the operator has named: %q, %v", body, err)
	}
}

// A link that is put in a folder's place while the server is on its way is noticed: what was opened is compared with
// what was looked at.
func TestLinks_PutThereMeanwhile(t *testing.T) {
	h := newHostile(t)
	real, spare := filepath.Join(h.base, "ns"), filepath.Join(h.base, "spare")
	h.plant(t, h.at(linkedName).Path, "own")
	if err := os.Symlink(h.top+"/outside", spare); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	swapped := make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				swapped <- nil
				return
			default:
			}
			aside := real + ".aside"
			if err := errors.Join(os.Rename(real, aside), os.Rename(spare, real), os.Rename(real, spare), os.Rename(aside, real)); err != nil {
				swapped <- err
				return
			}
		}
	}()
	for range 20_000 {
		if body, err := h.store.ReadMetadata(t.Context(), h.at(linkedName)); err == nil && string(body) != "own" {
			t.Errorf("read %q", body)
			break
		}
	}
	close(done)
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
}

func BenchmarkStatMetadata(b *testing.B) {
	base := b.TempDir()
	store := iceio.New(iceio.Config{Providers: map[string]vending.Provider{"FILE": local.Provider{}}})
	defer store.Close()
	at := vending.FilePlace{
		Profile: vending.Profile{StorageType: "FILE", AllowedLocations: []string{"file://" + base}},
		Scope:   vending.Scope{Location: "file://" + base + "/t"}, Path: "file://" + base + "/t/" + linkedName,
	}
	if err := store.WriteMetadata(b.Context(), at, []byte("{}")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := store.StatMetadata(b.Context(), at); err != nil {
			b.Fatal(err)
		}
	}
}
