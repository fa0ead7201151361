package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"catalogd/openapi/openapitest"
)

// docs/compatibility.md has tables that these tests measure: what each client did, the counts of other people's test
// suites, which client calls which operation, and what became of each command and each call of Apache Polaris. A test whose figures differ from the file fails, and with
// -rewrite puts its own there.
var rewrite = flag.Bool("rewrite", false, "write what the clients' tests measure into docs/compatibility.md")

const compatibilityFile = "docs/compatibility.md"

// families orders the tables; a client belongs to the first that its name begins with.
var families = []string{"PyIceberg", "DuckDB", "Spark 4", "Spark 3.5", "Trino", "ClickHouse", "iceberg-js", "iceberg-go",
	"REST compatibility kit", "catalogd's subclass"}

// abilities are the rows of the first table: what the steps of the smoke scripts show.
var abilities = []struct {
	label string
	steps []string
}{
	{"namespaces: create, change, list", []string{"namespace", "schema"}},
	{"create a table", []string{"create"}},
	{"create a table and fill it in one step", []string{"create_as_select", "staged"}},
	{"append and read", []string{"append", "insert", "select"}},
	{"update, delete, merge", []string{"overwrite", "upsert", "update", "update_delete_merge", "delete"}},
	{"transactions over several statements and tables", []string{"transaction", "rollback", "several_tables"}},
	{"change columns, partitioning, order", []string{"evolve", "ordered"}},
	{"change properties", []string{"properties"}},
	{"notice a conflict", []string{"conflict"}},
	{"older snapshots", []string{"time_travel", "snapshots"}},
	{"branches", []string{"branch"}},
	{"metadata tables", []string{"metadata_tables"}},
	{"views", []string{"view", "views"}},
	{"register a table", []string{"register"}},
	{"rename", []string{"rename"}},
	{"the client's own maintenance", []string{"maintenance"}},
	{"format version 3", []string{"version_three"}},
	{"list", []string{"listing", "list", "information_schema"}},
	{"understand refusals", []string{"refusals", "missing"}},
	{"drop", []string{"drop"}},
}

// helpers are steps of the scripts that say nothing of the client.
var helpers = []string{"made_over_http", "wait", "connect", "clean"}

// table is one of the measured tables: row, column, and what stands there.
type table struct {
	corner  string
	columns []string
	rows    []string
	cells   map[[2]string]string
}

// compatibility guards the file.
var compatibility sync.Mutex

// tableNames are the marks in the file.
var tableNames = []string{"clients", "suites", "operations", "polaris-cli", "management", "matrix"}

// withTable gives use one table of the file, and writes the file with what use made of it when it is to be rewritten.
func withTable(t testing.TB, name string, use func(tb *table)) {
	t.Helper()
	compatibility.Lock()
	defer compatibility.Unlock()
	path := filepath.Join(root(t), compatibilityFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, part, after := measuredPart(string(text), name)
	tb := parseTable(part)
	use(tb)
	if *rewrite {
		if err := os.WriteFile(path, []byte(before+tb.String()+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// measuredPart cuts the text at the marks around a table.
func measuredPart(text, name string) (before, part, after string) {
	begin, end := "<!-- measured: "+name+" -->\n", "<!-- end -->"
	before, rest, _ := strings.Cut(text, begin)
	part, after, _ = strings.Cut(rest, end)
	return before + begin, part, end + after
}

func parseTable(text string) *table {
	out := &table{cells: map[[2]string]string{}}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case i == 0:
			out.corner, out.columns = fields[0], fields[1:]
		case i > 1 && len(fields) == len(out.columns)+1:
			out.rows = append(out.rows, fields[0])
			for c, cell := range fields[1:] {
				out.cells[[2]string{fields[0], out.columns[c]}] = cell
			}
		}
	}
	return out
}

func (tb *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s |\n|%s\n", tb.corner, strings.Join(tb.columns, " | "), strings.Repeat(" --- |", len(tb.columns)+1))
	for _, row := range tb.rows {
		b.WriteString("| " + row)
		for _, column := range tb.columns {
			b.WriteString(" | " + tb.cell(row, column))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// cell gives what stands there; a dash where nothing was measured.
func (tb *table) cell(row, column string) string {
	if cell := tb.cells[[2]string{row, column}]; cell != "" {
		return cell
	}
	return "–"
}

func familyOf(client string) string {
	for _, f := range families {
		if strings.HasPrefix(client, f) {
			return f
		}
	}
	return client
}

func byFamily(a, b string) int {
	return slices.Index(families, familyOf(a)) - slices.Index(families, familyOf(b))
}

// with adds a word to a list in a cell, or takes it out.
func with(cell, word string, in bool) string {
	words := slices.DeleteFunc(strings.Split(cell, ", "), func(w string) bool { return w == word || w == "–" || w == "" })
	if in {
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}

// measured reads what a smoke script printed, fails for failed steps, and holds the rest against the file. It gives the
// client's name. The warehouse is "file" or "S3".
func measured(t *testing.T, warehouse, out string) string {
	t.Helper()
	client, done := "", map[string]bool{}
	for _, line := range strings.Split(out, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		step := strings.TrimSuffix(strings.Split(strings.TrimSpace(rest)+" ", " ")[0], ":")
		switch word {
		case "client":
			client = strings.TrimSpace(rest)
		case "FAILED":
			t.Errorf("%s: %s", client, line)
			done[step] = false
		case "ok":
			done[step] = true
		}
	}
	if client == "" || len(done) == 0 {
		t.Fatalf("no steps in\n%s", tail(out, 60))
	}
	passed(t, out)
	abilitiesDone := map[string]bool{}
	for _, a := range abilities {
		for _, step := range a.steps {
			if ok, ran := done[step]; ran {
				earlier, seen := abilitiesDone[a.label]
				abilitiesDone[a.label] = ok && (earlier || !seen)
				delete(done, step)
			}
		}
	}
	for step := range done {
		if !slices.Contains(helpers, step) {
			t.Errorf("step %s of %s belongs to no row of %s", step, client, compatibilityFile)
		}
	}
	compareAbilities(t, client, warehouse, abilitiesDone)
	return client
}

func compareAbilities(t *testing.T, client, warehouse string, done map[string]bool) {
	t.Helper()
	withTable(t, "clients", func(tb *table) {
		if *rewrite {
			tb.columns = slices.DeleteFunc(tb.columns, func(c string) bool { return c != client && familyOf(c) == familyOf(client) })
			if !slices.Contains(tb.columns, client) {
				tb.columns = append(tb.columns, client)
			}
			slices.SortStableFunc(tb.columns, byFamily)
			tb.rows = nil
			for _, a := range abilities {
				tb.rows = append(tb.rows, a.label)
			}
		} else if !slices.Contains(tb.columns, client) {
			t.Errorf("%s has no column for %s; %s", compatibilityFile, client, howToRewrite)
			return
		}
		for _, a := range abilities {
			old := tb.cell(a.label, client)
			now := with(old, warehouse, done[a.label])
			if *rewrite {
				tb.cells[[2]string{a.label, client}] = now
			} else if now != with(old, "", false) {
				t.Errorf("%s says of %s, %s: %q; measured: %q; %s", compatibilityFile, client, a.label, old, now, howToRewrite)
			}
		}
	})
}

const howToRewrite = "make compatibility writes it anew"

// counted holds the counts of a whole suite against the file.
func counted(t *testing.T, suite, warehouse string, counts map[string]int) {
	t.Helper()
	row := suite + ", " + warehouse
	withTable(t, "suites", func(tb *table) {
		if *rewrite {
			tb.rows = append(slices.DeleteFunc(tb.rows, func(r string) bool {
				return familyOf(r) == familyOf(row) && strings.HasSuffix(r, ", "+warehouse)
			}), row)
			slices.Sort(tb.rows)
			slices.SortStableFunc(tb.rows, byFamily)
		}
		for _, column := range tb.columns {
			now := fmt.Sprint(counts[column])
			if *rewrite {
				tb.cells[[2]string{row, column}] = now
			} else if old := tb.cell(row, column); old != now {
				t.Errorf("%s says %s %s of %s; measured: %s; %s", compatibilityFile, old, column, row, now, howToRewrite)
			}
		}
	})
}

// called holds the operations that a client called against the file. One that the file has and this run did not call
// is no difference: refreshes and metrics come when they come.
func called(t *testing.T, client string, document *openapitest.Document, operations []string) {
	t.Helper()
	family := familyOf(client)
	if !slices.Contains(families, family) {
		return
	}
	withTable(t, "operations", func(tb *table) {
		if *rewrite {
			tb.rows = document.Operations()
		}
		for _, operation := range operations {
			key := [2]string{operation, tb.columns[0]}
			now := with(tb.cells[key], family, true)
			if *rewrite {
				tb.cells[key] = now
			} else if now != tb.cells[key] {
				t.Errorf("%s does not say that %s calls %s; %s", compatibilityFile, family, operation, howToRewrite)
			}
		}
	})
}

func TestCompatibility_TablesAreReadAsWritten(t *testing.T) {
	compatibility.Lock()
	defer compatibility.Unlock()
	text, err := os.ReadFile(filepath.Join(root(t), compatibilityFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tableNames {
		_, part, _ := measuredPart(string(text), name)
		if got := parseTable(part).String(); got != part {
			t.Errorf("table %s is read as\n%s", name, got)
		}
	}
	if got := with(with("S3", "file", true), "S3", false); got != "file" {
		t.Errorf("a cell became %q", got)
	}
}

// holdTable holds a whole table against the file.
func holdTable(t *testing.T, name string, measured *table) {
	t.Helper()
	withTable(t, name, func(tb *table) {
		if *rewrite {
			*tb = *measured
			return
		}
		for _, row := range measured.rows {
			for _, column := range measured.columns {
				if old, now := tb.cell(row, column), measured.cell(row, column); old != now {
					t.Errorf("%s, %s: %s of %s is %q; measured: %q; %s", compatibilityFile, name, column, row, old, now, howToRewrite)
				}
			}
		}
		if len(tb.rows) != len(measured.rows) {
			t.Errorf("%s, %s: %d rows; measured: %d; %s", compatibilityFile, name, len(tb.rows), len(measured.rows), howToRewrite)
		}
	})
}
