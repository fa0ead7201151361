package api

import (
	"net/http/httptest"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

func TestDecodeJSON(t *testing.T) {
	type request struct {
		Name  string            `json:"name"`
		Count int64             `json:"count"`
		Props map[string]string `json:"properties"`
		Inner struct {
			List []string `json:"list"`
		} `json:"inner"`
	}
	for _, c := range []struct{ body, message string }{
		{`{"name":"a","count":9007199254740993,"unknown":{"x":[1]}}`, ""},
		{"", "missing"},
		{"{", "not valid JSON"},
		{`{"name":"a"}}`, "more than one"},
		{`{"name":"a"}{}`, "more than one"},
		{`{"name":"a"} x`, "more than one"},
		{`[]`, "request body has the wrong type: array is not an object"},
		{` null`, "request body is null"},
		{`{"name":1}`, "name has the wrong type: number is not a string"},
		{`{"count":"1"}`, "count has the wrong type: string is not an integer"},
		{`{"count":1e400}`, "count has the wrong type"},
		{`{"inner":{"list":"x"}}`, "inner.list has the wrong type: string is not a list"},
		{`{"properties":{"a":1}}`, "properties has the wrong type: number is not a string"},
		{"{\"name\":\"\xff\"}", "not UTF-8"},
		{strings.Repeat("[", 100000), "not valid JSON"},
		{`{"name":"a","name":"b"}`, `the field "name" twice`},
		{`{"name":"a","n\u0061me":"b"}`, `the field "name" twice`},
		{`{"properties":{"a":"1","b":"x","a":"2"}}`, `the field "a" twice`},
		{`{"unknown":[1,{"x":{"a":1},"y":{"a":1},"x":2}]}`, `the field "x" twice`},
		{`{"properties":{"a":"\ud800"}}`, "half of a surrogate pair"},
		{`{"properties":{"a":"\udc00\ud800"}}`, "half of a surrogate pair"},
		{`{"properties":{"a":"\ud83d\u0041"}}`, "half of a surrogate pair"},
		{`{"properties":{"\uDBFFx":"1"}}`, "half of a surrogate pair"},
		{`{"count":9007199254740993,"properties":{"a":"\ud83d\ude00 \\ud800 \"{","A":"a","b":"}"},"inner":{"list":["a","a"]},"x":[{"a":1},{"a":1},{}]}`, ""},
	} {
		var v request
		err := DecodeJSON(httptest.NewRequest("POST", "/", strings.NewReader(c.body)), &v)
		switch {
		case c.message == "" && err != nil:
			t.Errorf("%.40q: %v", c.body, err)
		case c.message != "" && (!fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), c.message)):
			t.Errorf("%.40q: %v, want %q", c.body, err, c.message)
		case c.message == "" && v.Count != 9007199254740993:
			t.Errorf("%.40q: count is %d", c.body, v.Count)
		}
	}
}

// Commits have a decoder of their own, which keeps text as it came: what no reader can read must not get so far.
func TestReadBody_HalfOfAPair(t *testing.T) {
	for body, ok := range map[string]bool{
		`{"summary":{"a":"\ud800"}}`: false, `"\\\uDFFF"`: false, `"\ud83d\ude00 \\ud800 \n"`: true, `"\ud83d\ud83d\ude00"`: false, `"\u0041\`: true,
		`\`: true, `"\ud83d`: false,
	} {
		_, err := ReadBody(httptest.NewRequest("POST", "/", strings.NewReader(body)))
		if ok != (err == nil) || !ok && !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// What is called something else than JSON is not read as JSON; what is called nothing is.
func TestDecodeJSON_ContentTypes(t *testing.T) {
	for kind, good := range map[string]bool{
		"": true, "application/json": true, "Application/JSON; charset=UTF-8": true, "application/scim+json": true,
		"text/plain": false, "application/x-www-form-urlencoded": false, "multipart/form-data; boundary=x": false, "text/json": false,
		"application/jsonx": false, ";;": false, "application/octet-stream": false,
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader("{}"))
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		var v map[string]any
		if err := DecodeJSON(r, &v); good != (err == nil) || err != nil && fault.KindOf(err) != fault.BadRequest {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

func TestDecodeJSON_CompressedBodiesAreRefused(t *testing.T) {
	r := httptest.NewRequest("POST", "/", strings.NewReader("{}"))
	r.Header.Set("Content-Encoding", "gzip")
	var v any
	if err := DecodeJSON(r, &v); !fault.Is(err, fault.BadRequest) {
		t.Errorf("gzip: %v", err)
	}
}
