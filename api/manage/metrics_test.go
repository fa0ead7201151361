package manage_test

import (
	"fmt"
	"strings"
	"testing"
)

// Reports come back newest first, in pages, to who may write the table's data and to nobody else.
func TestMetrics_AreListedNewestFirst(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	must := func(r reply, status int) {
		t.Helper()
		if r.status != status {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	must(root.catalogCall(post, "/lake/namespaces", `{"namespace":["a"]}`), 200)
	must(root.catalogCall(post, "/lake/namespaces", `{"namespace":["a","b"]}`), 200)
	must(root.catalogCall(post, "/lake/namespaces/a%1Fb/tables", tableBody), 200)
	for i := range 5 {
		kind := "scan-report"
		if i == 3 {
			kind = "commit-report"
		}
		must(root.catalogCall(post, "/lake/namespaces/a%1Fb/tables/t/metrics",
			fmt.Sprintf(`{"report-type":"%s","snapshot-id":888888888888888888%d,"n":%d}`, kind, i, i)), 204)
	}
	const route = "/catalogs/lake/namespaces/a%1Fb/tables/t/metrics"
	numbers := func(r reply) (found string) {
		for _, part := range strings.Split(r.body, `"n":`)[1:] {
			found += part[:1]
		}
		return found
	}
	r := root.want(200, get, route, "")
	if numbers(r) != "43210" || !strings.Contains(r.body, `"next-page-token":null`) || !strings.Contains(r.body, `"snapshot-id":8888888888888888884`) || !strings.Contains(r.body, `"principal":"root"`) {
		t.Errorf("all: %s", r.body)
	}
	if r := root.want(200, get, route+"?type=commit-report", ""); numbers(r) != "3" {
		t.Errorf("by type: %s", r.body)
	}
	got, token := "", ""
	for range 3 {
		r := root.want(200, get, route+"?pageSize=2&pageToken="+token, "")
		got += numbers(r) + "|"
		_, token, _ = strings.Cut(r.body, `"next-page-token":"`)
		token, _, _ = strings.Cut(token, `"`)
	}
	if got != "43|21|0|" || token != "" {
		t.Errorf("pages %s, last token %q", got, token)
	}
	for _, bad := range []string{"?pageSize=0", "?pageToken=x", "?pageToken=eyJ2IjoxLCJhZnRlciI6IngifQ"} {
		root.want(400, get, route+bad, "")
	}
	root.want(404, get, "/catalogs/lake/namespaces/a/tables/none/metrics", "")
	o.hire("reader", "readers")
	o.let("readers", "lake", "TABLE_READ_DATA")
	reader := o.login(o.hire("reader2", "readers"), "")
	reader.want(403, get, route, "")
	o.hire("x", "writers")
	o.let("writers", "lake", "TABLE_WRITE_DATA")
	o.login(o.hire("writer", "writers"), "").want(200, get, route, "")
}
