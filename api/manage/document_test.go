package manage_test

import (
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"catalogd/api"
	"catalogd/api/manage"
	"catalogd/openapi"
)

// The document and the rows describe the same API, under the same names.
func TestDocument_AndRowsAgree(t *testing.T) {
	text, err := openapi.Files.ReadFile(openapi.ManagementFile)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	var described, served []string
	for path, item := range document.Paths {
		for method, node := range item {
			if method == "parameters" || method == "servers" {
				continue
			}
			var operation struct {
				ID string `yaml:"operationId"`
			}
			if err := node.Decode(&operation); err != nil {
				t.Fatal(err)
			}
			described = append(described, strings.ToUpper(method)+" "+path+" "+operation.ID)
		}
	}
	for _, e := range manage.Endpoints(manage.Config{}) {
		if e.Access != api.SignedIn {
			t.Errorf("%s answers strangers", e.Operation)
		}
		served = append(served, e.Method+" "+strings.TrimPrefix(e.Pattern, api.ManagementBase)+" "+e.Operation)
	}
	slices.Sort(described)
	slices.Sort(served)
	for _, row := range served {
		if !slices.Contains(described, row) {
			t.Errorf("%s is served and not described", row)
		}
	}
	for _, row := range described {
		if !slices.Contains(served, row) {
			t.Errorf("%s is described and not served", row)
		}
	}
	// Every reference leads somewhere.
	var root map[string]any
	if err := yaml.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	checkReferences(t, root, root)
}

func checkReferences(t *testing.T, root map[string]any, v any) {
	switch v := v.(type) {
	case map[string]any:
		if reference, ok := v["$ref"].(string); ok {
			var at any = root
			for _, part := range strings.Split(strings.TrimPrefix(reference, "#/"), "/") {
				object, _ := at.(map[string]any)
				at = object[part]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", reference)
			}
		}
		for _, member := range v {
			checkReferences(t, root, member)
		}
	case []any:
		for _, element := range v {
			checkReferences(t, root, element)
		}
	}
}
