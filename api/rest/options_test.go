package rest

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/vending"
)

// addWarehouseWith makes a warehouse that has properties.
func (l *lake) addWarehouseWith(t *testing.T, name string, properties map[string]string, folds bool) {
	t.Helper()
	id := uuid.New()
	l.createWarehouse(t, catalog.Warehouse{
		ID: id, Name: name, Location: "file:///lakes/" + id.String(), Storage: vending.Profile{StorageType: "FILE"},
		Properties: properties, FoldsNames: folds,
	})
}

func tableProperties(t *testing.T, a answer) map[string]any {
	t.Helper()
	metadata, _ := a.json()["metadata"].(map[string]any)
	properties, _ := metadata["properties"].(map[string]any)
	if properties == nil {
		t.Fatalf("no properties in %s", a.body)
	}
	return properties
}

// Only what has one of the prefixes goes to clients, and what the server says itself stands above it.
func TestField_C009_OnlyPropertiesForClientsAreSent(t *testing.T) {
	l := newLake(t)
	l.addWarehouseWith(t, "told", map[string]string{
		"owner": "hush-ann", "config-default.rest-page-size": "100", "config-override.cache-enabled": "false",
		"table-default.k": "1", "table-override.o": "2", "view-default.v": "3", "view-override.w": "4",
		"config-override.prefix": "elsewhere", // could not be set; the server's own wins all the same
	}, false)
	a := l.door.as("nobody").expect(t, "GET", "/v1/config?warehouse=told", "", 200, "")
	if strings.Contains(a.body, "hush") {
		t.Errorf("a property without a prefix is told: %s", a.body)
	}
	if got := quoted(a.json()["defaults"]); got != `{"rest-page-size":"100","table-default.k":"1","view-default.v":"3"}` {
		t.Errorf("defaults %s", got)
	}
	if got := quoted(a.json()["overrides"]); got != `{"cache-enabled":"false","prefix":"told","table-override.o":"2","view-override.w":"4"}` {
		t.Errorf("overrides %s", got)
	}
}

// Only Java applies table-default.* and table-override.* by itself; for all others the server does, and twice is once.
func TestTableDefaults_AreAppliedByTheServer(t *testing.T) {
	l := newLake(t)
	l.addWarehouseWith(t, "preset", map[string]string{
		"table-default.a": "default", "table-default.b": "default", "table-override.c": "override",
		"table-default.write.parquet.compression-codec": "snappy",
		"view-default.a": "default", "view-override.c": "override",
	}, false)
	d := l.door
	d.expect(t, "POST", "/v1/preset/namespaces", `{"namespace":["n"]}`, 200, "")
	check := func(what string, got map[string]any, want map[string]string) {
		t.Helper()
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: %s is %v, want %s", what, name, got[name], value)
			}
		}
	}
	want := map[string]string{"a": "default", "b": "own", "c": "override", "write.parquet.compression-codec": "snappy"}
	for _, stage := range []string{"false", "true"} {
		body := strings.Replace(createBody("t"), "{", `{"stage-create":`+stage+`,"properties":{"b":"own","c":"own"},`, 1)
		a := d.expect(t, "POST", "/v1/preset/namespaces/n/tables", body, 200, "")
		check("create, staged "+stage, tableProperties(t, a), want)
		if stage == "false" {
			d.expect(t, "DELETE", "/v1/preset/namespaces/n/tables/t", "", 204, "")
		}
	}
	// What was never staged here, by a client that knows of no defaults; and one that removes a default again.
	commit := func(name, updates string) answer {
		return d.expect(t, "POST", "/v1/preset/namespaces/n/tables/"+name, `{"requirements":[{"type":"assert-create"}],"updates":[`+
			`{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[]}},{"action":"set-current-schema","schema-id":-1},`+
			`{"action":"set-properties","updates":{"b":"own","c":"own"}}`+updates+`]}`, 200, "")
	}
	check("commit of a create", tableProperties(t, commit("u", "")), want)
	got := tableProperties(t, commit("v", `,{"action":"remove-properties","removals":["a"]}`))
	if _, there := got["a"]; there {
		t.Error("a default that the request removes is there")
	}
	view := d.expect(t, "POST", "/v1/preset/namespaces/n/views", `{"name":"w","properties":{"c":"own"},"schema":{"type":"struct","schema-id":0,"fields":[]},`+
		`"view-version":{"version-id":1,"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":["n"],`+
		`"representations":[{"type":"sql","sql":"select 1","dialect":"spark"}]}}`, 200, "")
	check("view", tableProperties(t, view), map[string]string{"a": "default", "c": "override"})
}

func formatVersionOf(a answer) string {
	metadata, _ := a.json()["metadata"].(map[string]any)
	return quoted(metadata["format-version"])
}

func TestField_C186_FormatVersionsOfAWarehouse(t *testing.T) {
	l := newLake(t)
	l.addWarehouseWith(t, "two", map[string]string{"allowed-format-versions": "1,2"}, false)
	l.addWarehouseWith(t, "three", map[string]string{"allowed-format-versions": "3"}, false)
	l.addWarehouseWith(t, "one", map[string]string{"table-default.format-version": "1"}, false)
	d := l.door
	create := func(warehouse, name, version string, status int) answer {
		t.Helper()
		body := createBody(name)
		if version != "" {
			body = strings.Replace(body, "{", `{"properties":{"format-version":"`+version+`"},`, 1)
		}
		return d.expect(t, "POST", "/v1/"+warehouse+"/namespaces/n/tables", body, status, "")
	}
	for _, w := range []string{"two", "three", "one", "lake"} {
		d.expect(t, "POST", "/v1/"+w+"/namespaces", `{"namespace":["n"]}`, 200, "")
		create(w, "four", "4", 400)
	}
	for _, c := range []struct{ warehouse, version, want string }{
		{"two", "", "2"}, {"three", "", "3"}, {"one", "", "1"}, {"lake", "", "2"}, {"two", "1", "1"}, {"one", "3", "3"}, {"lake", "3", "3"},
	} {
		if got := formatVersionOf(create(c.warehouse, "t"+c.version, c.version, 200)); got != c.want {
			t.Errorf("%s, asked for %q: version %s, want %s", c.warehouse, c.version, got, c.want)
		}
	}
	if a := create("two", "x", "3", 400); !strings.Contains(a.body, "allowed-format-versions") || !strings.Contains(a.body, "warehouse two allows 1, 2") {
		t.Errorf("the rule is not named: %s", a.body)
	}
	create("three", "x", "2", 400)
	upgrade := func(warehouse, table, version string, status int) {
		t.Helper()
		d.expect(t, "POST", "/v1/"+warehouse+"/namespaces/n/tables/"+table,
			`{"requirements":[],"updates":[{"action":"upgrade-format-version","format-version":`+version+`}]}`, status, "")
	}
	upgrade("two", "t1", "2", 200)
	upgrade("two", "t1", "3", 400)
	upgrade("one", "t", "3", 200)
	for _, w := range []string{"two", "one", "lake"} {
		upgrade(w, "t", "4", 400)
	}
	d.expect(t, "POST", "/v1/two/namespaces/n/tables/new", `{"requirements":[{"type":"assert-create"}],"updates":[`+
		`{"action":"upgrade-format-version","format-version":3},{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[]}},`+
		`{"action":"set-current-schema","schema-id":-1}]}`, 400, "")
	d.expect(t, "HEAD", "/v1/two/namespaces/n/tables/new", "", 404, "")
}

// Whoever wonders why a client of 2023 cannot read a table finds both versions in one log line.
func TestField_C186_TheLogTellsTheClientAndTheFormat(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	d.expect(t, "POST", namespacesOfLake+"/a/tables", strings.Replace(createBody("t"), "{", `{"properties":{"format-version":"3"},`, 1), 200, "")
	d.send(t, "GET", namespacesOfLake+"/a/tables/t", "", "X-Client-Version", "1.4.0", "User-Agent", "old spark")
	d.server.Close()
	for _, line := range strings.Split(d.log.String(), "\n") {
		if strings.Contains(line, `"operation":"load-table"`) {
			for _, want := range []string{`"client_version":"1.4.0"`, `"user_agent":"old spark"`, `"format_version":3`, `"subject":"a.t"`} {
				if !strings.Contains(line, want) {
					t.Errorf("%s is not in %s", want, line)
				}
			}
			return
		}
	}
	t.Errorf("no line about the load in %s", d.log)
}

// A table keeps the version that it has when the rule becomes narrower, and takes commits.
func TestFormatVersions_ATableKeepsWhatItHas(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	w, err := l.store.FindWarehouse(t.Context(), "lake")
	if err != nil {
		t.Fatal(err)
	}
	w.Properties = map[string]string{"allowed-format-versions": "3"}
	if err := l.store.UpdateWarehouse(t.Context(), w, fact("update-warehouse")); err != nil {
		t.Fatal(err)
	}
	d.expect(t, "POST", namespacesOfLake+"/a/tables/t", `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`, 200, "")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/t", "", 200, "")
}

// In a warehouse that folds names, every route finds what was made under another spelling, and shows it as it was made.
func TestField_C029_FoldedNamesOnEveryRoute(t *testing.T) {
	l := newLake(t)
	l.addWarehouseWith(t, "fold", nil, true)
	d := l.door
	const base = "/v1/fold/namespaces"
	d.expect(t, "POST", base, `{"namespace":["Sales"]}`, 200, "")
	d.expect(t, "GET", base+"/sales", "", 200, "")
	d.expect(t, "POST", base, `{"namespace":["sales"]}`, 409, "AlreadyExistsException")
	d.expect(t, "POST", base, `{"namespace":["SALES","Eu"]}`, 200, "")
	d.expect(t, "POST", base+"/sales/tables", createBody("Orders"), 200, "")
	d.expect(t, "POST", base+"/SALES/tables", createBody("orders"), 409, "AlreadyExistsException")
	for _, call := range []string{"HEAD /sales", "HEAD /SALES%1FEU", "HEAD /sales/tables/ORDERS"} {
		method, path, _ := strings.Cut(call, " ")
		d.expect(t, method, base+path, "", 204, "")
	}
	for path, want := range map[string]string{
		"": `[["Sales"]]`, "?parent=sALES": `[["Sales","Eu"]]`,
	} {
		if a := d.expect(t, "GET", base+path, "", 200, ""); quoted(a.json()["namespaces"]) != want {
			t.Errorf("%q: %s", path, a.body)
		}
	}
	a := d.expect(t, "GET", base+"/sales/tables", "", 200, "")
	if got := quoted(a.json()["identifiers"]); got != `[{"name":"Orders","namespace":["Sales"]}]` {
		t.Errorf("tables %s", got)
	}
	d.expect(t, "GET", base+"/sales/tables/oRDERS", "", 200, "")
	d.expect(t, "POST", base+"/sales/tables/orders", `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`, 200, "")
	d.expect(t, "POST", "/v1/fold/transactions/commit", `{"table-changes":[{"identifier":{"namespace":["SALES"],"name":"orders"},`+
		`"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"w"}}]}]}`, 204, "")
	d.expect(t, "POST", "/v1/fold/transactions/commit", `{"table-changes":[`+
		`{"identifier":{"namespace":["SALES"],"name":"orders"},"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"x"}}]},`+
		`{"identifier":{"namespace":["sales"],"name":"Orders"},"requirements":[],"updates":[{"action":"set-properties","updates":{"l":"x"}}]}]}`,
		400, "BadRequestException")
	d.expect(t, "POST", "/v1/fold/tables/rename", `{"source":{"namespace":["sales"],"name":"ORDERS"},"destination":{"namespace":["SALES"],"name":"ORDERS"}}`, 204, "")
	if a := d.expect(t, "GET", base+"/sales/tables", "", 200, ""); quoted(a.json()["identifiers"]) != `[{"name":"ORDERS","namespace":["Sales"]}]` {
		t.Errorf("after a rename: %s", a.body)
	}
	d.expect(t, "DELETE", base+"/sales/tables/orders", "", 204, "")
	d.expect(t, "DELETE", base+"/sales%1Feu", "", 204, "")
	d.expect(t, "DELETE", base+"/SaLeS", "", 204, "")

	// And exactly, by default.
	d.mustCreateNamespace(t, "Sales")
	d.expect(t, "GET", namespacesOfLake+"/sales", "", 404, "NoSuchNamespaceException")
	d.expect(t, "POST", namespacesOfLake, `{"namespace":["sales"]}`, 200, "")
}
