package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"catalogd/catalog"
)

// Limits of lists. A list is what was there at one moment, so it is read before any of it goes out, as fast as the
// database gives it; whoever reads slowly, or not at all, holds the answer in its packed form and no connection.
const (
	// listTextBytes is how much of an answer is held as text; pages of the usual size are shorter. Of a longer one each
	// such piece is packed, at the price of unpacking it for clients that do not take gzip.
	listTextBytes = 256 << 10
	// listPackedBytesMax is how much of an answer is held packed: names of some hundred thousand tables, a million where
	// they are alike. A longer list goes out in parts, each of a moment of its own.
	listPackedBytesMax = 2 << 20
)

// listTexts are reused.
var listTexts = sync.Pool{New: func() any { return new([]byte) }}

// ListSource is where a list's names come from. A context that it is given ends by itself and not with the request's
// time, for a long list may take its reader longer.
type ListSource struct {
	// Read gives the names of a page to each in their order, all of one moment.
	Read func(ctx context.Context, p catalog.Page, each catalog.EachNames) error
	// Around gives the JSON before and behind the JSON string of each name that is below a namespace.
	Around func(below catalog.Namespace) (head, tail string)
}

// JSONList answers 200 with an object of one list, whose name is field, and the token of the next page, null on the
// last one. An error comes back when nothing was answered; of lists in parts also later, and then the connection is cut.
func JSONList(w http.ResponseWriter, r *http.Request, field string, paging Paging, from ListSource) error {
	l := listAnswer{w: w, r: r, left: paging.Items, bounded: paging.Items > 0}
	l.text = append(append(AppendJSON(append(*listTexts.Get().(*[]byte), '{'), field), ':'), '[')
	defer l.release()
	page := paging.Page()
	for {
		l.more, l.full = false, false
		if err := l.read(page, from); err != nil {
			return err
		}
		if !l.full {
			l.end()
			return nil
		}
		if !l.part() {
			return nil // nobody is there any more
		}
		page.After = l.last
		if l.bounded {
			page.Limit = l.left + 1
		}
	}
}

// listAnswer is an answer on its way: text that is not packed yet, and what is packed.
type listAnswer struct {
	w http.ResponseWriter
	r *http.Request

	bounded bool
	left    int    // names that the page still takes
	last    string // the last name that was taken
	more    bool   // another name follows, on another page
	full    bool   // another name follows, in another part

	text    []byte
	written bool // a name was
	packer  *gzip.Writer
	packed  bytes.Buffer
	plain   int  // bytes that were packed, in this part
	begun   bool // a part went out
}

// release gives the text away for reuse.
func (l *listAnswer) release() {
	if l.text != nil {
		text := l.text[:0]
		listTexts.Put(&text)
		l.text = nil
	}
}

// read takes the names of a page.
func (l *listAnswer) read(p catalog.Page, from ListSource) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.r.Context()), DeadlineDefault)
	defer cancel()
	return from.Read(ctx, p, func(below catalog.Namespace, names []string) bool {
		head, tail := from.Around(below)
		for _, name := range names {
			if l.more = l.bounded && l.left == 0; l.more {
				return false
			}
			if len(l.text) >= listTextBytes {
				l.pack()
			}
			if l.full = l.packed.Len() >= listPackedBytesMax; l.full {
				return false
			}
			if l.written {
				l.text = append(l.text, ',')
			}
			l.text = append(AppendJSON(append(l.text, head...), name), tail...)
			l.written, l.last = true, name
			l.left--
		}
		return true
	})
}

// pack packs the text. The compressor remembers nothing from piece to piece, else it would hold a megabyte.
func (l *listAnswer) pack() {
	if l.packer == nil {
		packer, err := gzip.NewWriterLevel(&l.packed, gzip.StatelessCompression)
		if err != nil { // a constant level: cannot happen
			panic(err)
		}
		l.packer = packer
	}
	if _, err := l.packer.Write(l.text); err != nil { // a buffer takes everything: cannot happen
		panic(err)
	}
	l.plain += len(l.text)
	l.text = l.text[:0]
}

// end answers what is there, with the token.
func (l *listAnswer) end() {
	token := "null"
	if l.more {
		token = `"` + encodePageToken(l.last) + `"`
	}
	l.text = append(append(append(l.text, `],"next-page-token":`...), token...), '}')
	if l.packer == nil {
		writeBody(l.w, l.r, http.StatusOK, l.text)
		return
	}
	l.pack()
	l.send(true)
}

// part answers what is there. It tells whether the client still takes more.
func (l *listAnswer) part() bool { return l.send(false) }

// send writes what is packed, unpacked for clients that do not take it packed: for them each part is packed for itself.
func (l *listAnswer) send(last bool) bool {
	gzipped := acceptsGzip(l.r)
	if last || !gzipped {
		if err := l.packer.Close(); err != nil { // into a buffer: cannot happen
			panic(err)
		}
	}
	length := -1
	switch {
	case l.begun || !last:
	case gzipped:
		length = l.packed.Len()
	default:
		length = l.plain
	}
	if last {
		l.release()
	}
	l.header(gzipped, length)
	var err error
	if gzipped {
		_, err = l.packed.WriteTo(l.w)
	} else {
		err = unpackTo(l.w, &l.packed)
		l.packed.Reset()
		l.packer.Reset(&l.packed)
	}
	l.plain = 0
	return err == nil
}

// header begins the answer; a length below 0 is not known.
func (l *listAnswer) header(gzipped bool, length int) {
	if l.begun {
		return
	}
	l.begun = true
	h := l.w.Header()
	setJSON(h)
	h.Add("Vary", "Accept-Encoding")
	if gzipped {
		h.Set("Content-Encoding", "gzip")
	}
	if length >= 0 {
		h.Set("Content-Length", strconv.Itoa(length))
	}
	l.w.WriteHeader(http.StatusOK)
}

func unpackTo(w io.Writer, packed io.Reader) error {
	plain, err := gzip.NewReader(packed)
	if err != nil { // it was packed here: cannot happen
		panic(err)
	}
	_, err = io.CopyBuffer(w, struct{ io.Reader }{plain}, make([]byte, answerUntimedBytes/2))
	return err
}

// AppendJSON appends a text as a JSON string, without HTML's escapes.
func AppendJSON(dst []byte, text string) []byte {
	wide := false
	for i := range len(text) {
		c := text[i]
		if c < 0x20 || c == '"' || c == '\\' {
			return appendEncoded(dst, text)
		}
		wide = wide || c >= utf8.RuneSelf
	}
	if wide && (!utf8.ValidString(text) || strings.ContainsAny(text, "\u2028\u2029")) { // which the encoder escapes too
		return appendEncoded(dst, text)
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
