package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"pgregory.net/rapid"

	"catalogd/catalog"
)

// listOf is a list whose items are the indexes of names; more than is held at a time is never asked of it.
func listOf(t interface{ Errorf(string, ...any) }, names []string) ListSource[int] {
	return ListSource[int]{
		Read: func(_ context.Context, p catalog.Page) ([]int, error) {
			if p.Limit < 1 || p.Limit > listItemsHeld+1 {
				t.Errorf("asked for %d items at a time", p.Limit)
			}
			first := 0
			if p.After != "" {
				last, err := strconv.Atoi(p.After)
				if err != nil {
					return nil, err
				}
				first = last + 1
			}
			items := make([]int, 0, p.Limit)
			for i := first; i < len(names) && len(items) < p.Limit; i++ {
				items = append(items, i)
			}
			return items, nil
		},
		Name:   func(i int) string { return fmt.Sprintf("%09d", i) },
		Append: func(dst []byte, i int) []byte { return AppendJSON(dst, names[i]) },
	}
}

// What is streamed is what the encoder would have made, at every length around the chunk's and for every text.
func TestJSONList_IsTheEncodersAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.String(), 0, 20).Draw(t, "names")
		repeat := rapid.SampledFrom([]int{1, 1, 400, 3000}).Draw(t, "repeat")
		names = slices.Repeat(names, repeat)
		packed := rapid.Bool().Draw(t, "packed")
		var paging Paging
		if rapid.Bool().Draw(t, "paged") {
			paging.Items = rapid.SampledFrom([]int{1, 7, 400, listItemsHeld, listItemsHeld + 1, 2 * listItemsHeld}).Draw(t, "items")
			paging.After = rapid.SampledFrom([]string{"", "000000000", "000000399"}).Draw(t, "after")
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if packed {
			r.Header.Set("Accept-Encoding", "gzip")
		}
		w := httptest.NewRecorder()
		source := listOf(t, names)
		if err := JSONList(w, r, "identifiers", paging, source); err != nil {
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
		if paging.After != "" {
			first, _ := strconv.Atoi(paging.After)
			names = names[min(len(names), first+1):]
		}
		more := paging.Items > 0 && len(names) > paging.Items
		if more {
			names = names[:paging.Items]
		}
		want := make([]string, len(names))
		for i, name := range names {
			want[i] = strings.ToValidUTF8(name, "\ufffd")
		}
		if got.Identifiers == nil || !slices.Equal(got.Identifiers, want) || (got.Next != nil) != more || w.Code != 200 {
			t.Errorf("%d of %d elements, next %v, status %d", len(got.Identifiers), len(want), got.Next, w.Code)
		}
		if more {
			last, err := decodePageToken(*got.Next)
			if at, _ := strconv.Atoi(last); err != nil || source.Name(at) != last {
				t.Errorf("the token %s leads behind %q, %v", *got.Next, last, err)
			}
		}
	})
}

// What cannot be read at the beginning is answered; in the middle, the answer is cut and does not look whole.
func TestJSONList_ErrorsInTheMiddleCutTheAnswer(t *testing.T) {
	names := slices.Repeat([]string{"table_with_a_name_of_some_length"}, 3*listItemsHeld)
	lost := errors.New("the database went away")
	for _, encoding := range []string{"identity", "gzip"} {
		for good := range 4 {
			calls, source := 0, listOf(t, names)
			read := source.Read
			source.Read = func(ctx context.Context, p catalog.Page) ([]int, error) {
				if calls++; calls > good {
					return nil, lost
				}
				return read(ctx, p)
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", encoding)
			w := httptest.NewRecorder()
			rec := &recorder{ResponseWriter: w, begun: time.Now()}
			err := JSONList(rec, r, "identifiers", Paging{}, source)
			if good == 3 {
				if err != nil {
					t.Errorf("whole: %v", err)
				}
				continue
			}
			if !errors.Is(err, lost) || (rec.status != 0) != (good > 0) {
				t.Errorf("%s, after %d pages: %v, status %d", encoding, good, err, rec.status)
			}
			body := io.Reader(w.Body)
			if w.Header().Get("Content-Encoding") == "gzip" {
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			if text, err := io.ReadAll(body); encoding == "gzip" && good > 0 && err == nil || bytes.HasSuffix(text, []byte("}")) {
				t.Errorf("%s, after %d pages: looks whole, %d bytes, %v", encoding, good, len(text), err)
			}
		}
	}
}

// A client that has gone ends the reading of the list.
func TestJSONList_NobodyThere(t *testing.T) {
	names, calls := slices.Repeat([]string{"table_with_a_name_of_some_length"}, 10*listItemsHeld), 0
	source := listOf(t, names)
	read := source.Read
	source.Read = func(ctx context.Context, p catalog.Page) ([]int, error) {
		calls++
		return read(ctx, p)
	}
	if err := JSONList(gone{http.Header{}}, httptest.NewRequest(http.MethodGet, "/", nil), "identifiers", Paging{}, source); err != nil || calls != 1 {
		t.Errorf("%v after %d reads", err, calls)
	}
}

type gone struct{ header http.Header }

func (g gone) Header() http.Header     { return g.header }
func (gone) WriteHeader(int)           {}
func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// The time of a long answer's pieces begins anew with each, and ends with that of the whole; short answers need none.
func TestRecorder_PiecesHaveTheirTime(t *testing.T) {
	conn := &writeDeadlines{ResponseRecorder: httptest.NewRecorder()}
	w := &recorder{ResponseWriter: conn, begun: time.Now()}
	if n, err := w.Write(make([]byte, answerPieceBytes)); n != answerPieceBytes || err != nil || len(conn.set) != 0 {
		t.Errorf("a short answer: %d, %v, %v", n, err, conn.set)
	}
	if n, err := w.Write(make([]byte, 3*answerPieceBytes+1)); n != 3*answerPieceBytes+1 || err != nil || conn.Body.Len() != 4*answerPieceBytes+1 {
		t.Errorf("a long one: %d, %v", n, err)
	}
	if len(conn.set) != 4 || conn.most != answerPieceBytes {
		t.Errorf("%d deadlines, %d bytes at once", len(conn.set), conn.most)
	}
	for _, at := range conn.set {
		if left := time.Until(at); left > answerPieceMax || left < answerPieceMax/2 {
			t.Errorf("%v for a piece", left)
		}
	}
	w.begun = time.Now().Add(-answerTimeoutMax)
	if _, err := w.Write([]byte("x")); err != nil || !conn.set[4].Equal(w.begun.Add(answerTimeoutMax)) {
		t.Errorf("beyond the whole answer's time: %v, %v", err, conn.set[4])
	}
}

// writeDeadlines notes the write deadlines of a connection.
type writeDeadlines struct {
	*httptest.ResponseRecorder
	set  []time.Time
	most int
}

func (d *writeDeadlines) SetWriteDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

func (d *writeDeadlines) Write(p []byte) (int, error) {
	d.most = max(d.most, len(p))
	return d.ResponseRecorder.Write(p)
}

// nowhere is a client that takes everything and keeps nothing. When it has taken some, it looks at the memory.
type nowhere struct {
	header http.Header
	bytes  int
	lookAt int
	held   uint64
}

func (n *nowhere) Header() http.Header { return n.header }
func (n *nowhere) WriteHeader(int)     {}
func (n *nowhere) Write(p []byte) (int, error) {
	if n.bytes += len(p); n.bytes >= n.lookAt && n.held == 0 {
		n.held = heldBytes()
	}
	return len(p), nil
}

// heldBytes is what is in memory and no garbage.
func heldBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools let go of what they have the second time
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A namespace of 100,000 tables, for a client that cannot page: while the answer of 6 MB goes out, a small buffer is
// held, and some thousand names.
func TestField_C049_LongListsTakeNoMemory(t *testing.T) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("table_with_a_name_of_some_length_%06d", i)
	}
	for encoding, wanted := range map[string]int{"identity": 6_000_000, "gzip": 200_000} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", encoding)
		source := listOf(t, names)
		source.Append = func(dst []byte, i int) []byte {
			return append(AppendJSON(append(dst, `{"namespace":["a"],"name":`...), names[i]), '}')
		}
		w := &nowhere{header: http.Header{}, lookAt: wanted / 2}
		before := heldBytes()
		if err := JSONList(w, r, "identifiers", Paging{}, source); err != nil {
			t.Fatal(err)
		}
		if w.held > before+256<<10 {
			t.Errorf("%s: %d bytes of memory in the middle of an answer of %d", encoding, w.held-before, w.bytes)
		}
		if w.bytes < wanted {
			t.Errorf("%s: an answer of %d bytes", encoding, w.bytes)
		}
	}
}
