package e2e

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// creations are the ways in which a client can bring a new table's name, location and properties: a create, a staged
// create, the commit of a staged create, and the same in a transaction.
func (b *badInput) creations(name, location string, properties object) map[string]badCall {
	create := object{"name": name, "schema": goodSchema()}
	staged := object{"name": name, "schema": goodSchema(), "stage-create": true}
	updates := list{
		object{"action": "assign-uuid", "uuid": "0198e7a0-0000-7000-8000-000000000001"},
		object{"action": "upgrade-format-version", "format-version": 2},
		object{"action": "add-schema", "schema": goodSchema(), "last-column-id": 2},
		object{"action": "set-current-schema", "schema-id": -1},
		object{"action": "add-spec", "spec": object{"spec-id": 0, "fields": list{}}},
		object{"action": "set-default-spec", "spec-id": -1},
		object{"action": "add-sort-order", "sort-order": object{"order-id": 0, "fields": list{}}},
		object{"action": "set-default-sort-order", "sort-order-id": -1},
	}
	if location != "" {
		create["location"], staged["location"] = location, location
		updates = append(updates, object{"action": "set-location", "location": location})
	}
	if properties != nil {
		create["properties"], staged["properties"] = properties, properties
		updates = append(updates, object{"action": "set-properties", "updates": properties})
	}
	commit := func() object {
		return object{"requirements": list{object{"type": "assert-create"}}, "updates": updates}
	}
	change := commit()
	change["identifier"] = object{"namespace": list{"ns"}, "name": name}
	return map[string]badCall{
		"created":   {path: badTables, body: create},
		"staged":    {path: badTables, body: staged},
		"committed": {path: badTables + "/" + url.PathEscape(name), body: commit()},
		"created in a transaction": {path: badCommits,
			body: object{"table-changes": list{b.changeOf("t", object{"action": "set-properties", "updates": object{"k": "v"}}), change}}},
	}
}

// changes are the ways in which a client can change an existing table.
func (b *badInput) changes(updates ...any) map[string]badCall {
	return map[string]badCall{
		"committed": {path: badTable, body: b.commitOf(updates...)},
		"in a transaction": {path: badCommits, body: object{"table-changes": list{
			b.changeOf("victim", object{"action": "set-properties", "updates": object{"k": "v"}}), b.changeOf("t", updates...)}}},
	}
}

func refusedAs(name string, status int, typ, says string, ways map[string]badCall) []badCall {
	var calls []badCall
	for way, c := range ways {
		c.name, c.status, c.typ, c.says = name+": "+way, status, typ, says
		calls = append(calls, c)
	}
	return calls
}

// badNames: names that clients could never address again, or that no text column holds.
func (b *badInput) badNames() []badCall {
	var calls []badCall
	for what, name := range map[string]string{
		"empty": "", "a dot": ".", "two dots": "..", "U+0000": "a\x00b", "a line feed": "a\nb", "a tab": "\t", "an escape": "\x1b[31m",
		"the separator": "a\x1fb", "a delete": "a\x7fb", "half a surrogate pair": "a\ufffdb",
	} {
		says := map[bool]string{true: "name", false: "level"}
		namespaces := map[string]badCall{
			"namespace": {path: "/dev/namespaces", body: object{"namespace": list{name}}},
			"a level":   {path: "/dev/namespaces", body: object{"namespace": list{"ns", name}}},
		}
		calls = append(calls, refusedAs(what, 400, "BadRequestException", says[false], namespaces)...)
		tables := b.creations(name, "", nil)
		tables["renamed"] = badCall{path: badRename,
			body: object{"source": object{"namespace": list{"ns"}, "name": "t"}, "destination": object{"namespace": list{"ns"},
				"name": name}}}
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "\x00\ufffd") {
			delete(tables, "committed") // no path can say it, or another row does
		}
		calls = append(calls, refusedAs(what, 400, "BadRequestException", says[true], tables)...)
	}
	half := `{"name": "a\ud800b", "schema": {"type": "struct", "schema-id": 0, "fields": []}}`
	calls = append(calls,
		badCall{name: "an escaped half of a surrogate pair", path: badTables, body: half,
			status: 400, typ: "BadRequestException", says: "name|surrogate"},
		badCall{name: "an escaped half in a level", path: "/dev/namespaces", body: `{"namespace": ["a\udc00"]}`,
			status: 400, typ: "BadRequestException", says: "level|surrogate"},
		badCall{name: "no name at all", path: "/dev/namespaces", body: object{"namespace": list{}},
			status: 400, typ: "BadRequestException", says: "level"},
	)
	for what, segment := range map[string]string{"bytes that are no text": "%FF%FE", "U+0000": "a%00b", "an overlong dot": "%C0%AE",
		"half a surrogate pair": "%ED%A0%80"} {
		for route, c := range map[string]badCall{
			"load namespace": {method: "GET", path: "/dev/namespaces/" + segment},
			"drop namespace": {method: "DELETE", path: "/dev/namespaces/" + segment},
			"load table":     {method: "GET", path: badTables + "/" + segment}, "commit": {path: badTables + "/" + segment, body: b.commitOf()},
			"create table": {path: "/dev/namespaces/" + segment + "/tables", body: object{"name": "new", "schema": goodSchema()}},
			"list below":   {method: "GET", path: "/dev/namespaces?parent=" + segment},
			"config":       {method: "GET", path: "/config?warehouse=" + segment},
			"warehouse":    {method: "GET", path: "/" + segment + "/namespaces"},
		} {
			c.name, c.status, c.typ, c.says = route+" in a path: "+what, 400, "BadRequestException", "not valid Unicode text"
			calls = append(calls, c)
		}
	}
	for what, segment := range map[string]string{"two dots": "..", "escaped dots": "%2E%2E", "dots and slashes": "..%2F..%2Fetc",
		"a backslash": `..%5C`} {
		calls = append(calls,
			badCall{name: "load table in a path: " + what, method: "GET", path: badTables + "/" + segment,
				status: 404, typ: "NoSuchTableException", says: "does not exist"},
			badCall{name: "drop namespace in a path: " + what, method: "DELETE", path: "/dev/namespaces/" + segment,
				status: 404, typ: "NoSuchNamespaceException", says: "does not exist"},
			badCall{name: "commit in a path: " + what, path: badTables + "/" + segment, body: b.commitOf(),
				status: 404, typ: "NoSuchTableException", says: "does not exist"})
	}
	return calls
}

// foreign are locations that no table of the warehouse may have.
func (b *badInput) foreign() map[string]string {
	base := b.base
	return map[string]string{
		"the system's": "file:///etc/catalogd", "the root": "file:///", "a sibling of the warehouse": base + "2/t",
		"the warehouse itself":       base,
		"the warehouse with a slash": base + "/", "above the warehouse": strings.TrimSuffix(base, "/warehouse"),
		"another allowed place itself": b.more,
		"dots out":                     base + "/../secrets", "dots in": base + "/a/../b", "a dot": base + "/./a", "dots at the end": base + "/..",
		"escaped dots": base + "/%2e%2e/secrets", "half-escaped dots": base + "/.%2e/secrets", "an escaped slash": base + "/a%2fb",
		"doubled slashes": base + "//a",
		"a backslash":     base + `/..\secrets`, "a line feed": base + "/a\nb", "U+0000": base + "/a\x00b", "a query": base + "/a?x=1",
		"a fragment": base + "/a#x",
		"a wildcard": base + "/*", "a policy variable": base + "/${aws:username}", "a store": "s3://bucket/t",
		"another scheme of it": "s3a://bucket/t",
		"the web":              "http://127.0.0.1/t", "no scheme": strings.TrimPrefix(base, "file://") + "/t", "a relative path": "tables/t",
		"a host": "file://elsewhere" + strings.TrimPrefix(base, "file://") + "/t",
		"a user": "file://me@" + strings.TrimPrefix(base, "file://") + "/t", "blanks": " " + base + "/t",
		"a blank at the end": base + "/t ",
	}
}

// foreignLocations: locations outside of what the warehouse allows, and other tables'.
func (b *badInput) foreignLocations() []badCall {
	var calls []badCall
	add := func(what, location, says string, withSet bool) {
		calls = append(calls, refusedAs(what, 400, "BadRequestException", says, b.creations("new", location, nil))...)
		calls = append(calls, refusedAs("set to "+what, 400, "BadRequestException", says,
			b.changes(object{"action": "set-location", "location": location}))...)
		if withSet {
			calls = append(calls, refusedAs("namespace of "+what, 400, "BadRequestException", says, map[string]badCall{
				"created": {path: "/dev/namespaces", body: object{"namespace": list{"new"}, "properties": object{"location": location}}},
				"updated": {path: "/dev/namespaces/ns/properties", body: object{"updates": object{"location": location}}},
			})...)
		}
	}
	for what, location := range b.foreign() {
		add(what, location, "location", true)
	}
	victim := b.victim.Metadata.Location
	for what, location := range map[string]string{
		"another table's": victim, "another table's with a slash": victim + "/", "below another table": victim + "/data/below",
		"another table's in capitals": b.base + "/" + strings.ToUpper(victim[len(b.base)+1:]),
	} {
		add(what, location, "the location overlaps another table's or namespace's", true)
	}
	calls = append(calls, badCall{name: "empty: set", path: badTable,
		body: b.commitOf(object{"action": "set-location", "location": ""}), status: 400, typ: "BadRequestException", says: "location"})
	return calls
}

// foreignReferences: files outside of the table that a commit names.
func (b *badInput) foreignReferences() []badCall {
	own := b.table.Metadata.Location
	var calls []badCall
	for what, place := range map[string]string{
		"another table's": b.victim.Metadata.Location + "/metadata/x", "the system's": "file:///etc/passwd", "a sibling's": own + "2/x",
		"dots out": own + "/../x", "dots in": own + "/metadata/../../x", "a backslash": own + `/..\x`, "a line feed": own + "/a\nb",
		"a store's": "s3://bucket/x", "no scheme": strings.TrimPrefix(own, "file://") + "/x",
		"nothing": "", "a query": own + "/x?y", "a fragment": own + "/x#y",
	} {
		snapshot := func(id int) object {
			return object{"snapshot-id": id, "parent-snapshot-id": 1, "sequence-number": 2, "timestamp-ms": 1_790_000_000_002,
				"schema-id":     0,
				"manifest-list": place, "summary": object{"operation": "append"}}
		}
		says := strconv.Quote(place)
		saysOfStatistics := says
		if place == "" {
			says = "manifest-list"
		}
		calls = append(calls, refusedAs("manifest list: "+what, 400, "BadRequestException", says,
			b.changes(object{"action": "add-snapshot", "snapshot": snapshot(2)}))...)
		calls = append(calls, refusedAs("manifest list with a ref: "+what, 400, "BadRequestException", says,
			b.changes(object{"action": "add-snapshot", "snapshot": snapshot(2)},
				object{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 2}))...)
		calls = append(calls, refusedAs("statistics: "+what, 400, "BadRequestException", saysOfStatistics,
			b.changes(object{"action": "set-statistics", "snapshot-id": 1, "statistics": object{
				"snapshot-id": 1, "statistics-path": place, "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1,
				"blob-metadata": list{}}}))...)
		calls = append(calls, refusedAs("partition statistics: "+what, 400, "BadRequestException", saysOfStatistics,
			b.changes(object{"action": "set-partition-statistics", "partition-statistics": object{
				"snapshot-id": 1, "statistics-path": place, "file-size-in-bytes": 1}}))...)
	}
	return calls
}

// steeringProperties: properties that would send readers' clients, or writers' files, somewhere else.
func (b *badInput) steeringProperties() []badCall {
	var calls []badCall
	for _, name := range []string{
		"s3.endpoint", "s3.access-key-id", "s3.secret-access-key", "s3.session-token", "s3.signer.uri", "s3.signer.endpoint", "s3.proxy-uri",
		"s3.remote-signing-enabled",
		"S3.Endpoint", "client.region", "client.factory", "client.credentials-provider", "client.refresh-credentials-endpoint",
		"gcs.oauth2.token", "gcs.service.host",
		"adls.connection-string", "adls.sas-token.account", "adls.account-host", "io-impl", "IO-Impl", "py-io-impl", "header.Authorization",
		"header.X-Iceberg-Access-Delegation",
		"token", "Token", "uri", "credential", "signer.uri", "signer.endpoint",
		"write.location-provider.impl", "write.py-location-provider.impl",
	} {
		properties := object{"comment": "harmless", name: "http://127.0.0.1:1/"}
		calls = append(calls, refusedAs(name, 400, "BadRequestException", name, b.creations("new", "", properties))...)
		calls = append(calls, refusedAs(name+" set", 400, "BadRequestException", name,
			b.changes(object{"action": "set-properties", "updates": properties}))...)
	}
	paths := b.foreign()
	paths["another table's"] = b.victim.Metadata.Location + "/data"
	paths["a sibling of the table"] = b.table.Metadata.Location + "2/data"
	for _, name := range []string{"write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"} {
		for what, path := range paths {
			properties := object{name: path}
			calls = append(calls, refusedAs(name+" "+what, 400, "BadRequestException", name,
				b.changes(object{"action": "set-properties", "updates": properties}))...)
			if name != "write.data.path" && name != "write.metadata.path" {
				continue
			}
			calls = append(calls, refusedAs(name+" "+what, 400, "BadRequestException", name, b.creations("new", "", properties))...)
		}
		inside := b.table.Metadata.Location + "/elsewhere"
		calls = append(calls, refusedAs(name+" that the table moves away from", 400, "BadRequestException", name, b.changes(
			object{"action": "set-properties", "updates": object{name: inside}},
			object{"action": "set-location", "location": b.more + "/moved"}))...)
	}
	return calls
}

// badFormats: versions that do not exist, ways back, and what does not fit the table.
func (b *badInput) badFormats() []badCall {
	var calls []badCall
	for what, version := range map[string]any{"4": 4, "great": 1000} {
		calls = append(calls, refusedAs("upgrade to "+what, 400, "IllegalArgumentException", "format version",
			b.changes(object{"action": "upgrade-format-version", "format-version": version}))...)
	}
	calls = append(calls, refusedAs("upgrade to more than 32 bits", 400, "BadRequestException", "format-version",
		b.changes(object{"action": "upgrade-format-version", "format-version": 1 << 40}))...)
	calls = append(calls, refusedAs("upgrade to a text", 400, "BadRequestException", "format-version",
		b.changes(object{"action": "upgrade-format-version", "format-version": "3"}))...)
	for what, version := range map[string]int{"0": 0, "negative": -1} {
		calls = append(calls, refusedAs("upgrade to "+what, 400, "IllegalArgumentException",
			"Cannot downgrade v2 table to v"+strconv.Itoa(version),
			b.changes(object{"action": "upgrade-format-version", "format-version": version}))...)
	}
	calls = append(calls, refusedAs("downgrade", 400, "IllegalArgumentException", "Cannot downgrade v2 table to v1",
		b.changes(object{"action": "upgrade-format-version", "format-version": 1}))...)
	for what, version := range map[string]string{"4": "4", "0": "0", "letters": "two", "empty": "", "a fraction": "2.0",
		"huge": "99999999999999999999"} {
		ways := b.creations("new", "", object{"format-version": version})
		delete(ways, "committed") // the update before the property says 2
		delete(ways, "created in a transaction")
		calls = append(calls, refusedAs("created with version "+what, 400, "IllegalArgumentException",
			"Unsupported format version", ways)...)
	}
	calls = append(calls, refusedAs("version as a property", 400, "IllegalArgumentException", "format-version",
		b.changes(object{"action": "set-properties", "updates": object{"format-version": "3"}}))...)
	for _, kind := range []string{"variant", "timestamp_ns", "geometry", "unknown"} {
		calls = append(calls, badCall{name: "a column of type " + kind + " in version 2", path: badTables,
			body: object{"name": "new", "schema": object{"type": "struct", "fields": list{object{"id": 1, "name": "x", "required": false,
				"type": kind}}}},
			status: 400, typ: "IllegalArgumentException", says: "is not supported until v3"})
	}
	illegal := func(name, says string, updates ...any) {
		calls = append(calls, refusedAs(name, 400, "IllegalArgumentException", says, b.changes(updates...))...)
	}
	validation := func(name, says string, updates ...any) {
		calls = append(calls, refusedAs(name, 400, "ValidationException", says, b.changes(updates...))...)
	}
	illegal("another uuid", "uuid", object{"action": "assign-uuid", "uuid": b.victim.Metadata.UUID})
	illegal("a schema that is not there", "7", object{"action": "set-current-schema", "schema-id": 7})
	validation("the last schema without one", "schema", object{"action": "set-current-schema", "schema-id": -1})
	illegal("the current schema removed", "schema", object{"action": "remove-schemas", "schema-ids": list{0}})
	illegal("the default spec removed", "spec", object{"action": "remove-partition-specs", "spec-ids": list{0}})
	illegal("a spec that is not there", "7", object{"action": "set-default-spec", "spec-id": 7})
	illegal("an order that is not there", "7", object{"action": "set-default-sort-order", "sort-order-id": 7})
	validation("a snapshot that is there", "1",
		object{"action": "add-snapshot", "snapshot": object{"snapshot-id": 1, "sequence-number": 2, "timestamp-ms": 1_790_000_000_002,
			"manifest-list": b.table.Metadata.Location + "/metadata/other.avro", "summary": object{"operation": "append"}}})
	validation("a ref to a snapshot that is not there", "77",
		object{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 77})
	illegal("main as a tag", "main", object{"action": "set-snapshot-ref", "ref-name": "main", "type": "tag", "snapshot-id": 1})
	conflict := func(name, says string, requirement object) {
		for way, c := range b.changes(object{"action": "set-properties", "updates": object{"k": "v"}}) {
			body := c.body.(object)
			if changes, several := body["table-changes"]; several {
				body = changes.(list)[1].(object)
			}
			body["requirements"] = list{requirement}
			c.name, c.status, c.typ, c.says = name+": "+way, 409, "CommitFailedException", says
			calls = append(calls, c)
		}
	}
	conflict("another table's uuid", "UUID", object{"type": "assert-table-uuid", "uuid": b.victim.Metadata.UUID})
	conflict("an older head", "main", object{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": nil})
	conflict("another schema", "schema", object{"type": "assert-current-schema-id", "current-schema-id": 3})
	calls = append(calls,
		badCall{name: "a sequence number of the past", path: badTable,
			body: b.commitOf(object{"action": "add-snapshot", "snapshot": object{"snapshot-id": 9, "parent-snapshot-id": 1,
				"sequence-number": 1,
				"timestamp-ms":    1_790_000_000_009, "manifest-list": b.table.Metadata.Location + "/metadata/nine.avro",
				"summary": object{"operation": "append"}}}), status: 409, typ: "CommitFailedException", says: "sequence number"},
		badCall{name: "a create of what is there", path: badTable,
			body:   object{"requirements": list{object{"type": "assert-create"}}, "updates": list{}},
			status: 409, typ: "AlreadyExistsException", says: "Requirement failed: table already exists"},
		badCall{name: "a create with another requirement", path: badTables + "/new",
			body: object{"requirements": list{object{"type": "assert-create"},
				object{"type": "assert-table-uuid", "uuid": b.table.Metadata.UUID}}, "updates": list{}},
			status: 400, typ: "IllegalArgumentException", says: "assert-create"},
	)
	return calls
}

// badQueries: parameters that mean nothing.
func badQueries() []badCall {
	get := func(name, path, says string) badCall {
		return badCall{name: name, method: http.MethodGet, path: path, status: 400, typ: "BadRequestException", says: says}
	}
	var calls []badCall
	for what, route := range map[string]string{"namespaces": "/dev/namespaces", "tables": badTables} {
		for name, token := range map[string]string{
			"letters": "nonsense!", "base64 of nothing known": "bm9uc2Vuc2U", "another version": "eyJ2IjoyLCJhZnRlciI6ImEifQ",
			"a number":      "1",
			"U+0000 inside": "eyJ2IjoxLCJhZnRlciI6ImFcdTAwMDAifQ", "a list": "W10", "another alphabet": "%2F%2B%3D",
			"10 kB": strings.Repeat("A", 10_000),
		} {
			calls = append(calls, get(what+": page token of "+name, route+"?pageToken="+token, "pageToken"))
		}
		for name, size := range map[string]string{"zero": "0", "negative": "-1", "letters": "many", "a fraction": "1.5",
			"huge": "99999999999999999999", "blank": "%20"} {
			calls = append(calls, get(what+": page size "+name, route+"?pageToken=&pageSize="+size, "pageSize"))
		}
		calls = append(calls, get(what+": a broken escape", route+"?pageToken=%zz", "query"), get(what+": a semicolon", route+"?a;b",
			"query"),
			get(what+": bytes that are no text", route+"?pageToken=%FF", "pageToken"))
	}
	for name, mode := range map[string]string{"a word": "foo", "capitals": "ALL", "two": "all,refs", "a blank": "%20"} {
		calls = append(calls, get("snapshots: "+name, badTable+"?snapshots="+mode, "snapshots"))
	}
	for name, flag := range map[string]string{"maybe": "maybe", "2": "2", "yes": "yes", "a blank": "%20"} {
		calls = append(calls,
			badCall{name: "purgeRequested: " + name, method: http.MethodDelete, path: badTable + "?purgeRequested=" + flag,
				status: 400, typ: "BadRequestException", says: "purgeRequested"})
	}
	return calls
}

// badHeaders: headers that do not fit what comes with them. The bodies are good: what is not refused is done.
func (b *badInput) badHeaders() []badCall {
	good := map[string]badCall{
		"create namespace": {path: "/dev/namespaces", body: object{"namespace": list{"new"}}},
		"update namespace": {path: "/dev/namespaces/ns/properties", body: object{"updates": object{"k": "v"}}},
		"create table":     {path: badTables, body: object{"name": "new", "schema": goodSchema()}},
		"commit":           {path: badTable, body: b.commitOf(object{"action": "set-properties", "updates": object{"k": "v"}})},
		"transaction": {path: badCommits,
			body: object{"table-changes": list{b.changeOf("t", object{"action": "set-properties", "updates": object{"k": "v"}})}}},
		"rename": {path: badRename,
			body: object{"source": object{"namespace": list{"ns"}, "name": "t"}, "destination": object{"namespace": list{"ns"},
				"name": "new"}}},
		"drop table":     {method: "DELETE", path: badTable},
		"drop namespace": {method: "DELETE", path: "/dev/namespaces/ns"},
	}
	var calls []badCall
	for route, c := range good {
		for name, key := range map[string]string{
			"a word": "nonsense", "blank": " ", "a short one": "0198e7a0-0000-7000-8000-00000000000",
			"braces": "{0198e7a0-0000-7000-8000-000000000000}", "no dashes": "0198e7a0000070008000000000000000",
			"other letters": "0198e7a0-0000-7000-8000-00000000000g",
			"a list":        "0198e7a0-0000-7000-8000-000000000000,0198e7a0-0000-7000-8000-000000000000", "10 kB": strings.Repeat("a", 10_000),
		} {
			c := c
			c.name, c.status, c.typ, c.says = "idempotency key of "+route+": "+name, 400, "BadRequestException", "Idempotency-Key"
			c.header = http.Header{"Idempotency-Key": {key}}
			calls = append(calls, c)
		}
		if c.method == "" {
			c := c
			c.name, c.status, c.typ, c.says = "compressed "+route, 400, "BadRequestException", "Content-Encoding"
			c.header = http.Header{"Content-Encoding": {"gzip"}}
			calls = append(calls, c)
		}
	}
	return append(calls, badCall{name: "idempotency keys", path: "/dev/namespaces", body: object{"namespace": list{"new"}},
		header: http.Header{"Idempotency-Key": {"0198e7a0-0000-7000-8000-000000000000", "0198e7a0-0000-7000-8000-000000000001"}},
		status: 400, typ: "BadRequestException", says: "Idempotency-Key"})
}
