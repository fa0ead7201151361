package api

import (
	"net/http"
	"strings"
)

// etagHeader is written with exactly this spelling: Java clients look it up with regard to case, and Go's own
// spelling ("Etag") would switch their cache off.
const etagHeader = "ETag"

// SetETag sets the answer's tag, given without quotes. "" sets none. The tag is a weak one: it is the same whether the
// answer is packed, and whenever within an epoch its credentials were made, so it promises the same meaning and not the
// same bytes. Clients send it back as they got it, and revalidation compares no more than that (docs/decisions/0027).
func SetETag(w http.ResponseWriter, tag string) {
	if tag != "" {
		w.Header()[etagHeader] = []string{`W/"` + tag + `"`}
	}
}

// NotModified answers 304 with the tag that matched, given without quotes.
func NotModified(w http.ResponseWriter, tag string) error {
	SetETag(w, tag)
	w.WriteHeader(http.StatusNotModified)
	return nil
}

// IfNoneMatch gives the tags that the client has, without quotes and without W/: clients send them quoted, bare, weak
// and as lists. "*" is given as it is.
func IfNoneMatch(r *http.Request) []string {
	var tags []string
	for _, value := range r.Header.Values("If-None-Match") {
		tags = append(tags, splitTags(value)...)
	}
	return tags
}

// splitTags splits at the commas that are not inside quotes.
func splitTags(value string) []string {
	var tags []string
	for value = strings.TrimSpace(value); value != ""; value = strings.TrimLeft(value, ", \t") {
		value = strings.TrimPrefix(value, "W/")
		var tag string
		if rest, quoted := strings.CutPrefix(value, `"`); quoted {
			tag, value, _ = strings.Cut(rest, `"`)
		} else {
			tag, value, _ = strings.Cut(value, ",")
			tag = strings.TrimSpace(tag)
		}
		if tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}
