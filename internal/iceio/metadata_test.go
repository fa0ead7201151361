package iceio_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"catalogd/internal/fault"
	"catalogd/vending"
)

func TestMetadata_WriteReadStatRemove(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		at := l.at("metadata/00000-a.metadata.json")
		if err := l.store.StatMetadata(t.Context(), at); !fault.Is(err, fault.FileNotFound) {
			t.Fatalf("stat before: %v", err)
		}
		_, err := l.store.ReadMetadata(t.Context(), at)
		if !fault.Is(err, fault.FileNotFound) || fault.Message(err) != "Failed to open input stream for file: "+at.Path {
			t.Fatalf("read before: %v", err)
		}
		if err := l.store.WriteMetadata(t.Context(), at, []byte(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
		body, err := l.store.ReadMetadata(t.Context(), at)
		if err != nil || string(body) != `{"a":1}` {
			t.Fatalf("read: %q, %v", body, err)
		}
		if err := l.store.StatMetadata(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		l.store.RemoveMetadata(t.Context(), at)
		l.store.RemoveMetadata(t.Context(), at)
		if err := l.store.StatMetadata(t.Context(), at); !fault.Is(err, fault.FileNotFound) {
			t.Fatalf("stat after: %v", err)
		}
	})
}

func TestMetadata_NeverOverAnExistingFile(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		at := l.at("metadata/00001-b.metadata.json")
		l.plant(t, at.Path, "victim")
		if err := l.store.WriteMetadata(t.Context(), at, []byte("other")); !fault.Is(err, fault.Internal) {
			t.Errorf("got %v", err)
		}
		if body, _ := l.peek(t, at.Path); body != "victim" {
			t.Errorf("the file holds %q", body)
		}
	})
}

func TestMetadata_OneOfManyWritersWins(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		at := l.at("metadata/00002-c.metadata.json")
		var writers sync.WaitGroup
		won := make(chan string, 16)
		for i := range cap(won) {
			writers.Go(func() {
				body := fmt.Sprintf(`{"writer":%d}`, i)
				if l.store.WriteMetadata(t.Context(), at, []byte(body)) == nil {
					won <- body
				}
			})
		}
		writers.Wait()
		close(won)
		var winners []string
		for body := range won {
			winners = append(winners, body)
		}
		got, _ := l.peek(t, at.Path)
		if len(winners) != 1 || got != winners[0] {
			t.Errorf("winners %v, the file holds %q", winners, got)
		}
	})
}

func TestMetadata_GzipByName(t *testing.T) {
	each(t, func(t *testing.T, l lake) {
		for _, name := range []string{"metadata/00000-a.gz.metadata.json", "metadata/00000-a.metadata.json.gz"} {
			at := l.at(name)
			if err := l.store.WriteMetadata(t.Context(), at, []byte(`{"a":1}`)); err != nil {
				t.Fatal(err)
			}
			if raw, _ := l.peek(t, at.Path); !strings.HasPrefix(raw, "\x1f\x8b") {
				t.Errorf("%s is not packed", name)
			}
			if body, err := l.store.ReadMetadata(t.Context(), at); err != nil || string(body) != `{"a":1}` {
				t.Errorf("%s: %q, %v", name, body, err)
			}
		}
		broken := l.at("metadata/broken.gz.metadata.json")
		l.plant(t, broken.Path, `{"plain":true}`)
		if _, err := l.store.ReadMetadata(t.Context(), broken); !fault.Is(err, fault.Validation) {
			t.Errorf("a plain file with a packed name: %v", err)
		}
	})
}

func TestPrepareTable_MakesFoldersWhereThereAreAny(t *testing.T) {
	l := onFolder(t)
	for range 2 {
		if err := l.store.PrepareTable(t.Context(), l.at("")); err != nil {
			t.Fatal(err)
		}
	}
	path, _ := vending.FilePath(l.scope.Location)
	for _, name := range []string{"data", "metadata"} {
		if i, err := os.Stat(filepath.Join(path, name)); err != nil || !i.IsDir() {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := onBucket(t)
	if err := b.store.PrepareTable(t.Context(), b.at("")); err != nil {
		t.Error(err)
	}
}

// Before more of a client's file is in memory than is free, packed or not, it asks once, and a refusal ends it.
func TestMetadata_ForeignFilesAskBeforeTheyAreLarge(t *testing.T) {
	const free = 10_000
	each(t, func(t *testing.T, l lake) {
		for name, size := range map[string]int{
			"metadata/free.metadata.json": free, "metadata/large.metadata.json": free + 1,
			"metadata/free.gz.metadata.json": free, "metadata/bomb.gz.metadata.json": 1000 * free,
			"metadata/counted.gz.metadata.json": 8 << 20,
		} {
			at, text := l.at(name), strings.Repeat("x", size)
			if err := l.store.WriteMetadata(t.Context(), at, []byte(text)); err != nil {
				t.Fatal(err)
			}
			asked := 0
			ask := func(context.Context) error { asked++; return nil }
			if got, err := l.store.ReadForeign(t.Context(), at, free, ask); err != nil || string(got) != text || asked != min(1, size-min(size, free)) {
				t.Errorf("%s: %d bytes, %v, asked %d times", name, len(got), err, asked)
			}
			if got, err := l.store.ReadMetadata(t.Context(), at); err != nil || string(got) != text {
				t.Errorf("%s as the server's own: %d bytes, %v", name, len(got), err)
			}
			if size == free {
				continue
			}
			busy := fault.New(fault.Busy, "others")
			if got, err := l.store.ReadForeign(t.Context(), at, free, func(context.Context) error { return busy }); !errors.Is(err, busy) || got != nil {
				t.Errorf("%s refused: %d bytes, %v", name, len(got), err)
			}
		}
	})
}
