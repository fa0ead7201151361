package pgserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// platformSettings: after a crash Postgres makes sure that all its files are on disk. Asking the file system once
// takes a tenth of the time that asking for each of a thousand files does.
var platformSettings = map[string]string{"recovery_init_sync_method": "syncfs"}

// syncsAtOnce tells that syncFolder works, so that initdb need not ask for each file.
const syncsAtOnce = true

// syncFolder returns when everything in the folder is on disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync the file system of %s: %w", dir, err)
	}
	return nil
}

// endWithParent makes the kernel stop the child when this process dies, however it dies.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGINT }

// processesIn gives the processes whose working folder is the cluster: postmasters and their children.
func processesIn(cluster string) []int {
	cluster, err := filepath.EvalSymlinks(cluster)
	if err != nil {
		return nil
	}
	folders, _ := filepath.Glob("/proc/[0-9]*/cwd") // the only error is a bad pattern
	var pids []int
	for _, folder := range folders {
		where, err := os.Readlink(folder)
		if err != nil || where != cluster {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(folder))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
