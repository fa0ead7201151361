package manage_test

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/catalog"
)

// page gives the operations of a page of the audit or of events, and the page.
func (p *person) page(path string) ([]string, reply) {
	p.office.t.Helper()
	r := p.want(200, get, path, "")
	var operations []string
	object := r.object(p.office.t)
	list, found := object["rows"].([]any)
	if !found {
		list = object["events"].([]any)
	}
	for _, one := range list {
		operations = append(operations, one.(map[string]any)["operation"].(string))
	}
	return operations, r
}

// text gives a member of the answer, "" when it is null or missing.
func (r reply) text(t *testing.T, name string) string {
	t.Helper()
	text, _ := r.object(t)[name].(string)
	return text
}

func TestAudit_SaysWhoWhatFromWhereAndWhy(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	bob := o.login(o.hire("bob", "readers"), "")
	bob.want(403, get, "/catalogs/lake", "")
	_, r := o.admin().page("/audit?allowed=false&principal=bob")
	row := r.object(t)["rows"].([]any)[0].(map[string]any)
	for name, want := range map[string]string{
		"principal": "bob", "operation": "load-warehouse", "catalog": "lake", "missingPrivilege": "CATALOG_READ_PROPERTIES",
		"missingOn": `catalog "lake"`, "clientAddress": "127.0.0.1", "userAgent": "Go-http-client/1.1",
	} {
		if row[name] != want {
			t.Errorf("%s is %v, want %s", name, row[name], want)
		}
	}
	if !someText(row["tokenId"]) || !someText(row["requestId"]) || row["allowed"] != false || row["catalogId"] == nil {
		t.Errorf("row %v", row)
	}
}

// someText says whether a field of an answer is there and holds text.
func someText(v any) bool {
	text, ok := v.(string)
	return ok && text != ""
}

// Who shows a token that is none is kept, and nothing of what was shown; who shows nothing has tried nothing.
func TestAudit_TokensThatAreNone(t *testing.T) {
	o := newOffice(t)
	(&person{o, "Bearer eyJ.hidden-token.x"}).want(401, get, "/catalogs", "")
	(&person{o, ""}).want(401, get, "/catalogs", "")
	_, r := o.admin().page("/audit?allowed=false&order=oldest")
	rows, _ := r.object(t)["rows"].([]any)
	if len(rows) != 1 || rows[0].(map[string]any)["operation"] != "list-warehouses" || rows[0].(map[string]any)["principal"] != "" {
		t.Errorf("kept is %v", rows)
	}
	if n := o.count("SELECT count(*) FROM catalogd.audit WHERE audit::text LIKE '%hidden-token%'"); n != 0 {
		t.Error("the token is in the audit")
	}
}

// A cursor from before a database was restored is ahead of the feed: it says so and goes back, and what comes then is not left out.
func TestEvents_ACursorOfAnotherTime(t *testing.T) {
	o := newOffice(t)
	admin := o.admin()
	for _, list := range []struct{ path, kind string }{{"/events?", "events:"}, {"/audit?order=oldest&", "oldest:"}} {
		_, r := admin.page(list.path + "pageToken=" + o.cursor(list.kind, 1000))
		if r.object(t)["missed"] != true {
			t.Errorf("nothing is said: %s", r.body)
		}
		cursor := r.text(t, "cursor")
		o.hire("new"+list.kind[:3], "readers")
		_, r = admin.page(list.path + "pageToken=" + cursor)
		if r.object(t)["missed"] != nil || !strings.Contains(r.body, "create-principal") {
			t.Errorf("what came then: %s", r.body)
		}
	}
}

func TestAudit_TimesThatTheDatabaseHasNot(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	o.admin().want(400, get, "/audit?since=0000-01-01T00:00:00Z", "")
	o.admin().want(400, get, "/audit?until=0001-01-01T00:00:00%2B01:00", "")
	o.admin().want(400, get, "/catalogs/lake/maintenance/jobs?pageToken="+api.PageToken("0000-01-01T00:00:00Z 11111111-1111-4111-8111-111111111111"), "")
}

// The name of no operation is refused, with what was probably meant and what there is: an empty list would read as if nothing had happened.
func TestAudit_TheNameOfNoOperationIsRefused(t *testing.T) {
	o := newOffice(t)
	bob := o.login(o.hire("bob", "readers"), "")
	for _, path := range []string{"/audit?operation=create-principals", "/audit?order=oldest&operation=create-principals"} {
		r := o.admin().want(400, get, path, "")
		for _, says := range []string{`there is no operation \"create-principals\"`, "did you mean create-principal?", "commit-table, ", "bootstrap, "} {
			if !strings.Contains(r.body, says) {
				t.Errorf("%s: %s is missing in %s", path, says, r.body)
			}
		}
	}
	bob.want(403, get, "/audit?operation=nonsense", "")
	if r := o.admin().want(200, get, "/audit?operation=rename-view", ""); !strings.Contains(r.body, `"rows":[]`) {
		t.Errorf("what nobody did: %s", r.body)
	}
}

// A token that was good and is revoked is kept too, with whose it is.
func TestAudit_RevokedTokens(t *testing.T) {
	o := newOffice(t)
	bob := o.login(o.hire("bob", "readers"), "")
	o.admin().want(204, post, "/principals/bob/revoke-tokens", "")
	bob.want(401, get, "/catalogs", "")
	_, r := o.admin().page("/audit?allowed=false&principal=bob")
	rows, _ := r.object(t)["rows"].([]any)
	if len(rows) != 1 || rows[0].(map[string]any)["operation"] != "list-warehouses" || !someText(rows[0].(map[string]any)["tokenId"]) {
		t.Errorf("kept is %v", rows)
	}
}

// Somebody who is refused again and again has some rows and a count.
func TestAudit_ManyRefusalsAreCounted(t *testing.T) {
	o := newOffice(t)
	bob := o.login(o.hire("bob", "readers"), "")
	for range 50 {
		bob.want(403, get, "/principals", "")
	}
	if got := o.count("SELECT count(*) FROM catalogd.audit WHERE NOT allowed"); got != 20 {
		t.Errorf("%d rows before the count is due", got)
	}
	if err := o.service.FlushAllDenials(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := o.count("SELECT sum(greatest(repeats, 1)) FROM catalogd.audit WHERE NOT allowed AND principal = 'bob'"); got != 50 {
		t.Errorf("rows and counts come to %d refusals, want 50", got)
	}
}

func TestAudit_WhoMayReadWhat(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	o.open("other")
	boss := o.login(o.hire("boss", "bosses"), "")
	reader := o.login(o.hire("reader", "readers"), "")
	admin := o.admin()
	o.let("bosses", "lake", "CATALOG_MANAGE_ACCESS")
	o.let("readers", "lake", "TABLE_READ_PROPERTIES")
	if r := admin.catalogCall(post, "/lake/namespaces", `{"namespace":["a"]}`); r.status != 200 {
		t.Fatal(r.body)
	}
	if r := admin.catalogCall(post, "/other/namespaces", `{"namespace":["hidden"]}`); r.status != 200 {
		t.Fatal(r.body)
	}
	for _, path := range []string{"/audit", "/audit?catalog=other", "/events", "/events?catalog=other"} {
		boss.want(403, get, path, "")
		reader.want(403, get, path, "")
	}
	reader.want(403, get, "/audit?catalog=lake", "")
	all, _ := admin.page("/audit?pageSize=1000")
	ours, r := boss.page("/audit?catalog=lake&pageSize=1000")
	if len(ours) == 0 || len(ours) >= len(all) || strings.Contains(r.body, "hidden") || !slices.Contains(ours, "add-grant") {
		t.Errorf("the owner of lake sees %v of %d", ours, len(all))
	}
	seen, r := reader.page("/events?catalog=lake")
	if !slices.Equal(seen, []string{"create-namespace"}) || strings.Contains(r.body, "hidden") {
		t.Errorf("who reads properties sees %v", seen)
	}
	if seen, _ := boss.page("/events?catalog=lake"); !slices.Contains(seen, "add-grant") || !slices.Contains(seen, "create-namespace") {
		t.Errorf("the owner sees %v", seen)
	}
	if seen, _ := reader.page("/events?catalog=lake&operation=add-grant"); len(seen) != 0 {
		t.Errorf("who asks for what he may not see gets %v", seen)
	}
	for _, path := range []string{
		"/audit?since=yesterday", "/audit?order=random", "/audit?allowed=perhaps", "/audit?securableId=x", "/audit?pageToken=x", "/events?wait=x",
		"/events?table=t", "/events?catalog=lake&namespace=a", "/audit?order=oldest&pageToken=" + o.cursor("newest:", 1), "/audit?pageToken=" + o.cursor("oldest:", 1),
		"/events?pageToken=" + o.cursor("oldest:", 1), "/events?pageToken=" + o.cursor("events:", -1),
		// What is not sealed would let its maker ask how far everybody is.
		"/events?pageToken=" + token("events:1"), "/audit?order=oldest&pageToken=" + token("oldest:1"), "/audit?pageToken=" + token("newest:1"),
		"/events?pageToken=" + api.PageToken("events:"+strings.TrimPrefix(sealed(o, "oldest:", 1), "oldest:")),
	} {
		admin.want(400, get, path, "")
	}
	admin.want(404, get, "/audit?catalog=none", "")
	admin.want(404, get, "/events?catalog=lake&namespace=a&table=none", "")
}

func sealed(o *office, kind string, n int64) string {
	return kind + base64.RawURLEncoding.EncodeToString(o.ring.SealCursor(kind, n))
}

// cursor is one as the server gives it.
func (o *office) cursor(kind string, n int64) string { return api.PageToken(sealed(o, kind, n)) }

// How much happens elsewhere is in nothing that the reader of one warehouse is shown.
func TestEvents_TellNothingOfOthers(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	o.open("other")
	reader, admin := o.login(o.hire("reader", "readers"), ""), o.admin()
	o.let("readers", "lake", "TABLE_READ_PROPERTIES")
	for n := range 30 {
		admin.want(201, post, "/principals", `{"principal":{"name":"p`+strconv.Itoa(n)+`"}}`)
	}
	var length int
	for n := range 3 {
		admin.catalogCall(post, "/lake/namespaces", `{"namespace":["n`+strconv.Itoa(n)+`"]}`)
		for range 3 {
			admin.catalogCall(post, "/other/namespaces", `{"namespace":["`+strings.ReplaceAll(time.Now().Format(".000000000"), ".", "x")+`"]}`)
		}
		seen, r := reader.page("/events?catalog=lake&pageSize=1000")
		cursor := r.text(t, "cursor")
		text, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil || len(seen) != n+1 || !strings.Contains(string(text), `"after":"events:`) || length > 0 && length != len(cursor) {
			t.Fatalf("%v, %d events, cursor %s", err, len(seen), text)
		}
		length = len(cursor)
		if _, again := reader.page("/events?catalog=lake&pageToken=" + cursor); again.text(t, "cursor") == cursor {
			t.Error("a cursor that looks the same tells that nothing happened elsewhere")
		}
		for _, one := range r.object(t)["events"].([]any) {
			// A time in microseconds, not the number of an event.
			if sequence := one.(map[string]any)["sequence"].(float64); sequence < 1e15 {
				t.Errorf("sequence %v counts events", sequence)
			}
		}
	}
}

// A request that waits for events is answered when the server ends, with a cursor to go on from.
func TestEvents_AWaitEndsWithTheServer(t *testing.T) {
	o := newOffice(t)
	admin := o.admin()
	_, r := admin.page("/events?latest=true")
	cursor := r.text(t, "cursor")
	answered, begun := make(chan reply), time.Now()
	go func() { answered <- admin.call(get, "/events?wait=30&pageToken="+cursor, "") }()
	close(o.stopping) // before or while it waits
	got := <-answered
	if time.Since(begun) > 20*time.Second || got.status != 200 || got.text(t, "cursor") == "" {
		t.Fatalf("after %s: %d %s", time.Since(begun), got.status, got.body)
	}
	o.open("lake")
	if seen, _ := admin.page("/events?pageToken=" + got.text(t, "cursor")); !slices.Contains(seen, "create-warehouse") {
		t.Errorf("behind it came %v", seen)
	}
}

func token(content string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(`{"v":1,"after":"` + content + `"}`))
}

func TestEvents_OfATableAreItsReaders(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	admin := o.admin()
	table := `{"name":"t","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`
	for path, body := range map[string]string{"/lake/namespaces": `{"namespace":["a"]}`} {
		if r := admin.catalogCall(post, path, body); r.status != 200 {
			t.Fatal(r.body)
		}
	}
	for _, name := range []string{"t", "u"} {
		if r := admin.catalogCall(post, "/lake/namespaces/a/tables", strings.Replace(table, `"t"`, `"`+name+`"`, 1)); r.status != 200 {
			t.Fatal(r.body)
		}
	}
	reader := o.login(o.hire("reader", "readers"), "")
	reader.want(403, get, "/events?catalog=lake&namespace=a&table=t", "")
	admin.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"r"}}`)
	admin.want(201, put, "/principal-roles/readers/catalog-roles/lake", `{"catalogRole":{"name":"r"}}`)
	admin.want(201, put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"table","namespace":["a"],"tableName":"t","privilege":"TABLE_READ_DATA"}}`)
	reader.want(403, get, "/events?catalog=lake&namespace=a&table=u", "")
	seen, r := reader.page("/events?catalog=lake&namespace=a&table=t")
	if !slices.Equal(seen, []string{"create-table"}) || !strings.Contains(r.body, `"a.t"`) {
		t.Errorf("seen is %s", r.body)
	}
}

// Following goes on where it stopped; a wait ends with the first event.
func TestEvents_FollowAndWait(t *testing.T) {
	o := newOffice(t)
	admin := o.admin()
	_, r := admin.page("/events?latest=true")
	cursor := r.text(t, "cursor")
	if seen, again := admin.page("/events?pageToken=" + cursor); len(seen) != 0 || again.text(t, "cursor") == "" {
		t.Errorf("behind the end is %s", again.body)
	}
	answered := make(chan reply)
	begun := time.Now()
	go func() {
		answered <- admin.call(get, "/events?wait=30&pageToken="+cursor, "")
	}()
	o.open("lake")
	got := <-answered
	if !strings.Contains(got.body, "create-warehouse") || time.Since(begun) > 20*time.Second {
		t.Errorf("after %s: %s", time.Since(begun), got.body)
	}
	if seen, _ := admin.page("/events?pageToken=" + got.text(t, "cursor")); slices.Contains(seen, "create-warehouse") {
		t.Errorf("the same again: %v", seen)
	}
	if seen, page := admin.page("/events?pageSize=1"); len(seen) != 1 || page.text(t, "next-page-token") == "" {
		t.Errorf("one event is %s", page.body)
	}
}

func TestAudit_TellsWhatWasMissed(t *testing.T) {
	o := newOffice(t)
	admin := o.admin()
	_, r := admin.page("/audit?order=oldest&pageSize=1")
	next := r.text(t, "next-page-token")
	if _, err := o.service.SweepRecords(t.Context(), catalog.Caller{Principal: auth.MaintenancePrincipal()}, catalog.Keep{Audit: time.Nanosecond}); err != nil {
		t.Fatal(err)
	}
	if _, r = admin.page("/audit?order=oldest&pageToken=" + next); r.object(t)["missed"] != true {
		t.Errorf("nothing is said of rows that are gone: %s", r.body)
	}
	if _, r = admin.page("/audit?order=oldest&pageToken=" + r.text(t, "cursor")); r.object(t)["missed"] != nil {
		t.Errorf("behind them: %s", r.body)
	}
	if _, err := o.service.SweepRecords(t.Context(), catalog.Caller{}, catalog.Keep{Audit: time.Nanosecond}); err == nil {
		t.Error("anybody may remove records")
	}
}
