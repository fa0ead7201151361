package manage_test

import (
	"fmt"
	"strings"
	"testing"

	"catalogd/catalog"
)

func change(action, role, privilege, table string) string {
	return fmt.Sprintf(`{"action":%q,"catalogRole":%q,"grant":{"type":"table","namespace":["a"],"tableName":%q,"privilege":%q}}`, action, role, table, privilege)
}

func changes(of ...string) string { return `{"changes":[` + strings.Join(of, ",") + `]}` }

// Many grants change in one request or none does, and what was wrong is named by its place.
func TestGrants_ManyAtOnce(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	o.open("lake")
	o.furnish(root, "lake", "a")
	for _, role := range []string{"reader", "writer"} {
		root.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"`+role+`"}}`)
	}
	held := func(role string) string {
		return root.want(200, get, "/catalogs/lake/catalog-roles/"+role+"/grants", "").body
	}
	root.want(204, post, "/catalogs/lake/grants", changes(
		change("add", "reader", "TABLE_READ_DATA", "t"), change("add", "reader", "TABLE_LIST", "t"), change("add", "writer", "TABLE_WRITE_DATA", "t"),
		change("revoke", "reader", "TABLE_LIST", "t")))
	if got := held("reader"); !strings.Contains(got, "TABLE_READ_DATA") || strings.Contains(got, "TABLE_LIST") || !strings.Contains(held("writer"), "TABLE_WRITE_DATA") {
		t.Fatal(got, held("writer"))
	}
	first := change("add", "reader", "TABLE_DROP", "t")
	many := strings.Repeat(first+",", catalog.GrantChangesMax) + first
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"a table that is missing": {changes(first, change("add", "reader", "TABLE_LIST", "none")), 404, "changes[1]: "},
		"a role that is missing":  {changes(first, first, change("revoke", "none", "TABLE_LIST", "t")), 404, "changes[2]: "},
		"two that are wrong":      {changes(first, change("add", "reader", "NO_SUCH", "t"), change("add", "reader", "CATALOG_DROP", "t")), 400, "changes[2]: "},
		"a role without a name":   {changes(change("add", "", "TABLE_LIST", "t")), 400, "changes[0]: the catalogRole is missing"},
		"another action":          {changes(first, change("drop", "reader", "TABLE_LIST", "t")), 400, `changes[1]: action is "drop"`},
		"no grant":                {`{"changes":[{"action":"add","catalogRole":"reader"}]}`, 400, "changes[0]: grant is missing"},
		"none":                    {`{}`, 400, "1 to 500"},
		"too many":                {`{"changes":[` + many + `]}`, 400, "there are 501 changes"},
	} {
		r := root.call(post, "/catalogs/lake/grants", c.body)
		message, _ := r.at(t, "error", "message").(string)
		if r.status != c.status || !strings.Contains(message, c.says) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if got := held("reader"); strings.Contains(got, "TABLE_DROP") {
		t.Errorf("a refused request changed something: %s", got)
	}
	// Who may manage the grants on one table changes none when another is among them, and does not learn which is there.
	root.want(204, post, "/catalogs/lake/grants", changes(change("add", "writer", "TABLE_MANAGE_GRANTS_ON_SECURABLE", "t")))
	before := held("reader") + held("writer")
	steward := o.login(o.hire("steward", "stewards"), "")
	root.want(201, put, "/principal-roles/stewards/catalog-roles/lake", `{"catalogRole":{"name":"writer"}}`)
	facts := o.count("SELECT count(*) FROM catalogd.events")
	for _, table := range []string{"u", "none"} {
		if r := steward.call(post, "/catalogs/lake/grants", changes(first, change("add", "reader", "TABLE_DROP", table))); r.status != 403 || !strings.Contains(r.body, "changes[1]: ") {
			t.Errorf("%s: %d %s", table, r.status, r.body)
		}
	}
	if r := steward.call(post, "/catalogs/lake/grants", changes(first, change("revoke", "reader", "TABLE_DROP", "t"))); r.status != 403 {
		t.Errorf("taking back by the right to give alone: %d %s", r.status, r.body)
	}
	if got := held("reader") + held("writer"); got != before || o.count("SELECT count(*) FROM catalogd.events") != facts {
		t.Errorf("something was changed: %s", got)
	}
	steward.want(204, post, "/catalogs/lake/grants", changes(first))
}
