// Package migrations holds the database's schema as numbered, forward-only steps. Each step is safe beside the binary
// that came before it: what is taken away was unused for one release. schema.sql is what all steps together make; a
// test in store keeps it true, so that a reviewer sees the schema and not only its history.
package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Files holds the steps. schema.sql is not among them.
//
//go:embed 0*.sql
var Files embed.FS

// Latest is the number of the newest step: the schema that this binary was built for.
func Latest() int64 {
	names, err := fs.Glob(Files, "*.sql")
	if err != nil || len(names) == 0 {
		panic("migrations: no steps are embedded")
	}
	var latest int64
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("migrations: the file %s does not begin with a number", name))
		}
		latest = max(latest, n)
	}
	return latest
}
