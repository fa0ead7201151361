//go:build crashpoints

package crash

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Enabled tells whether this build can be killed at points.
const Enabled = true

// Environment variables that a test sets.
const (
	envPoint = "CATALOGD_CRASH_POINT"
	envLog   = "CATALOGD_CRASH_LOG"
	envPID   = "CATALOGD_CRASH_PIDFILE"
)

var (
	mu   sync.Mutex
	hits = map[string]int{}
)

// Point kills the process when the environment asks for this point and this is the hit that it asks for.
func Point(name string) {
	mu.Lock()
	defer mu.Unlock()
	hits[name]++
	record(name)
	if due(os.Getenv(envPoint), name, hits[name]) {
		kill()
	}
}

// kill ends this process, or the one whose pid is the first line of the file that the environment names.
func kill() {
	path := os.Getenv(envPID)
	if path == "" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal may take a moment; nothing after the point may run
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		panic("crash: read pid: " + err.Error())
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid < 2 {
		panic("crash: no pid in " + path)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// due tells whether the wish "name" or "name:n" is met by the n-th hit of a point.
func due(wish, name string, hit int) bool {
	wanted, nth, counted := strings.Cut(wish, ":")
	if wanted != name {
		return false
	}
	if !counted {
		return hit == 1
	}
	n, err := strconv.Atoi(nth)
	return err == nil && n == hit
}

// record appends the point's name to the log that the environment names. A log that cannot be written is a broken
// test set-up, which must not look like a run without points.
func record(name string) {
	path := os.Getenv(envLog)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic("crash: open log: " + err.Error())
	}
	defer f.Close()
	if _, err := f.WriteString(name + "\n"); err != nil {
		panic("crash: write log: " + err.Error())
	}
}
