package e2e

import (
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/catalogtest"
	icerest "github.com/apache/iceberg-go/catalog/rest"
)

// iceberg-go's own conformance tests, over HTTP and with OAuth.
func TestIcebergGo_CatalogTests(t *testing.T) {
	s := recorded(t, fileServer(t), "iceberg-go")
	tokens, err := url.Parse(s.env["CATALOG_OAUTH2__SERVER__URI"])
	if err != nil {
		t.Fatal(err)
	}
	catalogtest.RunCatalogTests(t, catalogtest.Config{
		SupportsNamespaceProperties: true,
		NewCatalog: func(t *testing.T) catalog.Catalog {
			c, err := icerest.NewCatalog(t.Context(), "e2e", s.env["CATALOG_URI"],
				icerest.WithWarehouseLocation(s.env["CATALOG_WAREHOUSE"]), icerest.WithCredential(s.env["CATALOG_CREDENTIAL"]),
				icerest.WithScope(s.env["CATALOG_SCOPE"]), icerest.WithAuthURI(tokens))
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	})
	if !t.Failed() {
		counted(t, "iceberg-go "+moduleVersion(t, "github.com/apache/iceberg-go")+" catalogtest", "file", map[string]int{"passed": icebergGoTests})
	}
}

// icebergGoTests is the number of checks in iceberg-go's suite.
const icebergGoTests = 18

// moduleVersion is the version that this test is built with.
func moduleVersion(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", path, err)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
}
