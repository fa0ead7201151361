package catalogtest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/deflate"
)

var metadataPromises = []promise{
	{"ACommitBringsItsMetadata", func(b *bench) {
		change := b.newTable(b.namespace("a"), "t", "")
		change.Packed = deflate.Pack([]byte("first"))
		b.must(b.commit(change))
		b.wantKept(change.Record, "first")
		next := b.swap(change.Record)
		next.Packed = deflate.Pack([]byte("second"))
		b.must(b.commit(next))
		b.wantKept(next.Record, "second")
		b.wantKept(change.Record, "") // of a file that is not the current one any more
	}},
	{"ACommitWithoutMetadataLeavesNone", func(b *bench) {
		change := b.newTable(b.namespace("a"), "t", "")
		change.Packed = deflate.Pack([]byte("first"))
		b.must(b.commit(change))
		next := b.swap(change.Record)
		b.must(b.commit(next))
		b.wantKept(next.Record, "")
		b.wantKept(change.Record, "")
	}},
	{"MetadataBeyondTheLimitIsNotKept", func(b *bench) {
		noise := rand.NewChaCha8([32]byte{})
		text := make([]byte, catalog.PackedBytesMax+1)
		_, err := noise.Read(text)
		b.must(err)
		change := b.newTable(b.namespace("a"), "t", "")
		change.Packed = deflate.Pack([]byte("first"))
		b.must(b.commit(change))
		next := b.swap(change.Record)
		next.Packed = deflate.Pack(text)
		b.must(b.commit(next))
		b.wantKept(change.Record, "")
		packed, found, err := b.store.FindMetadata(b.Context(), next.Record.ID, next.Record.MetadataLocation)
		b.must(err)
		if !found || packed.Blocks != nil || packed.Digest != deflate.DigestOf(text) || packed.Bytes != int64(len(text)) {
			b.Errorf("kept: %t, %d bytes of blocks; wanted the digest alone", found, len(packed.Blocks))
		}
	}},
	{"ARefusedCommitChangesNoMetadata", func(b *bench) {
		change := b.newTable(b.namespace("a"), "t", "")
		change.Packed = deflate.Pack([]byte("first"))
		b.must(b.commit(change))
		late := b.swap(change.Record)
		late.Old, late.Packed = "s3://bucket/elsewhere", deflate.Pack([]byte("late"))
		if err := b.commit(late); err == nil {
			b.Fatal("a swap from a foreign pointer was let through")
		}
		b.wantKept(change.Record, "first")
		b.wantKept(late.Record, "")
		again := b.newTable(catalog.NamespaceRecord{ID: change.Record.NamespaceID, Levels: []string{"a"}}, "t", "")
		again.Packed = deflate.Pack([]byte("again"))
		if err := b.commit(again); err == nil {
			b.Fatal("a name was given twice")
		}
		b.wantKept(again.Record, "")
	}},
	{"ADropTakesTheMetadata", func(b *bench) {
		change := b.newTable(b.namespace("a"), "t", "")
		change.Packed = deflate.Pack([]byte("first"))
		b.must(b.commit(change))
		b.drop(change.Record)
		b.wantKept(change.Record, "")
	}},
	{"NamesThatNobodyCanStoreAreNotFound", func(b *bench) {
		for _, name := range []string{"", "a\x00b", "\xff"} {
			if _, found, err := b.store.FindMetadata(b.Context(), uuid.New(), name); err != nil || found {
				b.Errorf("%q: found %t, %v", name, found, err)
			}
		}
	}},
	{"ALargeTextComesBackWhole", func(b *bench) {
		text := strings.Repeat("0123456789 metadata ", 100_000)
		change := b.newTable(b.namespace("a"), "t", "")
		change.Packed = deflate.Pack([]byte(text))
		b.must(b.commit(change))
		b.wantKept(change.Record, text)
	}},
	{"MetadataAndPointerAreOne", metadataFollowsThePointer},
}

// wantKept wants the text as the kept copy of the record's metadata file; "" wants none.
func (b *bench) wantKept(r catalog.TableRecord, text string) {
	b.Helper()
	packed, found, err := b.store.FindMetadata(b.Context(), r.ID, r.MetadataLocation)
	b.must(err)
	if found != (text != "") {
		b.Fatalf("kept: %t", found)
	}
	if !found {
		return
	}
	if packed.Digest != deflate.DigestOf([]byte(text)) {
		b.Fatal("the digest is another text's")
	}
	got, err := packed.Unpack(packed.Bytes)
	b.must(err)
	if !bytes.Equal(got, []byte(text)) {
		b.Fatalf("kept are %d bytes, %.40q", len(got), got)
	}
}

// metadataFollowsThePointer lets readers look while a writer commits: whatever copy they are given is that of the file
// that they asked for.
func metadataFollowsThePointer(b *bench) {
	const commits = 60
	change := b.newTable(b.namespace("a"), "t", "")
	change.Packed = deflate.Pack([]byte(change.Record.MetadataLocation))
	b.must(b.commit(change))
	ctx, stop := context.WithCancel(b.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := b.looksAtCopy(change.Record.Ident); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	record := change.Record
	for range commits {
		next := b.swap(record)
		next.Packed = deflate.Pack([]byte(next.Record.MetadataLocation))
		b.must(b.commit(next))
		record = next.Record
	}
	stop()
	readers.Wait()
}

func (b *bench) looksAtCopy(id catalog.Identifier) error {
	res, err := b.store.Resolve(b.Context(), catalog.Lookup{
		Principal: b.principal, Warehouse: b.warehouse.Name, Namespace: id.Namespace, Table: id.Name,
	})
	if err != nil {
		return err
	}
	packed, found, err := b.store.FindMetadata(b.Context(), res.Table.ID, res.Table.MetadataLocation)
	if err != nil || !found {
		return err // a commit came between the two
	}
	text, err := packed.Unpack(packed.Bytes)
	if err == nil && string(text) != res.Table.MetadataLocation {
		err = fmt.Errorf("the copy of %s is that of %s", res.Table.MetadataLocation, text)
	}
	return err
}
