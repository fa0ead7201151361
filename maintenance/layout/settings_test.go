package layout

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"catalogd/internal/fault"
)

func TestSettingsFromProperties(t *testing.T) {
	s, err := SettingsFromProperties(map[string]string{"write.parquet.compression-codec": "GZIP", "write.parquet.compression-level": "null",
		"write.parquet.page-size-bytes": "65536", "write.target-file-size-bytes": " 134217728 ", "write.metadata.metrics.default": "counts",
		"write.metadata.metrics.column.a.b": "truncate(4)", "write.metadata.metrics.max-inferred-column-defaults": "3", "unrelated": "x"})
	if err != nil || s.Codec != "gzip" || s.PageBytes != 65536 || s.FileBytes != 128<<20 {
		t.Fatalf("%+v %v", s, err)
	}
	if m := s.Metrics.of("a.b", 0); m != (metricsMode{counts: true, bounds: true, truncate: 4}) {
		t.Errorf("%+v", m)
	}
	if m := s.Metrics.of("c", 0); m != (metricsMode{counts: true}) {
		t.Errorf("%+v", m)
	}
	if m := (MetricsModes{}).of("c", 100); m != (metricsMode{}) {
		t.Errorf("the hundred and first column: %+v", m)
	}
	if m := (MetricsModes{}).of("c", 99); m != metricsDefault {
		t.Errorf("the hundredth column: %+v", m)
	}
	for property, text := range map[string]string{"write.parquet.compression-codec": "lzo", "write.parquet.page-size-bytes": "a lot",
		"write.target-file-size-bytes": "-1", "write.metadata.metrics.default": "truncate(0)", "write.metadata.metrics.column.x": "some",
		"write.metadata.metrics.max-inferred-column-defaults": "x"} {
		_, err := SettingsFromProperties(map[string]string{property: text})
		if kind := fault.KindOf(err); kind != fault.Validation && kind != fault.Unsupported || !strings.Contains(err.Error(), property) {
			t.Errorf("%s=%s: %v", property, text, err)
		}
	}
}

// What is written must be readable by readers of any age: first data page version, plain values and dictionaries only.
func TestCluster_WritesWhatEveryReaderReads(t *testing.T) {
	in := newStore()
	sc := allTypes()
	in.put(t, "in", recordOf(t, sc, 1000, 1))
	for codec, want := range map[string]compress.Compression{"": compress.Codecs.Zstd, "snappy": compress.Codecs.Snappy, "gzip": compress.Codecs.Gzip,
		"uncompressed": compress.Codecs.Uncompressed, "lz4": compress.Codecs.Lz4Raw, "brotli": compress.Codecs.Brotli} {
		out := newStore()
		j := job(t, sc, in, out, 3)
		j.Writer.Codec = codec
		if _, err := Cluster(context.Background(), j); err != nil {
			t.Fatal(err)
		}
		r := out.footer(t, "out-0")
		text := r.MetaData().KeyValueMetadata().FindValue("iceberg.schema")
		if text == nil || !strings.Contains(*text, `"name":"o int"`) {
			t.Errorf("iceberg.schema: %v", text)
		}
		if r.MetaData().KeyValueMetadata().FindValue("ARROW:schema") != nil {
			t.Error("the footer has an Arrow schema")
		}
		checkLeaves(t, r, want)
	}
}

func checkLeaves(t *testing.T, r *file.Reader, codec compress.Compression) {
	t.Helper()
	allowed := map[parquet.Encoding]bool{parquet.Encodings.Plain: true, parquet.Encodings.RLE: true, parquet.Encodings.RLEDict: true}
	for c := range r.MetaData().Schema.NumColumns() {
		leaf := r.MetaData().Schema.Column(c)
		if leaf.SchemaNode().FieldID() <= 0 {
			t.Errorf("%s has no field id", leaf.Path())
		}
		for n := leaf.SchemaNode(); n.Parent() != nil; n = n.Parent() {
			if n.FieldID() <= 0 && n.RepetitionType() != parquet.Repetitions.Repeated {
				t.Errorf("%s: %s has no field id", leaf.Path(), n.Name())
			}
		}
		chunk, err := r.MetaData().RowGroup(0).ColumnChunk(c)
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Compression() != codec {
			t.Errorf("%s: codec %s", leaf.Path(), chunk.Compression())
		}
		for _, e := range chunk.Encodings() {
			if !allowed[e] {
				t.Errorf("%s: encoding %s", leaf.Path(), e)
			}
		}
		pages, err := r.RowGroup(0).GetColumnPageReader(c)
		if err != nil {
			t.Fatal(err)
		}
		for pages.Next() {
			if _, second := pages.Page().(*file.DataPageV2); second {
				t.Errorf("%s: data page version 2", leaf.Path())
			}
		}
		if err := pages.Err(); err != nil {
			t.Error(err)
		}
		checkPhysical(t, leaf)
	}
	if index, err := r.GetPageIndexReader().RowGroup(0); err != nil || index == nil {
		t.Errorf("page index: %v", err)
	}
}

func checkPhysical(t *testing.T, leaf *schema.Column) {
	t.Helper()
	switch logical := leaf.LogicalType().(type) {
	case schema.DecimalLogicalType:
		want := parquet.Types.FixedLenByteArray
		if logical.Precision() <= 9 {
			want = parquet.Types.Int32
		} else if logical.Precision() <= 18 {
			want = parquet.Types.Int64
		}
		if leaf.PhysicalType() != want {
			t.Errorf("%s: decimal(%d) as %s", leaf.Path(), logical.Precision(), leaf.PhysicalType())
		}
	case schema.TimestampLogicalType:
		zoned, nanos := strings.Contains(leaf.Name(), "timestamptz"), strings.HasSuffix(leaf.Name(), "_ns")
		if logical.IsAdjustedToUTC() != zoned || (logical.TimeUnit() == schema.TimeUnitNanos) != nanos {
			t.Errorf("%s: %s", leaf.Path(), logical)
		}
	case schema.UUIDLogicalType:
		if leaf.TypeLength() != 16 {
			t.Errorf("%s: uuid of %d bytes", leaf.Path(), leaf.TypeLength())
		}
	}
	if strings.HasSuffix(leaf.Name(), "uuid") && leaf.LogicalType().String() != "UUID" {
		t.Errorf("%s: logical type %s", leaf.Path(), leaf.LogicalType())
	}
}
