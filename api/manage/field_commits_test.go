package manage_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"catalogd/catalog/catalogtest"
)

// plainTable asks for a table of one column; more holds further members.
func plainTable(name, more string) string {
	return `{"name":` + quote(name) + more + `,"schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`
}

// One client makes and drops a namespace, another one makes and drops tables beside it, two stage creates, all at chosen
// places, where every one of them is held against all others; then several hundred dropped tables are in nobody's way.
func TestField_C081_SiblingsComeAndGo(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	call := func(want, method, path, body string) {
		r := root.catalogCall(method, "/lake/namespaces"+path, body)
		if !strings.Contains(want, fmt.Sprint(r.status)) {
			t.Errorf("%s %s: %d %s", method, path, r.status, r.body)
		}
	}
	at := func(name string) string { return `,"location":"file:///lakes/lake/chosen/` + name + `"` }
	call("200", post, "", `{"namespace":["ns"]}`)
	var all sync.WaitGroup
	const turns = 40
	all.Go(func() {
		for range turns {
			call("200", post, "", `{"namespace":["ns","n1"],"properties":{"location":"file:///lakes/lake/chosen/n1"}}`)
			call("204", del, "/ns%1Fn1", "")
		}
	})
	all.Go(func() {
		for i := range turns {
			call("200", post, "/ns/tables", plainTable("t", at(fmt.Sprintf("t%d", i))))
			call("204", del, "/ns/tables/t", "")
		}
	})
	for _, who := range []string{"a", "b"} {
		all.Go(func() {
			for i := range turns {
				call("200", post, "/ns/tables", plainTable("staged", at(fmt.Sprintf("%s%d", who, i))+`,"stage-create":true`))
				// In the namespace that comes and goes: there, or not there, and nothing else.
				call("200 404", post, "/ns%1Fn1/tables", plainTable("staged", `,"stage-create":true`))
			}
		})
	}
	all.Wait()
	for i := range 300 {
		call("200", post, "/ns/tables", plainTable("many", at(fmt.Sprintf("many%d", i))))
		call("204", del, "/ns/tables/many", "")
	}
	call("200", post, "/ns/tables", plainTable("last", at("last")))
	call("400", post, "/ns/tables", plainTable("taken", at("last/in")))
	if n := o.count(`SELECT count(*) FROM catalogd.dropped_tables`); n != turns+300 {
		t.Errorf("%d tables were dropped", n)
	}
}

// Another commit comes between a commit's reading of the pointer and its moving it: the update matches no row. What was
// built on the state before is a conflict; what holds on the new state is applied to that. Nobody is told 200 for nothing.
func TestField_C092_AnUpdateThatMatchesNoRowIsNoSuccess(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	root.catalogCall(post, "/lake/namespaces", `{"namespace":["a"]}`)
	if r := root.catalogCall(post, "/lake/namespaces/a/tables", plainTable("t", "")); r.status != 200 {
		t.Fatal(r.body)
	}
	const table = "/lake/namespaces/a/tables/t"
	load := func() (location, body string) {
		r := root.catalogCall(get, table, "")
		location, _ = r.at(t, "metadata-location").(string)
		return location, r.body
	}
	first, _ := load()
	commit := func(requirement, key string) reply {
		return root.catalogCall(post, table, `{"requirements":[`+requirement+`],"updates":[{"action":"set-properties","updates":{"`+key+`":"v"}}]}`)
	}
	add := func(column string, id int) string {
		return fmt.Sprintf(`{"requirements":[{"type":"assert-last-assigned-field-id","last-assigned-field-id":%d}],"updates":[{"action":"add-schema",`+
			`"schema":{"type":"struct","fields":[{"id":1,"name":"id","required":false,"type":"long"},{"id":2,"name":%q,"required":false,"type":"long"}]}},`+
			`{"action":"set-current-schema","schema-id":-1}]}`, id, column)
	}
	if r := root.catalogCall(post, table, add("second", 1)); r.status != 200 {
		t.Fatal(r.body)
	}
	second, _ := load()
	// As soon as the next commit writes its file, the pointer is moved back under it, once.
	back := func() {
		db, err := pgx.Connect(t.Context(), o.url)
		if err != nil {
			t.Fatal(err)
		}
		moved := false
		o.files.Inject(func(method string, _ int) catalogtest.Failure {
			if method != "WriteMetadata" || moved {
				return catalogtest.Failure{}
			}
			moved = true
			defer db.Close(t.Context())
			tag, err := db.Exec(t.Context(), `UPDATE catalogd.tables SET metadata_location = $1, version = version + 1 WHERE metadata_location = $2`, first, second)
			if err != nil || tag.RowsAffected() != 1 {
				t.Errorf("move the pointer: %v, %d rows", err, tag.RowsAffected())
			}
			return catalogtest.Failure{}
		})
	}
	back()
	r := commit(`{"type":"assert-last-assigned-field-id","last-assigned-field-id":2}`, "stale")
	if r.status != 409 || r.at(t, "error", "type") != "CommitFailedException" {
		t.Errorf("built on the state before: %d %s", r.status, r.body)
	}
	if location, body := load(); location != first || strings.Contains(body, "stale") {
		t.Errorf("the table moved to %s: %s", location, body)
	}
	o.change(`UPDATE catalogd.tables SET metadata_location = '` + second + `', version = version + 1`)
	back()
	if r := commit(``, "free"); r.status != 200 {
		t.Errorf("without requirements: %d %s", r.status, r.body)
	}
	if location, body := load(); location == first || location == second || !strings.Contains(body, `"free":"v"`) || strings.Contains(body, "second") {
		t.Errorf("the commit was not made on what it met: %s", body)
	}
}
