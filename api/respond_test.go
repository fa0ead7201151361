package api

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"catalogd/internal/deflate"
)

func TestJSON_NoEscapesForHTMLAndNoNullLists(t *testing.T) {
	w := httptest.NewRecorder()
	var none []string
	err := JSON(w, httptest.NewRequest("GET", "/", nil), 200, map[string]any{"a": "<&>", "l": List(none)})
	if want := `{"a":"<&>","l":[]}`; err != nil || w.Body.String() != want || w.Header().Get("Content-Length") != strconv.Itoa(len(want)) {
		t.Errorf("%v %q %v", err, w.Body, w.Header())
	}
}

func TestRawJSON_CompressesWhatIsWorthIt(t *testing.T) {
	big := `"` + strings.Repeat("manifest ", 1000) + `"`
	for _, c := range []struct {
		accept, body string
		packed       bool
	}{
		{"gzip", big, true}, {"gzip, deflate, br", big, true}, {"*", big, true}, {"gzip;q=0.5", big, true},
		{"gzip;q=0", big, false}, {"gzip; q=0", big, false}, {"", big, false}, {"br", big, false}, {"gzip", `"small"`, false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", c.accept)
		w := httptest.NewRecorder()
		if err := RawJSON(w, r, []byte(c.body[:2]), []byte(c.body[2:])); err != nil {
			t.Fatal(err)
		}
		var body io.Reader = w.Body
		if packed := w.Header().Get("Content-Encoding") == "gzip"; packed != c.packed {
			t.Errorf("%q: packed is %v", c.accept, packed)
		} else if packed {
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != c.body {
			t.Errorf("%q: %v, %d bytes", c.accept, err, len(got))
		}
	}
}

// A document that is kept packed goes out as it is kept, in one gzip member with the text around it.
func TestPackedJSON_SaysTheSameToEverybody(t *testing.T) {
	document := []byte(`"` + strings.Repeat("manifest ", 1000) + `"`)
	for _, c := range []struct {
		accept string
		packed deflate.Packed
		want   string // Content-Encoding
	}{
		{"gzip", deflate.Pack(document), "gzip"}, {"gzip", deflate.Packed{}, "gzip"},
		{"", deflate.Pack(document), ""}, {"gzip;q=0", deflate.Pack(document), ""}, {"", deflate.Packed{}, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", c.accept)
		w := httptest.NewRecorder()
		if err := PackedJSON(w, r, []byte(`{"metadata":`), document, c.packed, []byte("}")); err != nil {
			t.Fatal(err)
		}
		h := w.Header()
		if h.Get("Content-Encoding") != c.want || h.Get("Content-Type") != "application/json" || len(h.Values("Vary")) != 1 {
			t.Errorf("%q: headers %v", c.accept, h)
		}
		if length := h.Get("Content-Length"); length != "" && length != strconv.Itoa(w.Body.Len()) {
			t.Errorf("%q: Content-Length %s of %d bytes", c.accept, length, w.Body.Len())
		}
		var body io.Reader = w.Body
		if c.want == "gzip" {
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != `{"metadata":`+string(document)+"}" {
			t.Errorf("%q: %v, %d bytes", c.accept, err, len(got))
		}
	}
}

// Java looks the header up with regard to case; Go's spelling would switch its cache off.
func TestETag_SpelledAsJavaLooksItUp(t *testing.T) {
	w := httptest.NewRecorder()
	SetETag(w, "abc")
	if got := w.Header()["ETag"]; len(got) != 1 || got[0] != `W/"abc"` {
		t.Errorf("header is %v", w.Header())
	}
	SetETag(httptest.NewRecorder(), "")
	ts := newTestServer(t, publicRow("GET", "/x", func(w http.ResponseWriter, _ *http.Request) error { return NotModified(w, "abc") }))
	server := httptest.NewServer(ts)
	defer server.Close()
	raw := rawAnswer(t, server.Listener.Addr().String(), "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	if !strings.Contains(raw, "\r\nETag: W/\"abc\"\r\n") || !strings.HasPrefix(raw, "HTTP/1.1 304 ") || !strings.HasSuffix(raw, "\r\n\r\n") {
		t.Errorf("on the wire: %q", raw)
	}
}

func TestIfNoneMatch_AllSpellings(t *testing.T) {
	for value, want := range map[string][]string{
		`"a"`: {"a"}, `a`: {"a"}, `W/"a"`: {"a"}, `"a", "b"`: {"a", "b"}, `W/"a",b , "c,d"`: {"a", "b", "c,d"}, `*`: {"*"},
		``: nil, ` , `: nil, `"`: nil, `""`: nil,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("If-None-Match", value)
		if got := IfNoneMatch(r); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) { // any text ends
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("If-None-Match", rapid.StringOf(rapid.RuneFrom([]rune(`W/",* a`))).Draw(rt, "value"))
		IfNoneMatch(r)
	})
}
