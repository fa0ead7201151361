package rest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// walk reads a list by pages of a size and calls between after each page.
func (d *door) walk(t *testing.T, path, field string, size int, between func(page int)) []string {
	t.Helper()
	var names []string
	token := ""
	for page := 1; page < 200; page++ {
		a := d.expect(t, "GET", fmt.Sprintf("%s?pageSize=%d&pageToken=%s", path, size, segment(token)), "", 200, "")
		items, _ := a.json()[field].([]any)
		if len(items) > size {
			t.Fatalf("a page of %d, %d were asked for", len(items), size)
		}
		for _, item := range items {
			switch item := item.(type) {
			case map[string]any:
				names = append(names, item["name"].(string))
			case []any:
				names = append(names, item[len(item)-1].(string))
			}
		}
		next, more := a.json()["next-page-token"].(string)
		if !more {
			return names
		}
		token = next
		between(page)
	}
	t.Fatal("the walk does not end")
	return nil
}

// namesForPages hold whatever a token, a query or JSON might trip over.
var namesForPages = []string{
	`"quoted"`, "%", "%25", "+", "a b", "a+b", "a/b", "a=b&c", "a?b", "back\\slash", "grün", "日本語", "🦆", "o'reilly", "{}", "$1", "...", "zz",
}

// Whatever is there for the whole walk comes once, whatever comes and goes meanwhile; of every kind of list.
func TestField_C053_WalksAreStableWhileThingsChange(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	for _, kind := range []struct{ path, field, create, drop string }{
		{namespacesOfLake + "/a/tables", "identifiers", namespacesOfLake + "/a/tables", namespacesOfLake + "/a/tables/"},
		{namespacesOfLake + "/a/views", "identifiers", namespacesOfLake + "/a/views", namespacesOfLake + "/a/views/"},
		{namespacesOfLake, "namespaces", namespacesOfLake, namespacesOfLake + "/"},
	} {
		body := createBody
		switch {
		case strings.HasSuffix(kind.path, "views"):
			body = func(name string) string { return viewBody("view " + name) }
		case kind.field == "namespaces":
			body = func(name string) string { return `{"namespace":[` + quoted(name) + `]}` }
		}
		prefix := ""
		if strings.HasSuffix(kind.path, "views") {
			prefix = "view "
		}
		for _, name := range namesForPages {
			d.expect(t, "POST", kind.create, body(name), 200, "")
		}
		want := make([]string, len(namesForPages))
		for i, name := range namesForPages {
			want[i] = prefix + name
		}
		if kind.field == "namespaces" {
			want = append(want, "a")
		}
		slices.Sort(want)
		for _, size := range []int{1, 3, len(want), 100} {
			if got := d.walk(t, kind.path, kind.field, size, func(int) {}); !slices.Equal(got, want) {
				t.Errorf("%s by %d: %q\nwant %q", kind.path, size, got, want)
			}
		}
		got := d.walk(t, kind.path, kind.field, 3, func(page int) {
			early, late := fmt.Sprintf("!early %d", page), fmt.Sprintf("~late %d", page)
			d.expect(t, "POST", kind.create, body(early), 200, "")
			d.expect(t, "POST", kind.create, body(late), 200, "")
			d.expect(t, "DELETE", kind.drop+segment(prefix+early), "", 204, "")
			if page > 1 {
				d.expect(t, "DELETE", kind.drop+segment(prefix+fmt.Sprintf("~late %d", page-1)), "", 204, "")
			}
		})
		steady := slices.DeleteFunc(slices.Clone(got), func(name string) bool { return strings.Contains(name, "late") || strings.Contains(name, "early") })
		if !slices.Equal(steady, want) {
			t.Errorf("%s while things change: %q\nwant %q", kind.path, steady, want)
		}
	}
}

func TestPaging_SizesOutOfBounds(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	for _, path := range []string{namespacesOfLake, namespacesOfLake + "/a/tables", namespacesOfLake + "/a/views"} {
		for _, query := range []string{"pageSize=0", "pageSize=-1", "pageSize=x", "pageSize=1.5", "pageSize=99999999999999999999", "pageToken=x", "pageToken=e30"} {
			d.expect(t, "GET", path+"?"+query, "", 400, "BadRequestException")
		}
		d.expect(t, "GET", path+"?pageToken=&pageSize=1000000", "", 200, "")
		d.expect(t, "GET", path+"?pageToken=&pageSize=", "", 200, "")
	}
}

func TestField_C025_PropertiesOfACreateAreKept(t *testing.T) {
	l := newLake(t)
	w, err := l.store.FindWarehouse(t.Context(), "lake")
	if err != nil {
		t.Fatal(err)
	}
	place := w.Location + "/sales"
	body := fmt.Sprintf(`{"namespace":["s"],"properties":{"location":%q,"comment":"x"}}`, place)
	for _, a := range []answer{
		l.expect(t, "POST", namespacesOfLake, body, 200, ""), l.expect(t, "GET", namespacesOfLake+"/s", "", 200, ""),
	} {
		properties, _ := a.json()["properties"].(map[string]any)
		if properties["location"] != place || properties["comment"] != "x" {
			t.Errorf("properties %s", a.body)
		}
	}
	l.mustCreateNamespace(t, "none") // a location is answered always: engines build on it
	a := l.expect(t, "GET", namespacesOfLake+"/none", "", 200, "")
	properties, _ := a.json()["properties"].(map[string]any)
	if location, _ := properties["location"].(string); !strings.HasPrefix(location, w.Location+"/ns/") {
		t.Errorf("properties %s", a.body)
	}
}

func TestField_C028_LocationsOutsideAreRefused(t *testing.T) {
	l := newLake(t)
	l.mustCreateNamespace(t, "a")
	w, err := l.store.FindWarehouse(t.Context(), "lake")
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"s3://other-bucket/ns", "file:///elsewhere", w.Location, w.Location + "/../up", w.Location + "x"} {
		for path, body := range map[string]string{
			namespacesOfLake:                   fmt.Sprintf(`{"namespace":["b"],"properties":{"location":%q}}`, place),
			namespacesOfLake + "/a/properties": fmt.Sprintf(`{"updates":{"location":%q}}`, place),
		} {
			a := l.expect(t, "POST", path, body, 400, "BadRequestException")
			if !strings.Contains(a.body, w.Location) && !strings.Contains(place, "..") {
				t.Errorf("%s at %s: what is allowed is not said: %s", place, path, a.body)
			}
		}
	}
	l.expect(t, "HEAD", namespacesOfLake+"/b", "", 404, "")
}

// Limits are in bytes, and a refusal says which.
func TestField_C032_NamesBeyondTheLimits(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	long := strings.Repeat("x", 3000)
	levels := make([]string, 60)
	for i := range levels {
		levels[i] = quoted(strings.Repeat("y", 60))
	}
	for path, body := range map[string]string{
		namespacesOfLake:                `{"namespace":["` + long + `"]}`,
		namespacesOfLake + "?":          `{"namespace":[` + strings.Join(levels, ",") + `]}`,
		namespacesOfLake + "/a/tables":  createBody(long + long),
		namespacesOfLake + "/a/tables?": createBody(strings.Repeat("ü", 257)),
		namespacesOfLake + "/a/views":   viewBody(long),
		"/v1/lake/tables/rename":        `{"source":{"namespace":["a"],"name":"t"},"destination":{"namespace":["a"],"name":"` + long + `"}}`,
	} {
		a := d.expect(t, "POST", path, body, 400, "BadRequestException")
		if !strings.Contains(a.body, "at most") {
			t.Errorf("%s: the limit is not said: %s", path, a.body)
		}
	}
	d.expect(t, "GET", namespacesOfLake+"/a/tables/"+long, "", 404, "NoSuchTableException")
	d.expect(t, "GET", namespacesOfLake+"/"+long, "", 404, "NoSuchNamespaceException")
}

// Names are data: stored as they are, escaped in messages, and not in any path.
func TestField_C042_NamesThatLookLikeCode(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	for _, name := range []string{"o'reilly", `a"b`, `x\\y`, "t; drop table tables--", "{}", "$1", "%s", "{{.}}", "${x}"} {
		d.expect(t, "POST", namespacesOfLake, `{"namespace":[`+quoted(name)+`]}`, 200, "")
		at := namespacesOfLake + "/" + segment(name) + "/tables"
		made := d.expect(t, "POST", at, createBody(name), 200, "")
		location, _ := made.json()["metadata-location"].(string)
		if strings.Contains(location, name) || location == "" {
			t.Errorf("%q is in the path %s", name, location)
		}
		d.expect(t, "GET", at+"/"+segment(name), "", 200, "")
		clash := d.expect(t, "POST", at, createBody(name), 409, "AlreadyExistsException")
		failure, _ := clash.json()["error"].(map[string]any)
		if message, _ := failure["message"].(string); !strings.Contains(message, name) {
			t.Errorf("%q: message %q", name, message)
		}
		missing := d.expect(t, "GET", at+"/"+segment(name+"!"), "", 404, "NoSuchTableException")
		failure, _ = missing.json()["error"].(map[string]any)
		if message, _ := failure["message"].(string); !strings.Contains(message, name+"!") {
			t.Errorf("%q: message %q", name, message)
		}
	}
}
