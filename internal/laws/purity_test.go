package laws

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// isPure tells which files decide and never do: the same values in give the same values out, so they can be tested by
// tables, and a decision can be explained without touching anything.
func isPure(f sourceFile) bool {
	base := path.Base(f.path)
	switch {
	case f.test:
		return false
	case f.folder == "catalog/commit", f.folder == "authz", f.folder == "maintenance/zorder":
		return true
	case f.folder == "maintenance" && strings.HasPrefix(base, "plan_"):
		return true
	case strings.HasPrefix(f.folder, "vending/") && base == "policy.go":
		return true
	}
	return false
}

// impureImports reach for time, chance or the world.
var impureImports = []string{
	"context", "crypto/rand", "database/sql", "io/fs", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http",
	"os", "os/exec", "syscall",
}

var impureLibraries = []string{
	"github.com/jackc/", "github.com/aws/", "github.com/apache/", "github.com/prometheus/", "golang.org/x/sync/",
}

// impureCalls are functions of packages that are else welcome.
var impureCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"uuid": {"New", "NewString", "NewV7", "NewRandom", "NewUUID", "NewV6"},
}

func TestLaw_PureFilesStayPure(t *testing.T) {
	check(t, impureFiles)
	if !slices.ContainsFunc(load(t).files, isPure) {
		t.Error("no pure files found: the law looks in the wrong place")
	}
}

func impureFiles(s *source) (out []string) {
	for _, f := range s.files {
		if !isPure(f) {
			continue
		}
		for _, path := range f.imports() {
			if slices.Contains(impureImports, path) || slices.ContainsFunc(impureLibraries, func(p string) bool {
				return strings.HasPrefix(path, p)
			}) {
				out = append(out, fmt.Sprintf("%s imports %s: this file only decides; pass in what it needs to know", f.path, path))
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && slices.Contains(impureCalls[pkg.Name], selector.Sel.Name) {
				out = append(out, fmt.Sprintf("%s calls %s.%s: time and ids are passed in", s.line(f, n.Pos()), pkg.Name, selector.Sel.Name))
			}
			return true
		})
	}
	return out
}
