package store

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"catalogd/internal/pgserver/pgtest"
)

// TestStatements_ArePreparable reads the package's source for constants named sql… and has Postgres prepare each one:
// a column that is misspelled, or gone after a migration, fails here and not in front of a client.
func TestStatements_ArePreparable(t *testing.T) {
	config, err := pgx.ParseConfig(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["search_path"] = schemaName
	connection, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	statements := statements(t)
	if len(statements) < 40 {
		t.Fatalf("only %d statements found; the search is broken", len(statements))
	}
	for name, text := range statements {
		if strings.Contains(strings.ToUpper(text), "SELECT *") {
			t.Errorf("%s selects *: list the columns", name)
		}
		numbered, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), connection, text, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := connection.Prepare(t.Context(), name, numbered); err != nil {
			t.Errorf("%s: %v", name, describe(err))
		}
	}
}

// statements gives the package's SQL constants by name.
func statements(t *testing.T) map[string]string {
	t.Helper()
	constants := constants{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if group, ok := declaration.(*ast.GenDecl); ok && group.Tok == token.CONST {
				constants.add(group)
			}
		}
	}
	found := map[string]string{}
	for name, value := range constants {
		if !strings.HasPrefix(name, "sql") {
			continue
		}
		text, ok := constants.text(value)
		if !ok {
			t.Errorf("%s is not made of literals and constants alone, so nobody can check it", name)
			continue
		}
		found[name] = text
	}
	return found
}

// constants are the package's constants before they are evaluated.
type constants map[string]ast.Expr

func (c constants) add(group *ast.GenDecl) {
	for _, spec := range group.Specs {
		values := spec.(*ast.ValueSpec)
		for i, name := range values.Names {
			if i < len(values.Values) {
				c[name.Name] = values.Values[i]
			}
		}
	}
}

// text evaluates string literals and constants joined by +.
func (c constants) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		value, ok := c[e.Name]
		if !ok {
			return "", false
		}
		return c.text(value)
	case *ast.BinaryExpr:
		left, okLeft := c.text(e.X)
		right, okRight := c.text(e.Y)
		return left + right, okLeft && okRight && e.Op == token.ADD
	}
	return "", false
}

func describe(err error) string {
	if pg, ok := err.(*pgconn.PgError); ok {
		return pg.Message + " at byte " + strconv.Itoa(int(pg.Position))
	}
	return err.Error()
}
