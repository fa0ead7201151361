//go:build unix && !linux

package pgserver

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// platformSettings are none.
var platformSettings map[string]string

// syncsAtOnce is false: initdb and Postgres sync their files one by one here.
const syncsAtOnce = false

func syncFolder(string) error { return nil }

// endWithParent does nothing: this system has no signal for a parent's death.
func endWithParent(*syscall.SysProcAttr) {}

// processesIn knows the postmaster alone, by the pid file; this system does not show working folders.
func processesIn(cluster string) []int {
	status, err := readPidFile(cluster)
	if err != nil || status.pid == 0 {
		return nil
	}
	command, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(status.pid)).Output()
	if err != nil || !strings.Contains(string(command), cluster) {
		return nil
	}
	return []int{status.pid}
}
