package iceio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"catalogd/internal/fault"
)

// Sizes of writes to object stores. A writer holds at most partsInFlight+1 parts in memory.
const (
	partBytes       = 8 << 20
	partBytesLarge  = 64 << 20 // from partsSmallMax on, so that the number of parts suffices for any file
	partsSmallMax   = 1000
	partsMax        = 10000 // the protocol's limit
	partsInFlight   = 2
	abortSecondsMax = 30 * time.Second
)

// errClosed is what a writer says after its end.
var errClosed = errors.New("the file is closed")

// upload is a file that is being written to an object store: one request when it is small, parts else. It is not
// safe for concurrent use.
type upload struct {
	ctx    context.Context //nolint:containedctx // io.Writer's methods take none
	cancel context.CancelFunc
	tree   *bucketTree
	name   string

	buffer []byte
	number int32 // of the last part that was begun
	id     *string
	slots  chan struct{}
	parts  sync.WaitGroup

	mu    sync.Mutex
	done  []types.CompletedPart
	err   error // the first one; nothing is written after it
	ended bool
}

var _ Writer = (*upload)(nil)

func (t *bucketTree) create(ctx context.Context, name string) (Writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	return &upload{ctx: ctx, cancel: cancel, tree: t, name: name, slots: make(chan struct{}, partsInFlight)}, nil
}

// Write takes p into the current part.
func (u *upload) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if err := u.failed(); err != nil {
			return written, err
		}
		room := u.partBytes() - len(u.buffer)
		n := min(room, len(p))
		if len(u.buffer)+n > cap(u.buffer) {
			u.buffer = slices.Grow(u.buffer, min(u.partBytes()-len(u.buffer), max(n, len(u.buffer), 64<<10)))
		}
		u.buffer = append(u.buffer, p[:n]...)
		p, written = p[n:], written+n
		if len(u.buffer) == u.partBytes() {
			u.send()
		}
	}
	return written, nil
}

// ReadFrom writes everything that r has.
func (u *upload) ReadFrom(r io.Reader) (int64, error) {
	chunk := make([]byte, 256<<10)
	var total int64
	for {
		n, err := r.Read(chunk)
		if n > 0 {
			if _, err := u.Write(chunk[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// Close ends the file: only when it gives nil is there one.
func (u *upload) Close() error {
	if u.ended {
		return u.failed()
	}
	u.ended = true
	defer u.cancel()
	if u.id == nil && u.failed() == nil {
		u.fail(u.putWhole())
		return u.result()
	}
	if len(u.buffer) > 0 && u.failed() == nil {
		u.send()
	}
	u.parts.Wait()
	if u.failed() == nil {
		u.fail(u.complete())
	}
	if u.failed() != nil {
		u.discard()
	}
	return u.result()
}

// Abort gives the file up; nothing of it stays in the store.
func (u *upload) Abort() {
	if u.ended {
		return
	}
	u.ended = true
	u.cancel()
	u.fail(fault.New(fault.Internal, "file %s/%s was given up", u.tree.uri, u.name))
	u.parts.Wait()
	u.discard()
}

func (u *upload) result() error {
	u.buffer = nil
	err := u.failed()
	if err == nil {
		u.fail(errClosed) // for writes from here on
	}
	return err
}

func (u *upload) putWhole() error {
	_, err := u.tree.client.PutObject(u.ctx, &s3.PutObjectInput{
		Bucket: &u.tree.bucket, Key: u.tree.key(u.name), Body: bytes.NewReader(u.buffer),
		ContentLength: aws.Int64(int64(len(u.buffer))), ContentType: aws.String(contentType(u.name)),
	})
	if err != nil {
		return u.tree.fail(u.ctx, "put", u.name, err)
	}
	return nil
}

func (u *upload) partBytes() int {
	if u.number >= partsSmallMax {
		return partBytesLarge
	}
	return partBytes
}

// send uploads the buffer as the next part, in the background. It waits while partsInFlight are under way.
func (u *upload) send() {
	if u.id == nil {
		out, err := u.tree.client.CreateMultipartUpload(u.ctx, &s3.CreateMultipartUploadInput{
			Bucket: &u.tree.bucket, Key: u.tree.key(u.name), ContentType: aws.String(contentType(u.name)),
		})
		if err != nil {
			u.fail(u.tree.fail(u.ctx, "put", u.name, err))
			return
		}
		u.id = out.UploadId
	}
	if u.number == partsMax {
		u.fail(fault.New(fault.TooLarge, "file %s/%s has more than %d parts", u.tree.uri, u.name, partsMax))
		return
	}
	u.number++
	number, body := u.number, u.buffer
	u.slots <- struct{}{}
	u.buffer = nil
	u.parts.Go(func() {
		defer func() { <-u.slots }()
		out, err := u.tree.client.UploadPart(u.ctx, &s3.UploadPartInput{
			Bucket: &u.tree.bucket, Key: u.tree.key(u.name), UploadId: u.id, PartNumber: &number,
			Body: bytes.NewReader(body), ContentLength: aws.Int64(int64(len(body))),
		})
		if err != nil {
			u.fail(u.tree.fail(u.ctx, "put", u.name, err))
			return
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.done = append(u.done, types.CompletedPart{ETag: out.ETag, PartNumber: &number})
	})
}

func (u *upload) complete() error {
	slices.SortFunc(u.done, func(a, b types.CompletedPart) int { return int(*a.PartNumber - *b.PartNumber) })
	_, err := u.tree.client.CompleteMultipartUpload(u.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.tree.bucket, Key: u.tree.key(u.name), UploadId: u.id,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.done},
	})
	if err != nil {
		return u.tree.fail(u.ctx, "put", u.name, err)
	}
	return nil
}

// discard drops the parts, also when the work's context has ended: they would cost money for ever.
func (u *upload) discard() {
	if u.id == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.ctx), abortSecondsMax)
	defer cancel()
	_, _ = u.tree.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: &u.tree.bucket, Key: u.tree.key(u.name), UploadId: u.id,
	})
}

func (u *upload) fail(err error) {
	if err == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil {
		u.err = err
	}
}

func (u *upload) failed() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}
