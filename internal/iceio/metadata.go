package iceio

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// Limits of metadata documents. They hold for the packed and for the unpacked form.
const (
	metadataBytesMax   = 256 << 20
	metadataSecondsMax = 60 * time.Second // for one read or write, its retries included
	// unpackedBytesFree is what is unpacked at once; of more, it is counted first how much it is.
	unpackedBytesFree = 4 << 20
)

// WriteMetadata creates a metadata file, packed when its name says so. An existing file stays as it is.
func (s *Store) WriteMetadata(ctx context.Context, at vending.FilePlace, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, metadataSecondsMax)
	defer cancel()
	t, name, err := s.place(at)
	if err != nil {
		return err
	}
	if packedByName(name) {
		if body, err = pack(body); err != nil {
			return err
		}
	}
	if err := t.write(ctx, name, body); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fault.Wrap(fault.Internal, err, "metadata file %s is there already", at.Path)
		}
		return described(err, "metadata file %s cannot be written", at.Path)
	}
	return nil
}

// ReadMetadata gives a metadata file's bytes, unpacked when its name says gzip.
func (s *Store) ReadMetadata(ctx context.Context, at vending.FilePlace) ([]byte, error) {
	return s.readMetadata(ctx, at, metadataBytesMax, unpackedBytesFree, func(context.Context) error { return nil })
}

// ReadForeign is ReadMetadata of a file that a client named. Before more than free bytes of it are in memory, packed
// or not, it calls larger, once; that one's error ends it.
func (s *Store) ReadForeign(
	ctx context.Context, at vending.FilePlace, free int64, larger func(context.Context) error,
) ([]byte, error) {
	return s.readMetadata(ctx, at, free, free, larger)
}

// readMetadata reads a file of at most packedFree bytes, that unpacks to unpackedFree, without calling larger.
func (s *Store) readMetadata(
	ctx context.Context, at vending.FilePlace, packedFree, unpackedFree int64, larger func(context.Context) error,
) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, metadataSecondsMax)
	defer cancel()
	t, name, err := s.place(at)
	if err != nil {
		return nil, err
	}
	admitted := false
	body, err := t.read(ctx, name, packedFree)
	if fault.Is(err, fault.TooLarge) && packedFree < metadataBytesMax {
		if err := larger(ctx); err != nil {
			return nil, err
		}
		admitted = true
		body, err = t.read(ctx, name, metadataBytesMax)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(at.Path, err)
	}
	if err != nil {
		return nil, described(err, "metadata file %s cannot be read", at.Path)
	}
	if !packedByName(name) {
		return body, nil
	}
	plain, whole, err := unpackStart(at.Path, body, unpackedFree)
	if whole || err != nil {
		return plain, err
	}
	if !admitted {
		if err := larger(ctx); err != nil {
			return nil, err
		}
	}
	return unpack(at.Path, body)
}

// StatMetadata tells whether a metadata file is there: nil, or fault.FileNotFound.
func (s *Store) StatMetadata(ctx context.Context, at vending.FilePlace) error {
	ctx, cancel := context.WithTimeout(ctx, metadataSecondsMax)
	defer cancel()
	t, name, err := s.place(at)
	if err != nil {
		return err
	}
	_, err = t.stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return missing(at.Path, err)
	}
	if err != nil {
		return described(err, "metadata file %s cannot be looked at", at.Path)
	}
	return nil
}

// RemoveMetadata deletes one file, best effort: what stays behind is an orphan that nothing points at.
func (s *Store) RemoveMetadata(ctx context.Context, at vending.FilePlace) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), metadataSecondsMax)
	defer cancel()
	t, name, err := s.place(at)
	if err != nil {
		return
	}
	_, _ = t.remove(ctx, []string{name})
}

// PrepareTable makes a new table's folders on file systems: some writers make none. The path is not looked at.
func (s *Store) PrepareTable(ctx context.Context, at vending.FilePlace) error {
	t, err := s.open(at.Profile, at.Scope)
	if err != nil {
		return err
	}
	if err := t.prepare(ctx, "data", "metadata"); err != nil {
		return described(err, "the folders of %s cannot be made", at.Scope.Location)
	}
	return nil
}

// described keeps an error that has a meaning, and gives all others one. The message tells the operating system's
// reason, a full or read-only disk, and nothing else of the cause: that would name the machine's own folders.
func described(err error, format string, args ...any) error {
	kind := fault.KindOf(err)
	if kind == fault.Validation || kind == fault.TooLarge || kind == fault.Forbidden { // which name the file and what is wrong with it
		return err
	}
	message := fmt.Sprintf(format, args...)
	if leadsOut(err) {
		return fault.Wrap(fault.Forbidden, err, "%s: a symbolic link leads out of the table's folder", message)
	}
	var reason syscall.Errno
	if errors.As(err, &reason) {
		message += ": " + reason.Error()
	}
	return fault.Wrap(kind, err, "%s", message)
}

func packedByName(name string) bool {
	return strings.HasSuffix(name, ".gz.metadata.json") || strings.HasSuffix(name, ".metadata.json.gz")
}

func pack(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(body); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the metadata cannot be packed")
	}
	if err := w.Close(); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the metadata cannot be packed")
	}
	return out.Bytes(), nil
}

func unpacker(path string, body []byte) (*gzip.Reader, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Validation, err, "metadata file %s is not in gzip's format although its name says so", path)
	}
	return r, nil
}

func notUnpacked(path string, cause error) error {
	return fault.Wrap(fault.Validation, cause, "metadata file %s cannot be unpacked", path)
}

// unpackStart gives what unpacks to at most limit bytes; false when it is more.
func unpackStart(path string, body []byte, limit int64) (plain []byte, whole bool, err error) {
	r, err := unpacker(path, body)
	if err != nil {
		return nil, false, err
	}
	plain, err = io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, false, notUnpacked(path, err)
	case int64(len(plain)) > limit:
		return nil, false, nil
	}
	return plain, true, nil
}

// unpack counts first how much it is: a buffer that grows would take several times as much, and the count that the
// format has is whatever the file's writer wrote.
func unpack(path string, body []byte) ([]byte, error) {
	r, err := unpacker(path, body)
	if err != nil {
		return nil, err
	}
	size, err := io.Copy(io.Discard, io.LimitReader(r, metadataBytesMax+1))
	if err != nil {
		return nil, notUnpacked(path, err)
	}
	if size > metadataBytesMax {
		return nil, tooLarge(path, metadataBytesMax)
	}
	if r, err = unpacker(path, body); err != nil {
		return nil, err
	}
	plain := make([]byte, size)
	if _, err := io.ReadFull(r, plain); err != nil {
		return nil, notUnpacked(path, err)
	}
	return plain, nil
}

// irregular is the error for what has a file's name and is none.
func irregular(path string, cause error) error {
	return fault.Wrap(fault.Validation, cause, "file %s is not a regular file", path)
}

func tooLarge(path string, limit int64) error {
	return fault.New(fault.TooLarge, "file %s is larger than %d bytes", path, limit)
}
