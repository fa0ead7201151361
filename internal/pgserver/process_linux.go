package pgserver

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

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
