package openapitest

import (
	"errors"
	"slices"
	"testing"

	"catalogd/openapi"
)

func TestCheckAnswer(t *testing.T) {
	d, err := Load(openapi.IcebergFile)
	if err != nil {
		t.Fatal(err)
	}
	const table = "/v1/p/namespaces/n/tables/t"
	for _, c := range []struct {
		name, method, path string
		status             int
		body               string
		right              bool
	}{
		{"namespaces", "GET", "/v1/p/namespaces", 200, `{"namespaces":[["a"],["a","b"]],"next-page-token":null}`, true},
		{"namespaces as text", "GET", "/v1/p/namespaces", 200, `{"namespaces":["a"]}`, false},
		{"null list", "GET", "/v1/p/namespaces", 200, `{"namespaces":null}`, false},
		{"wrapped error", "GET", "/v1/p/namespaces/n", 404, `{"error":{"message":"m","type":"T","code":404}}`, true},
		{"bare error", "GET", "/v1/p/namespaces/n", 404, `{"message":"m","type":"T","code":404}`, false},
		{"error without a code", "GET", "/v1/p/namespaces/n", 404, `{"error":{"message":"m","type":"T"}}`, false},
		{"no content", "DELETE", table, 204, ``, true},
		{"content where none is", "DELETE", table, 204, `{}`, false},
		{"created", "POST", "/v1/p/namespaces", 201, `{"namespace":["a"]}`, false},
		{"table", "GET", table, 200, `{"metadata":{"format-version":2,"table-uuid":"u","properties":{"a":"b"}},"config":{"k":"v"}}`, true},
		{"table without metadata", "GET", table, 200, `{"config":{}}`, false},
		{"number in config", "GET", table, 200, `{"metadata":{"format-version":2,"table-uuid":"u"},"config":{"k":1}}`, false},
		{"version 9", "GET", table, 200, `{"metadata":{"format-version":9,"table-uuid":"u"}}`, false},
		{"null snapshots", "GET", table, 200, `{"metadata":{"format-version":2,"table-uuid":"u","snapshots":null}}`, false},
		{"credentials", "GET", table + "/credentials", 200, `{"storage-credentials":[{"prefix":"s3://a/","config":{}}]}`, true},
		{"credentials without a prefix", "GET", table + "/credentials", 200, `{"storage-credentials":[{"config":{}}]}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := d.CheckAnswer(c.method, c.path, c.status, []byte(c.body)); (err == nil) != c.right {
				t.Errorf("%v, right is %v", err, c.right)
			}
		})
	}
	if err := d.CheckAnswer("GET", "/v1/nothing/here", 200, nil); !errors.Is(err, ErrUndescribed) {
		t.Errorf("unknown path: %v", err)
	}
}

func TestTemplate(t *testing.T) {
	d, err := Load(openapi.IcebergFile)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/v1/config":                         "/v1/config",
		"/v1/p/tables/rename":                "/v1/{prefix}/tables/rename",
		"/v1/p/namespaces/a%1Fb/tables/t%2F": "/v1/{prefix}/namespaces/{namespace}/tables/{table}",
	} {
		method := "GET"
		if want == "/v1/{prefix}/tables/rename" {
			method = "POST"
		}
		got, err := d.Template(method, path)
		if err != nil || got != want {
			t.Errorf("%s %s belongs to %q (%v), wanted %q", method, path, got, err, want)
		}
		if !slices.Contains(d.Operations(), method+" "+got) {
			t.Errorf("%s %s is not listed", method, got)
		}
	}
	if _, err := d.Template("PUT", "/v1/config"); !errors.Is(err, ErrUndescribed) {
		t.Errorf("PUT /v1/config: %v", err)
	}
}
