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
	ctx, cancel := context.WithTimeout(ctx, metadataSecondsMax)
	defer cancel()
	t, name, err := s.place(at)
	if err != nil {
		return nil, err
	}
	body, err := t.read(ctx, name, metadataBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(at.Path, err)
	}
	if err != nil {
		return nil, described(err, "metadata file %s cannot be read", at.Path)
	}
	if packedByName(name) {
		return unpack(at.Path, body)
	}
	return body, nil
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
	if kind == fault.Validation || kind == fault.TooLarge { // which name the file and what is wrong with it
		return err
	}
	message := fmt.Sprintf(format, args...)
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

func unpack(path string, body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Validation, err, "metadata file %s is not in gzip's format although its name says so", path)
	}
	plain, err := io.ReadAll(io.LimitReader(r, metadataBytesMax+1))
	if err != nil {
		return nil, fault.Wrap(fault.Validation, err, "metadata file %s cannot be unpacked", path)
	}
	if len(plain) > metadataBytesMax {
		return nil, tooLarge(path, metadataBytesMax)
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
