package api

import (
	"net/http"

	"github.com/klauspost/compress/gzip"
)

// listChunkBytes is how much of a long list is written at once: no copy of the whole answer is ever made.
const listChunkBytes = 32 << 10

// JSONList answers 200 with an object of one list, whose name is field, and the token of the next page, null on the
// last one. item appends the i-th of n elements as JSON. A list of 100,000 elements takes no more memory here than one
// of 1,000.
func JSONList(w http.ResponseWriter, r *http.Request, field string, n int, item func(dst []byte, i int) []byte, next *string) error {
	token, err := EncodeJSON(next)
	if err != nil {
		return err
	}
	out := listWriter{w: w, r: r, chunk: make([]byte, 0, listChunkBytes+listChunkBytes/8)}
	defer out.release()
	out.chunk = append(AppendJSON(append(out.chunk, '{'), field), ":["...)
	for i := range n {
		if i > 0 {
			out.chunk = append(out.chunk, ',')
		}
		out.chunk = item(out.chunk, i)
		if len(out.chunk) >= listChunkBytes && !out.flush() {
			return nil // nobody is there any more
		}
	}
	out.chunk = append(append(append(out.chunk, `],"next-page-token":`...), token...), '}')
	if !out.begun {
		writeBody(w, r, http.StatusOK, out.chunk)
		return nil
	}
	out.flush()
	return nil
}

// listWriter writes an answer in chunks; compressed, when the client takes it.
type listWriter struct {
	w      http.ResponseWriter
	r      *http.Request
	chunk  []byte
	begun  bool
	packer *gzip.Writer
}

// flush tells whether the client is still there.
func (l *listWriter) flush() bool {
	if !l.begun {
		l.begin()
	}
	var err error
	if l.packer != nil {
		_, err = l.packer.Write(l.chunk)
	} else {
		_, err = l.w.Write(l.chunk)
	}
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
		l.packer = gzipWriters.Get().(*gzip.Writer)
		l.packer.Reset(l.w)
	}
	l.w.WriteHeader(http.StatusOK)
}

func (l *listWriter) release() {
	if l.packer != nil {
		_ = l.packer.Close() // fails only as the connection does
		gzipWriters.Put(l.packer)
	}
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
