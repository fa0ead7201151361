package iceio_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"catalogd/internal/fault"
	"catalogd/internal/iceio"
	"catalogd/vending"
)

// hangsAfter is when a call on a small file will not end any more, however busy the machine is.
const hangsAfter = 2 * time.Minute

// A pipe in a table's folder has no writer: who opened it would wait for ever.
func TestFolder_OnlyRegularFilesAreRead(t *testing.T) {
	l := onFolder(t)
	l.plant(t, l.scope.Location+"/metadata/real", "x")
	folder, _ := vending.FilePath(l.scope.Location)
	names := []string{"metadata/pipe", "metadata/link", "metadata/socket"}
	if err := syscall.Mkfifo(filepath.Join(folder, names[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(folder, names[1])); err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, names[2]), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	files := l.files(t)
	for _, name := range names {
		at := l.at(name)
		for what, read := range map[string]func() error{
			"ReadMetadata": func() error { _, err := l.store.ReadMetadata(t.Context(), at); return err },
			"StatMetadata": func() error { return l.store.StatMetadata(t.Context(), at) },
			"ReadFile":     func() error { _, err := files.ReadFile(at.Path); return err },
			"Open":         func() error { _, err := files.Open(at.Path); return err },
			"Stat":         func() error { _, err := files.Stat(at.Path); return err },
		} {
			answer := make(chan error, 1)
			go func() { answer <- read() }()
			select {
			case err := <-answer:
				if !fault.Is(err, fault.Validation) || !strings.Contains(fault.Message(err), at.Path) || !strings.Contains(fault.Message(err), "not a regular file") {
					t.Errorf("%s of %s: %v", what, name, err)
				}
			case <-time.After(hangsAfter):
				t.Fatalf("%s of %s hangs", what, name)
			}
		}
	}
}

// A pipe where the table's folder should be.
func TestFolder_ThatIsAPipe(t *testing.T) {
	l := onFolder(t)
	folder, _ := vending.FilePath(l.scope.Location)
	if err := syscall.Mkfifo(folder, 0o600); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() { _, err := l.store.ReadMetadata(t.Context(), l.at("metadata/a")); answer <- err }()
	select {
	case err := <-answer:
		if !strings.HasSuffix(fault.Message(err), "not a directory") {
			t.Error(err)
		}
	case <-time.After(hangsAfter):
		t.Fatal("reading hangs")
	}
}

// A full or closed disk is the operator's to mend: the answer says which, and nothing of the machine's folders.
func TestMetadata_TheSystemsReasonIsTold(t *testing.T) {
	for errno, reason := range map[syscall.Errno]string{
		syscall.ENOSPC: "no space left on device", syscall.EACCES: "permission denied", syscall.EROFS: "read-only file system",
		syscall.EDQUOT: "disk quota exceeded",
	} {
		cause := fmt.Errorf("create x: %w", &fs.PathError{Op: "openat", Path: "/secret/x", Err: errno})
		if m := fault.Message(iceio.Described(cause, "metadata file %s cannot be written", "f")); m != "metadata file f cannot be written: "+reason {
			t.Errorf("%s: %q", errno, m)
		}
	}
	if m := fault.Message(iceio.Described(errors.New("/secret"), "it failed")); m != "it failed" {
		t.Errorf("an unknown cause: %q", m)
	}

	l := onFolder(t)
	l.plant(t, l.scope.Location, "a file where the table's folder should be")
	at := l.at("metadata/00000-a.metadata.json")
	if err := l.store.WriteMetadata(t.Context(), at, []byte("{}")); !strings.HasSuffix(fault.Message(err), "cannot be written: not a directory") {
		t.Errorf("write: %q", fault.Message(err))
	}
	if err := l.store.PrepareTable(t.Context(), at); !strings.HasSuffix(fault.Message(err), "cannot be made: not a directory") {
		t.Errorf("prepare: %q", fault.Message(err))
	}
}
