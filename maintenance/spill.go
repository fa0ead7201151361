package maintenance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// spillPrefix begins the names of spill folders; the process id follows.
const spillPrefix = "catalogd-spill-"

// openSpill makes this worker's spill folder and removes those of processes that are no more: spilled rows are of no
// use to anybody else.
func (w *Worker) openSpill() error {
	base := w.config.SpillDir
	if base == "" {
		base = os.TempDir()
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return fmt.Errorf("make the spill folder: %w", err)
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return fmt.Errorf("read the spill folder: %w", err)
	}
	for _, e := range entries {
		if owner, ours := spillOwner(e.Name()); ours && !alive(owner) {
			_ = os.RemoveAll(filepath.Join(base, e.Name())) // somebody else may be removing it
		}
	}
	w.spill, err = os.MkdirTemp(base, spillPrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return fmt.Errorf("make a spill folder: %w", err)
	}
	return nil
}

// spillFolder gives the folder for rewrites; RunOnce without Start uses the base.
func (w *Worker) spillFolder() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.spill != "":
		return w.spill
	case w.config.SpillDir != "":
		return w.config.SpillDir
	}
	return os.TempDir()
}

func (w *Worker) closeSpill() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := os.RemoveAll(w.spill); err != nil {
		return fmt.Errorf("remove the spill folder: %w", err)
	}
	w.spill = ""
	return nil
}

// spillOwner reads the process id in a spill folder's name.
func spillOwner(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, spillPrefix)
	if !ok {
		return 0, false
	}
	pid, _, ok := strings.Cut(rest, "-")
	n, err := strconv.Atoi(pid)
	return n, ok && err == nil && n > 0
}

// alive tells whether a process of this machine exists.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
