package e2e

import "strings"

// Texts of the requests about views.
const (
	badView       = "/dev/namespaces/ns/views/v"
	badViews      = "/dev/namespaces/ns/views"
	badViewRename = "/dev/views/rename"
)

func goodView(name string) object {
	return object{"name": name, "schema": goodSchema(), "properties": object{}, "view-version": object{
		"version-id": 1, "schema-id": 0, "timestamp-ms": 1_790_000_000_000, "summary": object{}, "default-namespace": list{"ns"},
		"representations": list{object{"type": "sql", "sql": "SELECT id, word FROM t", "dialect": "spark"}}}}
}

// viewWith is a create of a view with one member changed, or taken away when the value is nil.
func viewWith(member string, value any) object {
	view := goodView("new")
	in := view
	if rest, nested := strings.CutPrefix(member, "view-version."); nested {
		in, member = view["view-version"].(object), rest
	}
	if in[member] = value; value == nil {
		delete(in, member)
	}
	return view
}

// viewWays are the ways in which a client brings a view's location and properties: a create, and a replace.
func viewWays(location any, properties object) map[string]badCall {
	created, updates := goodView("new"), list{}
	if location != nil {
		created["location"] = location
		updates = append(updates, object{"action": "set-location", "location": location})
	}
	if properties != nil {
		created["properties"] = properties
		updates = append(updates, object{"action": "set-properties", "updates": properties})
	}
	return map[string]badCall{
		"view created": {path: badViews, body: created}, "view replaced": {path: badView, body: object{"updates": updates}},
	}
}

// badViewCalls: views are held to the rules of tables: names, places, properties, requirements, shapes.
func (b *badInput) badViewCalls() []badCall {
	var calls []badCall
	add := func(name string, status int, typ, says string, ways map[string]badCall) {
		calls = append(calls, refusedAs(name, status, typ, says, ways)...)
	}
	places := b.foreign()
	places["another table's"], places["below another table"] = b.victim.Metadata.Location, b.victim.Metadata.Location+"/metadata/below"
	for what, place := range places {
		add("location "+what, 400, "BadRequestException", "location", viewWays(place, nil))
		for _, name := range []string{"write.metadata.path", "write.data.path"} {
			add(name+" "+what, 400, "BadRequestException", name, viewWays(nil, object{name: place}))
		}
	}
	for _, name := range []string{"s3.endpoint", "client.factory", "IO-Impl", "header.Authorization", "token", "signer.uri"} {
		add(name, 400, "BadRequestException", name, viewWays(nil, object{name: "http://127.0.0.1:1/"}))
	}
	one := func(name, path string, body any, status int, typ, says string) {
		calls = append(calls, badCall{name: name, path: path, body: body, status: status, typ: typ, says: says})
	}
	shape := func(name, path string, body any, says string) {
		one(name, path, body, 400, "BadRequestException", says)
	}
	for what, name := range map[string]string{"empty": "", "a dot": ".", "two dots": "..", "a line feed": "a\nb", "the separator": "a\x1fb"} {
		shape("name "+what, badViews, goodView(name), "name")
		shape("renamed to "+what, badViewRename, renameOf("v", name), "name")
	}
	for _, member := range []string{"name", "schema", "view-version", "view-version.representations", "view-version.default-namespace"} {
		last := member[strings.LastIndex(member, ".")+1:]
		shape("without "+member, badViews, viewWith(member, nil), last)
		shape(member+" is a number", badViews, viewWith(member, 1), last+"|"+strings.ReplaceAll(last, "-", " "))
	}
	shape("no query", badViews, viewWith("view-version.representations", list{}), "representations")
	shape("updates are missing", badView, object{"requirements": list{}}, "updates")
	shape("action is unknown", badView, object{"updates": list{object{"action": "drop-everything"}}}, "drop-everything")
	shape("action of tables", badView, object{"updates": list{object{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch",
		"snapshot-id": 1}}}, "set-snapshot-ref")
	shape("requirement of tables", badView, object{"requirements": list{object{"type": "assert-table-uuid", "uuid": b.table.Metadata.UUID}},
		"updates": list{}}, "assert-table-uuid")
	shape("rename without destination", badViewRename, object{"source": object{"namespace": list{"ns"}, "name": "v"}}, "destination")
	one("another uuid", badView, object{"requirements": list{object{"type": "assert-view-uuid", "uuid": b.table.Metadata.UUID}},
		"updates": list{}}, 409, "CommitFailedException", "view UUID does not match")
	one("a name that is taken", badViews, goodView("v"), 409, "AlreadyExistsException", "View already exists: ns.v")
	one("a table's name", badViews, goodView("t"), 409, "AlreadyExistsException", "Table with same name already exists: ns.t")
	one("renamed to a table's name", badViewRename, renameOf("v", "t"), 409, "AlreadyExistsException", "Table already exists")
	one("a table as a view", badViews+"/t", object{"updates": list{}}, 404, "NoSuchViewException", "ns.t")
	one("a view as a table", badTables+"/v", b.commitOf(), 404, "NoSuchTableException", "ns.v")
	one("a view in a transaction", badCommits, object{"table-changes": list{
		b.changeOf("t", object{"action": "set-properties", "updates": object{"k": "v"}}), b.changeOf("v")}}, 404, "NoSuchTableException", "ns.v")
	one("a missing namespace", "/dev/namespaces/none/views", goodView("new"), 404, "NoSuchNamespaceException", "none")
	return calls
}

func renameOf(from, to string) object {
	return object{"source": object{"namespace": list{"ns"}, "name": from}, "destination": object{"namespace": list{"ns"}, "name": to}}
}
