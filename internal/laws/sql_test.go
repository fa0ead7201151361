package laws

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sqlRooms are where SQL may be written: beside the one function that uses it.
var sqlRooms = []string{"store", "migrations", "internal/pgserver"}

var (
	sqlText    = regexp.MustCompile(`(?is)^\s*(select\s+.*\sfrom\s|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s|with\s+\w+\s+as\s*(materialized\s*)?\(|(create|alter|drop)\s+(table|index|schema|database|role)\s+(if\s+(not\s+)?exists\s+)?[\w."]+(\s|$|\())`)
	selectStar = regexp.MustCompile(`(?i)\bselect\s+(\w+\.)?\*|\breturning\s+(\w+\.)?\*`)
)

func TestLaw_SQLLivesInTheStore(t *testing.T) { check(t, strayingSQL) }

func strayingSQL(s *source) (out []string) {
	for _, f := range s.files {
		home := slices.ContainsFunc(sqlRooms, func(r string) bool { return f.folder == r || strings.HasPrefix(f.folder, r+"/") })
		if f.test || isTestOnly(f.folder) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			switch {
			case err != nil:
			case !home && sqlText.MatchString(text):
				out = append(out, fmt.Sprintf("%s: SQL outside of %v: a question to the database belongs beside the "+
					"store's function that asks it", s.line(f, n.Pos()), sqlRooms))
			case home && selectStar.MatchString(text):
				out = append(out, fmt.Sprintf("%s: SELECT *: list the columns, or the next migration breaks the program "+
					"that runs beside it", s.line(f, n.Pos())))
			}
			return true
		})
	}
	return out
}

func TestLaw_MigrationsListColumns(t *testing.T) {
	s := load(t)
	migrations, err := filepath.Glob(filepath.Join(s.root, "migrations", "*.sql"))
	if err != nil || len(migrations) == 0 {
		t.Fatalf("no migrations found: %v", err)
	}
	for _, name := range migrations {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if selectStar.Match(text) {
			t.Errorf("%s: SELECT *: list the columns", filepath.Base(name))
		}
	}
}
