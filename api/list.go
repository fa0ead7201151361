package api

import (
	"bytes"
	"context"
	"net/http"

	"github.com/klauspost/compress/gzip"

	"catalogd/catalog"
)

// Limits of lists. An answer goes out while the list is read, so whoever reads slowly, or not at all, holds no more than
// one piece of it, however long it is.
const (
	// listChunkBytes is how much of a long list is written at once: no copy of the whole answer is ever made.
	listChunkBytes = 32 << 10
	// listItemsHeld is how many items are in memory at a time.
	listItemsHeld = 2000
)

// ListSource is where a list's items come from. A context that it is given ends by itself and not with the request's
// time, for a long list may take its reader longer.
type ListSource[T any] struct {
	// Read gives the items of a page in the order of their names. Between two pages the list may change: an item that is
	// there all the time under one name is in the answer once.
	Read func(ctx context.Context, p catalog.Page) ([]T, error)
	Name func(T) string
	// Append appends an item as JSON.
	Append func(dst []byte, item T) []byte
}

// JSONList answers 200 with an object of one list, whose name is field, and the token of the next page, null on the
// last one. Nothing is answered when the first items cannot be read; when later ones cannot, the connection is cut. A
// list of 100,000 items takes no more memory here than one of some thousand.
func JSONList[T any](w http.ResponseWriter, r *http.Request, field string, paging Paging, from ListSource[T]) error {
	out := listWriter{w: w, r: r, chunk: make([]byte, 0, listChunkBytes+listChunkBytes/8)}
	out.chunk = append(AppendJSON(append(out.chunk, '{'), field), ":["...)
	after, left, written := paging.After, paging.Items, false
	for {
		wanted := listItemsHeld
		if left > 0 {
			wanted = min(wanted, left)
		}
		items, err := from.page(r, catalog.Page{After: after, Limit: wanted + 1}) // one more tells whether there are more
		if err != nil {
			return err
		}
		more := len(items) > wanted
		items = items[:min(len(items), wanted)]
		for _, item := range items {
			if written {
				out.chunk = append(out.chunk, ',')
			}
			written = true
			out.chunk = from.Append(out.chunk, item)
			if len(out.chunk) >= listChunkBytes && !out.flush(false) {
				return nil // nobody is there any more
			}
		}
		if !more {
			out.end("null")
			return nil
		}
		after = from.Name(items[len(items)-1])
		if left -= wanted; left == 0 {
			out.end(`"` + encodePageToken(after) + `"`)
			return nil
		}
	}
}

func (s ListSource[T]) page(r *http.Request, p catalog.Page) ([]T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), DeadlineDefault)
	defer cancel()
	return s.Read(ctx, p)
}

// listWriter writes an answer in chunks; compressed, when the client takes it. The compressor remembers nothing from
// chunk to chunk, else it would hold a megabyte as long as the answer takes.
type listWriter struct {
	w      http.ResponseWriter
	r      *http.Request
	chunk  []byte
	begun  bool
	packer *gzip.Writer
	packed bytes.Buffer
}

// end writes what is left, and the token, as JSON.
func (l *listWriter) end(token string) {
	l.chunk = append(append(append(l.chunk, `],"next-page-token":`...), token...), '}')
	if !l.begun {
		writeBody(l.w, l.r, http.StatusOK, l.chunk)
		return
	}
	l.flush(true)
}

// flush tells whether the client is still there.
func (l *listWriter) flush(last bool) bool {
	if !l.begun {
		l.begin()
	}
	body := l.chunk
	if l.packer != nil {
		l.packed.Reset()
		_, err := l.packer.Write(l.chunk)
		if last && err == nil {
			err = l.packer.Close()
		}
		if err != nil { // a buffer takes everything: cannot happen
			panic(err)
		}
		body = l.packed.Bytes()
	}
	_, err := l.w.Write(body)
	l.chunk = l.chunk[:0]
	return err == nil
}

func (l *listWriter) begin() {
	l.begun = true
	h := l.w.Header()
	setJSON(h)
	h.Add("Vary", "Accept-Encoding")
	if acceptsGzip(l.r) {
		h.Set("Content-Encoding", "gzip")
		packer, err := gzip.NewWriterLevel(&l.packed, gzip.StatelessCompression)
		if err != nil { // a constant level: cannot happen
			panic(err)
		}
		l.packer = packer
	}
	l.w.WriteHeader(http.StatusOK)
}

// AppendJSON appends a text as a JSON string, without HTML's escapes.
func AppendJSON(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			return appendEncoded(dst, text)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// appendEncoded is for texts with something in them that may need an escape.
func appendEncoded(dst []byte, text string) []byte {
	body, err := EncodeJSON(text)
	if err != nil { // a string: cannot happen
		panic(err)
	}
	return append(dst, body...)
}
