package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/s2"
)

// segment is a run of rows of one bucket, in memory or in the spill file.
type segment struct {
	rows   int
	bytes  int64  // as vecs
	vecs   []*vec // nil once spilled
	offset int64
	length int64
}

// spill holds the segments of all buckets: in memory as long as they fit, then in one file. Segments of many buckets lie
// mixed in the file, each knowing its place, so that a thousand buckets need one descriptor.
type spill struct {
	limit int64 // of bytes held in memory; passed once, everything goes to the file
	dir   string

	mu       sync.Mutex
	held     int64
	file     *os.File
	segments [][]*segment // by bucket; each worker appends to lists of its own, see add
	written  atomic.Int64
}

// newSpill makes a spill of so many lists of segments.
func newSpill(dir string, lists int, limit int64) *spill {
	return &spill{dir: dir, limit: limit, segments: make([][]*segment, lists)}
}

// add appends a segment to a list. It takes ownership of the vecs when the segment stays in memory (kept); otherwise the
// caller may use them again. scratch is the caller's buffer for encoding.
func (s *spill) add(list int, rows int, vecs []*vec, scratch *[]byte) (kept bool, err error) {
	seg := &segment{rows: rows}
	for _, v := range vecs {
		seg.bytes += v.memory()
	}
	seg.vecs = vecs
	if kept, err := s.hold(list, seg, scratch); kept || err != nil {
		return kept, err
	}
	seg.vecs = nil
	if err := s.write(seg, vecs, scratch); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.segments[list] = append(s.segments[list], seg)
	s.mu.Unlock()
	return false, nil
}

// hold keeps a segment in memory while there is room; otherwise it sees to it that there is a file to write it to.
func (s *spill) hold(list int, seg *segment, scratch *[]byte) (kept bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock() // encoding for the file may panic, which must not leave others waiting for the lock
	if s.file != nil {
		return false, nil
	}
	if s.held+seg.bytes > s.limit {
		return false, s.toFile(scratch)
	}
	s.held += seg.bytes
	s.segments[list] = append(s.segments[list], seg)
	return true, nil
}

// toFile moves everything held to a new file. Called with the lock held.
func (s *spill) toFile(scratch *[]byte) error {
	file, err := os.CreateTemp(s.dir, "spill-")
	if err != nil {
		return fmt.Errorf("create spill file: %w", err)
	}
	s.file = file
	for _, list := range s.segments {
		for _, seg := range list {
			if err := s.write(seg, seg.vecs, scratch); err != nil {
				return err
			}
			releaseVecs(seg.vecs)
			seg.vecs = nil
		}
	}
	s.held = 0
	return nil
}

func (s *spill) write(seg *segment, vecs []*vec, scratch *[]byte) error {
	encoded := (*scratch)[:0]
	var err error
	for _, v := range vecs {
		if encoded, err = encodeVec(encoded, v); err != nil {
			return err
		}
	}
	*scratch = encoded
	seg.length = int64(len(encoded))
	seg.offset = s.written.Add(seg.length) - seg.length
	if _, err := s.file.WriteAt(encoded, seg.offset); err != nil {
		return fmt.Errorf("write %d bytes of spill: %w", len(encoded), err)
	}
	return nil
}

// load gives the vecs of a segment. Vecs of a segment in memory are handed over: it can be loaded once.
func (s *spill) load(seg *segment, scratch *[]byte) ([]*vec, error) {
	if seg.vecs != nil {
		return s.takeHeld(seg), nil
	}
	rest, err := s.read(seg, scratch)
	if err != nil {
		return nil, err
	}
	var vecs []*vec
	for len(rest) > 0 {
		v, after, err := decodeVec(rest)
		if err != nil {
			return nil, err
		}
		vecs, rest = append(vecs, v), after
	}
	return vecs, nil
}

func (s *spill) takeHeld(seg *segment) []*vec {
	vecs := seg.vecs
	seg.vecs = nil
	s.mu.Lock()
	s.held -= seg.bytes
	s.mu.Unlock()
	return vecs
}

// loadInto appends a segment's vecs to others of the same kind. former decodes codes of columns that are bare by now.
func (s *spill) loadInto(into []*vec, seg *segment, former []*sealed, scratch *[]byte) error {
	if seg.vecs != nil {
		vecs := s.takeHeld(seg)
		for c, v := range vecs {
			join(into[c], v, former[c])
		}
		releaseVecs(vecs)
		return nil
	}
	rest, err := s.read(seg, scratch)
	if err != nil {
		return err
	}
	for c := range into {
		if rest, err = appendEncoded(into[c], rest, former[c]); err != nil {
			return err
		}
	}
	return nil
}

// join appends a vec to one of the same class, or to the wider form that it has come to be: codes to values, short keys
// to words.
func join(into, v *vec, former *sealed) {
	switch {
	case v.class == into.class:
		into.appendAll(v)
	case v.class == class2:
		former.decode(into, v)
	default:
		for _, w := range v.w4 {
			into.w8 = append(into.w8, uint64(w))
		}
		into.n += v.n
	}
}

func (s *spill) read(seg *segment, scratch *[]byte) ([]byte, error) {
	*scratch = grow((*scratch)[:0], int(seg.length))
	if _, err := s.file.ReadAt(*scratch, seg.offset); err != nil {
		return nil, fmt.Errorf("read back %d bytes of spill: %w", seg.length, err)
	}
	return *scratch, nil
}

// keys gives the first vec of a segment, which holds the keys, and leaves the segment as it is.
func (s *spill) keys(seg *segment, scratch *[]byte) (*vec, error) {
	if seg.vecs != nil {
		return seg.vecs[0], nil
	}
	encoded, err := s.read(seg, scratch)
	if err != nil {
		return nil, err
	}
	v, _, err := decodeVec(encoded)
	return v, err
}

// newList adds an empty list of segments.
func (s *spill) newList() int {
	s.segments = append(s.segments, nil)
	return len(s.segments) - 1
}

// unitOf gives a list's rows and bytes.
func (s *spill) unitOf(lists ...int) unit {
	u := unit{lists: lists}
	for _, list := range lists {
		for _, seg := range s.segments[list] {
			u.rows += int64(seg.rows)
			u.bytes += seg.bytes
		}
	}
	return u
}

// close gives back the file and the memory.
func (s *spill) close() {
	if s.file != nil {
		s.file.Close()
		os.Remove(s.file.Name())
	}
	for _, list := range s.segments {
		for _, seg := range list {
			releaseVecs(seg.vecs)
			seg.vecs = nil
		}
	}
}

func releaseVecs(vecs []*vec) {
	for _, v := range vecs {
		for _, a := range v.arrs {
			a.Release()
		}
		v.arrs = nil
	}
}

// A spilled vec is: class, width, rows, nulls, then its buffers, each as raw length, stored length, bytes. A buffer is
// compressed unless that gains nothing. The format lives as long as the job.

func encodeVec(dst []byte, v *vec) ([]byte, error) {
	dst = append(dst, byte(v.class))
	for _, n := range []int{v.width, v.n, v.nulls} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	if v.class == classNested {
		stream, err := encodeNested(v)
		if err != nil {
			return nil, err
		}
		return appendBuffer(dst, stream), nil
	}
	if v.nulls > 0 {
		dst = appendBuffer(dst, v.valid)
	}
	switch v.class {
	case class8:
		dst = appendBuffer(dst, bytesOf(v.w8))
	case class4:
		dst = appendBuffer(dst, bytesOf(v.w4))
	case class2:
		dst = appendBuffer(dst, bytesOf(v.w2))
	case classBit:
		dst = appendBuffer(dst, v.bits)
	case classFixed:
		dst = appendBuffer(dst, v.raw)
	case classBytes:
		dst = appendBuffer(appendBuffer(dst, bytesOf(v.offs)), v.raw)
	}
	return dst, nil
}

func appendBuffer(dst, raw []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(raw)))
	const lengthBytes = 4
	at := len(dst)
	dst = grow(dst, lengthBytes+max(s2.MaxEncodedLen(len(raw)), 0))
	stored := s2.Encode(dst[at+lengthBytes:], raw)
	if len(stored) >= len(raw) {
		stored = dst[at+lengthBytes : at+lengthBytes+copy(dst[at+lengthBytes:], raw)]
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(stored)))
	return dst[:at+lengthBytes+len(stored)]
}

type spillReader struct {
	rest []byte
	err  error
}

func (r *spillReader) number() int {
	n, length := binary.Uvarint(r.rest)
	if length <= 0 {
		r.err = io.ErrUnexpectedEOF
		return 0
	}
	r.rest = r.rest[length:]
	return int(n)
}

// open gives the raw length and the stored bytes of the next buffer.
func (r *spillReader) open() (raw int, stored []byte) {
	raw = r.number()
	if r.err != nil || len(r.rest) < 4 {
		r.err = io.ErrUnexpectedEOF
		return 0, nil
	}
	length := int(binary.LittleEndian.Uint32(r.rest))
	r.rest = r.rest[4:]
	if length > len(r.rest) {
		r.err = io.ErrUnexpectedEOF
		return 0, nil
	}
	stored = r.rest[:length]
	r.rest = r.rest[length:]
	return raw, stored
}

func (r *spillReader) unpack(out, stored []byte) {
	if len(stored) == len(out) {
		copy(out, stored)
	} else if _, err := s2.Decode(out, stored); err != nil {
		r.err = err
	}
}

func (r *spillReader) buffer() []byte {
	raw, stored := r.open()
	if r.err != nil {
		return nil
	}
	out := make([]byte, raw)
	r.unpack(out, stored)
	return out
}

// appendTo unpacks the next buffer behind the words that are there.
func appendTo[T uint64 | uint32 | uint16 | byte](r *spillReader, words []T, size int) []T {
	raw, stored := r.open()
	if r.err != nil {
		return words
	}
	n := len(words)
	words = grow(words, raw/size)
	if raw > 0 {
		r.unpack(unsafe.Slice((*byte)(unsafe.Pointer(&words[n])), raw), stored)
	}
	return words
}

// appendEncoded appends an encoded vec to another one, without a copy in between when both are of one simple class.
func appendEncoded(into *vec, b []byte, former *sealed) ([]byte, error) {
	if from := class(b[0]); from != into.class || from == classNested || from == classBit || from == classBytes {
		v, rest, err := decodeVec(b)
		if err == nil {
			join(into, v, former)
			releaseVecs([]*vec{v})
		}
		return rest, err
	}
	r := &spillReader{rest: b[1:]}
	head := vec{}
	_, head.n, head.nulls = r.number(), r.number(), r.number()
	if head.nulls > 0 {
		head.valid = r.buffer()
	}
	if r.err == nil {
		into.appendValidityAll(&head)
	}
	switch into.class {
	case class8:
		into.w8 = appendTo(r, into.w8, 8)
	case class4:
		into.w4 = appendTo(r, into.w4, 4)
	case class2:
		into.w2 = appendTo(r, into.w2, 2)
	case classFixed:
		into.raw = appendTo(r, into.raw, 1)
	}
	into.n += head.n
	if r.err != nil {
		return nil, fmt.Errorf("decode spill: %w", r.err)
	}
	return r.rest, nil
}

func decodeVec(b []byte) (*vec, []byte, error) {
	r := &spillReader{rest: b[1:]}
	v := &vec{class: class(b[0])}
	v.width, v.n, v.nulls = r.number(), r.number(), r.number()
	if v.class == classNested {
		if stream := r.buffer(); r.err == nil {
			v.arrs, r.err = decodeNested(stream)
		}
	} else if v.nulls > 0 {
		v.valid = r.buffer()
	}
	switch v.class {
	case class8:
		v.w8 = view[uint64](r.buffer())
	case class4:
		v.w4 = view[uint32](r.buffer())
	case class2:
		v.w2 = view[uint16](r.buffer())
	case classBit:
		v.bits = r.buffer()
	case classFixed:
		v.raw = r.buffer()
	case classBytes:
		v.offs = view[int32](r.buffer())
		v.raw = r.buffer()
	}
	if r.err != nil {
		return nil, nil, fmt.Errorf("decode spill: %w", r.err)
	}
	return v, r.rest, nil
}

func encodeNested(v *vec) ([]byte, error) {
	a, err := v.nestedArray(v.arrs[0].DataType())
	if err != nil {
		return nil, err
	}
	defer a.Release()
	sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType(), Nullable: true}}, nil)
	record := array.NewRecordBatch(sc, []arrow.Array{a}, int64(a.Len()))
	defer record.Release()
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(sc))
	if err := w.Write(record); err != nil {
		return nil, fmt.Errorf("spill a column of type %s: %w", a.DataType(), err)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func decodeNested(stream []byte) ([]arrow.Array, error) {
	r, err := ipc.NewReader(bytes.NewReader(stream), ipc.WithAllocator(memory.DefaultAllocator))
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var arrays []arrow.Array
	for r.Next() {
		a := r.RecordBatch().Column(0)
		a.Retain()
		arrays = append(arrays, a)
	}
	return arrays, r.Err()
}
