package rest

import (
	"fmt"
	"strings"
	"testing"
)

// stageCommit is the commit of a create with that uuid at that location, as clients send it.
func stageCommit(uuid, location string) string {
	return fmt.Sprintf(`{"requirements":[{"type":"assert-create"}],"updates":[{"action":"assign-uuid","uuid":%q},`+
		`{"action":"upgrade-format-version","format-version":2},{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[`+
		`{"id":1,"name":"id","required":false,"type":"long"}]},"last-column-id":1},{"action":"set-current-schema","schema-id":-1},`+
		`{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},{"action":"set-default-spec","spec-id":-1},`+
		`{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},`+
		`{"action":"set-location","location":%q},{"action":"set-properties","updates":{"by":"the staged create"}}]}`, uuid, location)
}

// metadataText reads a text of the answer's metadata.
func metadataText(a answer, name string) string {
	metadata, _ := a.json()["metadata"].(map[string]any)
	text, _ := metadata[name].(string)
	return text
}

// A level or a name that no path can lead to again is refused when it is made, and is a miss or a refusal everywhere
// else: never somebody else's answer, never a failure of the server.
func TestField_C031_NamesThatNoPathLeadsTo(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	d.mustCreateNamespace(t, "a", "b")
	d.mustCreateTable(t, "a", "t")
	events, files := l.traces()
	for _, level := range []string{`a\u001fb`, `\u001f`, `\u0000`, `x\u0000`, `a\n`, `a\r`, `\t`, `\u007f`, `\ud800`, `\udfff\ud800`} {
		d.expect(t, "POST", namespacesOfLake, `{"namespace":["`+level+`"]}`, 400, "BadRequestException")
		d.expect(t, "POST", namespacesOfLake, `{"namespace":["a","`+level+`"]}`, 400, "BadRequestException")
		d.expect(t, "POST", namespacesOfLake+"/a/tables", strings.Replace(createBody("t"), `"t"`, `"`+level+`"`, 1), 400, "BadRequestException")
		d.expect(t, "POST", namespacesOfLake+"/a/views", strings.Replace(viewBody("v"), `"v"`, `"`+level+`"`, 1), 400, "BadRequestException")
		d.expect(t, "POST", "/v1/lake/tables/rename",
			`{"source":{"namespace":["a"],"name":"t"},"destination":{"namespace":["a"],"name":"`+level+`"}}`, 400, "BadRequestException")
	}
	for _, escaped := range []string{"%00", "x%00", "a%0A", "%7F", "%ED%A0%80", "%FF"} {
		for _, path := range []string{"/" + escaped, "/a%1F" + escaped, "/a/tables/" + escaped, "/" + escaped + "/tables/t", "/a/views/" + escaped} {
			if a := d.send(t, "GET", namespacesOfLake+path, ""); a.status != 400 && a.status != 404 {
				t.Errorf("GET %s: %d %s", path, a.status, a.body)
			}
		}
		if a := d.send(t, "GET", namespacesOfLake+"?parent="+escaped, ""); a.status != 400 && a.status != 404 {
			t.Errorf("children of %s: %d %s", escaped, a.status, a.body)
		}
	}
	if eventsNow, filesNow := l.traces(); eventsNow != events || filesNow != files {
		t.Errorf("%d events and %d files by what was refused", eventsNow-events, filesNow-files)
	}
	if a := d.expect(t, "GET", namespacesOfLake+"?parent=a", "", 200, ""); quoted(a.json()["namespaces"]) != `[["a","b"]]` {
		t.Errorf("children are %s", a.body)
	}
}

// A staged create writes nothing, where Trino then expects nothing, and a namespace without a location of its own answers
// one, which Trino builds on. What is given up leaves nothing behind.
func TestField_C096_NothingLiesWhereATableIsToBe(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	properties, _ := d.expect(t, "GET", namespacesOfLake+"/a", "", 200, "").json()["properties"].(map[string]any)
	base, _ := properties["location"].(string)
	if base == "" {
		t.Fatalf("the namespace has no location: %v", properties)
	}
	_, files := l.traces()
	staged := strings.Replace(createBody("t"), "{", `{"stage-create":true,"location":`+quoted(base+"/t")+`,`, 1)
	a := d.expect(t, "POST", namespacesOfLake+"/a/tables", staged, 200, "")
	if _, now := l.traces(); now != files {
		t.Errorf("a staged create left %d files", now-files)
	}
	if metadataText(a, "location") != base+"/t" {
		t.Errorf("staged at %s", metadataText(a, "location"))
	}
	d.expect(t, "POST", namespacesOfLake+"/a/tables/t", stageCommit(metadataText(a, "table-uuid"), base+"/t"), 200, "")
	if _, now := l.traces(); now != files+1 {
		t.Errorf("%d files by the commit, wanted its metadata alone", now-files)
	}
}

// A name is staged, then made by somebody who does not stage: the staged create comes too late, and a create that is sent
// again finds the table as it is. Nothing is wiped.
func TestField_C097_StagedAndPlainCreatesOfOneName(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	const at = namespacesOfLake + "/a/tables/t"
	staged := d.expect(t, "POST", namespacesOfLake+"/a/tables", strings.Replace(createBody("t"), "{", `{"stage-create":true,`, 1), 200, "")
	made := d.mustCreateTable(t, "a", "t")
	grown := d.expect(t, "POST", at, `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`, 200, "")
	events, files := l.traces()
	for range 2 {
		d.expect(t, "POST", at, stageCommit(metadataText(staged, "table-uuid"), metadataText(staged, "location")), 409, "AlreadyExistsException")
		d.expect(t, "POST", namespacesOfLake+"/a/tables", createBody("t"), 409, "AlreadyExistsException")
	}
	if eventsNow, filesNow := l.traces(); eventsNow != events || filesNow != files {
		t.Errorf("%d events and %d files by what was refused", eventsNow-events, filesNow-files)
	}
	now := d.expect(t, "GET", at, "", 200, "")
	if metadataText(now, "table-uuid") != metadataText(made, "table-uuid") || now.json()["metadata-location"] != grown.json()["metadata-location"] {
		t.Errorf("the table is another one now: %s", now.body)
	}
}

// Two tables may be given one uuid by their creators. Their rows, places, keys, tags and ends are their own.
func TestTables_OfOneUUID(t *testing.T) {
	l := newLake(t)
	l.addVendingWarehouse(t, "s3lake")
	d := l.door
	d.expect(t, "POST", "/v1/s3lake/namespaces", `{"namespace":["a"]}`, 200, "")
	const tables = "/v1/s3lake/namespaces/a/tables/"
	const uuid = "11111111-2222-4333-8444-555555555555"
	place := func(name string) string { return "s3://bucket/s3lake/" + name }
	for _, name := range []string{"one", "two"} {
		d.expect(t, "POST", tables+name, stageCommit(uuid, place(name)), 200, "")
	}
	// Nobody gets a place by its uuid: neither the one that the server would choose for it, nor the other table's.
	d.expect(t, "POST", tables+"three", stageCommit(uuid, place("two/in")), 400, "BadRequestException")
	d.expect(t, "POST", tables+"three", stageCommit(uuid, place(uuid)), 200, "")
	d.expect(t, "POST", tables+"four", stageCommit(uuid, place(uuid)), 400, "BadRequestException")

	tags := map[string]bool{}
	for _, name := range []string{"one", "two", "three"} {
		a := d.send(t, "GET", tables+name, "", "X-Iceberg-Access-Delegation", "vended-credentials")
		config, _ := a.json()["config"].(map[string]any)
		if a.status != 200 || metadataText(a, "table-uuid") != uuid || config["prefix-of"] != metadataText(a, "location") {
			t.Errorf("%s: %d, keys for %v, it lies at %s", name, a.status, config["prefix-of"], metadataText(a, "location"))
		}
		for tag := range tags {
			if again := d.send(t, "GET", tables+name, "", "If-None-Match", tag, "X-Iceberg-Access-Delegation", "vended-credentials"); again.status != 200 {
				t.Errorf("%s with another's tag: %d", name, again.status)
			}
		}
		tags[a.header.Get("ETag")] = true
	}
	// A commit, a drop with purge and an unregistering of one are nothing to the others.
	d.expect(t, "POST", tables+"one", `{"requirements":[{"type":"assert-table-uuid","uuid":"`+uuid+`"}],`+
		`"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`, 200, "")
	two := d.expect(t, "GET", tables+"two", "", 200, "")
	if strings.Contains(two.body, `"k":"v"`) {
		t.Errorf("a commit to one of them changed the other: %s", two.body)
	}
	one := d.expect(t, "GET", tables+"one", "", 200, "")
	d.expect(t, "DELETE", tables+"one", "", 204, "")
	d.expect(t, "DELETE", tables+"three?purgeRequested=true", "", 204, "")
	if a := d.expect(t, "GET", tables+"two", "", 200, ""); a.body != two.body {
		t.Errorf("it changed with the others' ends: %s", a.body)
	}
	// A dropped one comes back to its own place and to no other's.
	file := one.json()["metadata-location"]
	d.expect(t, "POST", "/v1/s3lake/namespaces/a/register", fmt.Sprintf(`{"name":"back","metadata-location":%q}`, two.json()["metadata-location"]), 400, "BadRequestException")
	back := d.expect(t, "POST", "/v1/s3lake/namespaces/a/register", fmt.Sprintf(`{"name":"back","metadata-location":%q}`, file), 200, "")
	if metadataText(back, "location") != place("one") {
		t.Errorf("it came back to %s", metadataText(back, "location"))
	}
}
