package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// polaris is the command line client of Apache Polaris, driven command by command against one server.
type polaris struct {
	t       *testing.T
	front   *front
	in      *json.Encoder
	out     *json.Decoder
	login   []string // flags that say as whom
	results *table
}

// polarisAnswer is what one command did.
type polarisAnswer struct {
	Exit     int
	Out, Err string
}

func startPolaris(t *testing.T, s *server) *polaris {
	t.Helper()
	python := filepath.Join(filepath.Dir(installed(t, "polaris-cli")[0]), "python")
	cmd := exec.Command(python, filepath.Join(root(t), "e2e", "clients", "polaris-cli", "drive.py"))
	home := t.TempDir()
	cmd.Env = append(cleanEnv(), "HOME="+home, "POLARIS_HOME="+home)
	in, out, _ := startTalking(t, cmd)
	p := &polaris{
		t: t, front: newFront(t, s), in: json.NewEncoder(in), out: json.NewDecoder(out),
		results: &table{corner: "command", columns: []string{"result", "calls"}, cells: map[[2]string]string{}},
	}
	id, secret, _ := strings.Cut(s.env["CATALOG_CREDENTIAL"], ":")
	p.as(id, secret)
	return p
}

// as makes the next commands those of another principal.
func (p *polaris) as(id, secret string) {
	p.login = []string{"--client-id", id, "--client-secret", secret}
}

// try runs one command.
func (p *polaris) try(input string, args ...string) polarisAnswer {
	p.t.Helper()
	all := append([]string{"--base-url", p.front.url}, p.login...)
	if err := p.in.Encode(map[string]any{"args": append(all, args...), "input": input}); err != nil {
		p.t.Fatal(err)
	}
	var answer polarisAnswer
	if err := p.out.Decode(&answer); err != nil {
		p.t.Fatal(err)
	}
	return answer
}

// note puts a row into the table.
func (p *polaris) note(row, result string) {
	p.t.Helper()
	if p.results.cells[[2]string{row, "result"}] == "" {
		p.results.rows = append(p.results.rows, row)
	}
	p.results.cells[[2]string{row, "result"}] = result
	p.results.cells[[2]string{row, "calls"}] = strings.Join(p.front.taken(p.t), ", ")
}

// does runs a command that must work and print the text.
func (p *polaris) does(row, text string, args ...string) string {
	p.t.Helper()
	answer := p.try("", args...)
	result := "works"
	if answer.Exit != 0 || !strings.Contains(answer.Out+answer.Err, text) {
		result = "FAILS"
		p.t.Errorf("polaris %s: exit %d, wanted is %q\n%s%s", strings.Join(args, " "), answer.Exit, text, answer.Out, answer.Err)
	}
	p.note(row, result)
	return answer.Out
}

// refuses runs a command that must fail with the text.
func (p *polaris) refuses(row, text string, args ...string) {
	p.t.Helper()
	answer := p.try("", args...)
	if answer.Exit == 0 || !strings.Contains(answer.Out+answer.Err, text) {
		p.t.Errorf("polaris %s: exit %d, wanted is a refusal with %q\n%s%s", strings.Join(args, " "), answer.Exit, text, answer.Out, answer.Err)
	}
	p.note(row, "refused: "+text)
}

// credentials reads what a command printed once.
func (p *polaris) credentials(out string) (id, secret string) {
	p.t.Helper()
	var c struct {
		ID     string `json:"clientId"`
		Secret string `json:"clientSecret"`
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil || c.ID == "" || c.Secret == "" {
		p.t.Fatalf("no credentials in %q: %v", out, err)
	}
	return c.ID, c.Secret
}

// The whole set-up of a lake by Polaris' own client, and the taking down of it.
func TestSmoke_PolarisCLI(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := startDev(t, filepath.Join(dir, "data"), nil)
	t.Cleanup(s.stop)
	p := startPolaris(t, s)
	base := "file://" + dir + "/lake"
	p.catalogs(base)
	p.principals()
	p.roles()
	p.namespaces()
	tableAndView(t, s)
	p.tables()
	p.privileges()
	p.reader(t)
	p.policies(dir)
	p.profiles()
	p.setup(dir)
	p.takeDown(s)
	holdTable(t, "polaris-cli", p.results)
}

func (p *polaris) catalogs(base string) {
	p.does("catalogs create, FILE", "", "catalogs", "create", "lake", "--storage-type", "file", "--default-base-location", base, "--property", "team=a")
	p.does("catalogs create, S3", "", "catalogs", "create", "cloud", "--storage-type", "s3", "--default-base-location", "s3://bucket/cloud",
		"--role-arn", "arn:aws:iam::123456789012:role/lake", "--region", "us-east-1", "--external-id", "x", "--allowed-location", "s3://bucket/cloud/more",
		"--allowed-location", "s3://bucket/cloud")
	p.refuses("catalogs create, again", "already exists", "catalogs", "create", "lake", "--storage-type", "file", "--default-base-location", base)
	p.refuses("catalogs create, EXTERNAL", "is not served", "catalogs", "create", "remote", "--type", "external", "--storage-type", "file",
		"--default-base-location", base+"-remote", "--catalog-connection-type", "iceberg-rest", "--catalog-uri", "http://127.0.0.1:1/",
		"--iceberg-remote-catalog-name", "x", "--catalog-authentication-type", "bearer", "--catalog-bearer-token", "t")
	p.refuses("catalogs create with a storage name", "storageName", "catalogs", "create", "named", "--storage-type", "file",
		"--default-base-location", base+"-named", "--storage-name", "n")
	p.does("catalogs list", `"cloud"`, "catalogs", "list")
	p.does("catalogs get", `"team"`, "catalogs", "get", "lake")
	p.does("catalogs update, properties", "", "catalogs", "update", "lake", "--set-property", "team=b", "--set-property", "k=v", "--remove-property", "k")
	p.does("catalogs get", `"b"`, "catalogs", "get", "lake")
	p.does("catalogs update, storage", "", "catalogs", "update", "cloud", "--allowed-location", "s3://bucket/cloud/third")
	p.does("catalogs get", "cloud/third", "catalogs", "get", "cloud")
	p.does("catalogs summarize", "lake", "catalogs", "summarize", "lake")
}

func (p *polaris) principals() {
	ann, secret := p.credentials(p.does("principals create", "clientSecret", "principals", "create", "ann", "--property", "team=a"))
	p.does("principals list", `"ann"`, "principals", "list")
	p.does("principals get", `"team"`, "principals", "get", "ann")
	p.does("principals update", "", "principals", "update", "ann", "--set-property", "team=b")
	root := p.login
	p.as(ann, secret)
	again, secret := p.credentials(p.does("principals rotate-credentials, one's own", "clientSecret", "principals", "rotate-credentials", "ann"))
	p.as(again, secret)
	p.does("principals get, oneself", `"b"`, "principals", "get", "ann")
	p.refuses("principals reset, without the right", "PRINCIPAL_RESET_CREDENTIALS", "principals", "reset", "ann")
	p.login = root
	p.credentials(p.does("principals reset", "clientSecret", "principals", "reset", "ann"))
	chosen := "chosen-secret-of-ann-0123456789"
	p.does("principals reset, chosen", "ann-chosen", "principals", "reset", "ann", "--new-client-id", "ann-chosen", "--new-client-secret", chosen)
	p.as("ann-chosen", chosen)
	p.does("principals get, oneself", `"ann-chosen"`, "principals", "get", "ann")
	p.login = root
}

func (p *polaris) roles() {
	p.does("principal-roles create", "", "principal-roles", "create", "analysts", "--property", "x=y")
	p.does("principal-roles list", `"analysts"`, "principal-roles", "list")
	p.does("principal-roles get", `"x"`, "principal-roles", "get", "analysts")
	p.does("principal-roles update", "", "principal-roles", "update", "analysts", "--set-property", "x=z")
	p.does("principal-roles grant", "", "principal-roles", "grant", "analysts", "--principal", "ann")
	p.does("principal-roles list --principal", `"analysts"`, "principal-roles", "list", "--principal", "ann")
	p.does("catalog-roles create", "", "catalog-roles", "create", "reader", "--catalog", "lake", "--property", "x=y")
	p.does("catalog-roles list", `"reader"`, "catalog-roles", "list", "lake")
	p.does("catalog-roles get", `"x"`, "catalog-roles", "get", "reader", "--catalog", "lake")
	p.does("catalog-roles update", "", "catalog-roles", "update", "reader", "--catalog", "lake", "--set-property", "x=z")
	p.does("catalog-roles grant", "", "catalog-roles", "grant", "reader", "--catalog", "lake", "--principal-role", "analysts")
	p.does("catalog-roles list --principal-role", `"reader"`, "catalog-roles", "list", "lake", "--principal-role", "analysts")
	p.does("catalogs list --principal-role", `"lake"`, "catalogs", "list", "--principal-role", "analysts")
	p.does("catalog-roles summarize", "reader", "catalog-roles", "summarize", "reader", "--catalog", "lake")
	p.does("principal-roles summarize", "analysts", "principal-roles", "summarize", "analysts")
	p.does("principals summarize", "ann", "principals", "summarize", "ann")
}

func (p *polaris) namespaces() {
	p.does("namespaces create", "", "namespaces", "create", "raw", "--catalog", "lake", "--property", "owner=ann")
	p.does("namespaces create, nested", "", "namespaces", "create", "raw.day", "--catalog", "lake")
	p.does("namespaces list", "raw", "namespaces", "list", "--catalog", "lake")
	p.does("namespaces list --parent", "day", "namespaces", "list", "--catalog", "lake", "--parent", "raw")
	p.does("namespaces get", "ann", "namespaces", "get", "raw", "--catalog", "lake")
	p.does("namespaces summarize", "raw", "namespaces", "summarize", "raw", "--catalog", "lake")
}

// tableAndView makes what Polaris' client cannot make.
func tableAndView(t *testing.T, s *server) {
	t.Helper()
	r := s.rest(t)
	for path, body := range map[string]string{
		"/lake/namespaces/raw/tables": `{"name":"t","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`,
		"/lake/namespaces/raw/views": `{"name":"v","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]},
			"view-version":{"version-id":1,"timestamp-ms":1700000000000,"schema-id":0,"summary":{},"default-namespace":["raw"],
			"representations":[{"type":"sql","sql":"SELECT 1 AS id","dialect":"spark"}]},"properties":{}}`,
	} {
		if status, answer := r.call(http.MethodPost, path, json.RawMessage(body)); status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
	}
}

func (p *polaris) tables() {
	for _, kind := range []struct{ command, name string }{{"tables", "t"}, {"views", "v"}} {
		in := []string{"--catalog", "lake", "--namespace", "raw"}
		p.does(kind.command+" list", kind.name, append([]string{kind.command, "list"}, in...)...)
		p.does(kind.command+" get", "schema", append([]string{kind.command, "get", kind.name}, in...)...)
		p.does(kind.command+" summarize", kind.name, append([]string{kind.command, "summarize", kind.name}, in...)...)
	}
	p.does("find, a table", "raw.t", "find", "lake.raw.t")
	p.does("find, a principal", "ann", "find", "ann")
}

// levels are where privileges are granted, and one that Polaris has there.
var levels = []struct {
	kind, privilege string
	on              []string
}{
	{"catalog", "CATALOG_READ_PROPERTIES", nil},
	{"namespace", "NAMESPACE_READ_PROPERTIES", []string{"--namespace", "raw"}},
	{"namespace", "TABLE_LIST", []string{"--namespace", "raw.day"}},
	{"table", "TABLE_READ_DATA", []string{"--namespace", "raw", "--table", "t"}},
	{"view", "VIEW_READ_PROPERTIES", []string{"--namespace", "raw", "--view", "v"}},
}

func (p *polaris) privileges() {
	to := []string{"--catalog", "lake", "--catalog-role", "reader"}
	list := append([]string{"privileges", "list"}, to...)
	for _, l := range levels {
		change := func(action string) []string {
			return append(append([]string{"privileges", l.kind, action, l.privilege}, l.on...), to...)
		}
		p.does("privileges "+l.kind+" grant", "", change("grant")...)
		p.does("privileges list", l.privilege, list...)
		p.does("privileges "+l.kind+" revoke", "", change("revoke")...)
		if out := p.does("privileges list", "", list...); strings.Contains(out, l.privilege) {
			p.t.Errorf("%s is still there: %s", l.privilege, out)
		}
		p.does("privileges "+l.kind+" grant", "", change("grant")...)
	}
	p.refuses("privileges on policies", "no policies", "privileges", "catalog", "grant", "CATALOG_ATTACH_POLICY", "--catalog", "lake", "--catalog-role", "reader")
	p.does("principals access", "TABLE_READ_DATA", "principals", "access", "ann")
}

// reader sees what was granted, and nothing else.
func (p *polaris) reader(t *testing.T) {
	t.Helper()
	root := p.login
	p.as("ann-chosen", "chosen-secret-of-ann-0123456789")
	p.does("tables get, as a reader", "schema", "tables", "get", "t", "--catalog", "lake", "--namespace", "raw")
	p.refuses("tables delete, as a reader", "TABLE_DROP", "tables", "delete", "t", "--catalog", "lake", "--namespace", "raw")
	p.refuses("principals list, as a reader", "PRINCIPAL_LIST", "principals", "list")
	p.login = root
}

func (p *polaris) policies(dir string) {
	file := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(file, []byte(`{"version":"2025-02-03","enable":true,"config":{}}`), 0o600); err != nil {
		p.t.Fatal(err)
	}
	in := []string{"--catalog", "lake", "--namespace", "raw"}
	with := func(args ...string) []string { return append(args, in...) }
	p.does("policies list", "", with("policies", "list")...)
	p.does("policies list --applicable", "", with("policies", "list", "--applicable")...)
	p.refuses("policies create", "no policies", with("policies", "create", "p", "--policy-file", file, "--policy-type", "system.data-compaction")...)
	p.refuses("policies get", "no policies", with("policies", "get", "p")...)
	p.refuses("policies delete", "no policies", with("policies", "delete", "p")...)
	p.refuses("policies attach", "no policies", with("policies", "attach", "p", "--attachment-type", "catalog")...)
	p.does("generic-tables list", "", with("generic-tables", "list")...)
	p.refuses("generic-tables get", "not served", with("generic-tables", "get", "g")...)
}

// profiles are files of the client: no call is made.
func (p *polaris) profiles() {
	p.t.Helper()
	if answer := p.try("id\nsecret\n127.0.0.1\n8181\nhttp\n\n\n", "profiles", "create", "dev"); answer.Exit != 0 {
		p.t.Errorf("profiles create: %+v", answer)
	}
	p.note("profiles create", "works")
	p.does("profiles list", "dev", "profiles", "list")
	p.does("profiles get", "dev", "profiles", "get", "dev")
	p.does("profiles delete", "", "profiles", "delete", "dev")
}

// setup applies a file, applies it again, and takes the answer's own description back.
func (p *polaris) setup(dir string) {
	config := fmt.Sprintf(`principal_roles: [makers, {name: lookers, properties: {a: b}}]
principals:
  bob: {type: service, roles: [makers], properties: {team: c}}
catalogs:
  - name: second
    storage_type: file
    default_base_location: "file://%s/second"
    properties: {team: c}
    namespaces: [one, one.two, {name: three, properties: {k: v}}]
    roles:
      maker:
        assign_to: [makers]
        privileges:
          catalog: [CATALOG_MANAGE_CONTENT]
          namespace: {one: [TABLE_CREATE, TABLE_WRITE_DATA]}
`, dir)
	file := filepath.Join(dir, "setup.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.does("setup apply --dry-run", "", "setup", "apply", "--dry-run", file)
	p.does("setup apply", "", "setup", "apply", file)
	p.does("setup apply, again", "", "setup", "apply", file)
	out := p.does("setup export", "second", "setup", "export")
	for _, part := range []string{"maker", "CATALOG_MANAGE_CONTENT", "TABLE_WRITE_DATA", "bob", "lookers", "three"} {
		if !strings.Contains(out, part) {
			p.t.Errorf("setup export leaves out %s:\n%s", part, out)
		}
	}
	p.does("catalogs list --principal-role", `"second"`, "catalogs", "list", "--principal-role", "makers")
}

// takeDown removes everything again; what is not empty stays.
func (p *polaris) takeDown(s *server) {
	p.refuses("catalogs delete, not empty", "not empty", "catalogs", "delete", "lake")
	p.refuses("namespaces delete, not empty", "not empty", "namespaces", "delete", "raw", "--catalog", "lake")
	p.does("views delete", "", "views", "delete", "v", "--catalog", "lake", "--namespace", "raw")
	p.does("tables delete", "", "tables", "delete", "t", "--catalog", "lake", "--namespace", "raw")
	p.does("namespaces delete", "", "namespaces", "delete", "raw.day", "--catalog", "lake")
	p.does("namespaces delete", "", "namespaces", "delete", "raw", "--catalog", "lake")
	p.does("catalog-roles revoke", "", "catalog-roles", "revoke", "reader", "--catalog", "lake", "--principal-role", "analysts")
	p.does("catalog-roles delete", "", "catalog-roles", "delete", "reader", "--catalog", "lake")
	p.does("principal-roles revoke", "", "principal-roles", "revoke", "analysts", "--principal", "ann")
	p.does("principal-roles delete", "", "principal-roles", "delete", "analysts")
	p.does("principals delete", "", "principals", "delete", "ann")
	p.does("catalogs delete", "", "catalogs", "delete", "lake")
	p.does("catalogs delete", "", "catalogs", "delete", "cloud")
	if out := p.does("catalogs list", s.env["CATALOG_WAREHOUSE"], "catalogs", "list"); strings.Contains(out, "cloud") {
		p.t.Errorf("left: %s", out)
	}
}
