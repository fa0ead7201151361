package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"pgregory.net/rapid"
)

// What is streamed is what the encoder would have made, at every length around the chunk's and for every text.
func TestJSONList_IsTheEncodersAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.String(), 0, 20).Draw(t, "names")
		repeat := rapid.SampledFrom([]int{1, 1, 400, 3000}).Draw(t, "repeat")
		names = slices.Repeat(names, repeat)
		packed := rapid.Bool().Draw(t, "packed")
		var next *string
		if rapid.Bool().Draw(t, "more") {
			next = new(string)
			*next = "to\"ken"
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if packed {
			r.Header.Set("Accept-Encoding", "gzip")
		}
		w := httptest.NewRecorder()
		if err := JSONList(w, r, "identifiers", len(names), func(dst []byte, i int) []byte { return AppendJSON(dst, names[i]) }, next); err != nil {
			t.Fatal(err)
		}
		body := io.Reader(w.Body)
		if w.Header().Get("Content-Encoding") == "gzip" {
			unpacker, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = unpacker
		}
		var got struct {
			Identifiers []string `json:"identifiers"`
			Next        *string  `json:"next-page-token"`
		}
		if err := json.NewDecoder(body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		want := make([]string, len(names))
		for i, name := range names {
			want[i] = strings.ToValidUTF8(name, "\ufffd")
		}
		if got.Identifiers == nil || !slices.Equal(got.Identifiers, want) || (got.Next == nil) != (next == nil) || w.Code != 200 {
			t.Errorf("%d of %d elements, next %v, status %d", len(got.Identifiers), len(want), got.Next, w.Code)
		}
	})
}

// nowhere is a client that takes everything and keeps nothing.
type nowhere struct {
	header http.Header
	bytes  int
}

func (n *nowhere) Header() http.Header { return n.header }
func (n *nowhere) WriteHeader(int)     {}
func (n *nowhere) Write(p []byte) (int, error) {
	n.bytes += len(p)
	return len(p), nil
}

// A namespace of 100,000 tables, for a client that cannot page: the answer of 6 MB takes a small buffer.
func TestField_C049_LongListsTakeNoMemory(t *testing.T) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("table_with_a_name_of_some_length_%06d", i)
	}
	for _, encoding := range []string{"identity", "gzip"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", encoding)
		answer := func() int {
			w := &nowhere{header: http.Header{}}
			if err := JSONList(w, r, "identifiers", len(names), func(dst []byte, i int) []byte {
				return append(AppendJSON(append(dst, `{"namespace":["a"],"name":`...), names[i]), '}')
			}, nil); err != nil {
				t.Fatal(err)
			}
			return w.bytes
		}
		answer() // the pooled compressor is there now
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		size := answer()
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 2<<20 {
			t.Errorf("%s: %d bytes of memory for an answer of %d", encoding, taken, size)
		}
		if encoding == "identity" && size < 6_000_000 {
			t.Errorf("an answer of %d bytes", size)
		}
	}
}
