package commit

import (
	"fmt"
	"strconv"
	"strings"
)

// Properties that say where and how metadata files are written.
const (
	metadataPathProperty  = "write.metadata.path"
	metadataCodecProperty = "write.metadata.compression-codec"
	codecGzip             = "gzip"
	codecNone             = "none"
)

// Metadata is what the documents of tables and views have in common.
type Metadata interface {
	JSON() []byte
	UUID() string
	Location() string
	Property(name string) (string, bool)
	Properties() map[string]string
}

// FileName gives the name of the next metadata file: a number one above that in the previous file's name, and a
// uuid that makes it unique. The first file has number 0; after a name without a readable number comes 1.
func FileName(previous, uuid string, gzip bool) string {
	next := 0
	if previous != "" {
		next = FileNumber(previous) + 1
	}
	suffix := ".metadata.json"
	if gzip {
		suffix = ".gz.metadata.json"
	}
	return fmt.Sprintf("%05d-%s%s", next, uuid, suffix)
}

// NamesMetadata tells whether a file has the name of a metadata file, as this server or other writers give them.
func NamesMetadata(file string) bool {
	return strings.HasSuffix(file, ".metadata.json") || strings.HasSuffix(file, ".metadata.json.gz")
}

// FileNumber reads 12 from ".../00012-<uuid>.metadata.json" and 7 from ".../v7.metadata.json"; 0 from other names.
func FileNumber(location string) int {
	name := location[strings.LastIndexByte(location, '/')+1:]
	digits, _, found := strings.Cut(name, "-")
	if rest, isHadoop := strings.CutPrefix(name, "v"); !found && isHadoop {
		digits, _, _ = strings.Cut(rest, ".")
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || n == 1<<31-1 {
		return 0
	}
	return int(n)
}

// MetadataFolder gives where the metadata files of a table or view lie, without trailing slash.
func MetadataFolder(m Metadata) string {
	if path, set := m.Property(metadataPathProperty); set && path != "" {
		return stripSlashes(path)
	}
	return m.Location() + "/metadata"
}

// Compressed tells whether the document's file is to be written with gzip: what its property says, else what Java
// does, which compresses views and leaves tables plain. Answers to clients are not concerned.
func Compressed(m Metadata) bool {
	if codec, set := m.Property(metadataCodecProperty); set {
		return strings.EqualFold(codec, codecGzip)
	}
	_, isView := m.(*View)
	return isView
}
