// Package deflate keeps texts compressed in a form that can be put into the middle of a gzip answer as it is: deflate
// blocks that end at a byte, refer to nothing outside of themselves and are not the last of their stream. What stands
// before and after such blocks is added without being compressed, and the checksum of the whole is computed from
// those of its parts; so an answer around a large text that is kept packed costs no compression at all.
package deflate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Packed is a text as deflate blocks. The zero value is the empty text. What it holds is never written to.
type Packed struct {
	Blocks   []byte
	Bytes    int64  // of the text
	Checksum uint32 // CRC-32 (IEEE) of the text
	Digest   Digest
}

// Digest is the SHA-256 of a text: nobody can make another text of the same.
type Digest [sha256.Size]byte

// DigestOf gives a text's digest.
func DigestOf(text []byte) Digest { return sha256.Sum256(text) }

// Errors of Unpack.
var (
	ErrDamaged  = errors.New("the packed text is damaged")
	ErrTooLarge = errors.New("the packed text is larger than it may be")
)

// lastBlock is an empty stored block that ends a stream.
var lastBlock = []byte{1, 0, 0, 0xff, 0xff}

// writers are reused: each has some hundred KB of tables.
var writers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil { // a constant level: cannot happen
		panic(err)
	}
	return w
}}

// readers are reused for their windows.
var readers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// Pack compresses a text.
func Pack(text []byte) Packed {
	if len(text) == 0 {
		return Packed{}
	}
	var out bytes.Buffer
	out.Grow(len(text)/4 + 64)
	w := writers.Get().(*flate.Writer)
	w.Reset(&out)
	_, err := w.Write(text)
	if err == nil {
		err = w.Flush() // ends at a byte, and the stream goes on
	}
	writers.Put(w)
	if err != nil { // a buffer takes everything
		panic(err)
	}
	return Packed{Blocks: bytes.Clone(out.Bytes()), Bytes: int64(len(text)), Checksum: crc32.ChecksumIEEE(text), Digest: DigestOf(text)}
}

// Unpack gives the text back. ErrTooLarge when it is said to be longer than limit, ErrDamaged when the blocks are not
// exactly the text that the size and the checksum promise.
func (p Packed) Unpack(limit int64) ([]byte, error) {
	if p.Bytes < 0 || p.Bytes > limit {
		return nil, ErrTooLarge
	}
	r := readers.Get().(io.ReadCloser)
	defer readers.Put(r)
	err := r.(flate.Resetter).Reset(io.MultiReader(bytes.NewReader(p.Blocks), bytes.NewReader(lastBlock)), nil)
	if err != nil {
		return nil, errors.Join(ErrDamaged, err)
	}
	text := make([]byte, p.Bytes)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, errors.Join(ErrDamaged, err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, ErrDamaged
	}
	if crc32.ChecksumIEEE(text) != p.Checksum {
		return nil, ErrDamaged
	}
	return text, nil
}

// gzipHeader opens a gzip member: no name, no time, system unknown.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// storedBytesMax is what one stored block holds.
const storedBytesMax = 0xffff

// storedOverhead is what a stored block adds.
const storedOverhead = 5

// Splice gives a gzip file of one member whose content is head, the packed text and tail, as parts to be written one
// after the other. head and tail are stored as they are; they are meant to be short. Nothing large is copied.
func Splice(head []byte, p Packed, tail []byte) [3][]byte {
	before := make([]byte, 0, len(gzipHeader)+storedSize(len(head)))
	before = append(before, gzipHeader...)
	before = appendStored(before, head)

	checksum := crc32.ChecksumIEEE(head)
	checksum = Combine(checksum, p.Checksum, p.Bytes)
	checksum = Combine(checksum, crc32.ChecksumIEEE(tail), int64(len(tail)))
	size := uint64(len(head)) + uint64(p.Bytes) + uint64(len(tail))

	after := make([]byte, 0, storedSize(len(tail))+len(lastBlock)+8)
	after = appendStored(after, tail)
	after = append(after, lastBlock...)
	after = binary.LittleEndian.AppendUint32(after, checksum)
	after = binary.LittleEndian.AppendUint32(after, uint32(size)) // modulo 2^32, as the format says
	return [3][]byte{before, p.Blocks, after}
}

func storedSize(n int) int { return n + (n/storedBytesMax+1)*storedOverhead }

// appendStored adds a text as blocks that are not compressed.
func appendStored(to, text []byte) []byte {
	for len(text) > 0 {
		n := min(len(text), storedBytesMax)
		to = append(to, 0)
		to = binary.LittleEndian.AppendUint16(to, uint16(n))
		to = binary.LittleEndian.AppendUint16(to, ^uint16(n))
		to = append(to, text[:n]...)
		text = text[n:]
	}
	return to
}
