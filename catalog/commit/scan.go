package commit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// nestingMax bounds how deeply values may nest: the scanner recurses, and Java's reader stops at 1,000.
const nestingMax = 500

// scanner walks JSON text once, checks its grammar (RFC 8259, as encoding/json does) and never allocates.
type scanner struct {
	text    []byte
	at      int
	depth   int
	escaped bool // the last string has an escape
}

// Byte classes of the inside of a string.
var stringStops = func() (stops [256]bool) {
	for c := range 0x20 {
		stops[c] = true
	}
	stops['"'], stops['\\'] = true, true
	return stops
}()

// checkText refuses what is not one JSON value in valid UTF-8.
func checkText(text []byte) error {
	if !utf8.Valid(text) {
		return shapef("not valid UTF-8")
	}
	s := scanner{text: text}
	s.space()
	if err := s.skipValue(); err != nil {
		return err
	}
	return s.end()
}

// end refuses anything but blanks after the value.
func (s *scanner) end() error {
	s.space()
	if s.at < len(s.text) {
		return s.unexpected("after the value")
	}
	return nil
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) unexpected(where string) error {
	if s.at >= len(s.text) {
		return shapef("the JSON text ends too early, at byte %d", s.at)
	}
	return shapef("not JSON: unexpected %q %s, at byte %d", s.text[s.at], where, s.at)
}

// skipValue moves past one value; at stands on its first byte.
func (s *scanner) skipValue() error {
	switch c := s.peek(); {
	case c == '"':
		return s.skipString()
	case c == '{':
		return s.skipObject()
	case c == '[':
		return s.skipArray()
	case c == '-' || c >= '0' && c <= '9':
		return s.skipNumber()
	case c == 't':
		return s.skipWord("true")
	case c == 'f':
		return s.skipWord("false")
	case c == 'n':
		return s.skipWord("null")
	}
	return s.unexpected("where a value should be")
}

func (s *scanner) skipWord(word string) error {
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		return s.unexpected("where a value should be")
	}
	s.at += len(word)
	return nil
}

func (s *scanner) skipString() error {
	if s.peek() != '"' {
		return s.unexpected("where a string should be")
	}
	s.escaped = false
	s.at++
	for {
		s.at = stringStop(s.text, s.at)
		switch s.peek() {
		case '"':
			s.at++
			return nil
		case '\\':
			s.escaped = true
			if err := s.skipEscape(); err != nil {
				return err
			}
		default:
			return s.unexpected("inside a string")
		}
	}
}

// One byte repeated eight times, and each byte's lowest and highest bit.
const (
	lows       = 0x0101010101010101
	highs      = 0x80 * lows
	quotes     = '"' * lows
	backslashs = '\\' * lows
	blanks     = ' ' * lows
)

// stringStop gives the place of the next quote, backslash or control character, eight bytes at a step: most of a
// document is strings. A byte is zero where subtracting one borrows into a highest bit that was not set; a borrow
// can only mislead above the first hit, which is the one that counts.
func stringStop(text []byte, at int) int {
	for at+8 <= len(text) {
		x := binary.LittleEndian.Uint64(text[at:])
		q, b := x^quotes, x^backslashs
		if hits := ((q-lows)&^q | (b-lows)&^b | (x-blanks)&^x) & highs; hits != 0 {
			return at + bits.TrailingZeros64(hits)/8
		}
		at += 8
	}
	for at < len(text) && !stringStops[text[at]] {
		at++
	}
	return at
}

func (s *scanner) skipEscape() error {
	s.at++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at++
		return nil
	case 'u':
		s.at++
		for range 4 {
			if !isHex(s.peek()) {
				return s.unexpected("inside a \\u escape")
			}
			s.at++
		}
		return nil
	}
	return s.unexpected("after a backslash")
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) skipDigits() error {
	if c := s.peek(); c < '0' || c > '9' {
		return s.unexpected("inside a number")
	}
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return nil
}

func (s *scanner) skipNumber() error {
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if err := s.skipDigits(); err != nil {
		return err
	}
	if s.peek() == '.' {
		s.at++
		if err := s.skipDigits(); err != nil {
			return err
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		return s.skipDigits()
	}
	return nil
}

func (s *scanner) skipObject() error {
	more, err := s.open('{', '}')
	for more && err == nil {
		if err = s.skipString(); err != nil {
			break
		}
		if err = s.colon(); err != nil {
			break
		}
		if err = s.skipValue(); err != nil {
			break
		}
		more, err = s.next('}')
	}
	return err
}

func (s *scanner) skipArray() error {
	more, err := s.open('[', ']')
	for more && err == nil {
		if err = s.skipValue(); err != nil {
			break
		}
		more, err = s.next(']')
	}
	return err
}

// open enters an object or array and tells whether it has a first element, on which at then stands.
func (s *scanner) open(opening, closing byte) (bool, error) {
	if s.peek() != opening {
		return false, s.unexpected(fmt.Sprintf("where %q should be", opening))
	}
	if s.depth++; s.depth > nestingMax {
		return false, shapef("values nest more than %d deep, at byte %d", nestingMax, s.at)
	}
	s.at++
	s.space()
	if s.peek() == closing {
		s.at++
		s.depth--
		return false, nil
	}
	return true, nil
}

// next moves past the comma to the next element, or past the closing byte.
func (s *scanner) next(closing byte) (bool, error) {
	s.space()
	switch s.peek() {
	case ',':
		s.at++
		s.space()
		return true, nil
	case closing:
		s.at++
		s.depth--
		return false, nil
	}
	return false, s.unexpected("after an element")
}

func (s *scanner) colon() error {
	if s.peek() != ':' {
		s.space()
	}
	if s.peek() != ':' {
		return s.unexpected("where ':' should be")
	}
	s.at++
	s.space()
	return nil
}

// key reads a member's name, unescaped, and moves to its value.
func (s *scanner) key() ([]byte, error) {
	start := s.at
	if err := s.skipString(); err != nil {
		return nil, err
	}
	if !s.escaped {
		return s.text[start+1 : s.at-1], s.colon()
	}
	name, err := unquote(s.text[start:s.at])
	if err != nil {
		return nil, err
	}
	return name, s.colon()
}

// value skips one value and gives its text.
func (s *scanner) value() ([]byte, error) {
	start := s.at
	err := s.skipValue()
	return s.text[start:s.at], err
}
