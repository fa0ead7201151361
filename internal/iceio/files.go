package iceio

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"

	icebergio "github.com/apache/iceberg-go/io"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// reader is what opening a file gives.
type reader = icebergio.File

// Writer is a file that is being written. Only when Close gives nil is it there and whole.
type Writer interface {
	icebergio.FileWriter
	// Abort gives the file up and removes what was written of it. After Close it does nothing.
	Abort()
}

// Files are one table's files. A name is a file's absolute URI; one outside the table's location is refused with
// fault.Forbidden, whoever named it. Errors are *fs.PathError; a missing file's is fs.ErrNotExist and
// fault.FileNotFound. Files last until the context of OpenTable ends; credentials are renewed on the way. They are
// safe for concurrent use.
type Files struct {
	ctx      context.Context //nolint:containedctx // iceberg-go's interface takes none
	location string
	tree     tree
}

var (
	_ icebergio.WriteFileIO     = (*Files)(nil)
	_ icebergio.ReadFileIO      = (*Files)(nil)
	_ icebergio.StatIO          = (*Files)(nil)
	_ icebergio.ListableIO      = (*Files)(nil)
	_ icebergio.BulkRemovableIO = (*Files)(nil)
)

// fileBytesMax is for files that are read whole into memory: manifests, statistics.
const fileBytesMax = 1 << 30

// OpenTable gives access to a table's files with credentials for the scope.
func (s *Store) OpenTable(ctx context.Context, profile vending.Profile, scope vending.Scope) (*Files, error) {
	t, err := s.open(profile, scope)
	if err != nil {
		return nil, err
	}
	return &Files{ctx: ctx, location: scope.Location, tree: t}, nil
}

// Open opens a file for reading. ReadAt may be called from several goroutines.
func (f *Files) Open(name string) (icebergio.File, error) {
	below, err := within(f.location, name)
	if err != nil {
		return nil, f.pathError("open", name, err)
	}
	r, err := f.tree.open(f.ctx, below)
	if err != nil {
		return nil, f.pathError("open", name, err)
	}
	return r, nil
}

// ReadFile gives a whole file of at most fileBytesMax.
func (f *Files) ReadFile(name string) ([]byte, error) {
	below, err := within(f.location, name)
	if err != nil {
		return nil, f.pathError("read", name, err)
	}
	body, err := f.tree.read(f.ctx, below, fileBytesMax)
	return body, f.pathError("read", name, err)
}

// Stat gives size and time.
func (f *Files) Stat(name string) (fs.FileInfo, error) {
	below, err := within(f.location, name)
	if err != nil {
		return nil, f.pathError("stat", name, err)
	}
	i, err := f.tree.stat(f.ctx, below)
	return i, f.pathError("stat", name, err)
}

// Create begins a file. Its name must be new; where the storage can tell, an existing file is an error.
func (f *Files) Create(name string) (icebergio.FileWriter, error) { return f.CreateFile(f.ctx, name) }

// CreateFile is Create with a context of its own, and a writer that can be given up.
func (f *Files) CreateFile(ctx context.Context, name string) (Writer, error) {
	below, err := within(f.location, name)
	if err != nil {
		return nil, f.pathError("create", name, err)
	}
	w, err := f.tree.create(ctx, below)
	if err != nil {
		return nil, f.pathError("create", name, err)
	}
	return w, nil
}

// WriteFile writes a whole file under a new name; an existing one is an error everywhere.
func (f *Files) WriteFile(name string, body []byte) error {
	below, err := within(f.location, name)
	if err == nil {
		err = f.tree.write(f.ctx, below, body)
	}
	return f.pathError("write", name, err)
}

// Remove deletes a file. That it is not there is no error.
func (f *Files) Remove(name string) error {
	_, err := f.DeleteFiles(f.ctx, []string{name})
	return f.pathError("remove", name, err)
}

// DeleteFiles deletes files in as few requests as the storage allows, and gives those that are gone.
func (f *Files) DeleteFiles(ctx context.Context, names []string) ([]string, error) {
	below := make([]string, 0, len(names))
	spelled := make(map[string]string, len(names))
	var failed []error
	for _, name := range names {
		b, err := within(f.location, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if _, twice := spelled[b]; !twice {
			below = append(below, b)
		}
		spelled[b] = name
	}
	var gone []string
	if len(below) > 0 {
		removed, err := f.tree.remove(ctx, below)
		failed = append(failed, err)
		for _, b := range removed {
			gone = append(gone, spelled[b])
		}
	}
	return gone, errors.Join(failed...)
}

// KeepsVersions tells whether something that was removed here stays in the store as an old version.
func (f *Files) KeepsVersions() bool {
	t, ok := f.tree.(*bucketTree)
	return ok && t.kept.Load()
}

// WalkDir calls fn for each file below root, the table's location or a folder in it; folders are not told of.
func (f *Files) WalkDir(root string, fn fs.WalkDirFunc) error {
	folder, ok := vending.Relative(f.location, root)
	if !ok {
		return f.pathError("list", root, fault.New(fault.Forbidden, "%q lies outside the table's location %s", root, f.location))
	}
	err := f.tree.walk(f.ctx, path.Clean("/" + folder)[1:], func(name string, i info) error {
		return fn(f.location+"/"+name, fs.FileInfoToDirEntry(i), nil)
	})
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return f.pathError("list", root, err)
}

func (f *Files) pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var named *fs.PathError
	if errors.As(err, &named) && named.Op == op && named.Path == name {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = missing(name, err)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

var _ io.ReaderFrom = Writer(nil)
