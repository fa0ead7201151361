package manage_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// names gives a member of each item of a list in an answer.
func names(t *testing.T, r reply, list, field string) []string {
	t.Helper()
	var all []string
	items, _ := r.at(t, list).([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		name, _ := object[field].(string)
		all = append(all, name)
	}
	return all
}

// pagesOf walks a list in pages and gives the names; the token is there till the last page and null on it.
func (p *person) pagesOf(path, list, field string, query url.Values) (all []string, pages int) {
	p.office.t.Helper()
	query.Set("pageToken", "")
	for {
		r := p.want(200, get, path+"?"+query.Encode(), "")
		all, pages = append(all, names(p.office.t, r, list, field)...), pages+1
		token, there := r.object(p.office.t)["next-page-token"]
		if !there {
			p.office.t.Fatalf("%s: a page without a token: %s", path, r.body)
		}
		next, _ := token.(string)
		if next == "" {
			return all, pages
		}
		query.Set("pageToken", next)
	}
}

// Every list comes whole to who does not page, in pages to who does, and narrowed to names.
func TestLists_InPagesAndByName(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	for i := range 7 {
		name := fmt.Sprintf("%s-%d", []string{"even", "Odd"}[i%2], i)
		root.want(201, post, "/catalogs", fileCatalog(name, "file:///lakes/"+name))
		o.hire(name, "all")
		root.want(201, post, "/principal-roles", `{"principalRole":{"name":"`+name+`"}}`)
		root.want(201, put, "/principals/even-0/principal-roles", `{"principalRole":{"name":"`+name+`"}}`)
		root.want(201, post, "/catalogs/even-0/catalog-roles", `{"catalogRole":{"name":"`+name+`"}}`)
		root.want(201, put, "/principal-roles/all/catalog-roles/even-0", `{"catalogRole":{"name":"`+name+`"}}`)
		root.want(201, put, "/principal-roles/"+name+"/catalog-roles/even-0", `{"catalogRole":{"name":"even-0"}}`)
	}
	for path, list := range map[string]string{
		"/catalogs": "catalogs", "/principals": "principals", "/principal-roles": "roles", "/principals/even-0/principal-roles": "roles",
		"/principal-roles/all/principals": "principals", "/catalogs/even-0/catalog-roles": "roles",
		"/principal-roles/all/catalog-roles/even-0": "roles", "/catalogs/even-0/catalog-roles/even-0/principal-roles": "roles",
	} {
		whole := root.want(200, get, path, "")
		if _, there := whole.object(t)["next-page-token"]; there {
			t.Errorf("%s: who does not page gets a token", path)
		}
		all := names(t, whole, list, "name")
		if !slices.IsSorted(all) || len(all) < 7 {
			t.Errorf("%s: %v", path, all)
		}
		for size := 1; size <= len(all)+1; size += 2 {
			paged, pages := root.pagesOf(path, list, "name", url.Values{"pageSize": {fmt.Sprint(size)}})
			if !slices.Equal(paged, all) || pages != max(1, (len(all)+size-1)/size) {
				t.Errorf("%s by %d: %d pages %v, want %v", path, size, pages, paged, all)
			}
		}
		if odd, _ := root.pagesOf(path, list, "name", url.Values{"namePrefix": {"Odd-"}, "pageSize": {"2"}}); !slices.Equal(odd, []string{"Odd-1", "Odd-3", "Odd-5"}) {
			t.Errorf("%s by prefix: %v", path, odd)
		}
		if some := names(t, root.want(200, get, path+"?nameContains=DD-", ""), list, "name"); !slices.Equal(some, []string{"Odd-1", "Odd-3", "Odd-5"}) {
			t.Errorf("%s by part: %v", path, some)
		}
		if none := root.want(200, get, path+"?namePrefix=%25", ""); !strings.Contains(none.body, `"`+list+`":[]`) {
			t.Errorf("%s by a pattern's letter: %s", path, none.body)
		}
		root.want(400, get, path+"?pageToken=x", "")
		root.want(400, get, path+"?pageToken=&pageSize=0", "")
	}
}

func TestGrants_InPagesAndBySecurable(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	o.furnish(root, "lake", "a")
	for _, role := range []string{"one", "two"} {
		root.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"`+role+`"}}`)
	}
	grant := func(role, on, privilege string) {
		root.want(201, put, "/catalogs/lake/catalog-roles/"+role+"/grants", `{"grant":{`+on+`,"privilege":"`+privilege+`"}}`)
	}
	const table, view = `"type":"table","namespace":["a"],"tableName":"t"`, `"type":"view","namespace":["a"],"viewName":"v"`
	grant("one", `"type":"catalog"`, "NAMESPACE_LIST")
	grant("one", `"type":"namespace","namespace":["a"]`, "TABLE_LIST")
	grant("one", table, "TABLE_READ_DATA")
	grant("one", table, "SELECT")
	grant("two", table, "TABLE_DROP")
	grant("two", view, "VIEW_DROP")
	all := names(t, root.want(200, get, "/catalogs/lake/catalog-roles/one/grants", ""), "grants", "privilege")
	if want := []string{"NAMESPACE_LIST", "TABLE_LIST", "SELECT", "TABLE_READ_DATA"}; !slices.Equal(all, want) {
		t.Errorf("grants %v, want %v", all, want)
	}
	for size := 1; size < 6; size++ {
		if paged, _ := root.pagesOf("/catalogs/lake/catalog-roles/one/grants", "grants", "privilege", url.Values{"pageSize": {fmt.Sprint(size)}}); !slices.Equal(paged, all) {
			t.Errorf("by %d: %v", size, paged)
		}
	}
	on := url.Values{"namespace": {"a"}, "table": {"t"}, "pageSize": {"1"}}
	if held, _ := root.pagesOf("/catalogs/lake/grants", "grants", "privilege", on); !slices.Equal(held, []string{"SELECT", "TABLE_READ_DATA", "TABLE_DROP"}) {
		t.Errorf("on the table: %v", held)
	}
	for query, want := range map[string][]string{
		"": {"catalog_admin", "catalog_admin", "catalog_admin", "one"}, "?namespace=a": {"one"}, "?namespace=a&view=v": {"two"},
	} {
		if roles := names(t, root.want(200, get, "/catalogs/lake/grants"+query, ""), "grants", "catalogRole"); !slices.Equal(roles, want) {
			t.Errorf("on %q: %v, want %v", query, roles, want)
		}
	}
	root.want(404, get, "/catalogs/lake/grants?namespace=a&table=none", "")
	root.want(400, get, "/catalogs/lake/grants?table=t", "")
	nobody := o.login(o.hire("nobody"), "")
	hidden, missing := nobody.call(get, "/catalogs/lake/grants?namespace=a&table=t", ""), nobody.call(get, "/catalogs/lake/grants?namespace=a&table=x", "")
	if hidden.status != 403 || missing.status != 403 {
		t.Errorf("without the right: %d and %d", hidden.status, missing.status)
	}
}

// An administrator gives anybody a new secret; a principal itself; nobody else.
func TestRotate_ByAdministrators(t *testing.T) {
	o := newOffice(t)
	ann, bob := o.hire("ann"), o.hire("bob")
	o.login(bob, "").want(403, post, "/principals/ann/rotate", "")
	o.login(bob, "").want(403, post, "/principals/none/rotate", "")
	o.admin().want(404, post, "/principals/none/rotate", "")
	r := o.admin().want(200, post, "/principals/ann/rotate", "")
	if r.header.Get("Cache-Control") != "no-store" {
		t.Error("a secret may be cached")
	}
	fresh := credentialOf(t, r)
	if fresh.ClientID != ann.ClientID || fresh.Secret == ann.Secret {
		t.Errorf("the client id changed, or the secret did not")
	}
	if old := o.tryLogin(ann, ""); old.status == 200 {
		t.Error("the old secret still counts")
	}
	o.login(fresh, "").want(200, post, "/principals/ann/rotate", "")
}
