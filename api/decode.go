package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"catalogd/internal/fault"
)

// ReadBody gives the request's whole body of JSON, which must be there, be called nothing else and be UTF-8, its escapes included.
func ReadBody(r *http.Request) ([]byte, error) {
	if kind := r.Header.Get("Content-Type"); kind != "" && !isJSON(kind) {
		return nil, fault.New(fault.BadRequest, "the request body must be JSON: Content-Type is %q, not application/json", cut(kind))
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, fault.New(fault.BadRequest, "request bodies must not be compressed (Content-Encoding is %q)", cut(encoding))
	}
	if r.Body == nil {
		return nil, fault.New(fault.BadRequest, "request body is missing")
	}
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= BodyBytesDefault {
		body.Grow(int(n) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(r.Body); err != nil {
		var tooLong *http.MaxBytesError
		var known *fault.Error
		if errors.As(err, &tooLong) || errors.As(err, &known) {
			return nil, err
		}
		return nil, fault.Wrap(fault.BadRequest, err, "request body could not be read to its end")
	}
	if body.Len() == 0 {
		return nil, fault.New(fault.BadRequest, "request body is missing")
	}
	if !utf8.Valid(body.Bytes()) {
		return nil, fault.New(fault.BadRequest, "request body is not UTF-8 text")
	}
	if at := halfPair(body.Bytes()); at >= 0 {
		return nil, fault.New(fault.BadRequest, "request body holds half of a surrogate pair at byte %d: that is no character", at)
	}
	return body.Bytes(), nil
}

// isJSON says whether a Content-Type is that of JSON, by itself or as the form of another type.
func isJSON(kind string) bool {
	media, _, err := mime.ParseMediaType(kind)
	return err == nil && (media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}

// DecodeJSON reads the request's body into v: one JSON value of the right types, no field twice and nothing
// behind it, else fault.BadRequest that names the field. Fields that v does not know are ignored, as the protocol wants.
func DecodeJSON(r *http.Request, v any) error {
	body, err := ReadBody(r)
	if err != nil {
		return err
	}
	return UnmarshalJSON(body, v)
}

// UnmarshalJSON is DecodeJSON for bytes that are there already.
func UnmarshalJSON(body []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(v); err != nil {
		return jsonFault(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fault.New(fault.BadRequest, "request body holds more than one JSON value")
	}
	if string(bytes.TrimSpace(body)) == "null" { // which the decoder takes for "leave it as it is"
		return fault.New(fault.BadRequest, "request body is null")
	}
	return checkStrict(body)
}

// jsonFault says in the client's words what is wrong with its JSON.
func jsonFault(err error) error {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		field := wrongType.Field
		if field == "" {
			field = "request body"
		}
		return fault.Wrap(fault.BadRequest, err, "%s has the wrong type: %s is not %s", field, wrongType.Value, jsonTypeOf(wrongType.Type.Kind().String()))
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fault.Wrap(fault.BadRequest, err, "request body is not valid JSON (at byte %d)", syntax.Offset)
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Wrap(fault.BadRequest, err, "request body is not valid JSON")
}

// jsonTypeOf names a Go kind as JSON does.
func jsonTypeOf(kind string) string {
	switch kind {
	case "slice", "array":
		return "a list"
	case "map", "struct", "ptr":
		return "an object"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "float32", "float64":
		return "a number"
	}
	return "an integer in range"
}
