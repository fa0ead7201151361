package manifest

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"

	"catalogd/internal/fault"
)

func TestRead_WellFormed(t *testing.T) {
	files, m := wellFormed(t, 100)
	list, err := ReadList(t.Context(), files, "l")
	if err != nil || len(list) != 1 || list[0].FilePath() != "m" {
		t.Fatalf("list: %v %v", list, err)
	}
	budget := &Budget{Entries: 100, Bytes: 1 << 20}
	for e, err := range Entries(t.Context(), files, m, budget) {
		if err != nil || e.DataFile().Count() != 10 || e.Bytes < 50 || e.Bytes > 500 {
			t.Fatalf("entry %v of %d bytes: %v", e.DataFile(), e.Bytes, err)
		}
	}
	if budget.Entries != 0 || budget.Bytes >= 1<<20 {
		t.Errorf("left of the budget: %+v", budget)
	}
	raw := takeApart(t, files["m"])
	count, body := raw.records(t)
	for _, codec := range []string{"null", "deflate", "snappy", "zstandard"} {
		raw.replace(codec, rawBlock{0, nil}, rawBlock{count, body}, rawBlock{0, []byte("left alone")}, rawBlock{count, body})
		files["m"] = raw.bytes()
		if n, err := read(t, files, m, nil); err != nil || n != 200 {
			t.Errorf("%s: %d entries, %v", codec, n, err)
		}
	}
}

// Whatever stands in a manifest's place, reading it gives an error that names the file and never a panic.
func TestRead_HostileManifests(t *testing.T) {
	record := func(fields ...any) map[string]any {
		return map[string]any{"type": "record", "name": "x", "fields": append([]any{}, fields...)}
	}
	field := func(name string, typ any) map[string]any { return map[string]any{"name": name, "type": typ} }
	file := func(root map[string]any) map[string]any { return fieldOf(root, "data_file")["type"].(map[string]any) }
	schema := func(change func(root map[string]any)) func(testing.TB, *rawFile) {
		return func(t testing.TB, f *rawFile) { f.edit(t, change) }
	}
	block := func(count int64, body []byte) func(testing.TB, *rawFile) {
		return func(_ testing.TB, f *rawFile) { f.replace("null", rawBlock{count, body}) }
	}
	deep := any("null")
	for range 200 {
		deep = map[string]any{"type": "array", "items": deep}
	}
	for name, spoil := range map[string]func(testing.TB, *rawFile){
		"status alone":          schema(func(r map[string]any) { r["fields"] = []any{field("status", "int")} }),
		"no fields":             schema(func(r map[string]any) { r["fields"] = []any{} }),
		"fields missing":        schema(func(r map[string]any) { delete(r, "fields") }),
		"a null data file":      schema(func(r map[string]any) { fieldOf(r, "data_file")["type"] = "null" }),
		"a union of data files": schema(func(r map[string]any) { fieldOf(r, "data_file")["type"] = []any{"null", record()} }),
		"an empty data file":    schema(func(r map[string]any) { fieldOf(r, "data_file")["type"] = record() }),
		"an array of data files": schema(func(r map[string]any) {
			fieldOf(r, "data_file")["type"] = map[string]any{"type": "array", "items": "int"}
		}),
		"status is text":     schema(func(r map[string]any) { fieldOf(r, "status")["type"] = "string" }),
		"path is a number":   schema(func(r map[string]any) { fieldOf(file(r), "file_path")["type"] = "long" }),
		"partition is null":  schema(func(r map[string]any) { fieldOf(file(r), "partition")["type"] = "null" }),
		"an empty union":     schema(func(r map[string]any) { fieldOf(file(r), "partition")["type"] = record(field("p", []any{})) }),
		"a record in itself": schema(func(r map[string]any) { fieldOf(file(r), "partition")["type"] = record(field("p", "x")) }),
		"nested too deep":    schema(func(r map[string]any) { fieldOf(file(r), "partition")["type"] = record(field("p", deep)) }),
		"a huge decimal": schema(func(r map[string]any) {
			fieldOf(file(r), "partition")["type"] = record(field("p", map[string]any{"type": "bytes", "logicalType": "decimal", "precision": 2e9, "scale": 1e9}))
		}),
		"a negative fixed": schema(func(r map[string]any) {
			fieldOf(file(r), "partition")["type"] = record(field("p", map[string]any{"type": "fixed", "name": "f", "size": -1}))
		}),
		"schema is a list":     func(_ testing.TB, f *rawFile) { f.set("avro.schema", `["null", "int"]`) },
		"schema is text":       func(_ testing.TB, f *rawFile) { f.set("avro.schema", `"string"`) },
		"schema is an array":   func(_ testing.TB, f *rawFile) { f.set("avro.schema", `{"type": "array", "items": "int"}`) },
		"schema is no JSON":    func(_ testing.TB, f *rawFile) { f.set("avro.schema", `{`) },
		"schema is null":       func(_ testing.TB, f *rawFile) { f.set("avro.schema", `null`) },
		"schema of brackets":   func(_ testing.TB, f *rawFile) { f.set("avro.schema", strings.Repeat("[", 1<<19)) },
		"unknown codec":        func(_ testing.TB, f *rawFile) { f.set("avro.codec", "bzip2") },
		"unpackable":           func(_ testing.TB, f *rawFile) { f.set("avro.codec", "zstandard") },
		"another version":      func(_ testing.TB, f *rawFile) { f.set("format-version", "9") },
		"content of deletes":   func(_ testing.TB, f *rawFile) { f.set("content", "deletes") },
		"negative block count": block(-1, []byte{2}),
		"least block count":    block(math.MinInt64, []byte{2}),
		"huge block count":     block(math.MaxInt64, []byte{2}),
		"too many records":     block(5, []byte{2}),
		"bytes left over": func(t testing.TB, f *rawFile) {
			_, body := f.records(t)
			f.replace("null", rawBlock{1, body})
		},
		"negative length": func(t testing.TB, f *rawFile) {
			_, body := f.records(t)
			at := strings.Index(string(body), "file://")
			body[at-1] = 0x51 // a length of two bytes, now one of -41
			f.replace("null", rawBlock{3, body})
		},
	} {
		t.Run(name, func(t *testing.T) {
			files, m := wellFormed(t, 3)
			raw := takeApart(t, files["m"])
			spoil(t, &raw)
			files["m"] = raw.bytes()
			_, err := read(t, files, m, nil)
			if !errors.Is(err, ErrBroken) && !fault.Is(err, fault.TooLarge) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), "manifest m ") {
				t.Errorf("the error does not name the file: %v", err)
			}
		})
	}
}

// A file that is cut off anywhere is broken, or ends cleanly between two blocks.
func TestRead_TruncatedAnywhere(t *testing.T) {
	files, m := wellFormed(t, 3)
	for name := range files {
		body := files[name]
		raw := takeApart(t, body)
		clean := len(body)
		for _, b := range raw.blocks {
			clean -= syncBytes + len(b.packed) + len(binary.AppendVarint(binary.AppendVarint(nil, b.count), int64(len(b.packed))))
		}
		for n := range body {
			cut := memory{"m": files["m"], "l": files["l"]}
			cut[name] = body[:n]
			_, err := read(t, cut, m, nil)
			if name == "l" {
				_, err = ReadList(t.Context(), cut, "l")
			}
			if errors.Is(err, ErrBroken) == (n == clean) {
				t.Fatalf("%s cut after %d of %d bytes: %v", name, n, len(body), err)
			}
		}
	}
}

// A list of two megabytes that unpacks to millions of entries is refused before it has cost much.
func TestRead_ListsThatUnpackToMillions(t *testing.T) {
	files, _ := wellFormed(t, 3)
	raw := takeApart(t, files["l"])
	_, body := raw.records(t)
	n := int64((60 << 20) / len(body))
	raw.replace("deflate", rawBlock{n, []byte(strings.Repeat(string(body), int(n)))})
	for range 7 {
		raw.blocks = append(raw.blocks, raw.blocks[0])
	}
	files["l"] = raw.bytes()
	t.Logf("%d bytes, %d entries", len(files["l"]), 8*n)
	before := allocated()
	_, err := ReadList(t.Context(), files, "l")
	if !fault.Is(err, fault.TooLarge) {
		t.Fatalf("got %v", err)
	}
	if spent := allocated() - before; spent > 1<<20 {
		t.Errorf("%d bytes were allocated for it", spent)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Blocks that unpack to more than a block may have, one record with millions of statistics, and budgets.
func TestRead_Limits(t *testing.T) {
	files, m := wellFormed(t, 3)
	raw := takeApart(t, files["m"])
	count, body := raw.records(t)
	for codec := range map[string]bool{"deflate": true, "snappy": true, "zstandard": true} {
		raw.replace(codec, rawBlock{1, make([]byte, blockBytesMax+1)})
		files["m"] = raw.bytes()
		if _, err := read(t, files, m, nil); !fault.Is(err, fault.TooLarge) {
			t.Errorf("%s: %v", codec, err)
		}
	}
	raw.replace("null", rawBlock{count, body})
	files["m"] = raw.bytes()
	if _, err := read(t, files, m, &Budget{Entries: 2, Bytes: 1 << 20}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("entries beyond the budget: %v", err)
	}
	if _, err := read(t, files, m, &Budget{Entries: 3, Bytes: int64(len(body)) - 1}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("bytes beyond the budget: %v", err)
	}
	if n, err := read(t, files, m, &Budget{Entries: 3, Bytes: int64(len(body))}); err != nil || n != 3 {
		t.Errorf("a budget that is just enough: %d entries, %v", n, err)
	}
	root := &node{shape: shapeRecord, parts: []*node{{shape: shapeArray, parts: []*node{{shape: shapeNull}}}}}
	for _, count := range []int64{recordItemsMax + 1, math.MaxInt64, math.MinInt64, -recordItemsMax - 1} {
		w := walker{block: append(binary.AppendVarint(nil, count), 0, 0)}
		if _, err := w.record(root); err == nil {
			t.Errorf("an array of %d items of no bytes is gone over", count)
		}
	}
}

// The caller's end ends the reading, and errors of the store are not the file's.
func TestRead_OtherErrors(t *testing.T) {
	files, m := wellFormed(t, 3)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the table was dropped")
	cancel(gone)
	for _, err := range Entries(ctx, files, m, nil) {
		if !errors.Is(err, gone) || errors.Is(err, ErrBroken) {
			t.Errorf("cancelled: %v", err)
		}
	}
	if _, err := ReadList(ctx, files, "l"); !errors.Is(err, gone) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := ReadList(t.Context(), files, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	away := errors.New("the store is away")
	c := newContainer(t.Context(), "manifest m", failing{away}, caps{1, 1, 1}, checkEntries, nil)
	err := c.decoded(func() error { _, err := iceberg.NewManifestReader(m, c); return err })
	if !errors.Is(err, away) || errors.Is(err, ErrBroken) {
		t.Errorf("unreadable: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzRead: no bytes make reading panic, and none cost more than the limits allow.
func FuzzRead(f *testing.F) {
	files, m := wellFormed(f, 3)
	for _, name := range []string{"l", "m"} {
		raw := takeApart(f, files[name])
		count, body := raw.records(f)
		f.Add(files[name])
		for _, codec := range []string{"null", "snappy", "zstandard"} {
			raw.replace(codec, rawBlock{count, body})
			f.Add(raw.bytes())
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		files := memory{"m": body, "l": body}
		if _, err := read(t, files, m, nil); err != nil && !errors.Is(err, ErrBroken) && !fault.Is(err, fault.TooLarge) {
			t.Errorf("manifest: %v", err)
		}
		list, err := ReadList(t.Context(), files, "l")
		if err != nil && !errors.Is(err, ErrBroken) && !fault.Is(err, fault.TooLarge) {
			t.Errorf("list: %v", err)
		}
		if len(list) > ListEntriesMax {
			t.Errorf("%d manifests", len(list))
		}
	})
}
