package manage_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// change changes the database, for what no call makes happen soon.
func (o *office) change(sql string) {
	o.t.Helper()
	connection, err := pgx.Connect(o.t.Context(), o.url)
	if err != nil {
		o.t.Fatal(err)
	}
	defer connection.Close(o.t.Context())
	if tag, err := connection.Exec(o.t.Context(), sql); err != nil || tag.RowsAffected() == 0 {
		o.t.Fatalf("%s: %v, %d rows", sql, err, tag.RowsAffected())
	}
}

// oneTable makes the warehouse lake with a namespace a and a table t in it.
func (o *office) oneTable() {
	o.t.Helper()
	o.open("lake")
	root := o.admin()
	if r := root.catalogCall(post, "/lake/namespaces", `{"namespace":["a"]}`); r.status != 200 {
		o.t.Fatal(r.body)
	}
	if r := root.catalogCall(post, "/lake/namespaces/a/tables", tableBody); r.status != 200 {
		o.t.Fatal(r.body)
	}
}

// onePurge is oneTable with the table purged: one job waits. It gives the administrator.
func (o *office) onePurge() *person {
	o.t.Helper()
	o.oneTable()
	root := o.admin()
	if r := root.catalogCall(del, "/lake/namespaces/a/tables/t?purgeRequested=true", ""); r.status != 204 {
		o.t.Fatal(r.body)
	}
	return root
}

// A failed purge is listed, shown and begun again by who may drop and write the tables of its namespace, and by nobody
// else; the second call changes nothing, and one event says who did it.
func TestJobs_AFailedPurgeIsBegunAgain(t *testing.T) {
	o := newOffice(t)
	o.onePurge()
	o.change(`UPDATE catalogd.jobs SET state = 'failed', attempts = 8, reason_code = 'error', reason = 'access denied', finished_at = now(), started_at = now()`)
	credential := o.hire("clerk", "clerks")
	clerk := o.login(credential, "")
	clerk.want(403, get, "/catalogs/lake/maintenance/jobs?state=failed", "")
	o.let("clerks", "lake", "TABLE_READ_PROPERTIES")
	r := clerk.want(200, get, "/catalogs/lake/maintenance/jobs?state=failed&state=refused", "")
	for _, part := range []string{`"job":"purge"`, `"table":"a.t"`, `"message":"access denied"`, `"attempts":8`} {
		if !strings.Contains(r.body, part) {
			t.Errorf("no %s in %s", part, r.body)
		}
	}
	if r := clerk.want(200, get, "/catalogs/lake/maintenance/jobs?state=queued", ""); !strings.Contains(r.body, `"jobs":[]`) {
		t.Errorf("queued: %s", r.body)
	}
	clerk.want(400, get, "/catalogs/lake/maintenance/jobs?state=lost", "")
	_, after, _ := strings.Cut(r.body, `"job_id":"`)
	retry := "/maintenance/jobs/" + after[:36] + "/retry"
	for _, right := range []string{"TABLE_WRITE_DATA", "TABLE_DROP"} {
		denials := o.count("SELECT count(*) FROM catalogd.audit WHERE NOT allowed")
		clerk.want(403, post, retry, "")
		if o.count("SELECT count(*) FROM catalogd.audit WHERE NOT allowed") != denials+1 {
			t.Error("the refusal is not in the audit")
		}
		o.let("clerks", "lake", right)
	}
	const facts = `SELECT count(*) FROM catalogd.events WHERE operation = 'retry-job'`
	for range 2 {
		r := clerk.want(200, post, retry, "")
		if r.at(t, "state") != "queued" || r.at(t, "attempts") != 0.0 || r.at(t, "requested_by") != "clerk" {
			t.Errorf("begun again: %s", r.body)
		}
		if n := o.count(facts); n != 1 {
			t.Errorf("%d events", n)
		}
	}
	for state, word := range map[string]string{"succeeded": "register the table", "refused": "register the table", "nothing_to_do": "register the table"} {
		o.change(`UPDATE catalogd.jobs SET state = '` + state + `'`)
		if r := clerk.want(400, post, retry, ""); !strings.Contains(r.body, word) || !strings.Contains(r.body, state) {
			t.Errorf("%s: %s", state, r.body)
		}
	}
	o.change(`UPDATE catalogd.jobs SET state = 'failed'`)
	o.change(`DELETE FROM catalogd.dropped_tables`)
	if r := clerk.want(400, post, retry, ""); !strings.Contains(r.body, "not there any more") {
		t.Errorf("without its table: %s", r.body)
	}
	clerk.want(404, post, "/maintenance/jobs/00000000-0000-0000-0000-000000000001/retry", "")
	clerk.want(400, post, "/maintenance/jobs/x/retry", "")
	(&person{o, ""}).want(401, post, retry, "")
	if n := o.count(facts); n != 1 {
		t.Errorf("%d events in the end", n)
	}
}

// A compaction takes the right to write its table, and the table must be there.
func TestJobs_AFailedCompactionIsBegunAgain(t *testing.T) {
	o := newOffice(t)
	o.oneTable()
	root := o.admin()
	o.change(`INSERT INTO catalogd.jobs (id, kind, table_id, warehouse, subject, state, trigger, not_before, created_at, attempts)
		SELECT '00000000-0000-4000-8000-000000000001', 'compaction', id, 'lake', 'a.t', 'failed', 'automatic', now(), now(), 3 FROM catalogd.tables`)
	const retry = "/maintenance/jobs/00000000-0000-4000-8000-000000000001/retry"
	clerk := o.login(o.hire("clerk", "clerks"), "")
	o.let("clerks", "lake", "TABLE_READ_PROPERTIES")
	clerk.want(403, post, retry, "")
	if r := root.want(200, post, retry, ""); r.at(t, "state") != "queued" || r.at(t, "trigger") != "on-demand" {
		t.Error(r.body)
	}
	o.change(`UPDATE catalogd.jobs SET state = 'succeeded'`)
	if r := root.want(400, post, retry, ""); !strings.Contains(r.body, "run maintenance of its table instead") {
		t.Error(r.body)
	}
	o.change(`UPDATE catalogd.jobs SET state = 'failed'`)
	if r := root.catalogCall(del, "/lake/namespaces/a/tables/t", ""); r.status != 204 {
		t.Fatal(r.body)
	}
	if r := root.want(404, post, retry, ""); !strings.Contains(r.body, "not there any more") {
		t.Error(r.body)
	}
	if r := root.want(200, get, "/catalogs/lake/maintenance/jobs?state=failed", ""); !strings.Contains(r.body, "00000000-0000-4000-8000-000000000001") {
		t.Errorf("the job of a dropped table is not listed: %s", r.body)
	}
}

// A warehouse that was made anew under a name has nothing to do with the jobs of the one before.
func TestJobs_OfAWarehouseOfThatNameBefore(t *testing.T) {
	o := newOffice(t)
	root := o.onePurge()
	o.change(`UPDATE catalogd.jobs SET state = 'failed'`)
	id := root.want(200, get, "/catalogs/lake/maintenance/jobs", "").body
	_, id, _ = strings.Cut(id, `"job_id":"`)
	if r := root.catalogCall(del, "/lake/namespaces/a", ""); r.status != 204 {
		t.Fatal(r.body)
	}
	o.change(`UPDATE catalogd.warehouses SET name = 'lake-before'`)
	root.want(201, post, "/catalogs", fileCatalog("lake", "file:///lakes/again"))
	root.want(400, post, "/maintenance/jobs/"+id[:36]+"/retry", "")
	if r := root.want(200, get, "/catalogs/lake/maintenance/jobs", ""); strings.Contains(r.body, id[:36]) {
		t.Errorf("listed: %s", r.body)
	}
}
