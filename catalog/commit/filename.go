package commit

import (
	"fmt"
	"strconv"
	"strings"
)

// metadataPathProperty moves a table's metadata files.
const metadataPathProperty = "write.metadata.path"

// FileName gives the name of the next metadata file: a number one above that in the previous file's name, and a
// uuid that makes it unique. The first file has number 0; after a name without a readable number comes 1.
func FileName(previous, uuid string, gzip bool) string {
	next := 0
	if previous != "" {
		next = fileNumber(previous) + 1
	}
	suffix := ".metadata.json"
	if gzip {
		suffix = ".gz.metadata.json"
	}
	return fmt.Sprintf("%05d-%s%s", next, uuid, suffix)
}

// fileNumber reads 12 from ".../00012-<uuid>.metadata.json" and 7 from ".../v7.metadata.json"; 0 from other names.
func fileNumber(location string) int {
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

// Placed is the metadata of a table or of a view.
type Placed interface {
	Location() string
	Property(name string) (value string, ok bool)
}

// MetadataFolder gives where a table's or a view's metadata files lie, without trailing slash.
func MetadataFolder(d Placed) string {
	if path, set := d.Property(metadataPathProperty); set && path != "" {
		return stripSlashes(path)
	}
	return d.Location() + "/metadata"
}
