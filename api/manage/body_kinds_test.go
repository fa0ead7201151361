package manage_test

import (
	"slices"
	"strings"
	"testing"

	"catalogd/api"
	"catalogd/api/manage"
	"catalogd/api/rest"
)

// No call that takes JSON takes it under another name, and nothing comes of one that is called so. The token routes take forms.
func TestBodies_AreCalledJSON(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	taking := described(description(t), func(operation map[string]any) bool { return operation["requestBody"] != nil })
	tried := 0
	for _, e := range append(rest.Endpoints(rest.Config{}), manage.Endpoints(manage.Config{})...) {
		if e.Access == api.Public || operationBodies[e.Operation] == "" && !slices.Contains(taking, e.Operation) {
			continue
		}
		tried++
		e.Pattern = strings.ReplaceAll(e.Pattern, "{webhook}", "018f3a1e-7b7c-7000-8000-000000000001")
		c := tenantCall(e, "lake", "a", "t", "v", "inner")
		if c.body == "" {
			c.body = "{}"
		}
		for _, kind := range []string{"text/plain", formType} {
			if r := o.send(e.Method, c.path, root.token, kind, c.body); r.status != 400 || !strings.Contains(r.body, "Content-Type") {
				t.Errorf("%s as %s: %d %s", e.Operation, kind, r.status, r.body)
			}
		}
	}
	if tried <= len(taking) {
		t.Errorf("%d calls with bodies are tried, of which %d are the management's", tried, len(taking))
	}
}
