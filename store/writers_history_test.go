package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/vending"
)

// history is what metadata files say of a table or a view.
type history struct {
	Table      string            `json:"table-uuid"`
	View       string            `json:"view-uuid"`
	Location   string            `json:"location"`
	Properties map[string]string `json:"properties"`
	Snapshots  []struct {
		ID     int64  `json:"snapshot-id"`
		Parent *int64 `json:"parent-snapshot-id"`
		Number int64  `json:"sequence-number"`
	} `json:"snapshots"`
	Log []struct {
		File string `json:"metadata-file"`
	} `json:"metadata-log"`
	Schemas []struct {
		Fields []struct {
			Name string `json:"name"`
		} `json:"fields"`
	} `json:"schemas"`
}

// pointer is a row of tables.
type pointer struct {
	kind       catalog.Kind
	file, name string
	version    int
}

func (f *fray) pointers() []pointer {
	f.Helper()
	rows, err := f.stores[0].pool.Query(context.Background(), `SELECT kind, metadata_location, name, version FROM tables ORDER BY name`)
	f.must(err)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p pointer, err error) {
		return p, row.Scan(&p.kind, &p.file, &p.name, &p.version)
	})
	f.must(err)
	return found
}

func (f *fray) read(file string) (h history) {
	f.Helper()
	text, err := f.files.ReadMetadata(context.Background(), vending.FilePlace{Path: file, Scope: vending.Scope{Location: file}})
	f.must(err)
	f.must(json.Unmarshal(text, &h))
	return h
}

// checkHistories holds every table that is there against what writers were told of it.
func (f *fray) checkHistories() {
	f.Helper()
	appends := 0
	for _, p := range f.pointers() {
		now := f.read(p.file)
		if p.kind == catalog.KindView {
			f.checkProperties(p, now, f.acked[now.View])
			continue
		}
		t := f.acked[now.Table]
		if t == nil {
			f.Errorf("table %s (%s) was made by nobody", p.name, now.Table)
			continue
		}
		f.checkChain(p, now, t)
		f.checkSnapshots(p, now, t)
		f.checkProperties(p, now, t)
		for _, column := range t.columns {
			if !now.hasColumn(column) {
				f.Errorf("%s: the acknowledged column %s is in no schema", p.name, column)
			}
		}
		appends += len(t.snapshots)
	}
	if appends == 0 {
		f.Error("nobody's append is left: the test shows nothing")
	}
}

// checkChain walks from file to file: each names the one before as the last of its log, and no other file is there.
func (f *fray) checkChain(p pointer, now history, t *told) {
	f.Helper()
	chain := []string{p.file}
	for at := now; len(at.Log) > 0; {
		before := at.Log[len(at.Log)-1].File
		earlier := f.read(before)
		if want := len(at.Log) - 1; len(earlier.Log) != want {
			f.Errorf("%s: the log of %s has %d entries, that of its successor %d", p.name, before, len(earlier.Log), len(at.Log))
			return
		}
		chain = append(chain, before)
		at = earlier
	}
	if len(chain)-1 < t.commits {
		f.Errorf("%s: %d commits were acknowledged, and %d files follow each other", p.name, t.commits, len(chain))
	}
	for _, file := range f.files.Files() {
		if strings.HasPrefix(file, now.Location+"/") && !slices.Contains(chain, file) {
			f.Errorf("%s: %s is no part of its history", p.name, file)
		}
	}
}

// checkSnapshots wants each acknowledged snapshot once, no other, and numbers that only grow; the first snapshot after a
// replacement has no parent, and may have any number.
func (f *fray) checkSnapshots(p pointer, now history, t *told) {
	f.Helper()
	seen, number := map[int64]bool{}, int64(0)
	for _, s := range now.Snapshots {
		if seen[s.ID] || s.Parent != nil && s.Number <= number {
			f.Errorf("%s: snapshot %d is there twice, or its number %d follows %d", p.name, s.ID, s.Number, number)
		}
		if s.Parent != nil && !seen[*s.Parent] {
			f.Errorf("%s: the parent of snapshot %d is not before it", p.name, s.ID)
		}
		if !slices.Contains(t.snapshots, s.ID) {
			f.Errorf("%s: snapshot %d was acknowledged to nobody", p.name, s.ID)
		}
		seen[s.ID], number = true, max(number, s.Number)
	}
	for _, id := range t.snapshots {
		if !seen[id] {
			f.Errorf("%s: the acknowledged snapshot %d is lost", p.name, id)
		}
	}
}

func (f *fray) checkProperties(p pointer, now history, t *told) {
	f.Helper()
	if t == nil {
		f.Errorf("%s was made by nobody", p.name)
		return
	}
	for key, value := range t.properties {
		if now.Properties[key] != value {
			f.Errorf("%s: %s is %q; %q was acknowledged last", p.name, key, now.Properties[key], value)
		}
	}
}

func (h history) hasColumn(name string) bool {
	for _, schema := range h.Schemas {
		for _, field := range schema.Fields {
			if field.Name == name {
				return true
			}
		}
	}
	return false
}

// brokenRows are questions whose answer must be no row.
var brokenRows = map[string]string{
	"a table in a namespace that is gone": `
SELECT tables.name FROM tables LEFT JOIN namespaces ON namespaces.id = namespace_id WHERE namespaces.id IS NULL`,
	"a namespace whose parent is gone": `
SELECT a.levels::text FROM namespaces a LEFT JOIN namespaces b ON b.id = a.parent_id
WHERE cardinality(a.levels) > 1 AND b.id IS NULL`,
	"a location that belongs to nothing": `
SELECT location FROM locations
WHERE NOT (owner_kind = 'table' AND owner_id IN (SELECT id FROM tables)
    OR owner_kind = 'former'
    OR owner_kind = 'dropped' AND owner_id IN (SELECT id FROM dropped_tables)
    OR owner_kind = 'namespace' AND owner_id IN (SELECT id FROM namespaces)
    OR owner_kind = 'staged' AND owner_id IN (SELECT table_uuid FROM staged_tables))`,
	"a table without a location": `SELECT name FROM tables WHERE id NOT IN (SELECT owner_id FROM locations)`,
	"a grant on what is gone": `
SELECT privilege FROM grants WHERE securable_kind = 'table' AND securable_id NOT IN (SELECT id FROM tables)`,
	"an event for each commit": `
SELECT name FROM tables
WHERE kind = 'table' AND version - 1 <> (SELECT count(*) FROM events
    WHERE securable_id = tables.id AND operation IN ('commit-table', 'rename-table'))
    AND (SELECT operation FROM events WHERE securable_id = tables.id ORDER BY sequence LIMIT 1) = 'create-table'`,
}

// checkRows asks the database for what must never be.
func (f *fray) checkRows() {
	f.Helper()
	for what, question := range brokenRows {
		rows, err := f.stores[0].pool.Query(context.Background(), question)
		f.must(err)
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			f.Fatal(fmt.Errorf("%s: %w", what, err))
		}
		if len(found) > 0 {
			f.Errorf("%s: %q", what, found)
		}
	}
}
