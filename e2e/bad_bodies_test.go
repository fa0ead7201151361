package e2e

import (
	"net/http"
	"strings"
)

// malformedBodies: what is no JSON, on every route that takes a body.
func malformedBodies() []badCall {
	routes := map[string]string{
		"create namespace": "/dev/namespaces", "update namespace": "/dev/namespaces/ns/properties", "create table": badTables,
		"commit": badTable, "transaction": badCommits, "rename": badRename, "metrics": badTable + "/metrics",
		"create view": badViews, "replace view": badView, "rename view": badViewRename,
	}
	bodies := map[string]any{
		"an open brace": `{`, "half a pair": `{"a":}`, "a bare word": `nonsense`, "single quotes": `{'namespace': ['a']}`,
		"a comma too many": `{"namespace": ["a"],}`, "a comment": `{/* */}`, "NaN": `{"a": NaN}`, "a byte order mark": "\ufeff{}",
		"two values": `{} {}`, "bytes that are no text": []byte{'{', '"', 'a', '"', ':', '"', 0xff, 0xfe, '"', '}'},
		"a raw control character": "{\"a\": \"\x01\"}", "U+0000": "{\"a\": \x00}", "nothing": "", "blanks": "  \n ",
		"a list": `[]`, "a text": `"x"`, "a number": `1`, "null": `null`,
		"a hundred thousand levels": strings.Repeat("[", 100_000),
		"as many objects":           strings.Repeat(`{"a":`, 100_000),
		"form data":                 "namespace=a",
	}
	var calls []badCall
	for route, path := range routes {
		for what, body := range bodies {
			calls = append(calls, badCall{name: route + ": " + what, path: path, body: body,
				status: 400, typ: "BadRequestException", says: "request body|Malformed request|metrics report"})
		}
	}
	return calls
}

// commitOf is a commit of updates to ns.t.
func (b *badInput) commitOf(updates ...any) object {
	return object{"requirements": list{}, "updates": append(list{}, updates...)}
}

// wrongTypes: well-formed JSON of another shape.
func (b *badInput) wrongTypes() []badCall {
	bad := func(name, path string, body any, says string) badCall {
		return badCall{name: name, path: path, body: body, status: 400, typ: "BadRequestException", says: says}
	}
	create := func(change object) object {
		body := object{"name": "new", "schema": goodSchema()}
		for key, value := range change {
			body[key] = value
		}
		return body
	}
	schema := func(field object) object {
		return create(object{"schema": object{"type": "struct", "schema-id": 0, "fields": list{field}}})
	}
	snapshot := func(key string, value any) object {
		commit := appendOf(b.table, 2, 1)
		commit["updates"].([]any)[0].(map[string]any)["snapshot"].(map[string]any)[key] = value
		return commit
	}
	return []badCall{
		bad("namespace is a text", "/dev/namespaces", object{"namespace": "a"}, "namespace"),
		bad("namespace is missing", "/dev/namespaces", object{}, "namespace"),
		bad("namespace is null", "/dev/namespaces", object{"namespace": nil}, "namespace"),
		bad("level is a number", "/dev/namespaces", object{"namespace": list{1}}, "namespace"),
		bad("level is null", "/dev/namespaces", object{"namespace": list{"a", nil}}, "namespace"),
		bad("properties are a list", "/dev/namespaces", object{"namespace": list{"a"}, "properties": list{}}, "properties"),
		bad("property is a number", "/dev/namespaces", object{"namespace": list{"a"}, "properties": object{"k": 1}}, "properties"),
		bad("property is null", "/dev/namespaces", object{"namespace": list{"a"}, "properties": object{"k": nil}}, "properties.k"),
		bad("removals are an object", "/dev/namespaces/ns/properties", object{"removals": object{}}, "removals"),
		bad("updates are a list", "/dev/namespaces/ns/properties", object{"updates": list{}}, "updates"),
		bad("update is an object", "/dev/namespaces/ns/properties", object{"updates": object{"k": object{}}}, "updates"),
		{name: "removed and updated", path: "/dev/namespaces/ns/properties",
			body:   object{"removals": list{"owner"}, "updates": object{"owner": "x"}},
			status: 422, typ: "UnprocessableEntityException", says: "owner"},

		bad("table without name", badTables, object{"schema": goodSchema()}, "name"),
		bad("table name is a number", badTables, create(object{"name": 1}), "name"),
		bad("table without schema", badTables, object{"name": "new"}, "schema"),
		bad("schema is a list", badTables, create(object{"schema": list{}}), "schema"),
		bad("schema is no struct", badTables, create(object{"schema": object{"type": "list", "fields": list{}}}), "struct"),
		bad("fields are an object", badTables, create(object{"schema": object{"type": "struct", "fields": object{}}}), "fields"),
		bad("field without type", badTables, schema(object{"id": 1, "name": "x", "required": false}), "type"),
		bad("field of an unknown type", badTables, schema(object{"id": 1, "name": "x", "required": false, "type": "money"}), "money"),
		bad("field with a text as id", badTables, schema(object{"id": "1", "name": "x", "required": false, "type": "long"}), "id"),
		bad("field with a fraction as id", badTables, schema(object{"id": 1.5, "name": "x", "required": false, "type": "long"}), "id"),
		bad("field with a huge id", badTables, schema(object{"id": 1e300, "name": "x", "required": false, "type": "long"}), "id"),
		bad("decimal without digits", badTables, schema(object{"id": 1, "name": "x", "required": false, "type": "decimal(0,0)"}),
			"decimal(0,0)"),
		bad("location is a number", badTables, create(object{"location": 1}), "location"),
		bad("stage-create is a text", badTables, create(object{"stage-create": "yes"}), "stage-create"),
		bad("table properties are a list", badTables, create(object{"properties": list{"a"}}), "properties"),
		bad("table property is a number", badTables, create(object{"properties": object{"k": 1}}), "k"),
		bad("spec is a text", badTables, create(object{"partition-spec": "day"}), "partition"),
		bad("order is a number", badTables, create(object{"write-order": 3}), "order"),

		bad("requirements are missing", badTable, object{"updates": list{}}, "requirements"),
		bad("updates are missing", badTable, object{"requirements": list{}}, "updates"),
		bad("requirements are an object", badTable, object{"requirements": object{}, "updates": list{}}, "requirements"),
		bad("update is a text", badTable, b.commitOf("set-location"), "update"),
		bad("update is null", badTable, b.commitOf(nil), "update"),
		bad("action is a number", badTable, b.commitOf(object{"action": 1}), "action"),
		bad("action is missing", badTable, b.commitOf(object{}), "action"),
		bad("snapshot is missing", badTable, b.commitOf(object{"action": "add-snapshot"}), "snapshot"),
		bad("snapshot id is a text", badTable, snapshot("snapshot-id", "2"), "snapshot-id"),
		bad("snapshot id is a fraction", badTable, snapshot("snapshot-id", 2.5), "snapshot-id"),
		bad("snapshot id is too big", badTable, snapshot("snapshot-id", 1e19), "snapshot-id"),
		bad("manifest list is a list", badTable, snapshot("manifest-list", list{}), "manifest-list"),
		bad("summary is a text", badTable, snapshot("summary", "append"), "summary"),
		bad("set-properties has a number", badTable, b.commitOf(object{"action": "set-properties", "updates": object{"k": 1}}), "k"),
		bad("set-properties has null", badTable, b.commitOf(object{"action": "set-properties", "updates": object{"k": nil}}), "k"),
		bad("removals are a text", badTable, b.commitOf(object{"action": "remove-properties", "removals": "k"}), "removals"),
		bad("ref without type", badTable, b.commitOf(object{"action": "set-snapshot-ref", "ref-name": "b", "snapshot-id": 1}), "type"),
		bad("requirement is a text", badTable, object{"requirements": list{"assert-create"}, "updates": list{}}, "requirement"),
		bad("required uuid is missing", badTable,
			object{"requirements": list{object{"type": "assert-table-uuid"}}, "updates": list{}}, "uuid"),

		bad("table-changes are missing", badCommits, object{}, "table-changes"),
		bad("table-changes are empty", badCommits, object{"table-changes": list{}}, "changes"),
		bad("change without identifier", badCommits, object{"table-changes": list{b.commitOf()}}, "identifier"),
		bad("identifier is a text", badCommits,
			object{"table-changes": list{object{"identifier": "ns.t", "requirements": list{}, "updates": list{}}}}, "identifier"),
		bad("one table twice", badCommits, object{"table-changes": list{b.changeOf("t"), b.changeOf("t")}}, "ns.t"),
		bad("rename without destination", badRename, object{"source": object{"namespace": list{"ns"}, "name": "t"}}, "destination"),
		bad("rename from a text", badRename,
			object{"source": "ns.t", "destination": object{"namespace": list{"ns"}, "name": "u"}}, "source"),
		bad("report without type", badTable+"/metrics", object{"table-name": "t"}, "report-type"),
		bad("report of a number", badTable+"/metrics", object{"report-type": 1}, "report"),
	}
}

// changeOf is one table's part of a transaction.
func (b *badInput) changeOf(table string, updates ...any) object {
	change := b.commitOf(updates...)
	change["identifier"] = object{"namespace": list{"ns"}, "name": table}
	return change
}

// tooBig: what passes a limit is refused before it is understood; what is within the body's limit by its own.
func (b *badInput) tooBig() []badCall {
	big := strings.Repeat("n", bigNameBytes)
	wide := func(count int) object {
		fields := make(list, count)
		for i := range fields {
			fields[i] = object{"id": i + 1, "name": "c", "type": "long", "required": false}
		}
		return object{"type": "struct", "schema-id": 0, "fields": fields}
	}
	deep := any("long")
	for range 2000 {
		deep = object{"type": "list", "element-id": 1, "element-required": false, "element": deep}
	}
	return []badCall{
		{name: "a namespace of 10 MB", path: "/dev/namespaces", body: object{"namespace": list{big}},
			status: 413, typ: "PayloadTooLargeException", says: "bytes"},
		{name: "a namespace property of 10 MB", path: "/dev/namespaces/ns/properties", body: object{"updates": object{"k": big}},
			status: 413, typ: "PayloadTooLargeException", says: "bytes"},
		{name: "a table name of 10 MB", path: badTables, body: object{"name": big, "schema": goodSchema()},
			status: 400, typ: "BadRequestException", says: "table name"},
		{name: "a staged table name of 10 MB", path: badTables, body: object{"name": big, "schema": goodSchema(), "stage-create": true},
			status: 400, typ: "BadRequestException", says: "table name"},
		{name: "a table's location of 10 MB", path: badTables,
			body:   object{"name": "new", "schema": goodSchema(), "location": b.base + "/" + big},
			status: 400, typ: "BadRequestException", says: "location"},
		{name: "a renamed name of 10 MB", path: badRename,
			body: object{"source": object{"namespace": list{"ns"}, "name": "t"}, "destination": object{"namespace": list{"ns"},
				"name": big}}, status: 413, typ: "PayloadTooLargeException", says: "bytes"},
		{name: "a renamed name of 600 kB", path: badRename,
			body: object{"source": object{"namespace": list{"ns"}, "name": "t"}, "destination": object{"namespace": list{"ns"},
				"name": big[:600_000]}}, status: 400, typ: "BadRequestException", says: "table name"},
		{name: "a namespace level of 257 bytes", path: "/dev/namespaces", body: object{"namespace": list{big[:257]}},
			status: 400, typ: "BadRequestException", says: "257 bytes"},
		{name: "a table name of 513 bytes", path: badTables, body: object{"name": big[:513], "schema": goodSchema()},
			status: 400, typ: "BadRequestException", says: "513 bytes"},
		{name: "a name of 200 letters of 3 bytes", path: badTables,
			body:   object{"name": strings.Repeat("表", 200), "schema": goodSchema()},
			status: 400, typ: "BadRequestException", says: "600 bytes"},
		{name: "an update's action of 10 MB", path: badTable, body: b.commitOf(object{"action": big}),
			status: 400, typ: "BadRequestException", says: "unknown update action"},
		{name: "a requirement's type of 10 MB", path: badTable,
			body:   object{"requirements": list{object{"type": big}}, "updates": list{}},
			status: 400, typ: "BadRequestException", says: "unknown requirement"},
		{name: "a set location of 10 MB", path: badTable,
			body:   b.commitOf(object{"action": "set-location", "location": b.base + "/" + big}),
			status: 400, typ: "BadRequestException", says: "location"},
		{name: "a type of 10 MB", path: badTables,
			body: object{"name": "new", "schema": object{"type": "struct", "fields": list{object{"id": 1, "name": "x", "required": false,
				"type": big}}}}, status: 400, typ: "BadRequestException", says: "type"},
		{name: "a create of 17 MB", path: badTables,
			body:   object{"name": "new", "schema": goodSchema(), "properties": object{"k": big + big[:7*megabyte]}},
			status: 413, typ: "PayloadTooLargeException", says: "bytes"},
		{name: "a commit of 65 MB", path: badTable, body: []byte(strings.Repeat(" ", 65*megabyte)),
			status: 413, typ: "PayloadTooLargeException", says: "bytes"},
		{name: "a transaction of 65 MB", path: badCommits, body: []byte(strings.Repeat(" ", 65*megabyte)),
			status: 413, typ: "PayloadTooLargeException", says: "bytes"},
		{name: "a report of 9 MB", path: badTable + "/metrics", body: []byte(strings.Repeat(" ", 9*megabyte)),
			status: 413, typ: "PayloadTooLargeException", says: "bytes"},
		{name: "100,000 columns of one name", path: badTables, body: object{"name": "new", "schema": wide(100_000)},
			status: 400, typ: "IllegalArgumentException", says: "multiple fields for name c"},
		{name: "2,000 lists in each other", path: badTables,
			body: object{"name": "new", "schema": object{"type": "struct", "fields": list{object{"id": 1, "name": "x", "required": false,
				"type": deep}}}}, status: 400, typ: "BadRequestException", says: "deep"},
		{name: "600 levels", path: "/dev/namespaces", body: object{"namespace": strings.Split(strings.Repeat("l ", 599)+"l", " ")},
			status: 400, typ: "BadRequestException", says: "600 levels"},
		{name: "600 levels in a path", method: "GET", path: "/dev/namespaces/" + strings.Repeat("l%1F", 599) + "l",
			status: 404, typ: "NoSuchNamespaceException", says: "does not exist"},
		{name: "600 levels as a parent", method: "GET", path: "/dev/namespaces?parent=" + strings.Repeat("l%1F", 599) + "l",
			status: 404, typ: "NoSuchNamespaceException", says: "does not exist"},
		{name: "a table below 600 levels", method: "GET", path: "/dev/namespaces/" + strings.Repeat("l%1F", 599) + "l/tables/t",
			status: 404, typ: "NoSuchTableException", says: "does not exist"},
		{name: "a rename to 600 levels", path: badRename,
			body: object{"source": object{"namespace": list{"ns"}, "name": "t"},
				"destination": object{"namespace": strings.Split(strings.Repeat("l ", 599)+"l", " "), "name": "t"}},
			status: 400, typ: "BadRequestException", says: "600 levels"},
		{name: "a path of 50 kB", method: "GET", path: badTables + "/" + big[:50_000],
			status: 404, typ: "NoSuchTableException", says: "does not exist"},
	}
}

// unknownThings: words that nobody knows, and names that do not exist.
func (b *badInput) unknownThings() []badCall {
	bad := func(name string, body any, says string) badCall {
		return badCall{name: name, path: badTable, body: body, status: 400, typ: "BadRequestException", says: says}
	}
	missing := func(name, method, path string, body any, typ, says string) badCall {
		return badCall{name: name, method: method, path: path, body: body, status: 404, typ: typ, says: says}
	}
	source := object{"namespace": list{"ns"}, "name": "t"}
	return []badCall{
		bad("an update", b.commitOf(object{"action": "drop-everything"}), "drop-everything"),
		bad("an update after a good one", b.commitOf(object{"action": "set-properties", "updates": object{"k": "v"}},
			object{"action": "add-index"}), "add-index"),
		bad("a view's update", b.commitOf(object{"action": "set-current-view-version", "view-version-id": 1}), "set-current-view-version"),
		bad("a requirement", object{"requirements": list{object{"type": "assert-nice-weather"}}, "updates": list{}}, "assert-nice-weather"),
		bad("a view's requirement",
			object{"requirements": list{object{"type": "assert-view-uuid", "uuid": b.table.Metadata.UUID}}, "updates": list{}},
			"assert-view-uuid"),
		{name: "an update in a transaction", path: badCommits,
			body: object{"table-changes": list{b.changeOf("victim",
				object{"action": "set-properties", "updates": object{"k": "v"}}), b.changeOf("t", object{"action": "add-index"})}},
			status: 400, typ: "BadRequestException", says: "add-index"},

		missing("a warehouse on config", "GET", "/config?warehouse=nowhere", nil, "NoSuchWarehouseException", "nowhere"),
		missing("a warehouse in a path", "GET", "/nowhere/namespaces", nil, "NoSuchWarehouseException", "nowhere"),
		missing("a warehouse of a create", "POST", "/nowhere/namespaces",
			object{"namespace": list{"a"}}, "NoSuchWarehouseException", "nowhere"),
		missing("a warehouse of a commit", "POST", "/nowhere/transactions/commit",
			object{"table-changes": list{b.changeOf("t")}}, "NoSuchWarehouseException", "nowhere"),
		missing("a namespace", "GET", "/dev/namespaces/nowhere", nil, "NoSuchNamespaceException", "nowhere"),
		{name: "a namespace, asked by HEAD", method: "HEAD", path: "/dev/namespaces/nowhere", status: 404},
		missing("a namespace to drop", "DELETE", "/dev/namespaces/nowhere", nil, "NoSuchNamespaceException", "nowhere"),
		missing("a parent", "GET", "/dev/namespaces?parent=nowhere", nil, "NoSuchNamespaceException", "nowhere"),
		missing("a parent of a new namespace", "POST", "/dev/namespaces",
			object{"namespace": list{"nowhere", "a"}}, "NoSuchNamespaceException", "nowhere"),
		missing("a namespace of a new table", "POST", "/dev/namespaces/nowhere/tables",
			object{"name": "new", "schema": goodSchema()}, "NoSuchNamespaceException", "nowhere"),
		missing("a table", "GET", badTables+"/none", nil, "NoSuchTableException", "ns.none"),
		{name: "a table, asked by HEAD", method: "HEAD", path: badTables + "/none", status: 404},
		missing("a table of a namespace that is none", "GET", "/dev/namespaces/nowhere/tables/none", nil, "NoSuchTableException",
			"nowhere.none"),
		missing("a metadata table", "GET", "/dev/namespaces/ns%1Ft/tables/files", nil, "NoSuchTableException", "files"),
		missing("a table to commit to", "POST", badTables+"/none", b.commitOf(), "NoSuchTableException", "ns.none"),
		missing("a table to drop", "DELETE", badTables+"/none", nil, "NoSuchTableException", "ns.none"),
		missing("a table's credentials", "GET", badTables+"/none/credentials", nil, "NoSuchTableException", "ns.none"),
		missing("a table of a report", "POST", badTables+"/none/metrics",
			object{"report-type": "scan-report"}, "NoSuchTableException", "ns.none"),
		missing("one table of a transaction", "POST", badCommits, object{"table-changes": list{b.changeOf("t",
			object{"action": "set-properties", "updates": object{"k": "v"}}), b.changeOf("none")}}, "NoSuchTableException", "ns.none"),
		missing("a table to rename", "POST", badRename,
			object{"source": object{"namespace": list{"ns"}, "name": "none"}, "destination": object{"namespace": list{"ns"}, "name": "new"}},
			"NoSuchTableException", "ns.none"),
		missing("a namespace to rename into", "POST", badRename,
			object{"source": source, "destination": object{"namespace": list{"nowhere"}, "name": "t"}}, "NoSuchNamespaceException",
			"nowhere"),
		missing("a route", "GET", "/dev/nothing/here", nil, "NotFoundException", "/api/catalog"),
		missing("a route with a wrong base", "GET", b.server.env["CATALOG_URI"]+"/v2/config", nil, "NotFoundException", "/api/catalog"),
		{name: "a method", method: "PUT", path: badTable, body: object{}, status: 405, typ: "UnsupportedOperationException", says: "PUT"},
		{name: "the metadata file of a table that is there", path: "/dev/namespaces/ns/register",
			body:   object{"name": "x", "metadata-location": b.table.MetadataLocation},
			status: 400, typ: "BadRequestException", says: "overlaps"},
		{name: "a name that is taken", path: badTables, body: object{"name": "t", "schema": goodSchema()},
			status: 409, typ: "AlreadyExistsException", says: "ns.t"},
		{name: "a name that is taken, staged", path: badTables, body: object{"name": "t", "schema": goodSchema(), "stage-create": true},
			status: 409, typ: "AlreadyExistsException", says: "ns.t"},
		{name: "a namespace that is taken", path: "/dev/namespaces", body: object{"namespace": list{"ns"}},
			status: 409, typ: "AlreadyExistsException", says: "ns"},
		{name: "a namespace with tables to drop", method: http.MethodDelete, path: "/dev/namespaces/ns",
			status: 409, typ: "NamespaceNotEmptyException", says: "ns"},
		{name: "a rename to a name that is taken", path: badRename,
			body:   object{"source": source, "destination": object{"namespace": list{"ns"}, "name": "victim"}},
			status: 409, typ: "AlreadyExistsException", says: "ns.victim"},
	}
}
