package laws

import (
	"go/ast"
	"go/token"
	"strconv"
	"testing"

	"catalogd/api"
	"catalogd/internal/fault"
)

func TestLaw_EveryFaultKindHasARowInTheErrorTable(t *testing.T) {
	s := load(t)
	kinds := 0
	for _, f := range s.files {
		if f.folder != "internal/fault" || f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Kind" {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				t.Errorf("%s: a kind is a string literal", s.line(f, n.Pos()))
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Error(err)
			}
			kinds++
			if !api.HasWireError(fault.Kind(text)) {
				t.Errorf("%s: %s has no row in api/errors.go: what would a client see?", s.line(f, n.Pos()), spec.Names[0].Name)
			}
			return true
		})
	}
	if kinds < 20 {
		t.Errorf("only %d kinds found: the law looks in the wrong place", kinds)
	}
}
