package manifest

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// memory are files in memory.
type memory map[string][]byte

type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error               { return nil }
func (memoryFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

func (m memory) Open(name string) (icebergio.File, error) {
	body, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return memoryFile{bytes.NewReader(body)}, nil
}

func (m memory) Remove(string) error { return errors.ErrUnsupported }

var (
	testSchema = iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "u", Type: iceberg.PrimitiveTypes.UUID}, iceberg.NestedField{ID: 3, Name: "w", Type: iceberg.PrimitiveTypes.UUID},
		iceberg.NestedField{ID: 4, Name: "d", Type: iceberg.DecimalTypeOf(9, 2)})
	testSpec = iceberg.NewPartitionSpec(
		iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "u", Transform: iceberg.IdentityTransform{}},
		iceberg.PartitionField{SourceIDs: []int{3}, FieldID: 1001, Name: "w", Transform: iceberg.IdentityTransform{}},
		iceberg.PartitionField{SourceIDs: []int{4}, FieldID: 1002, Name: "d", Transform: iceberg.IdentityTransform{}})
)

// wellFormed gives a manifest of n files and a list of it, as iceberg-go writes them.
func wellFormed(t testing.TB, n int) (memory, iceberg.ManifestFile) {
	t.Helper()
	var body, list bytes.Buffer
	w, err := iceberg.NewManifestWriter(2, &body, testSpec, testSchema, 7)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, sequence := int64(7), int64(1)
	for i := range n {
		b, err := iceberg.NewDataFileBuilder(testSpec, iceberg.EntryContentData, fmt.Sprintf("file:///t/data/%d.parquet", i), iceberg.ParquetFile,
			map[int]any{1000: [16]byte{1}, 1001: nil, 1002: nil}, nil, nil, 10, 100)
		if err != nil {
			t.Fatal(err)
		}
		b.LowerBoundValues(map[int][]byte{1: {1, 0, 0, 0, 0, 0, 0, 0}}).UpperBoundValues(map[int][]byte{1: {9, 0, 0, 0, 0, 0, 0, 0}})
		if err := w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &snapshot, &sequence, nil, b.Build())); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := w.ToManifestFile("m", int64(body.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if err := iceberg.WriteManifestList(2, &list, snapshot, nil, &sequence, 0, []iceberg.ManifestFile{m}); err != nil {
		t.Fatal(err)
	}
	return memory{"m": body.Bytes(), "l": list.Bytes()}, m
}

// rawFile is an Avro file taken apart.
type rawFile struct {
	meta   []entry
	sync   [syncBytes]byte
	blocks []rawBlock
}

type rawBlock struct {
	count  int64
	packed []byte
}

func takeApart(t testing.TB, body []byte) rawFile {
	t.Helper()
	r := bytes.NewReader(body[len(magic):])
	meta, err := headerReader{r}.all()
	if err != nil {
		t.Fatal(err)
	}
	f := rawFile{meta: meta}
	if _, err := io.ReadFull(r, f.sync[:]); err != nil {
		t.Fatal(err)
	}
	for r.Len() > 0 {
		count, _ := binary.ReadVarint(r)
		size, _ := binary.ReadVarint(r)
		b := rawBlock{count: count, packed: make([]byte, size)}
		if _, err := io.ReadFull(r, b.packed); err != nil {
			t.Fatal(err)
		}
		f.blocks = append(f.blocks, b)
		if _, err := r.Seek(syncBytes, io.SeekCurrent); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *rawFile) set(key, value string) {
	for i := range f.meta {
		if f.meta[i].key == key {
			f.meta[i].value = []byte(value)
			return
		}
	}
	f.meta = append(f.meta, entry{key, []byte(value)})
}

func (f *rawFile) get(key string) string {
	for _, m := range f.meta {
		if m.key == key {
			return string(m.value)
		}
	}
	return ""
}

// records gives the unpacked bytes of all blocks, and how many records they are.
func (f *rawFile) records(t testing.TB) (count int64, body []byte) {
	t.Helper()
	for _, b := range f.blocks {
		out := b.packed
		if f.get("avro.codec") == "deflate" {
			var err error
			if out, err = inflate(nil, b.packed, blockBytesMax); err != nil {
				t.Fatal(err)
			}
		}
		count, body = count+b.count, append(body, out...)
	}
	return count, body
}

// replace makes the file one of blocks of the codec.
func (f *rawFile) replace(codec string, blocks ...rawBlock) {
	f.set("avro.codec", codec)
	f.blocks = nil
	for _, b := range blocks {
		f.blocks = append(f.blocks, rawBlock{b.count, pack(codec, b.packed)})
	}
}

func pack(codec string, body []byte) []byte {
	switch codec {
	case "deflate":
		var out bytes.Buffer
		w, _ := flate.NewWriter(&out, flate.BestCompression)
		_, _ = w.Write(body)
		_ = w.Close()
		return out.Bytes()
	case "snappy":
		return append(snappy.Encode(nil, body), 0, 0, 0, 0)
	case "zstandard":
		w, _ := zstd.NewWriter(nil)
		defer w.Close()
		return w.EncodeAll(body, nil)
	}
	return body
}

func (f *rawFile) bytes() []byte {
	out := bytes.Clone(magic)
	for _, m := range f.meta {
		out = binary.AppendVarint(out, 1)
		out = append(binary.AppendVarint(out, int64(len(m.key))), m.key...)
		out = append(binary.AppendVarint(out, int64(len(m.value))), m.value...)
	}
	out = append(append(out, 0), f.sync[:]...)
	for _, b := range f.blocks {
		out = binary.AppendVarint(out, b.count)
		out = binary.AppendVarint(out, int64(len(b.packed)))
		out = append(append(out, b.packed...), f.sync[:]...)
	}
	return out
}

// edit changes the file's Avro schema as JSON.
func (f *rawFile) edit(t testing.TB, change func(root map[string]any)) {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal([]byte(f.get("avro.schema")), &root); err != nil {
		t.Fatal(err)
	}
	change(root)
	body, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	f.set("avro.schema", string(body))
}

// fieldOf gives a record's field as JSON.
func fieldOf(record map[string]any, name string) map[string]any {
	for _, f := range record["fields"].([]any) {
		if f := f.(map[string]any); f["name"] == name {
			return f
		}
	}
	return nil
}

// read reads a list and a manifest to their ends.
func read(t testing.TB, files memory, m iceberg.ManifestFile, b *Budget) (entries int, err error) {
	for _, err := range Entries(t.Context(), files, m, b) {
		if err != nil {
			return entries, err
		}
		entries++
	}
	return entries, nil
}
