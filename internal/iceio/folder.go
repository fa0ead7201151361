package iceio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"catalogd/internal/fault"
)

// Modes before the process' mask.
const (
	folderMode = 0o777
	fileMode   = 0o666
)

// write makes a new file, never in another one's place, and returns when a crash of the machine can take neither its
// bytes nor its name away. Until then there may be a part of it under its name, and after a crash for ever: nobody
// has been told the name yet.
func (t folderTree) write(_ context.Context, name string, body []byte) error {
	below := path.Dir(name)
	folder, err := t.openWritten(below)
	if err != nil {
		var root *os.Root
		if root, err = t.folderOf(below); err != nil {
			return err
		}
		folder = rootedFolder{root}
	}
	defer folder.Close()
	name = path.Base(name)
	f, err := folder.create(name)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	_, err = f.Write(body)
	if err == nil {
		err = syncBoth(f, folder)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = folder.remove(name)
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writtenFolder is an open folder in which a file is made.
type writtenFolder interface {
	create(name string) (*os.File, error)
	remove(name string) error
	sync() error
	Close() error
}

// rootedFolder goes through os.Root, which every system has.
type rootedFolder struct{ *os.Root }

func (f rootedFolder) create(name string) (*os.File, error) {
	return f.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
}

func (f rootedFolder) remove(name string) error { return f.Remove(name) }

func (f rootedFolder) sync() error { return syncFolder(f.Root, ".") }

// syncBoth makes a file's bytes and its name in the folder last, at the same time: both were there before, and neither
// needs the other to be first.
func syncBoth(f *os.File, folder writtenFolder) error {
	named := make(chan error, 1)
	go func() { named <- folder.sync() }()
	return errors.Join(f.Sync(), <-named)
}

// folderOf opens the folder that a file is to lie in, once for all that is done there, and makes it when it is missing.
func (t folderTree) folderOf(below string) (*os.Root, error) {
	for made := false; ; made = true {
		root, err := t.root()
		if err == nil {
			var folder *os.Root
			folder, err = root.OpenRoot(below)
			root.Close()
			if err == nil {
				return folder, nil
			}
			err = fmt.Errorf("open folder %s: %w", below, err)
		}
		if made || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := t.makeFolders(below); err != nil {
			return nil, err
		}
	}
}

// syncFolder makes a new name last over a crash of the machine.
func syncFolder(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("open folder %s: %w", name, err)
	}
	defer f.Close()
	return syncOpened(f)
}

// syncOpened passes over file systems that cannot sync a folder.
func syncOpened(folder *os.File) error {
	if err := folder.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("sync folder %s: %w", folder.Name(), err)
	}
	return nil
}

// makeFolders makes the table's own folder and the one below it, and makes them last.
func (t folderTree) makeFolders(below string) error {
	root, err := t.root()
	if err == nil {
		_, err = root.Stat(below)
		root.Close()
	}
	if err == nil || fault.Is(err, fault.Forbidden) {
		return err
	}
	if root, err = t.makeRoot(); err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(below, folderMode); err != nil {
		return fmt.Errorf("make folder %s: %w", below, err)
	}
	for name := path.Dir(below); ; name = path.Dir(name) {
		if err := syncFolder(root, name); err != nil {
			return err
		}
		if name == "." {
			return nil
		}
	}
}

func syncParent(folder string) error {
	parent, err := os.Open(filepath.Dir(folder))
	if err != nil {
		// A parent that may be passed but not read cannot be synced; the folder is there all the same.
		return nil //nolint:nilerr
	}
	defer parent.Close()
	if err := parent.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("sync the table folder's parent: %w", err)
	}
	return nil
}

func (t folderTree) prepare(_ context.Context, folders ...string) error {
	for _, name := range folders {
		if err := t.makeFolders(name); err != nil {
			return err
		}
	}
	return nil
}

// openFile opens a regular file. Pipes, sockets and devices are refused without waiting for them.
func (t folderTree) openFile(name string) (*os.File, info, error) {
	root, err := t.root()
	if err != nil {
		return nil, info{}, err
	}
	defer root.Close()
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) { // a socket
		return nil, info{}, irregular(t.uri+"/"+name, err)
	}
	if err != nil {
		return nil, info{}, fmt.Errorf("open %s: %w", name, err)
	}
	i, err := f.Stat()
	switch {
	case err != nil:
	case i.IsDir():
		err = fmt.Errorf("open %s: it is a folder: %w", name, fs.ErrNotExist)
	case !i.Mode().IsRegular():
		err = irregular(t.uri+"/"+name, nil)
	}
	if err != nil {
		f.Close()
		return nil, info{}, err
	}
	return f, info{name: path.Base(name), size: i.Size(), modified: i.ModTime()}, nil
}

func (t folderTree) read(_ context.Context, name string, limit int64) ([]byte, error) {
	f, i, err := t.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if i.size > limit {
		return nil, tooLarge(t.uri+"/"+name, limit)
	}
	var body bytes.Buffer
	body.Grow(int(i.size) + bytes.MinRead) // a buffer that grows takes several times as much
	n, err := body.ReadFrom(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if n > limit {
		return nil, tooLarge(t.uri+"/"+name, limit)
	}
	return body.Bytes(), nil
}

func (t folderTree) stat(_ context.Context, name string) (info, error) {
	f, i, err := t.openFile(name)
	if err != nil {
		return info{}, err
	}
	return i, f.Close()
}

func (t folderTree) remove(_ context.Context, names []string) ([]string, error) {
	root, err := t.root()
	if errors.Is(err, fs.ErrNotExist) {
		return names, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var gone []string
	var first error
	for _, name := range names {
		err := root.Remove(name)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			gone = append(gone, name)
		case first == nil:
			first = fmt.Errorf("remove %s: %w", name, err)
		}
	}
	if first != nil {
		return gone, fmt.Errorf("%d of %d files were not removed; the first: %w", len(names)-len(gone), len(names), first)
	}
	return gone, nil
}

func (t folderTree) open(_ context.Context, name string) (reader, error) {
	f, i, err := t.openFile(name)
	if err != nil {
		return nil, err
	}
	return &folderReader{File: f, info: i}, nil
}

// folderReader is an os.File that names itself as an object would.
type folderReader struct {
	*os.File
	info info
}

func (r *folderReader) Stat() (fs.FileInfo, error) { return r.info, nil }

func (t folderTree) create(_ context.Context, name string) (Writer, error) {
	if err := t.makeFolders(path.Dir(name)); err != nil {
		return nil, err
	}
	root, err := t.root()
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	return &folderWriter{file: f, root: root, name: name}, nil
}

// folderWriter makes what it wrote last before Close says so.
type folderWriter struct {
	file *os.File
	root *os.Root
	name string
	once sync.Once
	err  error
}

func (w *folderWriter) Write(p []byte) (int, error) { return w.file.Write(p) }

func (w *folderWriter) ReadFrom(r io.Reader) (int64, error) { return w.file.ReadFrom(r) }

// Close is the only word on whether the file is whole.
func (w *folderWriter) Close() error {
	w.once.Do(func() {
		defer w.root.Close()
		w.err = w.file.Sync()
		if closed := w.file.Close(); w.err == nil {
			w.err = closed
		}
		if w.err == nil {
			w.err = syncFolder(w.root, path.Dir(w.name))
		}
	})
	return w.err
}

// Abort removes what was written.
func (w *folderWriter) Abort() {
	w.once.Do(func() {
		defer w.root.Close()
		w.err = fault.New(fault.Internal, "file %s was given up", w.name)
		_ = w.file.Close()
		_ = w.root.Remove(w.name)
	})
}

func (t folderTree) walk(ctx context.Context, folder string, visit func(string, info) error) error {
	root, err := t.root()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	start := folder
	if start == "" {
		start = "."
	}
	return fs.WalkDir(root.FS(), start, func(name string, entry fs.DirEntry, err error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		i, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return visit(name, info{name: path.Base(name), size: i.Size(), modified: i.ModTime()})
	})
}

// info says how large and how old a file is.
type info struct {
	name     string
	size     int64
	modified time.Time
}

// Name gives the last part of the file's path.
func (i info) Name() string { return i.name }

// Size is in bytes.
func (i info) Size() int64 { return i.size }

// Mode is a plain file's.
func (i info) Mode() fs.FileMode { return fileMode }

// ModTime is when the file was written.
func (i info) ModTime() time.Time { return i.modified }

// IsDir is false.
func (i info) IsDir() bool { return false }

// Sys is nil.
func (i info) Sys() any { return nil }
