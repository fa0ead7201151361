package commit

import (
	"reflect"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

func TestDecodeViewRequest(t *testing.T) {
	r, err := DecodeViewRequest([]byte(` {"identifier":{"namespace":["a","b"],"name":"v"},"requirements":[{"type":"ASSERT-view-uuid","uuid":"` + viewUUID + `"}],"x":1,"updates":[` +
		`{"action":"Set-Location","location":"s3://b/1/"},{"action":"set-location","location":"s3://b/2/"},{"action":"set-properties","updates":{"a":"1","b":"1"}},{"action":"set-properties","updates":{"b":"2"}}]} `))
	if err != nil {
		t.Fatal(err)
	}
	if r.Identifier.String() != "a.b.v" || len(r.Requirements) != 1 || r.Requirements[0].Type != "assert-view-uuid" {
		t.Errorf("%+v", r)
	}
	if len(r.Updates) != 4 {
		t.Errorf("%d updates", len(r.Updates))
	}
	if have := r.NewProperties(); !reflect.DeepEqual(have, map[string]string{"a": "1", "b": "2"}) {
		t.Errorf("properties %v", have)
	}
	for _, old := range []string{`{"updates":[]}`, `{"updates":[],"requirements":null}`, `{"updates":[],"requirements":[],"identifier":null}`} {
		r, err := DecodeViewRequest([]byte(old))
		if err != nil || r.Identifier != nil || CheckView(plainView(t), r) != nil {
			t.Errorf("%s: %v", old, err)
		}
	}
}

func TestDecodeViewRequest_Refusals(t *testing.T) {
	many := func(list, element string, n int) string {
		return `{"updates":[],"` + list + `":[` + strings.Repeat(element+",", n) + element + `]}`
	}
	for body, want := range map[string]struct {
		kind fault.Kind
		text string
	}{
		``:                                    {fault.BadRequest, "ends too early"},
		`[]`:                                  {fault.BadRequest, "the request must be an object"},
		`{}`:                                  {fault.BadRequest, `missing field "updates"`},
		`{"updates":null}`:                    {fault.BadRequest, `missing field "updates"`},
		`{"updates":[{}]}`:                    {fault.BadRequest, `missing field "action"`},
		`{"updates":[]} {}`:                   {fault.BadRequest, "after the value"},
		`{"updates":[{"action":"add-view"}]}`: {fault.BadRequest, `unknown update action "add-view"`},
		`{"updates":[{"action":"add-snapshot"}]}`:                                        {fault.BadRequest, "add-snapshot cannot be applied to a view"},
		`{"updates":[{"action":"set-current-schema","schema-id":0}]}`:                    {fault.BadRequest, "set-current-schema cannot be applied to a view"},
		`{"updates":[{"action":"set-current-view-version"}]}`:                            {fault.BadRequest, `set-current-view-version: missing field "view-version-id"`},
		`{"updates":[{"action":"add-view-version","view-version":{"version-id":1}}]}`:    {fault.BadRequest, `add-view-version: view version 1: missing field "timestamp-ms"`},
		`{"updates":[],"requirements":[{}]}`:                                             {fault.BadRequest, `missing field "type"`},
		`{"updates":[],"requirements":[{"type":"assert-view-uuid"}]}`:                    {fault.BadRequest, `assert-view-uuid: missing field "uuid"`},
		`{"updates":[],"requirements":[{"type":"assert-table-uuid","uuid":"x"}]}`:        {fault.BadRequest, "assert-table-uuid cannot be checked against a view"},
		`{"updates":[],"requirements":[{"type":"assert-create"}]}`:                       {fault.BadRequest, "assert-create cannot be checked against a view"},
		`{"updates":[],"requirements":[{"type":"assert-nothing"}]}`:                      {fault.BadRequest, `unknown requirement type "assert-nothing"`},
		`{"updates":[],"identifier":{"name":"v"}}`:                                       {fault.BadRequest, `missing field "namespace"`},
		many("requirements", `{"type":"assert-view-uuid","uuid":"x"}`, 100):              {fault.TooLarge, `"requirements" has more than 100`},
		strings.Replace(many("updates", `{"action":"x"}`, 1000), `"updates":[],`, ``, 1): {fault.TooLarge, `"updates" has more than 1000`},
	} {
		_, err := DecodeViewRequest([]byte(body))
		wantError(t, err, want.kind, want.text)
	}
	for action := range viewUpdates {
		if _, known := updates[action]; !known && !strings.Contains(action, "view-version") {
			t.Errorf("%s is new to tables and views", action)
		}
	}
	if len(viewUpdates) != 8 {
		t.Errorf("%d actions are known, want the specification's 8 for views", len(viewUpdates))
	}
	_, err := DecodeRequest([]byte(`{"requirements":[],"updates":[{"action":"set-current-view-version","view-version-id":1}]}`))
	wantError(t, err, fault.BadRequest, "set-current-view-version cannot be applied to a table")
}

func TestCheckView(t *testing.T) {
	for uuid, text := range map[string]string{
		viewUUID: "", strings.ToUpper(viewUUID): "",
		tableUUID: "Requirement failed: view UUID does not match: expected " + viewUUID + " != " + tableUUID,
	} {
		r, err := DecodeViewRequest([]byte(`{"requirements":[{"type":"assert-view-uuid","uuid":"` + uuid + `"}],"updates":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		err = CheckView(plainView(t), r)
		if text == "" && err != nil {
			t.Error(err)
		}
		if text != "" && (!fault.Is(err, fault.CommitConflict) || fault.Message(err) != text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

func TestParseView_Refusals(t *testing.T) {
	good := string(fixture(t, "ValidViewMetadata.json"))
	for _, c := range []struct{ old, replacement, text string }{
		{`"view-uuid"`, `"x"`, `missing field "view-uuid"`},
		{`fa6506c3-`, `x`, `field "view-uuid" is not a UUID`},
		{`"format-version": 1`, `"format-version": 2`, `unsupported format-version 2`},
		{`"format-version": 1`, `"format-version": "1"`, `field "format-version" must be a 32-bit integer`},
		{`"some-value"`, `1`, `property "some-key" must be a string`},
		{`"schemas": [`, `"schemas": 1, "x": [`, `schemas must be an array`},
		{`"schema-id": 0,
      "fields": [`, `"schema-id": 0, "fields": 1, "x": [`, `"fields"`},
		{`"id": 1,`, ``, `missing field "id"`},
		{`"versions"`, `"x"`, `missing field "versions"`},
		{`"version-log"`, `"x"`, `missing field "version-log"`},
		{`"version-id": 1,`, `"version-id": 2,`, `versions has version-id 2 twice`},
		{`"timestamp-ms": 4353,
      "summary"`, `"summary"`, `view version 1: missing field "timestamp-ms"`},
		{`{"user": "some-user"}`, `{"user": 1}`, `view version 1: field "summary.user" must be a string`},
		{`"default-namespace": [],`, ``, `view version 1: missing field "default-namespace"`},
		{`"dialect": "spark-sql"`, `"x": ""`, `view version 1: representations: missing field "dialect"`},
		{`"sql": "select 'foo' foo",`, ``, `view version 1: representations: missing field "sql"`},
		{`"representations": [`, `"representations": {}, "x": [`, `representations must be an array`},
		{`"timestamp-ms": 4353,
      "version-id": 1
    }`, `"version-id": 1}`, `version-log: missing field "timestamp-ms"`},
		{`"timestamp-ms": 4353,
      "version-id": 1
    }`, `"timestamp-ms": 1}`, `version-log: missing field "version-id"`},
		{`"current-version-id": 2`, `"current-version-id": 2, "location": "x"`, `has the field "location" twice`},
	} {
		text := strings.Replace(good, c.old, c.replacement, 1)
		if text == good {
			t.Fatalf("%q is not in the fixture", c.old)
		}
		_, err := ParseView([]byte(text))
		wantError(t, err, fault.Validation, c.text)
	}
	for _, text := range []string{``, `null`, `[]`, good + `,`, good[:len(good)-1], "{\"\xff\":1}", string(v2Table(t).JSON())} {
		if _, err := ParseView([]byte(text)); !fault.Is(err, fault.Validation) || !strings.HasPrefix(fault.Message(err), "view metadata: ") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func TestParseView_NullPropertiesAreAbsent(t *testing.T) {
	text := strings.Replace(string(fixture(t, "ValidViewMetadata.json")), `{"some-key": "some-value", "comment":  "some-comment"}`, "null", 1)
	v := parseTheView(t, []byte(text))
	wantViewMember(t, v, keyProperties, "")
	if strings.Contains(string(v.JSON()), "null") || len(v.Properties()) != 0 {
		t.Errorf("view is %s", v.JSON())
	}
	wantViewMember(t, commitOnView(t, v, setKept), keyProperties, `{"kept":"true"}`)
}

func TestView_UnknownFieldsSurviveAtEveryLevel(t *testing.T) {
	unknown := []string{
		`"x-top":{"a": [1, null, 9007199254740993]}`, `"x-schema": null`, `"x-field": 1.50`, `"x-version": 12345678901234567890`, `"x-sql": true`, `"x-log": "l"`,
		`{"type": "substrait", "plan": {"x": [1e400]}}`,
	}
	v := parseTheView(t, []byte(strings.NewReplacer(
		`"format-version": 1`, `"format-version": 1, `+unknown[0], `"schema-id": 0,
      "fields"`, `"schema-id": 0, `+unknown[1]+`, "fields"`, `"name": "x"`, `"name": "x", `+unknown[2], `"version-id": 1,`, `"version-id": 1, `+unknown[3]+",",
		`"sql": "select 'foo' foo"`, `"sql": "select 'foo' foo", `+unknown[4], `"version-id": 1
`, `"version-id": 1, `+unknown[5], `"representations": [`, `"representations": [`+unknown[6]+`,`,
	).Replace(string(fixture(t, "ValidViewMetadata.json")))))
	added := `{"action":"add-view-version","view-version":{"version-id":3,"timestamp-ms":1,"schema-id":-1,"summary":{},"x-new":null,"default-namespace":[],"representations":[{"type":"substrait","x":null},{"type":"sql","sql":"s","dialect":"spark-sql","y":[]}]}}`
	v = commitOnView(t, v, `{"action":"add-schema","schema":{"type":"struct","x-s":5,"fields":[]}}`, added, useVersion(-1), `{"action":"set-location","location":"s3://b/v"}`, setKept)
	for _, text := range append(unknown, `"x-new":null`, `{"type":"substrait","x":null}`, `"y":[]`, `"x-s":5`) {
		if !strings.Contains(string(v.JSON()), text) {
			t.Errorf("%s is gone", text)
		}
	}
}
