package manage_test

import (
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"catalogd/openapi"
)

// description reads the document of the management API.
func description(t *testing.T) (root map[string]any) {
	t.Helper()
	text, err := openapi.Files.ReadFile(openapi.ManagementFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// described gives the names of the operations whose description is so, sorted.
func described(root map[string]any, is func(operation map[string]any) bool) (names []string) {
	for _, item := range root["paths"].(map[string]any) {
		for _, node := range item.(map[string]any) {
			if operation, ok := node.(map[string]any); ok && is(operation) {
				names = append(names, operation["operationId"].(string))
			}
		}
	}
	slices.Sort(names)
	return names
}

// answeringSecrets gives the operations whose description answers a field called secret or clientSecret.
func answeringSecrets(t *testing.T) []string {
	t.Helper()
	root := description(t)
	var holds func(v any) bool
	holds = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			if reference, ok := v["$ref"].(string); ok {
				var at any = root
				for _, part := range strings.Split(strings.TrimPrefix(reference, "#/"), "/") {
					at = at.(map[string]any)[part]
				}
				return holds(at)
			}
			for name, member := range v {
				if name == "secret" || name == "clientSecret" || holds(member) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(v, holds)
		}
		return false
	}
	return described(root, func(operation map[string]any) bool { return holds(operation["responses"]) })
}

// Every answer that shows a secret says that no cache may keep it, and no other call shows one.
func TestSecrets_AreNeverCached(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	o.hire("ann")
	id, _ := root.personal("ann", `{"name":"laptop"}`)
	calls := map[string]struct {
		status     int
		path, body string
		secret     []string // where it is in the answer
	}{
		"create-principal":      {201, "/principals", `{"principal":{"name":"bob"}}`, []string{"credentials", "clientSecret"}},
		"rotate-secret":         {200, "/principals/ann/rotate", "", []string{"credentials", "clientSecret"}},
		"reset-secret":          {200, "/principals/ann/reset", "", []string{"credentials", "clientSecret"}},
		"create-personal-token": {201, "/principals/ann/tokens", `{"name":"other"}`, []string{"secret"}},
		"rotate-personal-token": {200, "/principals/ann/tokens/" + id + "/rotate", "", []string{"secret"}},
		"create-webhook":        {201, "/webhooks", `{"url":"https://hooks.example.com/x"}`, []string{"secret"}},
	}
	answering := answeringSecrets(t)
	if len(answering) != len(calls) {
		t.Errorf("answers with secrets are described of %v, and %d are tried", answering, len(calls))
	}
	for _, operation := range answering {
		c, known := calls[operation]
		if !known {
			t.Errorf("%s answers a secret and is not tried", operation)
			continue
		}
		r := root.want(c.status, post, c.path, c.body)
		if secret, _ := r.at(t, c.secret...).(string); secret == "" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: Cache-Control is %q, with a secret of %d bytes", operation, r.header.Get("Cache-Control"), len(secret))
		}
	}
}
