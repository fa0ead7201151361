package laws

import (
	"fmt"
	"go/ast"
	"testing"
)

// Budgets, in lines and methods. A thing that does not fit on a screen is not read, it is believed.
const (
	fileLinesMax        = 600
	functionLinesMax    = 80
	interfaceMethodsMax = 8
)

// overBudget lists what may be bigger for now: path, or path and name, with the date and the reason. It may only
// shrink.
var overBudget = map[string]string{}

func TestLaw_Budgets(t *testing.T) { check(t, overBudgetThings) }

func overBudgetThings(s *source) (out []string) {
	used := map[string]bool{}
	over := func(key string) bool {
		used[key] = true
		_, ok := overBudget[key]
		return ok
	}
	for _, f := range s.files {
		if f.lines > fileLinesMax && !over(f.path) {
			out = append(out, fmt.Sprintf("%s has %d lines; at most %d: which noun or operation wants a file of its own?", f.path, f.lines, fileLinesMax))
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				lines := s.fset.Position(n.End()).Line - s.fset.Position(n.Pos()).Line + 1
				if lines > functionLinesMax && !f.test && !over(f.path+" "+n.Name.Name) {
					out = append(out, fmt.Sprintf("%s: %s has %d lines; at most %d: branch in the parent, loop in the child, keep leaves pure",
						s.line(f, n.Pos()), n.Name.Name, lines, functionLinesMax))
				}
			case *ast.TypeSpec:
				i, ok := n.Type.(*ast.InterfaceType)
				if ok && methodsOf(i) > interfaceMethodsMax && !over(f.path+" "+n.Name.Name) {
					out = append(out, fmt.Sprintf("%s: interface %s has %d methods; at most %d: small ports belong to who uses them",
						s.line(f, n.Pos()), n.Name.Name, methodsOf(i), interfaceMethodsMax))
				}
			}
			return true
		})
	}
	for key := range overBudget {
		if !used[key] {
			out = append(out, fmt.Sprintf("%q is on the allow-list and within the budget: take it off", key))
		}
	}
	return out
}

// methodsOf counts an interface's own methods; embedded interfaces are counted where they are declared.
func methodsOf(i *ast.InterfaceType) int {
	n := 0
	for _, field := range i.Methods.List {
		if _, ok := field.Type.(*ast.FuncType); ok {
			n += len(field.Names)
		}
	}
	return n
}
