package laws

import (
	"go/token"
	"strings"
	"testing"
)

// A law that cannot fail is worse than none. Each sample breaks one law and nothing else of that law.
func TestLaws_CatchWhatTheyAreThereFor(t *testing.T) {
	long := strings.Repeat("\n", fileLinesMax+1)
	longFunction := "func f() {" + strings.Repeat("\n", functionLinesMax+1) + "}"
	for _, c := range []struct {
		name, path, text string
		law              func(*source) []string
		broken           bool
	}{
		{"domain knows the store", "catalog/x.go", `package catalog; import _ "catalogd/store"`, forbiddenImports, true},
		{"store knows the domain", "store/x.go", `package store; import _ "catalogd/catalog"`, forbiddenImports, false},
		{"everybody knows faults", "authz/x.go", `package authz; import _ "catalogd/internal/fault"`, forbiddenImports, false},
		{"unlisted package", "surprise/x.go", `package surprise`, forbiddenImports, true},
		{"production knows a fake", "api/x.go", `package api; import _ "catalogd/catalog/catalogtest"`, forbiddenImports, true},
		{"command knows a fake", "cmd/catalogd/x.go", `package main; import _ "catalogd/internal/sim"`, forbiddenImports, true},
		{"test knows a fake", "api/x_test.go", `package api; import _ "catalogd/catalog/catalogtest"`, forbiddenImports, false},

		{"SQL driver in the API", "api/x.go", `package api; import _ "github.com/jackc/pgx/v5"`, leakedLibraries, true},
		{"SDK beside its provider", "vending/vendor.go", `package vending; import _ "github.com/aws/aws-sdk-go-v2/config"`, leakedLibraries, true},
		{"SDK in its provider", "vending/s3/x.go", `package s3; import _ "github.com/aws/aws-sdk-go-v2/config"`, leakedLibraries, false},

		{"clock in the engine", "catalog/commit/x.go", `package commit; import "time"; var n = time.Now`, impureFiles, true},
		{"time's type in the engine", "catalog/commit/x.go", `package commit; import "time"; var n time.Time`, impureFiles, false},
		{"chance in the engine", "catalog/commit/x.go", `package commit; import _ "math/rand/v2"`, impureFiles, true},
		{"new id in the engine", "catalog/commit/x.go", `package commit; import "github.com/google/uuid"; var n = uuid.New()`, impureFiles, true},
		{"world in a plan", "maintenance/plan_x.go", `package maintenance; import _ "os"`, impureFiles, true},
		{"world in an executor", "maintenance/x.go", `package maintenance; import _ "os"`, impureFiles, false},
		{"SDK in a policy", "vending/s3/policy.go", `package s3; import _ "github.com/aws/aws-sdk-go-v2/config"`, impureFiles, true},

		{"long file", "api/x.go", "package api" + long, overBudgetThings, true},
		{"long function", "api/x.go", "package api\n" + longFunction, overBudgetThings, true},
		{"long test", "api/x_test.go", "package api\n" + longFunction, overBudgetThings, false},
		{"wide interface", "api/x.go", "package api; type I interface { A();B();C();D();E();F();G();H();I() }", overBudgetThings, true},
		{"composed interface", "api/x.go", "package api; type I interface { A();B();C();D();E();F();G();H();J }; type J interface{ I() }", overBudgetThings, false},

		{"empty file name", "api/http_util.go", "package api", emptyNames, true},
		{"empty package name", "store/x.go", "package common", emptyNames, true},
		{"empty type name", "api/x.go", "package api; type tableManager struct{}", emptyNames, true},
		{"name with the letters in it", "api/x.go", "package api; type futility struct{}", emptyNames, false},

		{"package without a word", "api/x.go", "package api", undocumentedPackages, true},
		{"package with one", "api/x.go", "// Package api is.\npackage api", undocumentedPackages, false},
		{"function without a word", "api/x.go", "package api; func Do() {}", undocumentedThings, true},
		{"method without a word", "api/x.go", "package api\n\n// T is.\ntype T[E any] struct{}\n\nfunc (t *T[E]) Do() {}", undocumentedThings, true},
		{"method nobody sees", "api/x.go", "package api; type t struct{}; func (t) Do() {}", undocumentedThings, false},
		{"type without a word", "api/x.go", "package api; type T struct{}", undocumentedThings, true},

		{"SQL in the domain", "catalog/x.go", "package catalog; const q = `SELECT a\n FROM b`", strayingSQL, true},
		{"SQL to change in the API", "api/x.go", `package api; const q = "update t set a = 1"`, strayingSQL, true},
		{"message with such words", "catalog/x.go", `package catalog; const q = "create table %s: %w"`, strayingSQL, false},
		{"star in the store", "store/x.go", `package store; const q = "select t.* from t"`, strayingSQL, true},
		{"count in the store", "store/x.go", `package store; const q = "select count(*) from t"`, strayingSQL, false},

		{"sleeping test", "api/x_test.go", `package api; import "time"; func f() { time.Sleep(1) }`, sleepersAndSkippers, true},
		{"sleeping program", "api/x.go", `package api; import "time"; func f() { time.Sleep(1) }`, sleepersAndSkippers, false},
		// The skips in these rows are text: samples that the law against skipping must refuse. Nothing here skips, in CI or
		// elsewhere, and no test of the repository does: the law forbids testing's Skip and rapid's.
		{"skipping subtest", "api/x_test.go", `package api; import "testing"; func f(t *testing.T) { t.Run("", func(t *testing.T) { t.Skip() }) }`, sleepersAndSkippers, true},
		{"sample thrown away", "api/x_test.go", `package api; import "pgregory.net/rapid"; func f(t *rapid.T) { t.Skip() }`, sleepersAndSkippers, true},
		{"skipping after one", "api/x_test.go", `package api; import ("testing"; "pgregory.net/rapid"); func f(t *testing.T) { rapid.Check(t, func(t *rapid.T) { t.Skip() }); t.SkipNow() }`, sleepersAndSkippers, true},
		{"skipping test", "api/x_test.go", `package api; import "testing"; func f(t *testing.T) { t.Skip() }`, sleepersAndSkippers, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &source{fset: token.NewFileSet()}
			if err := s.addText(c.path, []byte(c.text)); err != nil {
				t.Fatal(err)
			}
			if found := c.law(s); (len(found) > 0) != c.broken {
				t.Errorf("law found %q, broken is %v", found, c.broken)
			}
		})
	}
}
