package layout

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/compress"

	"catalogd/internal/fault"
)

// WriterSettings say how output files are written. The zero value of a field means its default.
type WriterSettings struct {
	Codec            string // zstd (default), gzip, snappy, brotli, lz4_raw, uncompressed
	CompressionLevel int    // 0 means the codec's default here: zstd 3
	PageBytes        int64
	DictionaryBytes  int64
	// RowGroupRows fixes the rows of a row group; 0: a 256th of the rows, within limits, so that row groups prune.
	RowGroupRows int64
	// RowGroupBytes bounds a row group's size, by estimate.
	RowGroupBytes int64
	// FileBytes is the table's target; files of small partitions are smaller, so that files prune too.
	FileBytes int64
	// Metrics decide which statistics manifest entries get.
	Metrics MetricsModes
	// CreatedBy goes to the Parquet footer.
	CreatedBy string
}

// Defaults and limits of written files.
const (
	zstdLevelDefault       = 3
	pageBytesDefault       = 1 << 20
	dictionaryBytesDefault = 2 << 20
	rowGroupBytesDefault   = 128 << 20
	rowGroupRowsMin        = 65_536
	rowGroupRowsMax        = 1_048_576
	rowGroupsWanted        = 256
	fileBytesDefault       = 512 << 20
	fileBytesMin           = 32 << 20
	filesPlanned           = 16
	createdByDefault       = "catalogd version dev (build unknown)" // Java readers parse this form
)

// SettingsFromProperties reads write.* table properties. Values that a writer can't honour are refused with the
// property's name.
func SettingsFromProperties(properties map[string]string) (WriterSettings, error) {
	s := WriterSettings{Codec: strings.ToLower(strings.TrimSpace(properties["write.parquet.compression-codec"]))}
	if _, err := s.codec(); err != nil {
		return s, err
	}
	level := int64(0)
	for _, number := range []struct {
		property string
		into     *int64
	}{
		{"write.parquet.compression-level", &level},
		{"write.parquet.page-size-bytes", &s.PageBytes},
		{"write.parquet.dict-size-bytes", &s.DictionaryBytes},
		{"write.parquet.row-group-size-bytes", &s.RowGroupBytes},
		{"write.target-file-size-bytes", &s.FileBytes},
	} {
		text, set := properties[number.property]
		if !set || text == "null" {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || n < 0 {
			return s, fault.New(fault.Validation, "table property %s: %q is not a size", number.property, text)
		}
		*number.into = n
	}
	s.CompressionLevel = int(level)
	var err error
	s.Metrics, err = metricsFromProperties(properties)
	return s, err
}

func (s WriterSettings) codec() (compress.Compression, error) {
	switch s.Codec {
	case "", "zstd":
		return compress.Codecs.Zstd, nil
	case "gzip":
		return compress.Codecs.Gzip, nil
	case "snappy":
		return compress.Codecs.Snappy, nil
	case "brotli":
		return compress.Codecs.Brotli, nil
	case "lz4_raw", "lz4":
		return compress.Codecs.Lz4Raw, nil
	case "uncompressed", "none":
		return compress.Codecs.Uncompressed, nil
	}
	return 0, fault.New(fault.Unsupported, "table property write.parquet.compression-codec: %q can't be written", s.Codec)
}

func orDefault(v, fallback int64) int64 {
	if v > 0 {
		return v
	}
	return fallback
}
