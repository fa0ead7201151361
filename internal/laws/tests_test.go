package laws

import (
	"fmt"
	"go/ast"
	"testing"
)

// testingRules are calls that a test must not make.
var testingRules = []struct{ receiver, call, why string }{
	{"time", "Sleep", "a sleep is too short on a slow day and too long on all others; wait for a signal, or use testing/synctest"},
	{"t", "Skip", "a missing service fails the test: nothing is skipped where it counts"},
	{"t", "Skipf", "a missing service fails the test: nothing is skipped where it counts"},
	{"t", "SkipNow", "a missing service fails the test: nothing is skipped where it counts"},
}

func TestLaw_TestsNeitherSleepNorSkip(t *testing.T) { check(t, sleepersAndSkippers) }

func sleepersAndSkippers(s *source) (out []string) {
	for _, f := range s.files {
		if !f.test {
			continue
		}
		var tests []bool // for each function around the node that has a parameter t: is it package testing's?
		var around []ast.Node
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if n == nil {
				if last := around[len(around)-1]; parameterT(last) != "" {
					tests = tests[:len(tests)-1]
				}
				around = around[:len(around)-1]
				return true
			}
			around = append(around, n)
			if of := parameterT(n); of != "" {
				tests = append(tests, of == "testing")
			}
			inTest := len(tests) > 0 && tests[len(tests)-1]
			if receiver, call := calledOn(n); receiver != "" {
				out = append(out, sleepOrSkip(s.line(f, n.Pos()), receiver, call, inTest)...)
			}
			return true
		})
	}
	return out
}

// sleepOrSkip judges one call. In properties, t is rapid's and its Skip throws one sample away.
func sleepOrSkip(at, receiver, call string, inTest bool) (out []string) {
	for _, rule := range testingRules {
		if receiver == rule.receiver && call == rule.call && (receiver != "t" || inTest) {
			out = append(out, fmt.Sprintf("%s: %s.%s: %s", at, rule.receiver, rule.call, rule.why))
		}
	}
	return out
}

func calledOn(n ast.Node) (receiver, call string) {
	selector, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	if x, ok := selector.X.(*ast.Ident); ok {
		return x.Name, selector.Sel.Name
	}
	return "", ""
}

// parameterT gives the package of the type of a function's parameter t; "" when it has none.
func parameterT(n ast.Node) string {
	var signature *ast.FuncType
	switch n := n.(type) {
	case *ast.FuncDecl:
		signature = n.Type
	case *ast.FuncLit:
		signature = n.Type
	default:
		return ""
	}
	for _, field := range signature.Params.List {
		for _, name := range field.Names {
			if name.Name != "t" {
				continue
			}
			typ := field.Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			pkg, _ := calledOn(typ)
			return pkg
		}
	}
	return ""
}
