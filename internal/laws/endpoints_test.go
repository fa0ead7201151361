package laws

import (
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"catalogd/api"
	"catalogd/api/manage"
	"catalogd/api/rest"
	"catalogd/catalog"
	"catalogd/openapi"
)

// describedPaths gives "METHOD path" of all operations of a document.
func describedPaths(t *testing.T, file string) []string {
	t.Helper()
	text, err := openapi.Files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var out []string
	for path, operations := range document.Paths {
		for method := range operations {
			switch method {
			case "get", "head", "post", "put", "patch", "delete":
				out = append(out, strings.ToUpper(method)+" "+path)
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s describes no operation", file)
	}
	slices.Sort(out)
	return out
}

// undescribed are routes of the catalog that no newest document has, with the reason.
var undescribed = map[string]string{
	"POST /v1/oauth/revoke": "RFC 7009's; the issuer's metadata name it",
	"POST /v1/aws/s3/sign":  "the older signer document's; clients before 1.12 call it",
}

func TestLaw_CatalogRowsAndThePinnedDocumentAgree(t *testing.T) {
	described := describedPaths(t, openapi.IcebergFile)
	var rows []string
	for _, e := range rest.Endpoints(rest.Config{}) {
		template, ok := strings.CutPrefix(e.Pattern, api.CatalogBase+"/v1/")
		if !ok || strings.HasSuffix(template, "/*") {
			continue
		}
		rows = append(rows, e.Method+" /v1/"+template)
	}
	for _, row := range rows {
		if _, excused := undescribed[row]; !excused && !slices.Contains(described, row) {
			t.Errorf("%s is served and not described by %s: clients find routes by their spelling there", row, openapi.IcebergFile)
		}
	}
	for _, path := range described {
		if !slices.Contains(rows, path) {
			t.Errorf("%s is described by %s and has no row: serve it, or refuse it by name in api/rest/unserved.go", path, openapi.IcebergFile)
		}
	}
}

func TestLaw_ManagementRowsAndOurDocumentAgree(t *testing.T) {
	described := describedPaths(t, openapi.ManagementFile)
	var rows []string
	for _, e := range manage.Endpoints(manage.Config{}) {
		rows = append(rows, e.Method+" "+e.Pattern)
	}
	for _, row := range rows {
		if !slices.ContainsFunc(described, func(d string) bool { return sameRoute(d, row) }) {
			t.Errorf("%s is served and not described by %s", row, openapi.ManagementFile)
		}
	}
	for _, d := range described {
		if !slices.ContainsFunc(rows, func(row string) bool { return sameRoute(d, row) }) {
			t.Errorf("%s is described by %s and not served", d, openapi.ManagementFile)
		}
	}
}

// sameRoute compares a document's path, which may leave out the server's base, with a row's.
func sameRoute(described, row string) bool {
	method, path, _ := strings.Cut(described, " ")
	return described == row || row == method+" "+api.ManagementBase+path
}

var operationName = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$`)

func TestLaw_OperationsAreNamed(t *testing.T) {
	routes := map[string]string{}
	for _, e := range allEndpoints() {
		if !operationName.MatchString(e.Operation) {
			t.Errorf("%s %s: operation %q is not verb-noun in lower case", e.Method, e.Pattern, e.Operation)
		}
		if other, taken := routes[e.Operation]; taken && !strings.HasPrefix(e.Operation, "show-") {
			t.Errorf("operation %q names %s %s and %s: logs and metrics could not tell them apart", e.Operation, e.Method, e.Pattern, other)
		}
		routes[e.Operation] = e.Method + " " + e.Pattern
	}
}

// publicRoutes are the only ones that answer strangers.
var publicRoutes = []string{
	"POST /api/catalog/v1/oauth/tokens",
	"POST /api/catalog/v1/oauth/revoke",
	"GET /.well-known/jwks.json",
	"GET /api/catalog/.well-known/jwks.json",
	"GET /api/catalog/.well-known/openid-configuration",
	"GET /api/catalog/.well-known/oauth-authorization-server",
	"GET /.well-known/oauth-authorization-server/api/catalog",
	"GET /",
	"GET /api/management/docs",
	"GET /api/management/openapi.yaml",
}

func TestLaw_OnlyTheseRoutesArePublic(t *testing.T) {
	for _, e := range allEndpoints() {
		if route := e.Method + " " + e.Pattern; e.Access == api.Public && !slices.Contains(publicRoutes, route) {
			t.Errorf("%s answers strangers: if that is meant, it belongs on the list here and in docs/security.md", route)
		}
	}
}

// allEndpoints are the rows of every door.
func allEndpoints() []api.Endpoint {
	rows := append(rest.Endpoints(rest.Config{}), manage.Endpoints(manage.Config{})...)
	return append(append(rows, manage.ReferenceEndpoints()...), api.RootEndpoint())
}

// The audit is asked by the names of operations, and refuses names that it cannot have: it must know all that it has.
func TestLaw_TheAuditKnowsEveryOperation(t *testing.T) {
	known := catalog.KnownOperations()
	for _, e := range append(rest.Endpoints(rest.Config{}), manage.Endpoints(manage.Config{})...) {
		if !slices.Contains(known, e.Operation) {
			t.Errorf("%q is a route's and not known: add it to catalog/operation_names.go", e.Operation)
		}
	}
	check(t, func(s *source) []string {
		var out []string
		seen := 0
		for _, f := range s.files {
			if f.test || f.folder != "catalog" && f.folder != "maintenance" && f.folder != "store" {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				name, ok := operationNamed(n)
				if !ok {
					return true
				}
				if seen++; !slices.Contains(known, name) {
					out = append(out, s.line(f, n.Pos())+": the audit can have "+strconv.Quote(name)+": add it to catalog/operation_names.go")
				}
				return true
			})
		}
		if seen < 50 {
			t.Errorf("found %d operations in the source: has their spelling changed?", seen)
		}
		return out
	})
}

// operationNamed gives the name that a need{…}, a fact(…) or an Operation: … in the source has.
func operationNamed(n ast.Node) (string, bool) {
	var named ast.Expr
	switch n := n.(type) {
	case *ast.CompositeLit:
		if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "need" && len(n.Elts) > 0 {
			named = n.Elts[0]
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Operation" {
			named = n.Value
		}
	case *ast.CallExpr:
		if called, ok := n.Fun.(*ast.SelectorExpr); ok && (called.Sel.Name == "fact" || called.Sel.Name == "linkFact") && len(n.Args) > 1 {
			named = n.Args[1]
		}
	}
	text, ok := named.(*ast.BasicLit)
	if !ok {
		return "", false
	}
	name, err := strconv.Unquote(text.Value)
	return name, err == nil
}
