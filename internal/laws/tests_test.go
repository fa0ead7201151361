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
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if receiver, call := calledOn(n); receiver != "" {
				out = append(out, sleepOrSkip(s.line(f, n.Pos()), receiver, call)...)
			}
			return true
		})
	}
	return out
}

// sleepOrSkip judges one call. Properties skip no more than tests do: what a sample lacks is made, or drawn otherwise.
func sleepOrSkip(at, receiver, call string) (out []string) {
	for _, rule := range testingRules {
		if receiver == rule.receiver && call == rule.call {
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
