package commit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// depthOf is how deeply brackets nest at most, strings left out.
func depthOf(text []byte) int {
	depth, deepest, inside := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

var scanSeeds = []string{
	``, ` `, `{}`, `[]`, `null`, `nul`, `true`, `false`, `falsee`, `0`, `-0`, `01`, `-`, `1.`, `1.5e+3`, `1e`, `.5`, `+1`, `0x1`,
	`"a"`, `"a`, `"\u00e9"`, `"\u00g0"`, `"\ud800"`, `"\x"`, `"\"`, "\"a\tb\"", "\"a\x00b\"", "\"a\x1f12345678\"", "\"\x7f\"",
	`"123456789\\"`, `"12345678"`, `"1234567"`, `"1234567\"89"`, "\"\xff\"", "\"12345678\xc3\"", `{"a":1,}`, `{"a" : [1 , 2 ] }`, `{"a"}`, `{a:1}`, `{"a":1 "b":2}`,
	`[1,]`, `[,1]`, `[1 2]`, `[[[]]]`, `{"a":{"b":{"c":[{}]}}}`, `[]]`, `{}{}`, "\ufeff{}", `{"a":1,"a":2}`,
	`{"snapshot-id":9007199254740993}`, `1e400`, "[\n\t\r 1\v]", "[1]\u00a0",
}

// FuzzScan holds the scanner against encoding/json: both take the same texts, apart from the depth limit and from
// invalid UTF-8, which only we refuse; and splitting a text into its members loses nothing.
func FuzzScan(f *testing.F) {
	for _, seed := range scanSeeds {
		f.Add([]byte(seed))
	}
	f.Add(fixture(f, "TableMetadataV2Valid.json"))
	f.Add([]byte(strings.Repeat("[", nestingMax) + strings.Repeat("]", nestingMax)))
	f.Add([]byte(strings.Repeat("[", nestingMax+1) + strings.Repeat("]", nestingMax+1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		err := checkText(text)
		want := json.Valid(text) && utf8.Valid(text) && depthOf(text) <= nestingMax
		if (err == nil) != want {
			t.Fatalf("checkText(%q) = %v, encoding/json says %v", text, err, json.Valid(text))
		}
		if want {
			checkSplit(t, bytes.TrimSpace(text))
		}
	})
}

// checkSplit compares what the splitters give with encoding/json's view of the same value, level by level.
func checkSplit(t *testing.T, text []byte) {
	switch text[0] {
	case '{':
		o, err := parseObject(text, "object", nil)
		var theirs map[string]json.RawMessage
		if jsonErr := json.Unmarshal(text, &theirs); jsonErr != nil {
			t.Fatal(jsonErr)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "twice") {
				t.Fatalf("parseObject(%q): %v", text, err)
			}
			return
		}
		if len(theirs) != len(o) {
			t.Fatalf("parseObject(%q): %d members, encoding/json has %d", text, len(o), len(theirs))
		}
		for _, m := range o {
			if value, found := theirs[string(m.name)]; !found || !bytes.Equal(value, m.value) {
				t.Fatalf("parseObject(%q): %q is %q, encoding/json has %q", text, m.name, m.value, value)
			}
			checkSplit(t, m.value)
		}
	case '[':
		elements, err := parseArray(text, "array")
		var theirs []json.RawMessage
		if jsonErr := json.Unmarshal(text, &theirs); err != nil || jsonErr != nil || len(theirs) != len(elements) {
			t.Fatalf("parseArray(%q): %v, %v, %d and %d elements", text, err, jsonErr, len(elements), len(theirs))
		}
		for i, e := range elements {
			if !bytes.Equal(e, theirs[i]) {
				t.Fatalf("parseArray(%q): element %d is %q, encoding/json has %q", text, i, e, theirs[i])
			}
			checkSplit(t, e)
		}
	case '"':
		ours, err := unquote(text)
		var theirs string
		if jsonErr := json.Unmarshal(text, &theirs); err != nil || jsonErr != nil || string(ours) != theirs {
			t.Fatalf("unquote(%q) = %q, %v; encoding/json has %q, %v", text, ours, err, theirs, jsonErr)
		}
		var again string
		if json.Unmarshal(appendQuoted(nil, theirs), &again) != nil || again != theirs {
			t.Fatalf("appendQuoted(%q) = %s", theirs, appendQuoted(nil, theirs))
		}
	}
}

// FuzzParse looks for documents that make the engine panic, or that it takes but cannot write again.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"TableMetadataV1Valid.json", "TableMetadataV2Valid.json", "TableMetadataV3ValidMinimal.json", "TableMetadataStatisticsFiles.json"} {
		f.Add(fixture(f, name), []byte(`{"requirements":[],"updates":[`+everyUpdate+`]}`))
	}
	f.Fuzz(func(t *testing.T, raw, body []byte) {
		r, err := DecodeRequest(body)
		if err != nil {
			checkKind(t, err)
			return
		}
		if created, err := ApplyCreate(r, CreateStamp{Now: now, UUID: tableUUID, Location: "s3://b/t"}); err == nil {
			checkIndex(t, created)
		} else {
			checkKind(t, err)
		}
		base, err := Parse(raw)
		if err != nil {
			checkKind(t, err)
			return
		}
		_ = Check(base, r)
		_ = Landed(base, r)
		next, changed, err := Apply(base, r, Stamp{Now: now, MetadataLocation: oldFile})
		if err != nil {
			checkKind(t, err)
		} else if changed {
			checkIndex(t, next)
		}
		for _, view := range [][]byte{base.RefsOnly(), base.Answer()} {
			if _, err := Parse(view); err != nil {
				t.Fatalf("a view of a good document is refused: %v\n%s", err, view)
			}
		}
	})
}

// FuzzCreate looks for create requests that make the engine panic or write what it cannot read.
func FuzzCreate(f *testing.F) {
	f.Add([]byte(nestedCreate))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := DecodeCreate(body)
		if err != nil {
			checkKind(t, err)
			return
		}
		if d, err := Create(r, CreateStamp{Now: now, UUID: tableUUID, Location: "s3://b/t"}); err == nil {
			checkIndex(t, d)
		} else {
			checkKind(t, err)
		}
	})
}
