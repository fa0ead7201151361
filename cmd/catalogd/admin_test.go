package main

import (
	"slices"
	"strings"
	"testing"
)

func TestTableName(t *testing.T) {
	for _, c := range []struct {
		argument, namespace string
		levels              []string
		table               string
	}{
		{"a.t", "", []string{"a"}, "t"},
		{"a.b.t", "", []string{"a", "b"}, "t"},
		{"t", `["a.b"]`, []string{"a.b"}, "t"},
		{"with.dot", `["a","b"]`, []string{"a", "b"}, "with.dot"},
		{"t", "a.b", []string{"a", "b"}, "t"},
	} {
		levels, table, err := tableName(c.argument, c.namespace)
		if err != nil || !slices.Equal(levels, c.levels) || table != c.table {
			t.Errorf("tableName(%q, %q) = %q, %q, %v", c.argument, c.namespace, levels, table, err)
		}
	}
	for _, c := range [][2]string{{"t", ""}, {"", ""}, {"a..t", ""}, {".t", ""}, {"a.", ""}, {"t", "[]"}, {"t", `["a",""]`}, {"t", "[1]"}, {"", `["a"]`}} {
		if levels, table, err := tableName(c[0], c[1]); err == nil {
			t.Errorf("tableName(%q, %q) = %q, %q; want a refusal", c[0], c[1], levels, table)
		}
	}
}

func TestRefusalOf(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"Table does not exist: a.t","type":"NoSuchTableException","code":404}}`: "Table does not exist: a.t (NoSuchTableException, 404)",
		`{"error":"invalid_client","error_description":"wrong secret"}`:                              "wrong secret (invalid_client, 404)",
		`{"error":"invalid_client"}`: "invalid_client (invalid_client, 404)",
		`<html>`:                     "the server answered 404: <html>",
		``:                           "the server answered 404: Not Found",
	} {
		if got := refusalOf(404, []byte(body)).Error(); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestClientSettings_SecretsAndStorage: what is masked is masked everywhere, and the storage decides what is said.
func TestClientSettings_SecretsAndStorage(t *testing.T) {
	s := clientSettings{
		CatalogURI: "http://127.0.0.1:1/api/catalog", TokenURI: "http://127.0.0.1:1/api/catalog/v1/oauth/tokens",
		Warehouse: "dev", ClientID: "root", Secret: "it's", Scope: "PRINCIPAL_ROLE:ALL",
	}
	var onFile, onS3, masked strings.Builder
	s.print(&onFile)
	for _, want := range []string{"STAGE_CREATE_TABLES=false", "CLIENT_SECRET 'it''s'", "fs.local.enabled=true", `"credential": "root:it's"`, "root:it's"} {
		if !strings.Contains(onFile.String(), want) {
			t.Errorf("on a folder %q is missing", want)
		}
	}
	s.S3 = true
	s.print(&onS3)
	for _, want := range []string{"iceberg-aws-bundle", "S3FileIO", "vended-credentials-enabled=true"} {
		if !strings.Contains(onS3.String(), want) || strings.Contains(onFile.String(), want) {
			t.Errorf("%q belongs to an object store alone", want)
		}
	}
	if strings.Contains(onS3.String(), "STAGE_CREATE_TABLES") {
		t.Error("staged creation works on an object store")
	}
	s.Secret = "***"
	s.print(&masked)
	if strings.Contains(masked.String(), "it's") {
		t.Error("a masked secret is shown")
	}
}
