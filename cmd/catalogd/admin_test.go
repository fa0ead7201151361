package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"catalogd/maintenance"
)

func TestTableName(t *testing.T) {
	for _, c := range []struct {
		argument, namespace string
		levels              []string
		table               string
	}{
		{"a.t", "", []string{"a"}, "t"},
		{"a.b.t", "", []string{"a", "b"}, "t"},
		{"t", `["a.b"]`, []string{"a.b"}, "t"},
		{"with.dot", `["a","b"]`, []string{"a", "b"}, "with.dot"},
		{"t", "a.b", []string{"a", "b"}, "t"},
	} {
		levels, table, err := tableName(c.argument, c.namespace)
		if err != nil || !slices.Equal(levels, c.levels) || table != c.table {
			t.Errorf("tableName(%q, %q) = %q, %q, %v", c.argument, c.namespace, levels, table, err)
		}
	}
	for _, c := range [][2]string{{"t", ""}, {"", ""}, {"a..t", ""}, {".t", ""}, {"a.", ""}, {"t", "[]"}, {"t", `["a",""]`}, {"t", "[1]"}, {"", `["a"]`}} {
		if levels, table, err := tableName(c[0], c[1]); err == nil {
			t.Errorf("tableName(%q, %q) = %q, %q; want a refusal", c[0], c[1], levels, table)
		}
	}
}

// TestGrantBody_OnIsUnambiguous: levels with dots are not shown as more levels, but as --namespace takes them.
func TestGrantBody_OnIsUnambiguous(t *testing.T) {
	for want, g := range map[string]grantBody{
		"warehouse w":           {Type: "catalog"},
		"namespace a.b":         {Type: "namespace", Namespace: []string{"a", "b"}},
		`namespace ["a.b"]`:     {Type: "namespace", Namespace: []string{"a.b"}},
		`namespace ["a.b","c"]`: {Type: "namespace", Namespace: []string{"a.b", "c"}},
		`namespace ["[a"]`:      {Type: "namespace", Namespace: []string{"[a"}},
		`namespace ["a."]`:      {Type: "namespace", Namespace: []string{"a."}},
		"table a.b.t":           {Type: "table", Namespace: []string{"a", "b"}, Table: "t"},
		`table ["a.b"].t`:       {Type: "table", Namespace: []string{"a.b"}, Table: "t"},
		`view ["a"].b.t`:        {Type: "view", Namespace: []string{"a"}, View: "b.t"},
	} {
		if got := g.on("w"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		levels, err := namespaceLevels(strings.TrimPrefix(want, "namespace "))
		if g.Type == "namespace" && (err != nil || !slices.Equal(levels, g.Namespace)) {
			t.Errorf("%s is read back as %q, %v", want, levels, err)
		}
	}
}

// 64-bit ids are longer than a float is exact.
func TestMaintenanceJSON_KeepsLongIDs(t *testing.T) {
	const id = "2035452617237940550"
	var out strings.Builder
	c := &call{Out: &out}
	var s jobStatus
	if err := json.Unmarshal([]byte(`{"job_id":"j","state":"succeeded","snapshot_id":`+id+`}`), &s); err != nil {
		t.Fatal(err)
	}
	if err := c.printJob("json", s); err != nil {
		t.Fatal(err)
	}
	if err := c.printMaintenance("json", json.RawMessage(`{"head":`+id+`}`)); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), id) != 2 {
		t.Errorf("the ids have changed:\n%s", out.String())
	}
}

// TestRoleGrant_StillHeld: only what contains the securable and the privilege keeps them in force.
func TestRoleGrant_StillHeld(t *testing.T) {
	on := func(privilege, kind string, namespace []string, table string) grantBody {
		return grantBody{Type: kind, Privilege: privilege, Namespace: namespace, Table: table}
	}
	taken := roleGrant{on("TABLE_READ_DATA", "table", []string{"a", "b"}, "t"), "lake", "reader"}
	for _, c := range []struct {
		held grantBody
		want string
	}{
		{on("TABLE_READ_DATA", "catalog", nil, ""), "; it holds by TABLE_READ_DATA on warehouse lake"},
		{on("TABLE_READ_DATA", "namespace", []string{"a"}, ""), "; it holds by TABLE_READ_DATA on namespace a"},
		{on("TABLE_READ_DATA", "namespace", []string{"a", "b"}, ""), "; it holds by TABLE_READ_DATA on namespace a.b"},
		{on("TABLE_WRITE_DATA", "table", []string{"a", "b"}, "t"), "; it holds by TABLE_WRITE_DATA on table a.b.t"},
		{on("TABLE_LIST", "catalog", nil, ""), ""},
		{on("TABLE_READ_DATA", "namespace", []string{"b"}, ""), ""},
		{on("TABLE_READ_DATA", "namespace", []string{"a", "b", "c"}, ""), ""},
		{on("TABLE_READ_DATA", "table", []string{"a", "b"}, "u"), ""},
		{on("TABLE_READ_DATA", "table", []string{"a"}, "t"), ""},
	} {
		if got := taken.stillHeld([]grantBody{c.held}); got != c.want {
			t.Errorf("%+v: %q, want %q", c.held, got, c.want)
		}
	}
}

// TestJobStatus_APlanIsNoJob: what --dry-run shows says that nothing was queued, and nothing of an outcome.
func TestJobStatus_APlanIsNoJob(t *testing.T) {
	text := func(s jobStatus) string {
		var out strings.Builder
		if err := printFields(&out, s.fields()); err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(out.String()), " ")
	}
	s := jobStatus{Job: "compaction", State: maintenance.Queued, Phase: "dry-run", Outcome: maintenance.Outcome{
		FilesBefore: 6, FilesAfter: 6, FilesReplaced: 4, RowsBefore: 60, RowsAfter: 60, RowsRewritten: 40, BytesBefore: 600, RowGroupsBefore: 7,
	}}
	got := text(s)
	for _, want := range []string{
		"state planned, nothing was queued", "files 4 of 6 would be rewritten", "rows 40 of 60 would be rewritten", "bytes 600 now", "row groups 7 now",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	for _, not := range []string{"queued dry-run", "→", "seconds"} {
		if strings.Contains(got, not) {
			t.Errorf("a plan says %q: %q", not, got)
		}
	}
	s.Phase, s.State = "", maintenance.Succeeded
	if got := text(s); !strings.Contains(got, "state succeeded") || !strings.Contains(got, "files 6 → 6") {
		t.Errorf("a job shows %q", got)
	}
}

func TestRefusalOf(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"Table does not exist: a.t","type":"NoSuchTableException","code":404}}`: "Table does not exist: a.t (NoSuchTableException, 404)",
		`{"error":"invalid_client","error_description":"wrong secret"}`:                              "wrong secret (invalid_client, 404)",
		`{"error":"invalid_client"}`: "invalid_client (invalid_client, 404)",
		`<html>`:                     "the server answered 404: <html>; is it a catalogd? Its API is where `listen` says, not where `ops_listen` does",
		``:                           "the server answered 404: Not Found; is it a catalogd? Its API is where `listen` says, not where `ops_listen` does",
	} {
		if got := refusalOf(404, []byte(body)).Error(); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// TestClientSettings_SecretsAndStorage: what is masked is masked everywhere, and the storage decides what is said.
func TestClientSettings_SecretsAndStorage(t *testing.T) {
	s := clientSettings{
		CatalogURI: "http://127.0.0.1:1/api/catalog", TokenURI: "http://127.0.0.1:1/api/catalog/v1/oauth/tokens",
		Warehouse: "dev", ClientID: "root", Secret: "it's", Scope: "PRINCIPAL_ROLE:ALL",
	}
	var onFile, onS3, masked strings.Builder
	s.print(&onFile)
	for _, want := range []string{"STAGE_CREATE_TABLES=false", "CLIENT_SECRET 'it''s'", "fs.local.enabled=true", `"credential": "root:it's"`, "root:it's"} {
		if !strings.Contains(onFile.String(), want) {
			t.Errorf("on a folder %q is missing", want)
		}
	}
	s.S3 = true
	s.print(&onS3)
	for _, want := range []string{"iceberg-aws-bundle", "S3FileIO", "vended-credentials-enabled=true"} {
		if !strings.Contains(onS3.String(), want) || strings.Contains(onFile.String(), want) {
			t.Errorf("%q belongs to an object store alone", want)
		}
	}
	if strings.Contains(onS3.String(), "STAGE_CREATE_TABLES") {
		t.Error("staged creation works on an object store")
	}
	s.Secret = "***"
	s.print(&masked)
	if strings.Contains(masked.String(), "it's") {
		t.Error("a masked secret is shown")
	}
}

// TestWaitForJob_OutlivesTokenAndServer: a token that ran out and a server that is away for a moment end no waiting;
// a refusal does.
func TestWaitForJob_OutlivesTokenAndServer(t *testing.T) {
	answers := []struct {
		status int
		body   string
	}{
		{200, `{"job_id":"j","state":"running","phase":"writing","progress":0.5}`},
		{401, `{"error":{"message":"expired","type":"NotAuthorizedException","code":401}}`},
		{503, `{"error":{"message":"stopping","type":"ServiceUnavailableException","code":503}}`},
		{200, `{"job_id":"j","state":"succeeded","files_before":9,"later":"kept"}`},
	}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := answers[asked]
		asked++
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.body))
	}))
	defer server.Close()
	logins := 0
	a := &admin{base: server.URL + managementPath, http: server.Client(), login: func(context.Context) error { logins++; return nil }}
	var out, errs strings.Builder
	c := &call{Out: &out, Err: &errs, Name: "catalogd maintenance run"}
	status := jobStatus{JobID: "j", State: "queued"}
	if err := c.waitForJob(t.Context(), a, &status); err != nil {
		t.Fatal(err)
	}
	if asked != len(answers) || logins != 1 || status.State != "succeeded" {
		t.Errorf("asked %d times, logged in %d times, state %s", asked, logins, status.State)
	}
	for _, want := range []string{"running writing 50 %", "stopping"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("progress lacks %q: %s", want, errs.String())
		}
	}
	if err := c.printJob("json", status); err != nil || !strings.Contains(out.String(), `"later": "kept"`) {
		t.Errorf("fields of a newer server are lost (%v): %s", err, out.String())
	}
	asked, answers = 0, answers[:0]
	answers = append(answers, struct {
		status int
		body   string
	}{403, `{"error":{"message":"no","type":"ForbiddenException","code":403}}`})
	if err := c.waitForJob(t.Context(), a, &jobStatus{JobID: "j", State: "queued"}); !isRefusal(err, 403) {
		t.Errorf("a refusal ended in %v", err)
	}
}

// TestPrintJob_RefusedAndFailedEndWithOne: the reason goes to standard error, and there alone; the exit code says so.
func TestPrintJob_RefusedAndFailedEndWithOne(t *testing.T) {
	for state, want := range map[string]error{"succeeded": nil, "nothing_to_do": nil, "queued": nil, "refused": errFailedShown, "failed": errFailedShown} {
		var out, errs strings.Builder
		c := &call{Out: &out, Err: &errs, Name: "catalogd maintenance run"}
		status := jobStatus{State: maintenance.State(state), Reason: maintenance.Reason{Code: "code", Message: "column a is a list"}}
		if err := c.printJob("table", status); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", state, err, want)
		}
		if (want != nil) != strings.Contains(errs.String(), "column a is a list") {
			t.Errorf("%s: standard error has %q", state, errs.String())
		}
		if (want == nil) != strings.Contains(out.String(), "column a is a list") || !strings.Contains(out.String(), state) {
			t.Errorf("%s: standard output has %q", state, out.String())
		}
	}
}
