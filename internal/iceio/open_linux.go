package iceio

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// openWritten opens the folder that a file is to lie in, which is there and to which no link leads from the allowed
// location on: the kernel walks the whole way at once (openat2, Linux 5.6). Any error means that the long way has to be
// gone, which also says what is wrong.
func (t folderTree) openWritten(below string) (writtenFolder, error) {
	if !fs.ValidPath(below) { // it may lead to another table
		return nil, fs.ErrInvalid
	}
	base, err := unix.Open(t.base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: t.base, Err: err}
	}
	defer func() { _ = unix.Close(base) }() // nothing was written to it
	way := path.Join(strings.Join(t.below, "/"), below)
	folder, err := unix.Openat2(base, way, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "openat2", Path: way, Err: err}
	}
	return plainFolder{os.NewFile(uintptr(folder), way)}, nil
}

// plainFolder is an open folder. Names in it are single elements.
type plainFolder struct{ *os.File }

// create makes a file that is not there; a link in its place is one that is there.
func (f plainFolder) create(name string) (*os.File, error) {
	for {
		file, err := unix.Openat(int(f.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, fileMode)
		switch {
		case err == nil:
			return os.NewFile(uintptr(file), name), nil
		case !errors.Is(err, unix.EINTR): // a signal is no answer
			return nil, &os.PathError{Op: "openat", Path: name, Err: err}
		}
	}
}

func (f plainFolder) remove(name string) error { return unix.Unlinkat(int(f.Fd()), name, 0) }

func (f plainFolder) sync() error { return syncOpened(f.File) }
