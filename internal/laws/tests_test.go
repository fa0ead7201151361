package laws

import (
	"fmt"
	"go/ast"
	"slices"
	"testing"
)

// testingRules are calls that a test must not make.
var testingRules = []struct{ receiver, call, why string }{
	{"time", "Sleep", "a sleep is too short on a slow day and too long on all others; wait for a signal, or use testing/synctest"},
	{"t", "Skip", "a missing service fails the test: nothing is skipped where it counts"},
	{"t", "Skipf", "a missing service fails the test: nothing is skipped where it counts"},
	{"t", "SkipNow", "a missing service fails the test: nothing is skipped where it counts"},
}

// testingExceptions: file and call, with the date and the reason. Only to shrink.
var testingExceptions = map[string]string{}

func TestLaw_TestsNeitherSleepNorSkip(t *testing.T) { check(t, sleepersAndSkippers) }

func sleepersAndSkippers(s *source) (out []string) {
	for _, f := range s.files {
		if !f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			receiver, ok := selector.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, rule := range testingRules {
				_, excused := testingExceptions[f.path+" "+receiver.Name+"."+selector.Sel.Name]
				if receiver.Name == rule.receiver && selector.Sel.Name == rule.call && !excused {
					out = append(out, fmt.Sprintf("%s: %s.%s: %s", s.line(f, n.Pos()), rule.receiver, rule.call, rule.why))
				}
			}
			return true
		})
	}
	for key := range testingExceptions {
		if !slices.ContainsFunc(s.files, func(f sourceFile) bool { return len(key) > len(f.path) && key[:len(f.path)] == f.path }) {
			out = append(out, fmt.Sprintf("%q is excused and gone: take it off", key))
		}
	}
	return out
}
