package iceio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"catalogd/internal/fault"
)

// Sizes of reads from object stores. A request costs about as much time as a few hundred kilobytes.
const (
	tailBytes   = 256 << 10 // what opening reads: all of a manifest, the footer of a data file
	wholeBytes  = 8 << 20   // smaller objects are fetched whole at the first read that the tail does not answer
	blockBytes  = 2 << 20   // smaller reads of larger objects are rounded up to such blocks
	blocksMax   = 4         // kept per open file
	directBytes = 512 << 10 // larger reads go straight to their buffer
)

// object is an open file of an object store. Reads at offsets may run at once.
type object struct {
	ctx   context.Context //nolint:containedctx // fs.File's methods take none; the table's files live as long as it
	tree  *bucketTree
	name  string
	info  info
	tail  []byte
	start int64 // where tail begins

	mu     sync.Mutex
	whole  []byte
	blocks []block
	offset int64
}

type block struct {
	start int64
	bytes []byte
}

var _ reader = (*object)(nil)

// open asks for the object's end, which tells its size as well: one request for all of a small file.
func (t *bucketTree) open(ctx context.Context, name string) (reader, error) {
	out, err := t.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: &t.bucket, Key: t.key(name), Range: aws.String("bytes=-" + strconv.Itoa(tailBytes)),
	})
	if status, _ := answered(err); status == http.StatusRequestedRangeNotSatisfiable {
		i, err := t.stat(ctx, name)
		if err == nil && i.size > 0 {
			err = fault.New(fault.Internal, "the store cannot read the end of %s/%s", t.uri, name)
		}
		return &object{ctx: ctx, tree: t, name: name, info: i}, err
	}
	if err != nil {
		return nil, t.fail(ctx, "get", name, err)
	}
	size, start, err := contentRange(out)
	if err != nil {
		out.Body.Close()
		return nil, fault.Wrap(fault.Internal, err, "the store's answer for %s/%s is not understood", t.uri, name)
	}
	o := &object{
		ctx: ctx, tree: t, name: name, start: start, tail: make([]byte, size-start),
		info: info{name: path.Base(name), size: size, modified: aws.ToTime(out.LastModified)},
	}
	n, err := io.ReadFull(out.Body, o.tail)
	out.Body.Close()
	if err != nil {
		if err := o.fetch(o.tail[n:], start+int64(n)); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// contentRange gives the object's size and where the answered part begins. A store that ignores ranges answers all.
func contentRange(out *s3.GetObjectOutput) (size, start int64, err error) {
	text := aws.ToString(out.ContentRange)
	if text == "" {
		return aws.ToInt64(out.ContentLength), 0, nil
	}
	span, total, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	first, last, ok2 := strings.Cut(span, "-")
	size, err1 := strconv.ParseInt(total, 10, 64)
	start, err2 := strconv.ParseInt(first, 10, 64)
	end, err3 := strconv.ParseInt(last, 10, 64)
	if !ok || !ok2 || errors.Join(err1, err2, err3) != nil || start < 0 || end != size-1 || size-start > tailBytes {
		return 0, 0, fmt.Errorf("content range %q", text)
	}
	return size, start, nil
}

// Stat gives size and time.
func (o *object) Stat() (fs.FileInfo, error) { return o.info, nil }

// Close lets go of what was read.
func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.whole, o.blocks = nil, nil
	return nil
}

// Read reads on.
func (o *object) Read(p []byte) (int, error) {
	o.mu.Lock()
	at := o.offset
	o.mu.Unlock()
	n, err := o.ReadAt(p, at)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	o.mu.Lock()
	o.offset = at + int64(n)
	o.mu.Unlock()
	return n, err
}

// Seek moves where Read goes on.
func (o *object) Seek(offset int64, whence int) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += o.offset
	case io.SeekEnd:
		offset += o.info.size
	}
	if offset < 0 {
		return 0, &fs.PathError{Op: "seek", Path: o.name, Err: fs.ErrInvalid}
	}
	o.offset = offset
	return offset, nil
}

// ReadAt reads from an offset, from memory where it can.
func (o *object) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrInvalid}
	}
	if off >= o.info.size {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	var end error
	if left := o.info.size - off; int64(len(p)) > left {
		p, end = p[:left], io.EOF
	}
	if err := o.fill(p, off); err != nil {
		return 0, err
	}
	return len(p), end
}

func (o *object) fill(p []byte, off int64) error {
	if off >= o.start {
		copy(p, o.tail[off-o.start:])
		return nil
	}
	if o.info.size <= wholeBytes {
		return o.fillWhole(p, off)
	}
	if len(p) >= directBytes {
		return o.fetch(p, off)
	}
	for len(p) > 0 {
		n, err := o.fillBlock(p, off)
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

func (o *object) fillWhole(p []byte, off int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.whole == nil {
		whole := make([]byte, o.info.size)
		copy(whole[o.start:], o.tail)
		if err := o.fetch(whole[:o.start], 0); err != nil {
			return err
		}
		o.whole = whole
	}
	copy(p, o.whole[off:])
	return nil
}

// fillBlock copies what the offset's block has of p and gives how much that was.
func (o *object) fillBlock(p []byte, off int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	start := off - off%blockBytes
	for i, b := range o.blocks {
		if b.start == start {
			copy(o.blocks[1:i+1], o.blocks[:i])
			o.blocks[0] = b
			return copy(p, b.bytes[off-start:]), nil
		}
	}
	var room []byte
	if len(o.blocks) == blocksMax {
		room = o.blocks[blocksMax-1].bytes[:0]
		o.blocks = o.blocks[:blocksMax-1]
	}
	size := min(blockBytes, o.info.size-start)
	if int64(cap(room)) < size {
		room = make([]byte, size)
	}
	room = room[:size]
	if err := o.fetch(room, start); err != nil {
		return 0, err
	}
	o.blocks = append([]block{{start, room}}, o.blocks...)
	return copy(p, room[off-start:]), nil
}

// fetch fills p from the store. A connection that breaks in the middle is taken up again where it broke.
func (o *object) fetch(p []byte, off int64) error {
	for try := 1; len(p) > 0; try++ {
		out, err := o.tree.client.GetObject(o.ctx, &s3.GetObjectInput{
			Bucket: &o.tree.bucket, Key: o.tree.key(o.name),
			Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1)),
		})
		if err != nil {
			return o.tree.fail(o.ctx, "get", o.name, err)
		}
		if aws.ToInt64(out.ContentLength) != int64(len(p)) {
			out.Body.Close()
			return fault.New(fault.Internal, "the store answered %d bytes of %s/%s where %d were asked for",
				aws.ToInt64(out.ContentLength), o.tree.uri, o.name, len(p))
		}
		n, err := io.ReadFull(out.Body, p)
		out.Body.Close()
		if err != nil && (try == requestTriesMax || o.ctx.Err() != nil) {
			return fault.Wrap(fault.Busy, err, "file %s/%s could not be read to its end", o.tree.uri, o.name)
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}
