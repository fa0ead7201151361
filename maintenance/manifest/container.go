package manifest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"catalogd/internal/fault"
)

// Limits of an Avro container.
const (
	headerBytesMax = 16 << 20 // holds the table's schema as JSON
	blockBytesMax  = 64 << 20 // packed and unpacked: some writers put a whole list into one block
	recordItemsMax = 1 << 20  // items of all lists in a record: some for each column of a table
	readAheadBytes = 64 << 10
)

var magic = []byte("Obj\x01")

const syncBytes = 16

// caps bound one file.
type caps struct {
	entries int64
	bytes   int64 // unpacked
	items   int64 // of lists in all records
}

// container reads an Avro file, checks it, and gives it on unpacked: whoever reads from it gets an Avro file of codec
// "null" of which every block has been gone over. It stops at the first thing that is wrong.
type container struct {
	ctx    context.Context //nolint:containedctx // io.Reader takes none
	file   string
	caps   caps
	check  func(root *node) error
	budget *Budget

	src     *source
	in      *bufio.Reader
	schema  *node
	codec   string
	sync    [syncBytes]byte
	packed  bytes.Buffer
	block   []byte
	zstd    *zstd.Decoder
	pending [][]byte
	sizes   []int64 // of the block's records
	entries int64
	bytes   int64
	items   int64
	err     error
}

func newContainer(ctx context.Context, file string, in io.Reader, c caps, check func(*node) error, b *Budget) *container {
	src := &source{in: in}
	return &container{ctx: ctx, file: file, caps: c, check: check, budget: b, src: src, in: bufio.NewReaderSize(src, readAheadBytes)}
}

func (c *container) close() {
	if c.zstd != nil {
		c.zstd.Close()
	}
}

// Read gives the unpacked file on.
func (c *container) Read(p []byte) (int, error) {
	for len(c.pending) > 0 && len(c.pending[0]) == 0 {
		c.pending = c.pending[1:]
	}
	if len(c.pending) == 0 {
		if c.err == nil {
			c.err = c.next()
		}
		if c.err != nil {
			return 0, c.err
		}
	}
	n := copy(p, c.pending[0])
	c.pending[0] = c.pending[0][n:]
	return n, nil
}

// next makes the header or the next block ready; io.EOF at the end.
func (c *container) next() error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.schema == nil {
		return c.header()
	}
	for {
		count, size, err := c.blockHead()
		if err != nil {
			return err
		}
		c.packed.Reset()
		if n, err := io.CopyN(&c.packed, c.in, size); err != nil {
			return c.short("a block of %d bytes ends after %d", size, n)
		}
		var sync [syncBytes]byte
		if _, err := io.ReadFull(c.in, sync[:]); err != nil {
			return c.short("a block has no end")
		}
		if sync != c.sync {
			return c.broken("a block ends with another mark than the header says")
		}
		if count == 0 {
			if c.ctx.Err() != nil {
				return context.Cause(c.ctx)
			}
			continue
		}
		return c.take(count)
	}
}

// blockHead reads count and size of a block.
func (c *container) blockHead() (count, size int64, err error) {
	if _, err := c.in.Peek(1); errors.Is(err, io.EOF) && c.src.err == nil {
		return 0, 0, io.EOF
	}
	if count, err = binary.ReadVarint(c.in); err != nil {
		return 0, 0, c.short("a block's count is cut off")
	}
	if size, err = binary.ReadVarint(c.in); err != nil {
		return 0, 0, c.short("a block's size is cut off")
	}
	if count < 0 || size < 0 {
		return 0, 0, c.broken("a block has %d records in %d bytes", count, size)
	}
	if size > blockBytesMax {
		return 0, 0, c.tooLarge("a block has %d bytes, at most %d are read", size, blockBytesMax)
	}
	if count > c.caps.entries-c.entries {
		return 0, 0, c.tooLarge("it has more than %d entries", c.caps.entries)
	}
	return count, size, c.budget.takeEntries(c, count)
}

// take unpacks a block, goes over its records and puts it up for reading.
func (c *container) take(count int64) error {
	left := min(c.caps.bytes-c.bytes, blockBytesMax, c.budget.bytesLeft())
	if err := c.unpack(left); err != nil {
		return err
	}
	w := walker{block: c.block}
	c.sizes = c.sizes[:0]
	for i := range count {
		if i%1024 == 0 && c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		size, err := w.record(c.schema)
		if err == nil && size == 0 {
			err = errors.New("a record has no bytes")
		}
		if err != nil {
			return c.broken("record %d: %v", c.entries+i+1, err)
		}
		c.sizes = append(c.sizes, int64(size))
		if c.items+w.spent > c.caps.items {
			return c.tooLarge("its records have more than %d items in their lists", c.caps.items)
		}
	}
	if len(w.block) > 0 {
		return c.broken("%d bytes follow the last record of a block", len(w.block))
	}
	c.entries, c.bytes, c.items = c.entries+count, c.bytes+int64(len(c.block)), c.items+w.spent
	c.budget.takeBytes(int64(len(c.block)))
	head := binary.AppendVarint(binary.AppendVarint(nil, count), int64(len(c.block)))
	c.pending = append(c.pending[:0], head, c.block, c.sync[:])
	return nil
}

// unpack fills block with at most limit bytes.
func (c *container) unpack(limit int64) (err error) {
	packed := c.packed.Bytes()
	switch c.codec {
	case "null":
		c.block = packed
	case "deflate":
		c.block, err = inflate(c.block, packed, limit)
	case "snappy":
		c.block, err = unsnap(packed, limit)
	case "zstandard":
		if c.zstd == nil {
			c.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(blockBytesMax), zstd.WithDecoderLowmem(true))
		}
		if err == nil {
			c.block, err = c.zstd.DecodeAll(packed, c.block[:0])
		}
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
			err = errTooMuch
		}
	}
	if err == nil && int64(len(c.block)) > limit {
		err = errTooMuch
	}
	if errors.Is(err, errTooMuch) {
		return c.tooLarge("it unpacks to more than is read: %d bytes in a block, %d in a file%s", blockBytesMax, c.caps.bytes, c.budget.text())
	}
	if err != nil {
		return c.broken("a block cannot be unpacked: %v", err)
	}
	return nil
}

var errTooMuch = errors.New("too much")

func inflate(into, packed []byte, limit int64) ([]byte, error) {
	out := bytes.NewBuffer(into[:0])
	r := flate.NewReader(bytes.NewReader(packed))
	defer r.Close()
	n, err := io.Copy(out, io.LimitReader(r, limit+1))
	if n > limit {
		return into[:0], errTooMuch
	}
	return out.Bytes(), err
}

// unsnap unpacks a snappy block, behind which four bytes of checksum lie that the record walk makes needless.
func unsnap(packed []byte, limit int64) ([]byte, error) {
	if len(packed) < 4 {
		return nil, errShort
	}
	packed = packed[:len(packed)-4]
	size, err := snappy.DecodedLen(packed)
	if err != nil {
		return nil, err
	}
	if int64(size) > limit {
		return nil, errTooMuch
	}
	return snappy.Decode(nil, packed)
}

// header reads the header and puts it up for reading with codec "null".
func (c *container) header() error {
	in := io.LimitReader(c.in, headerBytesMax)
	mark := make([]byte, len(magic))
	if _, err := io.ReadFull(in, mark); err != nil {
		return c.short("it has no header")
	}
	if !bytes.Equal(mark, magic) {
		return c.broken("it is no Avro file")
	}
	h := headerReader{in: in}
	meta, err := h.all()
	if err == nil {
		_, err = io.ReadFull(in, c.sync[:])
	}
	if err != nil {
		if l, ok := in.(*io.LimitedReader); ok && l.N <= 0 {
			return c.tooLarge("its header has more than %d bytes", headerBytesMax)
		}
		return c.short("its header is broken: %v", err)
	}
	c.codec = "null"
	for _, m := range meta {
		switch m.key {
		case "avro.codec":
			c.codec = string(m.value)
		case "avro.schema":
			if c.schema, err = parseSchema(m.value); err == nil {
				err = c.check(c.schema)
			}
			if err != nil {
				return c.broken("%v", err)
			}
		}
	}
	if c.schema == nil {
		return c.broken("its header has no schema")
	}
	switch c.codec {
	case "null", "deflate", "snappy", "zstandard":
	default:
		return c.broken("it is packed with %.40q, which this server does not read", c.codec)
	}
	c.pending = append(c.pending[:0], headerBytes(meta), c.sync[:])
	return nil
}

// entry is one of a header's.
type entry struct {
	key   string
	value []byte
}

func headerBytes(meta []entry) []byte {
	out := bytes.Clone(magic)
	for _, m := range meta {
		if m.key == "avro.codec" {
			continue
		}
		out = binary.AppendVarint(out, 1)
		out = append(binary.AppendVarint(out, int64(len(m.key))), m.key...)
		out = append(binary.AppendVarint(out, int64(len(m.value))), m.value...)
	}
	return append(out, 0)
}

// headerReader reads a header's map.
type headerReader struct{ in io.Reader }

// ReadByte makes numbers readable.
func (h headerReader) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(h.in, b[:])
	return b[0], err
}

func (h headerReader) all() ([]entry, error) {
	var out []entry
	seen := map[string]bool{}
	for {
		count, err := binary.ReadVarint(h)
		if err != nil || count == 0 {
			return out, err
		}
		if count < 0 {
			count = -count
			if _, err := binary.ReadVarint(h); err != nil {
				return nil, err
			}
		}
		for ; count != 0; count-- {
			key, err := h.bytes()
			if err != nil {
				return nil, err
			}
			value, err := h.bytes()
			if err != nil {
				return nil, err
			}
			if seen[string(key)] {
				return nil, fmt.Errorf("key %.40q comes twice", key)
			}
			seen[string(key)] = true
			out = append(out, entry{string(key), value})
		}
	}
}

func (h headerReader) bytes() ([]byte, error) {
	size, err := binary.ReadVarint(h)
	if err != nil {
		return nil, err
	}
	if size < 0 {
		return nil, fmt.Errorf("a value has the length %d", size)
	}
	var out bytes.Buffer
	_, err = io.CopyN(&out, h.in, size)
	return out.Bytes(), err
}

// ErrBroken is in the chain of errors of files that are not what they should be.
var ErrBroken = errors.New("broken")

func (c *container) broken(format string, args ...any) error {
	return fault.Wrap(fault.Validation, ErrBroken, "%s cannot be read: %s", c.file, fmt.Sprintf(format, args...))
}

func (c *container) tooLarge(format string, args ...any) error {
	return fault.New(fault.TooLarge, "%s is too large: %s", c.file, fmt.Sprintf(format, args...))
}

// short is the error of a file that cannot be read on: its own fault, unless it could not be fetched.
func (c *container) short(format string, args ...any) error {
	if c.src.err != nil {
		return fmt.Errorf("read %s: %w", c.file, c.src.err)
	}
	return c.broken(format, args...)
}

// source is the file as it is fetched. It remembers what went wrong.
type source struct {
	in  io.Reader
	err error // but io.EOF
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
