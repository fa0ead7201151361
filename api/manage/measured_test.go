package manage_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

// rewrite writes what the tests of the matrix count into the document.
var rewrite = flag.Bool("rewrite", false, "write the cells of the matrix into docs/compatibility.md")

const compatibilityFile = "../../docs/compatibility.md"

// matrix is what one test of rights has tried. A cell is an operation, a privilege and a place where it was held.
type matrix struct {
	row                         string // as the document begins its line
	operations, requests, cells int
}

// hold compares the figures with the document's line, which says that there was no surprise; a test that had one has failed already.
func (m matrix) hold(t *testing.T) {
	t.Helper()
	if t.Failed() {
		return
	}
	raw, err := os.ReadFile(compatibilityFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "<!-- measured: matrix -->\n")
	table, _, marked := strings.Cut(rest, "<!-- end -->")
	_, from, there := strings.Cut(table, "| "+m.row+" |")
	if !marked || !there {
		t.Fatalf("%s has no line of the matrix for %q", compatibilityFile, m.row)
	}
	old, _, _ := strings.Cut(from, "\n")
	now := fmt.Sprintf(" %d | %d | %d | 0 |", m.operations, m.requests, m.cells)
	switch {
	case old == now:
	case *rewrite:
		at := len(string(raw)) - len(rest) + strings.Index(rest, "| "+m.row+" |") + len("| "+m.row+" |")
		text := string(raw[:at]) + now + string(raw[at+len(old):])
		if err := os.WriteFile(compatibilityFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s says of %q:%s, measured:%s; make rewrite writes it anew", compatibilityFile, m.row, old, now)
	}
}
