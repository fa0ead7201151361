package iceio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// folderTree is a table on a file system. The way to its folder begins at the allowed location that it lies in, which
// the operator named and which may be a link. Below that no link is followed: somebody who may write in the warehouse
// could else lead the server, which may do more than he, to other files. From the table's folder on all names go
// through os.Root, which follows no link out of it.
type folderTree struct {
	base  string   // absolute path of the allowed location; the table's own folder where none is known
	below []string // folders from there to the table's own
	uri   string   // the table's location, for messages
}

// newFolderTree finds the allowed location that the folder lies in, the nearest where there are several.
func newFolderTree(allowed []string, location, folder, uri string) folderTree {
	t := folderTree{base: folder, uri: uri}
	found := false
	for _, base := range allowed {
		path, ok := vending.FilePath(base)
		rest, within := vending.Relative(base, location)
		if !ok || !within {
			continue
		}
		var below []string
		if rest != "" {
			below = strings.Split(rest, "/")
		}
		if !found || len(below) < len(t.below) {
			t.base, t.below, found = strings.TrimSuffix(path, "/"), below, true
		}
	}
	return t
}

// root opens the table's folder.
func (t folderTree) root() (*os.Root, error) { return t.walkDown(openFolder, enterFolder) }

// makeRoot is root for a folder that may be missing: it is made, with those above it, and lasts.
func (t folderTree) makeRoot() (*os.Root, error) {
	return t.walkDown(func(base string) (*os.Root, error) {
		if err := os.MkdirAll(base, folderMode); err != nil {
			return nil, err
		}
		if err := syncParent(base); err != nil {
			return nil, err
		}
		return openFolder(base)
	}, func(parent *os.Root, name string) (*os.Root, error) {
		err := parent.Mkdir(name, folderMode)
		if err == nil {
			err = syncFolder(parent, ".")
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		return enterFolder(parent, name)
	})
}

// walkDown goes from the allowed location to the table's folder.
func (t folderTree) walkDown(
	begin func(base string) (*os.Root, error), enter func(parent *os.Root, name string) (*os.Root, error),
) (*os.Root, error) {
	at, err := begin(t.base)
	for i := 0; err == nil && i < len(t.below); i++ {
		parent := at
		at, err = enter(parent, t.below[i])
		parent.Close()
	}
	if errors.Is(err, errLinked) {
		return nil, fault.Wrap(fault.Forbidden, err, "%s is refused: there is a symbolic link on the way to it, and the server follows none", t.uri)
	}
	if err != nil {
		return nil, fmt.Errorf("open table folder: %w", err)
	}
	return at, nil
}

// errLinked tells that a folder of a warehouse is a link.
var errLinked = errors.New("a folder is a symbolic link")

// openFolder opens what the operator named. Opening a pipe waits for its other end, so what is there is looked at before.
func openFolder(path string) (*os.Root, error) {
	if i, err := os.Stat(path); err == nil && !i.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	return os.OpenRoot(path)
}

// enterFolder opens a folder that is no link. What was opened is compared with what was looked at, so that nobody can
// put a link there in between.
func enterFolder(parent *os.Root, name string) (*os.Root, error) {
	there, err := parent.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case there.Mode()&fs.ModeSymlink != 0:
		return nil, errLinked
	case !there.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}
	folder, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := folder.Stat(".")
	if err == nil && !os.SameFile(there, opened) {
		err = errLinked
	}
	if err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// leadsOut tells that os.Root itself refused a name, for a link that leads out of the folder: all other errors of a
// path are the operating system's.
func leadsOut(err error) bool {
	var path *fs.PathError
	var system syscall.Errno
	return errors.As(err, &path) && !errors.As(err, &system) && !errors.Is(err, fs.ErrNotExist)
}
