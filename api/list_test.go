package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// listPiece is how many names the lists of these tests give at a time.
const listPiece = 1000

// listOf is a list of names, each behind its number, so that they are in order.
func listOf(names []string) ListSource {
	return ListSource{
		Read: func(_ context.Context, p catalog.Page, each catalog.EachNames) error {
			first := 0
			if p.After != "" {
				first = numberOf(p.After) + 1
			}
			end := len(names)
			if p.Limit > 0 {
				end = min(end, first+p.Limit)
			}
			for ; first < end; first += listPiece {
				var piece []string
				for i := first; i < min(end, first+listPiece); i++ {
					piece = append(piece, numbered(i, names[i]))
				}
				if !each(nil, piece) {
					return nil
				}
			}
			return nil
		},
		Around: func(catalog.Namespace) (head, tail string) { return "", "" },
	}
}

func numbered(i int, name string) string { return fmt.Sprintf("%09d%s", i, name) }

func numberOf(name string) int {
	i, err := strconv.Atoi(name[:9])
	if err != nil {
		panic(err)
	}
	return i
}

// The answer is what the encoder would have made, at every length around those at which it is packed and goes out in
// parts, and for every text.
func TestJSONList_IsTheEncodersAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.String(), 0, 20).Draw(t, "names")
		names = slices.Repeat(names, rapid.SampledFrom([]int{1, 1, 400, 3000}).Draw(t, "repeat"))
		for i, name := range names {
			names[i] = strings.ReplaceAll(strings.ToValidUTF8(name, "\ufffd"), "\x00", "0") // which no token holds
		}
		var paging Paging
		if rapid.Bool().Draw(t, "paged") {
			paging.Items = rapid.SampledFrom([]int{1, 7, 400, listPiece, listPiece + 1, 2 * listPiece}).Draw(t, "items")
			paging.After = rapid.SampledFrom([]string{"", "000000000", "000000399"}).Draw(t, "after")
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if rapid.Bool().Draw(t, "packed") {
			r.Header.Set("Accept-Encoding", "gzip")
		}
		w := httptest.NewRecorder()
		if err := JSONList(w, r, "identifiers", paging, listOf(names)); err != nil {
			t.Fatal(err)
		}
		checkList(t, w, names, paging)
	})
}

// checkList wants the names of a page, numbered, and the token of the next one.
func checkList(t interface {
	Fatal(...any)
	Errorf(string, ...any)
}, w *httptest.ResponseRecorder, names []string, paging Paging) {
	got, err := decodeList(w)
	if err != nil {
		t.Fatal(err)
	}
	first, end := 0, len(names)
	if paging.After != "" {
		first = min(end, numberOf(paging.After)+1)
	}
	more := paging.Items > 0 && end-first > paging.Items
	if more {
		end = first + paging.Items
	}
	want := make([]string, 0, end-first)
	for i := first; i < end; i++ {
		want = append(want, numbered(i, names[i]))
	}
	if got.Identifiers == nil || !slices.Equal(got.Identifiers, want) || (got.Next != nil) != more || w.Code != 200 {
		t.Errorf("%d of %d names, next %v, status %d", len(got.Identifiers), len(want), got.Next, w.Code)
	}
	if more {
		if last, err := decodePageToken(*got.Next); err != nil || last != want[len(want)-1] {
			t.Errorf("the token %s leads behind %q, %v", *got.Next, last, err)
		}
	}
}

type decodedList struct {
	Identifiers []string `json:"identifiers"`
	Next        *string  `json:"next-page-token"`
}

// decodeList decodes an answer, whose length must be as it says.
func decodeList(w *httptest.ResponseRecorder) (list decodedList, err error) {
	if said := w.Header().Get("Content-Length"); said != "" && said != strconv.Itoa(w.Body.Len()) {
		return list, fmt.Errorf("%d bytes, said were %s", w.Body.Len(), said)
	}
	body := io.Reader(w.Body)
	if w.Header().Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return list, err
		}
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return list, err
	}
	return list, json.Unmarshal(raw, &list)
}

// manyRandom are names that can hardly be packed, more than one part of an answer holds.
func manyRandom() []string {
	random := rand.NewChaCha8([32]byte{1})
	names := make([]string, 3*listPackedBytesMax/200)
	for i := range names {
		raw := make([]byte, 300)
		_, _ = random.Read(raw)
		names[i] = base64.RawURLEncoding.EncodeToString(raw)
	}
	return names
}

// What cannot be read is answered. Only of a list in parts, some are out by then: it is cut and does not look whole.
func TestJSONList_Errors(t *testing.T) {
	names, lost := manyRandom(), errors.New("the database went away")
	for _, encoding := range []string{"identity", "gzip"} {
		for part := range 3 {
			reads, source := 0, listOf(names)
			read := source.Read
			source.Read = func(ctx context.Context, p catalog.Page, each catalog.EachNames) error {
				reads++
				pieces := 0
				err := read(ctx, p, func(below catalog.Namespace, names []string) bool {
					pieces++
					return (reads <= part || pieces == 1) && each(below, names)
				})
				if reads > part {
					return lost
				}
				return err
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", encoding)
			w := httptest.NewRecorder()
			rec := &recorder{ResponseWriter: w, begun: time.Now()}
			err := JSONList(rec, r, "identifiers", Paging{}, source)
			if !errors.Is(err, lost) || (rec.status != 0) != (part > 0) || (w.Body.Len() > 0) != (part > 0) {
				t.Errorf("%s, part %d: %v, status %d", encoding, part, err, rec.status)
			}
			if list, err := decodeList(w); err == nil {
				t.Errorf("%s, part %d: looks whole, %d names", encoding, part, len(list.Identifiers))
			}
		}
	}
}

// A list that is too long to be held goes out in parts, each read behind the one before.
func TestJSONList_Parts(t *testing.T) {
	names := manyRandom()
	for _, encoding := range []string{"identity", "gzip"} {
		for _, paging := range []Paging{{}, {Items: len(names) - 1}, {Items: len(names)}} {
			reads, source := 0, listOf(names)
			read := source.Read
			source.Read = func(ctx context.Context, p catalog.Page, each catalog.EachNames) error {
				reads++
				return read(ctx, p, each)
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", encoding)
			w := httptest.NewRecorder()
			if err := JSONList(w, r, "identifiers", paging, source); err != nil {
				t.Fatal(err)
			}
			if reads < 3 {
				t.Errorf("%d reads", reads)
			}
			checkList(t, w, names, paging)
		}
	}
}

// A client that has gone ends the reading of the list.
func TestJSONList_NobodyThere(t *testing.T) {
	names, reads := manyRandom(), 0
	source := listOf(names)
	read := source.Read
	source.Read = func(ctx context.Context, p catalog.Page, each catalog.EachNames) error {
		reads++
		return read(ctx, p, each)
	}
	if err := JSONList(gone{http.Header{}}, httptest.NewRequest(http.MethodGet, "/", nil), "identifiers", Paging{}, source); err != nil || reads != 1 {
		t.Errorf("%v after %d reads", err, reads)
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
	if n, err := w.Write(make([]byte, answerUntimedBytes)); n != answerUntimedBytes || err != nil || len(conn.set) != 0 {
		t.Errorf("a short answer: %d, %v, %v", n, err, conn.set)
	}
	const long = (1+2+4+4)*answerPieceBytes + 1
	if n, err := w.Write(make([]byte, long)); n != long || err != nil || conn.Body.Len() != answerUntimedBytes+long {
		t.Errorf("a long one: %d, %v", n, err)
	}
	if len(conn.set) != 5 || conn.most != answerPieceBytesMax {
		t.Errorf("%d deadlines, %d bytes at once", len(conn.set), conn.most)
	}
	for _, at := range conn.set {
		if left := time.Until(at); left > answerPieceMax || left < answerPieceMax/2 {
			t.Errorf("%v for a piece", left)
		}
	}
	w.begun = time.Now().Add(-answerTimeoutMax)
	if _, err := w.Write([]byte("x")); err != nil || !conn.set[5].Equal(w.begun.Add(answerTimeoutMax)) {
		t.Errorf("beyond the whole answer's time: %v, %v", err, conn.set[5])
	}
}

// Whoever has become slow gets small pieces again, each with the whole time.
func TestPieceAfter_GrowsWhileTheReaderIsQuick(t *testing.T) {
	for _, c := range []struct {
		bytes int
		took  time.Duration
		want  int
	}{
		{answerPieceBytes, time.Millisecond, 2 * answerPieceBytes},
		{answerPieceBytesMax / 2, answerPieceQuick, answerPieceBytesMax},
		{answerPieceBytesMax, 0, answerPieceBytesMax},
		{answerPieceBytesMax, answerPieceQuick + 1, answerPieceBytes},
	} {
		if got := pieceAfter(c.bytes, c.took); got != c.want {
			t.Errorf("%d bytes in %v: %d, want %d", c.bytes, c.took, got, c.want)
		}
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

// A namespace of 100,000 tables, for a client that cannot page: while the answer of 6 MB goes out, it is held packed and
// in no other form.
func TestField_C049_LongListsTakeNoMemory(t *testing.T) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = "_table_with_a_name_of_some_length"
	}
	for encoding, wanted := range map[string]int{"identity": 6_000_000, "gzip": 200_000} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", encoding)
		source := listOf(names)
		source.Around = func(catalog.Namespace) (head, tail string) { return `{"namespace":["a"],"name":`, "}" }
		w := &nowhere{header: http.Header{}, lookAt: wanted / 2}
		before := heldBytes()
		if err := JSONList(w, r, "identifiers", Paging{}, source); err != nil {
			t.Fatal(err)
		}
		if w.held > before+768<<10 {
			t.Errorf("%s: %d bytes of memory in the middle of an answer of %d", encoding, w.held-before, w.bytes)
		}
		if w.bytes < wanted {
			t.Errorf("%s: an answer of %d bytes", encoding, w.bytes)
		}
	}
}
