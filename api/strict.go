package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"

	"catalogd/internal/fault"
)

// checkStrict refuses what encoding/json repairs in silence: a field that is there twice, of which the last would win.
// The body is valid JSON.
func checkStrict(body []byte) error {
	var open []map[string]struct{} // the names of each open object; nil for an array
	name := false                  // the next string is a name
	for at := 0; at < len(body); at++ {
		switch body[at] {
		case '{':
			open, name = append(open, map[string]struct{}{}), true
		case '[':
			open, name = append(open, nil), false
		case '}', ']':
			open, name = open[:len(open)-1], false
		case ',':
			name = open[len(open)-1] != nil
		case '"':
			end, escaped := stringEnd(body, at)
			if name {
				if err := addName(open[len(open)-1], body[at:end], escaped); err != nil {
					return err
				}
			}
			at, name = end-1, false
		}
	}
	return nil
}

// stringEnd gives the place behind a string's closing quote.
func stringEnd(body []byte, at int) (end int, escaped bool) {
	for at++; body[at] != '"'; at++ {
		if body[at] == '\\' {
			escaped = true
			at++
		}
	}
	return at + 1, escaped
}

// addName notes a name, unescaped, that must not be there yet.
func addName(names map[string]struct{}, quoted []byte, escaped bool) error {
	name := string(quoted[1 : len(quoted)-1])
	if escaped {
		if err := json.Unmarshal(quoted, &name); err != nil {
			return jsonFault(err)
		}
	}
	if _, twice := names[name]; twice {
		return fault.New(fault.BadRequest, "request body has the field %q twice in one object", cut(name))
	}
	names[name] = struct{}{}
	return nil
}

// halfPair gives the place of an escape that is half of a surrogate pair, -1 when there is none: decoders make another
// character of it, or refuse the whole text, so it must not get into a document that others read. The text is JSON;
// of other texts this says nothing of use.
func halfPair(text []byte) int {
	for at := bytes.IndexByte(text, '\\'); at >= 0; {
		first, ok := escapedUnit(text[at:])
		step := unitBytes
		switch {
		case !ok: // a short escape
			step = min(len("\\n"), len(text)-at)
		case utf16.IsSurrogate(first):
			second, _ := escapedUnit(text[at+unitBytes:])
			if utf16.DecodeRune(first, second) == '\uFFFD' {
				return at
			}
			step = 2 * unitBytes
		}
		next := bytes.IndexByte(text[at+step:], '\\')
		if next < 0 {
			return -1
		}
		at += step + next
	}
	return -1
}

// unitBytes is the length of an escape of the form \u0041.
const unitBytes = 6

// escapedUnit reads such an escape at the text's beginning.
func escapedUnit(text []byte) (rune, bool) {
	if len(text) < unitBytes || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:unitBytes]), 16, 16)
	return rune(unit), err == nil
}
