package manage_test

import (
	"slices"
	"strings"
	"testing"

	"catalogd/api"
	"catalogd/api/manage"
	"catalogd/api/rest"
	"catalogd/authz"
	"catalogd/catalog"
)

// operationBodies are what the operations are sent; NS is the namespace, and X a name of the operation's own.
var operationBodies = map[string]string{
	"create-namespace":   `{"namespace":["NS-new"]}`,
	"update-namespace":   `{"updates":{"k":"v"}}`,
	"create-webhook":     `{"url":"https://hooks.example.com/NS","catalog":"lake"}`,
	"create-table":       plainTable("u", ""),
	"commit-table":       `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`,
	"commit-transaction": `{"table-changes":[{"identifier":{"namespace":["NS"],"name":"t"},"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}]}`,
	"register-table":     `{"name":"again","metadata-location":"LOST"}`,
	"register-view":      `{"name":"again","metadata-location":"LOST"}`,
	"rename-table":       `{"source":{"namespace":["NS"],"name":"t"},"destination":{"namespace":["NS"],"name":"u"}}`,
	"rename-view":        `{"source":{"namespace":["NS"],"name":"v"},"destination":{"namespace":["NS"],"name":"w"}}`,
	"create-view":        viewText("w"),
	"replace-view":       `{"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`,
	"report-metrics": `{"report-type":"scan-report","table-name":"t","snapshot-id":1,"filter":true,"schema-id":0,` +
		`"projected-field-ids":[1],"projected-field-names":["id"],"metrics":{}}`,

	"create-warehouse": fileCatalog("X-new", "file:///lakes/X-new"), "create-principal": `{"principal":{"name":"X-new"}}`,
	"create-principal-role": `{"principalRole":{"name":"X-new"}}`, "create-catalog-role": `{"catalogRole":{"name":"X-new"}}`,
	"assign-principal-role": `{"principalRole":{"name":"X-spare"}}`, "assign-catalog-role": `{"catalogRole":{"name":"X-spare"}}`,
	"create-personal-token": `{"name":"X-new"}`, "link-identity": `{"issuer":"https://idp","subject":"X-new"}`, "add-principal-key": `{"key":` + quote(otherKey) + `}`,
	"add-grant":     `{"grant":{"type":"table","namespace":["NS"],"tableName":"t","privilege":"TABLE_LIST"}}`,
	"revoke-grant":  `{"grant":{"type":"table","namespace":["NS"],"tableName":"t","privilege":"TABLE_LIST"}}`,
	"change-grants": `{"changes":[{"action":"add","catalogRole":"X-rights","grant":{"type":"table","namespace":["NS"],"tableName":"t","privilege":"TABLE_LIST"}}]}`,
	"set-owner":     `{"namespace":["NS"],"table":"t","owner":""}`, "set-maintenance": `{"settings":{"enabled":"true"}}`, "run-maintenance": `{"job":"compaction"}`,
}

// otherKey is a public key beside someKey.
const otherKey = `{"kty":"OKP","crv":"Ed25519","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw"}`

// trial is one operation with things of its own to work on.
type trial struct {
	*grantee
	root *person
	e    api.Endpoint
	x    string // prefix of its own names

	warehouse, target, body string
}

// newTrial makes a namespace with a table and a view, an empty namespace, a principal and roles to work on, and a caller
// without rights. All of their names begin with x.
func newTrial(o *office, root *person, e api.Endpoint, x string) *trial {
	o.t.Helper()
	o.furnish(root, "lake", x)
	if r := root.catalogCall(post, "/lake/namespaces", `{"namespace":["`+x+`-empty"]}`); r.status != 200 {
		o.t.Fatal(r.body)
	}
	o.hire(x, x)
	root.want(201, post, "/principal-roles", `{"principalRole":{"name":"`+x+`-spare"}}`)
	for _, name := range []string{x, x + "-spare"} {
		root.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"`+name+`"}}`)
	}
	root.want(201, put, "/principal-roles/"+x+"/catalog-roles/lake", `{"catalogRole":{"name":"`+x+`"}}`)
	s := &trial{grantee: newGrantee(o, root, x), root: root, e: e, x: x}
	s.compose()
	return s
}

// compose fills the row's pattern and its body.
func (s *trial) compose() {
	namespace := s.x
	s.warehouse = "lake"
	if s.e.Operation == "drop-namespace" {
		namespace += "-empty"
	}
	if s.e.Operation == "drop-warehouse" {
		s.warehouse = s.x
		s.open(s.warehouse)
	}
	s.target = strings.NewReplacer("{prefix}", "lake", "{catalog}", s.warehouse, "{namespace}", namespace, "{table}", "t", "{view}", "v",
		"{principal}", s.x, "{role}", s.x, "{catalogRole}", s.x, "{privilege}", "PRINCIPAL_IMPERSONATE").Replace(s.e.Pattern)
	if strings.Contains(s.e.Pattern, "{token}") {
		made := s.root.want(201, post, "/principals/"+s.x+"/tokens", `{"name":"t"}`)
		id, _ := made.at(s.t, "token", "id").(string)
		s.target = strings.Replace(s.target, "{token}", id, 1)
	}
	if strings.Contains(s.e.Pattern, "{key}") {
		kid, _ := s.root.want(201, post, "/principals/"+s.x+"/keys", `{"key":`+quote(someKey)+`}`).at(s.t, "kid").(string)
		s.target = strings.Replace(s.target, "{key}", kid, 1)
	}
	if s.e.Operation == "unlink-identity" {
		s.root.want(201, post, "/principals/"+s.x+"/identities", `{"issuer":"https://idp","subject":"a/b"}`)
		s.target += "?issuer=https://idp&subject=a/b"
	}
	if s.e.Operation == "who-can" {
		s.target += "?privilege=TABLE_LIST&catalog=lake&namespace=" + s.x + "&table=t"
	}
	switch s.e.Operation {
	case "list-audit", "list-webhooks":
		s.target += "?catalog=lake"
	case "list-events":
		s.target += "?catalog=lake&namespace=" + s.x + "&table=t"
	}
	if s.e.Operation == "list-grants-on" || s.e.Operation == "load-owner" {
		s.target += "?namespace=" + s.x + "&table=t"
	}
	s.body = strings.NewReplacer("NS", s.x, "X-", s.x+"-", "LOST", s.lost()).Replace(operationBodies[s.e.Operation])
	if s.body == "" && s.e.Method == put {
		s.body = `{"currentEntityVersion":1,"properties":{}}`
	}
}

// lost gives the metadata file of something that was dropped, to be registered.
func (s *trial) lost() string {
	kind, body := "tables", plainTable("lost", "")
	switch s.e.Operation {
	case "register-view":
		kind, body = "views", viewText("lost")
	case "register-table":
	default:
		return ""
	}
	at := "/lake/namespaces/" + s.x + "/" + kind
	made := s.root.catalogCall(post, at, body)
	location, _ := made.at(s.t, "metadata-location").(string)
	if r := s.root.catalogCall(del, at+"/lost", ""); r.status != 204 || location == "" {
		s.t.Fatalf("%s %s", made.body, r.body)
	}
	return location
}

// give grants a privilege to the caller on the securable of that kind, or takes it back.
func (s *trial) give(p authz.Privilege, on catalog.SecurableName, take bool) {
	s.t.Helper()
	path := s.path(on)
	at := path[len(path)-1]
	if !authz.Grantable(p, at.Kind) {
		at = path[0]
	}
	s.change(take, catalog.RoleGrant{Privilege: p, Kind: at.Kind, ID: at.ID})
}

func (s *trial) answer(to *person) reply {
	s.t.Helper()
	return s.office.send(s.e.Method, s.target, to.token, "application/json", s.body)
}

func (s *trial) send() int {
	s.t.Helper()
	return s.answer(s.caller).status
}

// securable is what the question names: the innermost that the operation is about.
func (s *trial) securable() string {
	table := `"catalog":"lake","namespace":["` + s.x + `"],"table":"t"`
	switch {
	case s.e.Operation == "drop-warehouse":
		return `"catalog":"` + s.x + `"`
	case s.e.Operation == "drop-namespace":
		return `"catalog":"lake","namespace":["` + s.x + `-empty"]`
	case slices.Contains([]string{"create-namespace", "list-namespaces"}, s.e.Operation):
		return `"catalog":"lake"`
	case strings.Contains(s.e.Operation, "view"):
		return strings.Replace(table, `"table":"t"`, `"view":"v"`, 1)
	}
	return table
}

// TestOperations_NeedWhatTheTableSays calls every operation with exactly the privileges that the answer to "can I?" names:
// with all of them it works, without any one of them it is refused, and the answers say so. It is refused as well with every
// privilege, in every place, that does not contain one of them.
func TestOperations_NeedWhatTheTableSays(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	needed := matrix{row: "each operation: with what it needs, and without each part of it"}
	others := matrix{row: "each operation: with every other privilege at once, on the service, the warehouse, the namespaces and the things"}
	for _, e := range append(rest.Endpoints(rest.Config{}), manage.Endpoints(manage.Config{})...) {
		if !slices.Contains(catalog.OperationsExplained(), e.Operation) {
			continue
		}
		needed.operations++
		s := newTrial(o, root, e, "x-"+e.Operation)
		ask := question(e.Operation, s.securable())
		first, err := askedOf(s, ask)
		if err != nil {
			t.Errorf("%s: %v", e.Operation, err)
			continue
		}
		if first.Allowed || len(first.Missing) == 0 {
			t.Errorf("%s: without rights the answer is %+v", e.Operation, first)
			continue
		}
		if !s.nothingElseOpens(first, &others) {
			continue // it was done, and cannot be tried again
		}
		for without := range first.Missing {
			needed.cells++
			s.giveAll(first, without)
			if status := s.send(); status != 403 && status != 404 {
				t.Errorf("%s without %s: %d", e.Operation, first.Missing[without].Privilege, status)
			}
			if answer, err := askedOf(s, ask); err != nil || answer.Allowed {
				t.Errorf("%s without %s: %+v, %v", e.Operation, first.Missing[without].Privilege, answer, err)
			}
		}
		s.giveAll(first, -1)
		needed.cells++
		if answer, err := askedOf(s, ask); err != nil || !answer.Allowed {
			t.Errorf("%s with all that it needs: %+v, %v", e.Operation, answer, err)
		}
		if r := s.answer(s.caller); r.status >= 300 {
			t.Errorf("%s %s with %+v: %d %s", e.Method, s.target, first.Missing, r.status, r.body)
		}
	}
	needed.requests, others.operations = needed.cells, needed.operations
	if needed.operations != len(catalog.OperationsExplained()) || others.cells < 20_000 {
		t.Errorf("%+v, %+v", needed, others)
	}
	needed.hold(t)
	others.hold(t)
}

// askedOf asks as the caller, by the domain, which gives the needs as values.
func askedOf(s *trial, ask string) (catalog.Answer, error) {
	s.caller.canI("", ask) // over HTTP too, against the document
	principal, err := s.tokens.Authenticate(s.t.Context(), s.caller.token)
	if err != nil {
		return catalog.Answer{}, err
	}
	on := catalog.SecurableName{Warehouse: "lake", Namespace: catalog.Namespace{s.x}}
	switch text := s.securable(); {
	case s.e.Operation == "drop-warehouse":
		on = catalog.SecurableName{Warehouse: s.x}
	case s.e.Operation == "drop-namespace":
		on.Namespace = catalog.Namespace{s.x + "-empty"}
	case strings.Contains(text, `"table"`):
		on.Table = "t"
	case strings.Contains(text, `"view"`):
		on.View = "v"
	default:
		on.Namespace = nil
	}
	answers, err := s.service.CanI(s.t.Context(), catalog.Caller{Principal: principal}, "", []catalog.Question{{Operation: s.e.Operation, On: on}})
	if err != nil {
		return catalog.Answer{}, err
	}
	return answers[0], nil
}

// giveAll grants all that is missing but one; -1 leaves none out.
func (s *trial) giveAll(a catalog.Answer, without int) {
	s.t.Helper()
	for i, lack := range a.Missing {
		s.give(lack.Privilege, lack.On, i == without)
	}
}
