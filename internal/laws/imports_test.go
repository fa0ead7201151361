package laws

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// edges says which of our packages a package may import. What is not listed is forbidden; a new package needs a row.
// internal/fault is free to all. Test files may import anything.
var edges = map[string][]string{
	"api": {"catalog", "auth", "authz", "internal/deflate", "internal/telemetry"},
	// catalog/commit for decoding: a request's shape is the commit engine's to know.
	"api/rest":   {"api", "catalog", "catalog/commit", "auth", "vending"},
	"api/manage": {"api", "catalog", "auth", "authz", "vending", "maintenance", "openapi"},

	"auth":           {"authz", "internal/lru"},
	"auth/external":  {"auth"},
	"authz":          {},
	"catalog":        {"catalog/commit", "auth", "authz", "vending", "internal/crash", "internal/deflate", "internal/lru", "internal/spelling"},
	"catalog/commit": {},
	"store":          {"catalog", "auth", "authz", "vending", "maintenance", "migrations", "internal/crash", "internal/deflate", "internal/lru"},
	"migrations":     {},
	"openapi":        {},

	// The worker enters by catalog.Service like everybody else and names its privilege in its table of kinds.
	"maintenance":          {"catalog", "catalog/commit", "auth", "authz", "vending", "maintenance/layout", "maintenance/manifest", "maintenance/zorder", "internal/iceio", "internal/crash"},
	"maintenance/layout":   {"maintenance/zorder", "internal/iceio"},
	"maintenance/manifest": {},
	"maintenance/zorder":   {},

	"vending":       {},
	"vending/s3":    {"vending"},
	"vending/gcs":   {"vending"},
	"vending/adls":  {"vending"},
	"vending/local": {"vending"},

	"internal/fault":     {},
	"internal/crash":     {},
	"internal/deflate":   {},
	"internal/lru":       {},
	"internal/spelling":  {},
	"internal/telemetry": {},
	"internal/iceio":     {"vending", "internal/crash"},
	"internal/scan":      {"catalog", "internal/iceio"},
	"internal/outbox":    {"catalog", "internal/crash"},
	"internal/console":   {},
	"internal/pgserver":  {},
	"internal/laws":      {},
}

// testOnly are packages that exist for tests; nothing that runs in production may import them.
var testOnly = []string{
	"catalog/catalogtest", "openapi/openapitest", "vending/vendingtest", "internal/pgserver/pgtest", "internal/s3test", "internal/oidctest", "internal/sim", "internal/laws",
	"maintenance/layout/sensors", "maintenance/layout/measure", "e2e", "bench", "store/crowd",
}

func isTestOnly(folder string) bool {
	return slices.ContainsFunc(testOnly, func(p string) bool { return folder == p || strings.HasPrefix(folder, p+"/") })
}

func isCommand(folder string) bool { return strings.HasPrefix(folder, "cmd/") || folder == "demo" }

func TestLaw_Imports(t *testing.T) { check(t, forbiddenImports) }

func forbiddenImports(s *source) (out []string) {
	seen := map[string]bool{}
	for _, f := range s.files {
		if f.test || isTestOnly(f.folder) {
			continue
		}
		allowed, listed := edges[f.folder]
		if !listed && !isCommand(f.folder) && !seen[f.folder] {
			out = append(out, fmt.Sprintf("%s: package %s has no row in the import table; who may it know?", f.path, f.folder))
		}
		seen[f.folder] = true
		for _, path := range f.imports() {
			ours, ok := strings.CutPrefix(path, modulePath+"/")
			if !ok || ours == "internal/fault" {
				continue
			}
			if isTestOnly(ours) {
				out = append(out, fmt.Sprintf("%s imports %s, which is for tests only", f.path, ours))
			} else if listed && !slices.Contains(allowed, ours) {
				out = append(out, fmt.Sprintf("%s imports %s: data flows one way, and the import table in this file has no such edge; "+
					"if the arrow is needed the design is wrong, or the table is", f.path, ours))
			}
		}
	}
	return out
}

// libraries says where a library may be seen. A library that leaks everywhere cannot be replaced.
var libraries = []struct {
	prefix string
	rooms  []string
	why    string
}{
	{"github.com/jackc/pgx", []string{"store", "migrations", "internal/pgserver", "cmd"}, "Postgres is the store's business"},
	{"database/sql", []string{"store", "migrations", "internal/pgserver", "cmd"}, "Postgres is the store's business"},
	{"github.com/pressly/goose", []string{"store", "migrations", "cmd"}, "migrations run in one place"},
	{"github.com/go-chi/chi", []string{"api"}, "only the plumbing routes"},
	{"github.com/aws/", []string{"vending/s3", "internal/iceio", "cmd"}, "clouds' SDKs stay in their provider's folder"},
	{"github.com/apache/iceberg-go", []string{"maintenance", "internal/iceio", "internal/scan"}, "metadata is edited as text by catalog/commit"},
	{"github.com/apache/arrow-go", []string{"maintenance", "internal/iceio", "internal/scan", "cmd", "demo"}, "data files are the worker's business"},
	{"github.com/prometheus/", []string{"internal/telemetry", "api", "cmd"}, "metrics are declared in one place"},
	{"github.com/golang-jwt/", []string{"auth"}, "tokens are auth's business"},
	{"github.com/coreos/go-oidc/", []string{"auth/external"}, "identity providers are known in one place"},
	{"github.com/go-jose/", []string{"auth/external"}, "identity providers are known in one place"},
	{"net/http", []string{"api", "auth", "vending", "internal/iceio", "internal/outbox", "internal/telemetry", "internal/console", "cmd", "demo"},
		"only HTTP's doors know HTTP"},
}

func TestLaw_Libraries(t *testing.T) { check(t, leakedLibraries) }

func leakedLibraries(s *source) (out []string) {
	for _, f := range s.files {
		if f.test || isTestOnly(f.folder) {
			continue
		}
		for _, path := range f.imports() {
			for _, l := range libraries {
				if strings.HasPrefix(path, l.prefix) && !slices.ContainsFunc(l.rooms, func(room string) bool {
					return f.folder == room || strings.HasPrefix(f.folder, room+"/")
				}) {
					out = append(out, fmt.Sprintf("%s imports %s, which belongs to %v: %s", f.path, path, l.rooms, l.why))
				}
			}
		}
	}
	return out
}
