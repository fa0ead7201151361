package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime/debug"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"catalogd/internal/fault"
)

// Limits of what is read of a table. docs/operations.md promises them. A list of a hundred thousand manifests takes
// some fifty megabytes in memory; entries of manifests are read one by one.
const (
	ListEntriesMax     = 100_000
	ListBytesMax       = 128 << 20 // unpacked
	listItemsMax       = 2 << 20   // partition summaries
	ManifestEntriesMax = 1_000_000
	ManifestBytesMax   = 2 << 30 // unpacked
	manifestItemsMax   = 1 << 40 // bounded by record, and not held
)

// Budget is what one piece of work may read of a table's manifests, all files together. nil has no bounds of its own.
type Budget struct {
	Entries int64 // deleted ones count
	Bytes   int64 // unpacked
}

func (b *Budget) takeEntries(c *container, n int64) error {
	if b == nil {
		return nil
	}
	if n > b.Entries {
		return c.tooLarge("with it the table's manifests have more entries than one plan reads")
	}
	b.Entries -= n
	return nil
}

func (b *Budget) bytesLeft() int64 {
	if b == nil {
		return blockBytesMax
	}
	return b.Bytes
}

func (b *Budget) takeBytes(n int64) {
	if b != nil {
		b.Bytes -= n
	}
}

func (b *Budget) text() string {
	if b == nil {
		return ""
	}
	return fmt.Sprintf(", %d were left of what one plan reads", b.Bytes)
}

// Entry is a live entry of a manifest.
type Entry struct {
	iceberg.ManifestEntry
	// Bytes is the entry's length in the unpacked file.
	Bytes int64
}

// List gives the manifests of a snapshot. fault.TooLarge: it passes a limit; ErrBroken: it is no manifest list.
func List(ctx context.Context, files icebergio.IO, s *table.Snapshot) (out []iceberg.ManifestFile, err error) {
	if s.ManifestList == "" { // format version 1 can name manifests in the metadata
		if n := len(s.ManifestLocations); n > ListEntriesMax {
			return nil, fault.New(fault.TooLarge, "snapshot %d has %d manifests, at most %d are read", s.SnapshotID, n, ListEntriesMax)
		}
		err = guard(fmt.Sprintf("snapshot %d", s.SnapshotID), func() error { out, err = s.Manifests(files); return err })
		return out, err
	}
	return ReadList(ctx, files, s.ManifestList)
}

// ReadList gives the manifests of a list. Errors are List's; that of a file that cannot be opened is files'.
func ReadList(ctx context.Context, files icebergio.IO, path string) (out []iceberg.ManifestFile, err error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := newContainer(ctx, "manifest list "+path, f, caps{ListEntriesMax, ListBytesMax, listItemsMax}, checkList, nil)
	defer c.close()
	err = c.decoded(func() error { out, err = iceberg.ReadManifestList(c); return err })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Entries gives the live entries of a manifest, one at a time. It ends with the first error; errors are as List's.
func Entries(ctx context.Context, files icebergio.IO, m iceberg.ManifestFile, b *Budget) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		f, err := files.Open(m.FilePath())
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer f.Close()
		c := newContainer(ctx, "manifest "+m.FilePath(), f, caps{ManifestEntriesMax, ManifestBytesMax, manifestItemsMax}, checkEntries, b)
		defer c.close()
		var r *iceberg.ManifestReader
		if err := c.decoded(func() error { r, err = iceberg.NewManifestReader(m, c); return err }); err != nil {
			yield(Entry{}, err)
			return
		}
		for {
			var e Entry
			err := c.decoded(func() error {
				e.ManifestEntry, err = r.ReadEntry()
				if err == nil {
					e.DataFile().Partition() // converts, and could stumble, once
				}
				return err
			})
			if err == nil && len(c.sizes) > 0 {
				e.Bytes, c.sizes = c.sizes[0], c.sizes[1:]
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Entry{}, err)
				return
			case e.Status() == iceberg.EntryStatusDELETED:
				continue
			case !yield(e, nil):
				return
			}
		}
	}
}

// decoded runs a step of the decoder. Its errors are the file's fault, unless the file could not be read at all.
func (c *container) decoded(step func() error) error {
	err := guard(c.file, step)
	if c.err != nil && !errors.Is(c.err, io.EOF) {
		return c.err
	}
	var known *fault.Error
	if err == nil || errors.As(err, &known) || c.err != nil && errors.Is(err, io.EOF) {
		return err
	}
	return c.broken("%v", err)
}

// guard turns a panic of the decoder into an error that names the file.
func guard(file string, step func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fault.Wrap(fault.Validation, errors.Join(ErrBroken, fmt.Errorf("%v\n%s", cause, debug.Stack())),
				"%s cannot be read: its decoder stumbled", file)
		}
	}()
	return step()
}
