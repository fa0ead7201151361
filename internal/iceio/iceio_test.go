package iceio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"catalogd/internal/fault"
	"catalogd/internal/iceio"
	"catalogd/internal/s3test"
	"catalogd/vending"
	"catalogd/vending/local"
	"catalogd/vending/s3"
)

func TestMain(m *testing.M) { os.Exit(s3test.Run(m)) }

// lake is one table's files on one storage, and a look at them past all checks.
type lake struct {
	store   *iceio.Store
	profile vending.Profile
	scope   vending.Scope
	// plant and peek reach any URI, as an administrator would.
	plant func(t *testing.T, uri, body string)
	peek  func(t *testing.T, uri string) (string, bool)
}

// each runs a test on every storage.
func each(t *testing.T, test func(t *testing.T, l lake)) {
	t.Run("file", func(t *testing.T) { test(t, onFolder(t)) })
	t.Run("s3", func(t *testing.T) { test(t, onBucket(t)) })
}

func onFolder(t *testing.T) lake {
	base := "file://" + t.TempDir()
	return lake{
		store:   opened(t, vending.Provider(local.Provider{}), "FILE"),
		profile: vending.Profile{StorageType: "FILE", AllowedLocations: []string{base}},
		scope:   vending.Scope{Warehouse: "w", Table: "t1", Principal: "p", Location: base + "/t1", Access: vending.ReadWrite},
		plant: func(t *testing.T, uri, body string) {
			t.Helper()
			path, _ := vending.FilePath(uri)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		peek: func(t *testing.T, uri string) (string, bool) {
			t.Helper()
			path, _ := vending.FilePath(uri)
			body, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			return string(body), err == nil
		},
	}
}

func onBucket(t *testing.T) lake {
	server := s3test.Start(t)
	return bucketLake(t, server, s3.New(s3.Config{AWS: server.Config(), Log: slog.New(slog.DiscardHandler)}))
}

func bucketLake(t *testing.T, server *s3test.Store, provider vending.Provider) lake {
	base := "s3://" + server.Bucket(t) + "/base"
	admin := server.Client(s3test.Admin)
	return lake{
		store: opened(t, provider, "S3"), profile: server.Profile(),
		scope: vending.Scope{Warehouse: "w", Table: "t1", Principal: "p", Location: base + "/t1", Access: vending.ReadWrite},
		plant: func(t *testing.T, uri, body string) {
			t.Helper()
			if err := s3test.Put(t.Context(), admin, uri, body); err != nil {
				t.Fatal(err)
			}
		},
		peek: func(t *testing.T, uri string) (string, bool) {
			t.Helper()
			body, found, err := s3test.Get(t.Context(), admin, uri)
			if err != nil {
				t.Fatal(err)
			}
			return body, found
		},
	}
}

func opened(t *testing.T, p vending.Provider, storageType string) *iceio.Store {
	store := iceio.New(iceio.Config{Providers: map[string]vending.Provider{storageType: p}})
	t.Cleanup(store.Close)
	return store
}

func (l lake) at(name string) vending.FilePlace {
	return vending.FilePlace{Profile: l.profile, Scope: l.scope, Path: l.scope.Location + "/" + name}
}

func (l lake) files(t *testing.T) *iceio.Files {
	t.Helper()
	files, err := l.store.OpenTable(t.Context(), l.profile, l.scope)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Threats 7 to 9 and 13: a path that hostile metadata names is refused whatever it looks like, before a request is made.
func TestFiles_OutsideTheTableAreRefused(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		base := strings.TrimSuffix(l.scope.Location, "/t1")
		outside := []string{
			base + "/t10/x", base + "/t2/x", base + "/t1", base + "/t1/", base + "/t1/../t2/x", base + "/t1/./../t2/x", base + "/t1/data/../../t2/x",
			base + `/t1/..\t2\x`, base + "/t1/x\x00y", base + "/t1/x?versionId=1", base + "/t1/x#y", "", "x", "/etc/passwd", "data/x", "s3://other/t1/x",
			"file:///etc/passwd", "http://169.254.169.254/latest", base + "/T1/x", strings.ToUpper(base) + "/t1/x",
		}
		l.plant(t, base+"/t2/x", "victim")
		files := l.files(t)
		for _, name := range outside {
			if strings.HasPrefix(name, l.scope.Location+"/") && !strings.ContainsAny(name, "?#\\\x00") && !strings.Contains(name, "..") && !strings.HasSuffix(name, "/") {
				t.Fatalf("%s lies inside", name)
			}
			_, openErr := files.Open(name)
			_, readErr := files.ReadFile(name)
			_, statErr := files.Stat(name)
			_, createErr := files.Create(name)
			_, deleteErr := files.DeleteFiles(t.Context(), []string{name})
			_, metaErr := l.store.ReadMetadata(t.Context(), vending.FilePlace{Profile: l.profile, Scope: l.scope, Path: name})
			for verb, err := range map[string]error{
				"open": openErr, "read": readErr, "stat": statErr, "create": createErr, "delete": deleteErr, "metadata": metaErr,
				"remove": files.Remove(name), "write": files.WriteFile(name, []byte("x")),
				"write metadata": l.store.WriteMetadata(t.Context(), vending.FilePlace{Profile: l.profile, Scope: l.scope, Path: name}, []byte("x")),
			} {
				if !fault.Is(err, fault.Forbidden) {
					t.Errorf("%s %q: %v", verb, name, err)
				}
			}
		}
		for _, root := range []string{base, base + "/t2", base + "/t10", base + "/t1/..", "file:///", ""} {
			if err := files.WalkDir(root, func(string, fs.DirEntry, error) error { return nil }); !fault.Is(err, fault.Forbidden) {
				t.Errorf("walk %q: %v", root, err)
			}
		}
		if body, _ := l.peek(t, base+"/t2/x"); body != "victim" {
			t.Errorf("the victim holds %q", body)
		}
	})
}

// Threat 6: the scope comes from the catalog's row; a tree that cannot be narrowed is not opened.
func TestOpenTable_RefusesLocationsThatCannotBeNarrowed(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		for _, location := range []string{"", "s3://bucket", "s3://bucket/*", "file:///", "s3://bucket/a/../b", "http://x/y"} {
			scope := l.scope
			scope.Location = location
			if _, err := l.store.OpenTable(t.Context(), l.profile, scope); err == nil {
				t.Errorf("%q is opened", location)
			}
		}
		if _, err := l.store.OpenTable(t.Context(), vending.Profile{StorageType: "GCS"}, l.scope); !fault.Is(err, fault.Internal) {
			t.Errorf("an unknown storage: %v", err)
		}
	})
}

func TestFiles_FollowNoLinkOutOfTheTable(t *testing.T) {
	l := onFolder(t)
	base := strings.TrimSuffix(l.scope.Location, "/t1")
	l.plant(t, base+"/t2/x", "victim")
	l.plant(t, l.scope.Location+"/data/a", "mine")
	path, _ := vending.FilePath(l.scope.Location)
	for name, target := range map[string]string{"data/link": "../../t2/x", "folder": "../t2", "absolute": filepath.Join(filepath.Dir(path), "t2")} {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	files := l.files(t)
	for _, name := range []string{"data/link", "folder/x", "absolute/x"} {
		if body, err := files.ReadFile(l.scope.Location + "/" + name); err == nil {
			t.Errorf("%s gave %q", name, body)
		}
	}
	if err := files.WriteFile(l.scope.Location+"/folder/y", []byte("x")); err == nil {
		t.Error("a file was written through a link")
	}
	if err := files.Remove(l.scope.Location + "/folder/x"); err == nil {
		t.Error("a file was removed through a link")
	}
	var seen []string
	err := files.WalkDir(l.scope.Location, func(name string, _ fs.DirEntry, err error) error {
		seen = append(seen, name)
		return err
	})
	if err != nil || !slices.Equal(seen, []string{l.scope.Location + "/data/a"}) {
		t.Errorf("walk: %v, %v", seen, err)
	}
	if body, _ := l.peek(t, base+"/t2/x"); body != "victim" {
		t.Errorf("the victim holds %q", body)
	}
}

// sizes are around every limit of the readers and writers.
var sizes = []int{0, 1, 1000, 256<<10 - 1, 256 << 10, 256<<10 + 1, 8<<20 - 1, 8 << 20, 8<<20 + 1, 19<<20 + 7}

func TestFiles_WriteThenReadEverySize(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		files := l.files(t)
		for _, size := range sizes {
			body := content(size)
			name := fmt.Sprintf("%s/data/part=%%2F é+%d.parquet", l.scope.Location, size)
			w, err := files.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			half := size / 2
			if n, err := w.Write(body[:half]); err != nil || n != half {
				t.Fatalf("write: %d, %v", n, err)
			}
			if n, err := w.ReadFrom(bytes.NewReader(body[half:])); err != nil || n != int64(size-half) {
				t.Fatalf("read from: %d, %v", n, err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err == nil && size > 0 && l.profile.StorageType == "S3" {
				t.Error("a second close of an upload says that all is well")
			}
			checkReads(t, files, name, body)
		}
	})
}

func content(size int) []byte {
	body := make([]byte, size)
	source := rand.NewChaCha8([32]byte{byte(size)})
	source.Read(body)
	return body
}

// checkReads reads a file in every way: whole, on, at random places of random lengths, past its end.
func checkReads(t *testing.T, files *iceio.Files, name string, body []byte) {
	t.Helper()
	if i, err := files.Stat(name); err != nil || i.Size() != int64(len(body)) {
		t.Errorf("stat: %v, %v", i, err)
	}
	if got, err := files.ReadFile(name); err != nil || !bytes.Equal(got, body) {
		t.Errorf("read file of %d: %d bytes, %v", len(body), len(got), err)
	}
	f, err := files.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if i, err := f.Stat(); err != nil || i.Size() != int64(len(body)) {
		t.Errorf("size of the open file: %v, %v", i, err)
	}
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, body) {
		t.Errorf("read on %d: %d bytes, %v", len(body), len(got), err)
	}
	if at, err := f.Seek(-int64(min(len(body), 4)), io.SeekEnd); err != nil || at != int64(max(0, len(body)-4)) {
		t.Errorf("seek: %d, %v", at, err)
	}
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, body[max(0, len(body)-4):]) {
		t.Errorf("read the end: %q, %v", got, err)
	}
	if n, err := f.ReadAt(make([]byte, 1), int64(len(body))); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read past the end: %d, %v", n, err)
	}
	if len(body) == 0 {
		return
	}
	random := rand.New(rand.NewPCG(1, uint64(len(body))))
	for range 20 {
		from := random.IntN(len(body))
		length := 1 + random.IntN([]int{64, 100 << 10, 3 << 20}[random.IntN(3)])
		p := make([]byte, length)
		n, err := f.ReadAt(p, int64(from))
		want := body[from:min(len(body), from+length)]
		if !bytes.Equal(p[:n], want) || (err != nil) != (from+length > len(body)) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("read %d at %d of %d: %d, %v", length, from, len(body), n, err)
		}
	}
}

func TestFiles_ManyReadersOfOneFile(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		body := content(12 << 20)
		name := l.scope.Location + "/data/shared.parquet"
		l.plant(t, name, string(body))
		f, err := l.files(t).Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var readers sync.WaitGroup
		for r := range 8 {
			readers.Go(func() {
				random := rand.New(rand.NewPCG(2, uint64(r)))
				for range 20 {
					p := make([]byte, 1+random.IntN(200<<10))
					from := random.IntN(len(body) - len(p))
					if _, err := f.ReadAt(p, int64(from)); err != nil || !bytes.Equal(p, body[from:from+len(p)]) {
						t.Errorf("read at %d: %v", from, err)
						return
					}
				}
			})
		}
		readers.Wait()
	})
}

func TestFiles_AbortLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		files := l.files(t)
		for _, size := range []int{0, 100, 20 << 20} {
			name := fmt.Sprintf("%s/data/aborted-%d", l.scope.Location, size)
			w, err := files.CreateFile(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content(size)); err != nil {
				t.Fatal(err)
			}
			w.Abort()
			w.Abort()
			if _, err := w.Write([]byte("x")); err == nil {
				t.Error("a file that was given up takes more")
			}
			if err := w.Close(); err == nil {
				t.Error("a file that was given up closes as if it were whole")
			}
			if _, found := l.peek(t, name); found {
				t.Errorf("%s is there", name)
			}
			if _, err := files.Open(name); !errors.Is(err, fs.ErrNotExist) || !fault.Is(err, fault.FileNotFound) {
				t.Errorf("open: %v", err)
			}
		}
	})
}

func TestFiles_DeleteAndWalk(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		base := strings.TrimSuffix(l.scope.Location, "/t1")
		l.plant(t, base+"/t10/data/victim", "victim")
		files := l.files(t)
		var all []string
		for i := range 30 {
			name := fmt.Sprintf("%s/data/%02d/x", l.scope.Location, i)
			l.plant(t, name, strings.Repeat("x", i))
			all = append(all, name)
		}
		l.plant(t, l.scope.Location+"/metadata/m", "m")
		walk := func(root string) []string {
			t.Helper()
			var names []string
			err := files.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
				i, infoErr := d.Info()
				if err != nil || infoErr != nil || d.IsDir() || i.ModTime().IsZero() {
					t.Errorf("%s: %v, %v", name, err, infoErr)
				}
				names = append(names, name)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(names)
			return names
		}
		if got := walk(l.scope.Location); !slices.Equal(got, append(slices.Clone(all), l.scope.Location+"/metadata/m")) {
			t.Errorf("walk: %v", got)
		}
		if got := walk(l.scope.Location + "/data"); !slices.Equal(got, all) {
			t.Errorf("walk data: %v", got)
		}
		if got := walk(l.scope.Location + "/none"); len(got) != 0 {
			t.Errorf("walk nothing: %v", got)
		}
		gone, err := files.DeleteFiles(t.Context(), append(slices.Clone(all[:20]), all[0], l.scope.Location+"/data/none", base+"/t10/data/victim"))
		if !fault.Is(err, fault.Forbidden) || len(gone) != 21 {
			t.Errorf("deleted %d, %v", len(gone), err)
		}
		if got := walk(l.scope.Location + "/data"); !slices.Equal(got, all[20:]) {
			t.Errorf("left: %v", got)
		}
		if body, _ := l.peek(t, base+"/t10/data/victim"); body != "victim" {
			t.Error("the victim is gone")
		}
		if gone, err := files.DeleteFiles(t.Context(), nil); err != nil || gone != nil {
			t.Errorf("deleting nothing: %v, %v", gone, err)
		}
	})
}

// A reader's keys reach no write, by the store's word and not only by ours.
func TestFiles_ReadOnlyScope(t *testing.T) {
	l := onBucket(t)
	l.plant(t, l.scope.Location+"/data/a", "mine")
	l.scope.Access = vending.Read
	files := l.files(t)
	if body, err := files.ReadFile(l.scope.Location + "/data/a"); err != nil || string(body) != "mine" {
		t.Fatalf("read: %q, %v", body, err)
	}
	err := files.WriteFile(l.scope.Location+"/data/b", []byte("x"))
	if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "rights of the warehouse's role") {
		t.Errorf("write: %v", err)
	}
	if gone, err := files.DeleteFiles(t.Context(), []string{l.scope.Location + "/data/a"}); err == nil || len(gone) != 0 {
		t.Errorf("delete: %v, %v", gone, err)
	}
	if body, _ := l.peek(t, l.scope.Location+"/data/a"); body != "mine" {
		t.Errorf("the file holds %q", body)
	}
}

// Work that outlasts its keys goes on with new ones: the sessions here end after 3 seconds.
func TestFiles_KeysAreRenewed(t *testing.T) {
	server := s3test.Start(t)
	provider := &counted{Provider: s3.New(s3.Config{AWS: server.Config(), OmitDuration: true, Log: slog.New(slog.DiscardHandler)})}
	l := bucketLake(t, server, provider)
	files := l.files(t)
	name := l.scope.Location + "/data/long"
	w, err := files.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	body := content(9 << 20)
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	l.plant(t, l.scope.Location+"/data/a", "mine")
	for provider.sessions() < 4 { // three changes: more than one whole life
		if got, err := files.ReadFile(l.scope.Location + "/data/a"); err != nil || string(got) != "mine" {
			t.Fatalf("after %d sessions: %q, %v", provider.sessions(), got, err)
		}
	}
	if _, err := w.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := l.peek(t, name); got != string(body)+"end" {
		t.Errorf("the file holds %d bytes", len(got))
	}
}

// counted counts the different keys that a provider gave.
type counted struct {
	vending.Provider
	mu   sync.Mutex
	seen map[string]bool
}

func (c *counted) Vend(ctx context.Context, p vending.Profile, s vending.Scope) (vending.Credentials, error) {
	got, err := c.Provider.Vend(ctx, p, s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[got.Config["s3.access-key-id"]] = true
	return got, err
}

func (c *counted) sessions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

func TestFiles_StoreWithoutTokenService(t *testing.T) {
	server := s3test.Start(t)
	own := server.Config()
	own.Credentials = s3test.Keys(s3test.Admin)
	l := bucketLake(t, server, s3.New(s3.Config{AWS: own, Log: slog.New(slog.DiscardHandler)}))
	l.profile.STSUnavailable, l.profile.RoleARN = true, ""
	if err := l.store.WriteMetadata(t.Context(), l.at("metadata/a.metadata.json"), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(l.scope.Location, "/t1")
	l.plant(t, base+"/t2/x", "victim")
	if _, err := l.files(t).ReadFile(base + "/t2/x"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("another table's file: %v", err)
	}
}
