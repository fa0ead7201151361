package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"catalogd/internal/deflate"
	"catalogd/internal/fault"
)

// gzipBytesMin is the size of a body from which compressing pays.
const gzipBytesMin = 4 << 10

// gzipWriters are reused: each has about 1 MB of tables.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil { // a constant level: cannot happen
		panic(err)
	}
	return w
}}

// JSON answers with v as JSON. Lists in v must not be nil where clients want a list; see List.
func JSON(w http.ResponseWriter, r *http.Request, status int, v any) error {
	body, err := EncodeJSON(v)
	if err != nil {
		return err
	}
	writeBody(w, r, status, body)
	return nil
}

// EncodeJSON is json.Marshal without its escapes for HTML: names and locations hold ampersands.
func EncodeJSON(v any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the answer could not be encoded")
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}

// RawJSON answers 200 with JSON text that is there already, in parts, so that big documents are not copied.
func RawJSON(w http.ResponseWriter, r *http.Request, parts ...[]byte) error {
	writeBody(w, r, http.StatusOK, parts...)
	return nil
}

// PackedJSON answers 200 with JSON text around a document that may be there packed too (the zero value: it is not).
// Clients that take gzip get the packed form as it is; nothing is compressed for them.
func PackedJSON(w http.ResponseWriter, r *http.Request, head, document []byte, packed deflate.Packed, tail []byte) error {
	size := len(head) + len(document) + len(tail)
	if packed.Bytes == 0 || size < gzipBytesMin || !acceptsGzip(r) {
		writeBody(w, r, http.StatusOK, head, document, tail)
		return nil
	}
	parts := deflate.Splice(head, packed, tail)
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	h.Set("Content-Encoding", "gzip")
	writeParts(w, http.StatusOK, parts[:])
	return nil
}

// NoContent answers 204.
func NoContent(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// NoStore marks an answer that holds secrets: no cache may keep it.
func NoStore(w http.ResponseWriter) { w.Header().Set("Cache-Control", "no-store") }

// List gives an empty list for a nil one: clients read null as a fault.
func List[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// writeBody writes a JSON answer, compressed when the client takes it. Errors of the connection are not ours to
// report: the client sees that the answer is cut.
func writeBody(w http.ResponseWriter, r *http.Request, status int, parts ...[]byte) {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size >= gzipBytesMin {
		h := w.Header()
		h.Add("Vary", "Accept-Encoding")
		if acceptsGzip(r) {
			h.Set("Content-Encoding", "gzip")
			setJSON(h)
			w.WriteHeader(status)
			writeGzip(w, parts)
			return
		}
	}
	writeParts(w, status, parts)
}

func setJSON(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
}

// writeParts writes an answer whose length is known.
func writeParts(w http.ResponseWriter, status int, parts [][]byte) {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	h := w.Header()
	setJSON(h)
	h.Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(status)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

func writeGzip(w http.ResponseWriter, parts [][]byte) {
	packer := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(packer)
	packer.Reset(w)
	for _, part := range parts {
		if _, err := packer.Write(part); err != nil {
			return
		}
	}
	_ = packer.Close() // fails only as the connection does
}

// acceptsGzip reads Accept-Encoding: gzip or *, not forbidden by q=0.
func acceptsGzip(r *http.Request) bool {
	for _, item := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, params, _ := strings.Cut(item, ";")
		name = strings.TrimSpace(name)
		if !strings.EqualFold(name, "gzip") && name != "*" {
			continue
		}
		q, found := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		if !found {
			return true
		}
		weight, err := strconv.ParseFloat(q, 64)
		return err == nil && weight > 0
	}
	return false
}
