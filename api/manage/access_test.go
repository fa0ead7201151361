package manage_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"catalogd/api"
	"catalogd/api/manage"
	"catalogd/api/rest"
	"catalogd/catalog"
)

var tableBody = plainTable("t", "")

// furnished makes a warehouse lake with namespace a, table a.t and view a.v.
func (o *office) furnished() *person {
	o.t.Helper()
	o.open("lake")
	root := o.admin()
	o.furnish(root, "lake", "a")
	return root
}

func (o *office) furnish(root *person, warehouse, namespace string) {
	o.t.Helper()
	for _, c := range [][2]string{
		{"/namespaces", `{"namespace":[` + quote(namespace) + `]}`},
		{"/namespaces/" + namespace + "/tables", tableBody},
		{"/namespaces/" + namespace + "/views", viewText("v")},
	} {
		if r := root.catalogCall(post, "/"+warehouse+c[0], c[1]); r.status != 200 {
			o.t.Fatalf("%s: %d %s", c[0], r.status, r.body)
		}
	}
}

func viewText(name string) string {
	return `{"name":` + quote(name) + `,"schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]},` +
		`"view-version":{"version-id":1,"schema-id":0,"timestamp-ms":1,"summary":{},"default-namespace":["a"],` +
		`"representations":[{"type":"sql","sql":"SELECT 1 AS id","dialect":"spark"}]},"properties":{}}`
}

// question is one question's body about something in lake.
func question(what, securable string) string {
	kind := "operation"
	if strings.ToUpper(what) == what {
		kind = "privilege"
	}
	return fmt.Sprintf(`{%q:%q,"securable":{%s}}`, kind, what, securable)
}

const onTable = `"catalog":"lake","namespace":["a"],"table":"t"`

// canI asks one question about a principal; "" is the caller.
func (p *person) canI(principal, question string) map[string]any {
	p.office.t.Helper()
	body := `{"questions":[` + question + `]}`
	if principal != "" {
		body = `{"principal":` + quote(principal) + `,"questions":[` + question + `]}`
	}
	answers, _ := p.want(200, post, "/can-i", body).at(p.office.t, "answers").([]any)
	if len(answers) != 1 {
		p.office.t.Fatalf("%d answers", len(answers))
	}
	return answers[0].(map[string]any)
}

// text is a value as JSON, for comparing.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestWhoAmI(t *testing.T) {
	o := newOffice(t)
	credential := o.hire("ann", "analysts", "writers")
	all := o.login(credential, "").want(200, get, "/whoami", "")
	keys(t, all.object(t), "name", "id", "activeRoles", "heldRoles", "token", "clientAddress")
	keys(t, all.at(t, "token"), "id", "expiresAt", "allRoles")
	if all.at(t, "name") != "ann" || text(all.at(t, "activeRoles")) != `["analysts","writers"]` || all.at(t, "clientAddress") != "127.0.0.1" {
		t.Errorf("%s", all.body)
	}
	less := o.login(credential, "PRINCIPAL_ROLE:writers")
	r := less.want(200, get, "/whoami", "")
	if text(r.at(t, "activeRoles")) != `["writers"]` || text(r.at(t, "heldRoles")) != `["analysts","writers"]` || r.at(t, "token", "allRoles") != false {
		t.Errorf("narrowed: %s", r.body)
	}
	// A role that was taken away meanwhile is not active any more, and a principal that is gone is nobody.
	o.admin().want(204, del, "/principals/ann/principal-roles/writers", "")
	if r := less.want(200, get, "/whoami", ""); text(r.at(t, "activeRoles")) != `[]` {
		t.Errorf("after the revocation: %s", r.body)
	}
	o.admin().want(204, del, "/principals/ann", "")
	less.want(401, get, "/whoami", "")
}

// The story of somebody who may not read, and of who helps: what is missing, what would give it, and that it does.
func TestStory_S4_WhyNotAndWhoCan(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	ann := o.login(o.hire("ann", "analysts"), "")
	ask := question("TABLE_READ_DATA", onTable)
	for _, answer := range []map[string]any{ann.canI("", ask), ann.canI("ann", ask), root.canI("ann", ask)} {
		if answer["allowed"] != false || answer["reason"] != "TABLE_READ_DATA is missing on table a.t of warehouse lake or on what it lies in" {
			t.Errorf("%v", answer)
		}
		if want := `["catalogd role create ROLE -w lake","catalogd role assign ROLE -w lake --principal-role analysts","catalogd grant create TABLE_READ_DATA -w lake --role ROLE --table a.t"]`; text(answer["commands"]) != want {
			t.Errorf("commands %s", text(answer["commands"]))
		}
	}
	const path = "/who-can?privilege=TABLE_READ_DATA&catalog=lake&namespace=a&table=t"
	names := func(path string) (found []string) {
		list, _ := root.want(200, get, path, "").at(t, "principals").([]any)
		for _, one := range list {
			found = append(found, one.(map[string]any)["principal"].(string))
		}
		return found
	}
	if got := names(path); !slices.Equal(got, []string{"root"}) {
		t.Errorf("before: %v", got)
	}
	o.let("analysts", "lake", "CATALOG_READ_PROPERTIES")
	if answer := ann.canI("", ask); text(answer["commands"]) != `["catalogd grant create TABLE_READ_DATA -w lake --role analysts --table a.t"]` {
		t.Errorf("commands %s", text(answer["commands"]))
	}
	root.want(201, put, "/catalogs/lake/catalog-roles/analysts/grants", `{"grant":{"type":"namespace","namespace":["a"],"privilege":"SELECT"}}`)
	answer := ann.canI("", ask)
	if want := `[{"catalogRole":"analysts","needed":"TABLE_READ_DATA","on":{"catalog":"lake","namespace":["a"],"type":"namespace"},"principalRole":"analysts","privilege":"SELECT"}]`; answer["allowed"] != true || text(answer["by"]) != want {
		t.Errorf("after: %s", text(answer))
	}
	if want := "principal role analysts has the role analysts of warehouse lake, which holds SELECT on namespace a of warehouse lake"; answer["reason"] != want {
		t.Errorf("reason %v", answer["reason"])
	}
	if r := ann.catalogCall(get, "/lake/namespaces/a/tables/t", ""); r.status != 200 {
		t.Errorf("yet: %d %s", r.status, r.body)
	}
	if got := names(path); !slices.Equal(got, []string{"ann", "root"}) {
		t.Errorf("after: %v", got)
	}
	first := root.want(200, get, path+"&pageSize=1", "")
	next, _ := first.at(t, "next-page-token").(string)
	if second := names(path + "&pageSize=1&pageToken=" + url.QueryEscape(next)); next == "" || !slices.Equal(second, []string{"root"}) {
		t.Errorf("the second page: %v", second)
	}
	if got := names("/who-can?operation=drop-table&catalog=lake&namespace=a&table=t"); !slices.Equal(got, []string{"root"}) {
		t.Errorf("drop: %v", got)
	}
	if got := names("/who-can?privilege=PRINCIPAL_CREATE"); !slices.Equal(got, []string{"root"}) {
		t.Errorf("on the service: %v", got)
	}
	// Taken back, it is no at once.
	root.want(201, post, "/catalogs/lake/catalog-roles/analysts/grants", `{"grant":{"type":"namespace","namespace":["a"],"privilege":"SELECT"}}`)
	if got := names(path); !slices.Equal(got, []string{"root"}) {
		t.Errorf("taken back: %v", got)
	}
}

// A narrowed token is answered as it is treated, and told which role it leaves out.
func TestCanI_ANarrowedToken(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	credential := o.hire("ann", "analysts", "clerks")
	o.let("analysts", "lake", "TABLE_READ_DATA")
	less := o.login(credential, "PRINCIPAL_ROLE:clerks")
	answer := less.canI("", question("load-table", onTable))
	if reason, _ := answer["reason"].(string); answer["allowed"] != false || !strings.Contains(reason, "leaves out PRINCIPAL_ROLE:analysts, which would allow it") {
		t.Errorf("%s", text(answer))
	}
	if r := less.catalogCall(get, "/lake/namespaces/a/tables/t", ""); r.status != 403 {
		t.Errorf("yet %d", r.status)
	}
	if answer := root.canI("ann", question("load-table", onTable)); answer["allowed"] != true {
		t.Errorf("asked by another: %s", text(answer))
	}
}

// Names from elsewhere mean what docs/privileges.md says: four ways to write are one, and ownership may grant.
func TestGrants_NamesFromElsewhere(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	credential := o.hire("ann", "analysts")
	o.let("analysts", "lake", "CATALOG_READ_PROPERTIES")
	ann := o.login(credential, "")
	const grants = "/catalogs/lake/catalog-roles/analysts/grants"
	onTableGrant := `{"grant":{"type":"table","namespace":["a"],"tableName":"t","privilege":"%s"}}`
	set := `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`
	for privilege, want := range map[string][3]int{ // load, commit, grant
		"SELECT": {200, 403, 403}, "INSERT": {200, 200, 403}, "UPDATE": {200, 200, 403}, "DELETE": {200, 200, 403}, "TRUNCATE": {200, 200, 403}, "OWNERSHIP": {200, 200, 201},
	} {
		root.want(201, put, grants, fmt.Sprintf(onTableGrant, privilege))
		if r := root.want(200, get, grants, ""); !strings.Contains(r.body, `"privilege":"`+privilege+`"`) {
			t.Errorf("%s is not listed: %s", privilege, r.body)
		}
		got := [3]int{
			ann.catalogCall(get, "/lake/namespaces/a/tables/t", "").status, ann.catalogCall(post, "/lake/namespaces/a/tables/t", set).status,
			ann.call(put, grants, fmt.Sprintf(onTableGrant, "TABLE_LIST")).status,
		}
		if got != want {
			t.Errorf("%s: load, commit, grant are %v, want %v", privilege, got, want)
		}
		root.want(201, post, grants, fmt.Sprintf(onTableGrant, privilege))
		root.want(201, post, grants, fmt.Sprintf(onTableGrant, "TABLE_LIST"))
		if r := ann.catalogCall(get, "/lake/namespaces/a/tables/t", ""); r.status != 403 {
			t.Errorf("%s taken back: %d", privilege, r.status)
		}
	}
	for body, says := range map[string]string{
		`{"grant":{"type":"view","namespace":["a"],"viewName":"v","privilege":"INSERT"}}`:     "cannot be granted on a view",
		`{"grant":{"type":"catalog","privilege":"POLICY_READ"}}`:                              "has no policies",
		`{"grant":{"type":"catalog","privilege":"CATALOG_ROLE_USAGE"}}`:                       "role assign",
		`{"grant":{"type":"policy","namespace":["a"],"policyName":"p","privilege":"SELECT"}}`: "not served",
	} {
		if r := root.want(400, put, grants, body); !strings.Contains(r.body, says) {
			t.Errorf("%s: %s", body, r.body)
		}
	}
	root.want(201, put, grants, `{"grant":{"type":"view","namespace":["a"],"viewName":"v","privilege":"SELECT"}}`)
	if r := ann.catalogCall(get, "/lake/namespaces/a/views/v", ""); r.status != 200 {
		t.Errorf("SELECT on a view: %d", r.status)
	}
}

// Who may know nothing learns nothing by asking: about himself the answer is one for what is hidden and what is missing,
// and about others and lists he is refused alike.
func TestField_C154_QuestionsTellNothing(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	nobody := o.login(o.hire("nobody", "nobodies"), "")
	o.hire("etl", "engineers")
	ask := func(p *person, principal, what, name string) string {
		securable := `"catalog":"lake","namespace":["a"],"table":"` + name + `"`
		if strings.Contains(what, "view") || strings.HasPrefix(what, "VIEW") {
			securable = `"catalog":"lake","namespace":["a"],"view":"` + name + `"`
		}
		body := `{"questions":[` + question(what, securable) + `]}`
		if principal != "" {
			body = `{"principal":"` + principal + `",` + body[1:]
		}
		r := p.call(post, "/can-i", body)
		return fmt.Sprintf("%d %s", r.status, strings.ReplaceAll(r.body, "a."+name, "a.X"))
	}
	same := func(p *person, principal, what, there, missing string) string {
		t.Helper()
		var answers []string
		for range 2 { // cold and warm
			for _, name := range []string{there, missing} {
				answers = append(answers, strings.ReplaceAll(ask(p, principal, what, name), `"`+name+`"`, `"X"`))
			}
		}
		if slices.ContainsFunc(answers, func(a string) bool { return a != answers[0] }) {
			t.Errorf("%s tells: %q", what, answers)
		}
		return answers[0]
	}
	for _, what := range []string{"TABLE_READ_DATA", "load-table", "rename-table", "OWNERSHIP", "VIEW_LIST", "load-view"} {
		there := "t"
		if strings.Contains(strings.ToLower(what), "view") {
			there = "v"
		}
		if got := same(nobody, "", what, there, "none"); !strings.Contains(got, `"allowed":false`) || !strings.Contains(got, "is missing on") {
			t.Errorf("%s: %s", what, got)
		}
		if got := same(nobody, "etl", what, there, "none"); !strings.HasPrefix(got, "403 ") {
			t.Errorf("%s of another: %s", what, got)
		}
	}
	for _, name := range []string{"t", "none"} {
		nobody.want(403, get, "/who-can?privilege=TABLE_READ_DATA&catalog=lake&namespace=a&table="+name, "")
	}
	for _, name := range []string{"etl", "none"} {
		nobody.want(403, get, "/principals/"+name+"/reach", "")
		nobody.want(403, get, "/principals/"+name+"/reach?catalog=lake", "")
		if got := ask(nobody, name, "TABLE_READ_DATA", "t"); !strings.HasPrefix(got, "403 ") {
			t.Errorf("about %s: %s", name, got)
		}
	}
	// With a right to list, a miss is a miss, and to an administrator of the warehouse; a view that may not be listed is missing.
	o.let("nobodies", "lake", "TABLE_LIST")
	if got := ask(nobody, "", "TABLE_DROP", "none"); !strings.Contains(got, "Table does not exist: a.X") {
		t.Errorf("with TABLE_LIST: %s", got)
	}
	if got := same(nobody, "", "VIEW_READ_PROPERTIES", "v", "none"); !strings.Contains(got, "View does not exist: a.X") {
		t.Errorf("a view, with TABLE_LIST: %s", got)
	}
	if got := ask(root, "etl", "TABLE_DROP", "none"); !strings.Contains(got, "Table does not exist: a.X") {
		t.Errorf("by root: %s", got)
	}
	root.want(404, get, "/who-can?privilege=TABLE_READ_DATA&catalog=lake&namespace=a&table=none", "")
	root.want(404, get, "/who-can?privilege=TABLE_READ_DATA&catalog=none&namespace=a&table=t", "")
	root.want(404, get, "/principals/none/reach", "")
	root.want(404, post, "/can-i", `{"principal":"none","questions":[`+question("TABLE_READ_DATA", onTable)+`]}`)
	// Asking about oneself is no attempt: it leaves no refusal behind.
	before := o.count("SELECT count(*) FROM catalogd.audit")
	ask(nobody, "", "TABLE_DROP", "t")
	if after := o.count("SELECT count(*) FROM catalogd.audit"); after != before {
		t.Errorf("%d audit rows by a question about oneself", after-before)
	}
}

// A warehouse's administrator explains his warehouse, and learns nothing of others and of who there is.
func TestAccess_OfAWarehousesAdministrator(t *testing.T) {
	o := newOffice(t)
	o.furnished()
	o.open("pond")
	credential := o.hire("warden", "wardens")
	o.hire("etl", "engineers")
	o.let("wardens", "lake", "CATALOG_MANAGE_ACCESS")
	o.let("engineers", "lake", "TABLE_WRITE_DATA")
	o.let("engineers", "pond", "TABLE_READ_DATA")
	warden := o.login(credential, "")
	if answer := warden.canI("etl", question("TABLE_READ_DATA", onTable)); answer["allowed"] != true {
		t.Errorf("%s", text(answer))
	}
	there, missing := warden.canI("etl", question("TABLE_DROP", onTable)), warden.canI("none", question("TABLE_DROP", onTable))
	if a, b := text(there), strings.ReplaceAll(text(missing), "none", "etl"); a != b {
		t.Errorf("a principal that is not there is told from one that is:\n%s\n%s", a, b)
	}
	warden.want(200, get, "/who-can?privilege=TABLE_READ_DATA&catalog=lake&namespace=a&table=t", "")
	warden.want(403, get, "/who-can?privilege=TABLE_READ_DATA&catalog=pond", "")
	warden.want(403, get, "/who-can?privilege=PRINCIPAL_LIST", "")
	warden.want(403, post, "/can-i", `{"principal":"etl","questions":[`+question("TABLE_READ_DATA", onTable)+`,`+question("TABLE_READ_DATA", `"catalog":"pond"`)+`]}`)
	r := warden.want(200, get, "/principals/etl/reach?catalog=lake", "")
	if list, _ := r.at(t, "securables").([]any); len(list) != 1 || strings.Contains(r.body, "pond") {
		t.Errorf("%s", r.body)
	}
	if r := warden.want(200, get, "/principals/none/reach?catalog=lake", ""); strings.Contains(r.body, `"by"`) {
		t.Errorf("%s", r.body)
	}
	warden.want(403, get, "/principals/etl/reach?catalog=pond", "")
	warden.want(403, get, "/principals/etl/reach", "")
}

func TestReach_IsWhatWasGranted(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	ann := o.login(o.hire("ann", "analysts"), "")
	if r := ann.want(200, get, "/principals/ann/reach", ""); text(r.at(t, "securables")) != "[]" || r.at(t, "next-page-token") != nil {
		t.Errorf("%s", r.body)
	}
	o.let("analysts", "lake", "NAMESPACE_LIST")
	root.want(201, put, "/catalogs/lake/catalog-roles/analysts/grants", `{"grant":{"type":"table","namespace":["a"],"tableName":"t","privilege":"TABLE_READ_DATA"}}`)
	want := `[{"by":[{"catalogRole":"analysts","on":{"catalog":"lake","type":"catalog"},"principalRole":"analysts","privilege":"NAMESPACE_LIST"}],"privileges":["NAMESPACE_LIST"],"securable":{"catalog":"lake","type":"catalog"}},` +
		`{"by":[{"catalogRole":"analysts","on":{"catalog":"lake","namespace":["a"],"table":"t","type":"table"},"principalRole":"analysts","privilege":"TABLE_READ_DATA"}],"privileges":["TABLE_LIST","TABLE_READ_PROPERTIES","TABLE_READ_DATA"],"securable":{"catalog":"lake","namespace":["a"],"table":"t","type":"table"}}]`
	for _, p := range []*person{ann, root} {
		var all []any
		for token := ""; ; {
			r := p.want(200, get, "/principals/ann/reach?pageSize=1&pageToken="+url.QueryEscape(token), "")
			page, _ := r.at(t, "securables").([]any)
			all = append(all, page...)
			next, more := r.at(t, "next-page-token").(string)
			if !more {
				break
			}
			token = next
		}
		if got := text(all); got != want {
			t.Errorf("reached %s\nwant    %s", got, want)
		}
	}
	ann.want(404, get, "/principals/ann/reach?catalog=none", "")
	ann.want(400, get, "/principals/ann/reach?pageToken=eyJ2IjoxLCJhZnRlciI6IngifQ", "")
}

func TestCanI_RefusesWhatCannotBeMeant(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	many := strings.Repeat(question("TABLE_LIST", onTable)+",", catalog.QuestionsMax)
	for body, says := range map[string]string{
		`{}`:               "0 questions",
		`{"questions":[]}`: "0 questions",
		`{"questions":[` + many + question("TABLE_LIST", onTable) + `]}`:                                    "51 questions",
		`{"questions":[{"securable":{` + onTable + `}}]}`:                                                   "give one of the two",
		`{"questions":[{"privilege":"TABLE_LIST","operation":"load-table","securable":{` + onTable + `}}]}`: "give one of the two",
		`{"questions":[` + question("NONSENSE", onTable) + `]}`:                                             "does not exist",
		`{"questions":[` + question("load-nonsense", onTable) + `]}`:                                        "not known",
		`{"questions":[` + question("POLICY_READ", onTable) + `]}`:                                          "no policies",
		`{"questions":[` + question("NAMESPACE_LIST", onTable) + `]}`:                                       "ask about a warehouse or a namespace",
		`{"questions":[` + question("TABLE_LIST", ``) + `]}`:                                                "ask about a warehouse, a namespace or a table",
		`{"questions":[` + question("load-table", `"catalog":"lake"`) + `]}`:                                "is about a table",
		`{"questions":[` + question("TABLE_LIST", `"catalog":"lake","table":"t"`) + `]}`:                    "namespace of t is missing",
		`{"questions":[` + question("TABLE_LIST", `"namespace":["a"],"table":"t"`) + `]}`:                   "catalog (warehouse) of a.t is missing",
		`{"questions":[` + question("TABLE_LIST", onTable+`,"view":"v"`) + `]}`:                             "not about both",
	} {
		if r := root.want(400, post, "/can-i", body); !strings.Contains(r.body, says) {
			t.Errorf("%s: %s does not tell about %q", body, r.body, says)
		}
	}
	if r := root.want(200, post, "/can-i", `{"questions":[`+question("TABLE_LIST", `"catalog":"none"`)+`]}`); !strings.Contains(r.body, "Warehouse does not exist: none") {
		t.Errorf("%s", r.body)
	}
}

// unexplained are operations without an answer to who may call them: everybody may, or it is decided by more than grants.
var unexplained = []string{
	"load-config", "who-am-i", "can-i", // for everybody who is signed in
	"list-reach", "load-job", "retry-job", // decided by who asks, and about what
	"load-webhook", "update-webhook", "drop-webhook", "test-webhook", "redeliver-webhook", // about what: the webhook's warehouse, or the service
}

// Every operation of the endpoint table can be asked about, and nothing else can.
func TestOperations_AreExplained(t *testing.T) {
	var served []string
	for _, e := range append(rest.Endpoints(rest.Config{}), manage.Endpoints(manage.Config{})...) {
		if e.Access == api.SignedIn && !slices.Contains(unexplained, e.Operation) {
			served = append(served, e.Operation)
		}
	}
	explained := catalog.OperationsExplained()
	for _, name := range explained {
		if !slices.Contains(served, name) {
			t.Errorf("%s can be asked about and is no operation", name)
		}
	}
	for _, name := range served {
		never := strings.HasSuffix(name, "-below") || strings.HasSuffix(name, "-policy") || strings.HasSuffix(name, "-policies") ||
			strings.Contains(name, "generic-table") || slices.Contains([]string{
			"sign-request", "sign-s3-request", "plan-scan", "fetch-plan", "cancel-plan", "fetch-scan-tasks", "list-functions", "load-function",
		}, name)
		if !never && !slices.Contains(explained, name) {
			t.Errorf("%s is an operation and cannot be asked about", name)
		}
	}
}
