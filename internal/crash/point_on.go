//go:build crashpoints

package crash

import (
	"bytes"
	"os"
	"path/filepath"
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

	stopWord = "stop"
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
	wish, pidFile := os.Getenv(envPoint), os.Getenv(envPID)
	if path, fromFile := strings.CutPrefix(wish, "@"); fromFile {
		if wish, pidFile = wishIn(path); wish != name || os.Remove(path) != nil {
			return
		}
		kill(pidFile)
		return
	}
	if due(wish, name, hits[name]) {
		kill(pidFile)
	}
}

// wishIn reads a file's wish: the point's name and, or "", whose pid file tells the victim. No file is no wish.
func wishIn(path string) (name, pidFile string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", ""
	}
	name, pidFile, _ = strings.Cut(strings.TrimSpace(string(raw)), "\n")
	return name, pidFile
}

// kill ends this process, or the one whose pid is the first line of a file, with its children. With the stop word it
// only stops this one.
func kill(path string) {
	if path == stopWord {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		return
	}
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
	// Stopped, it can neither make another child nor see one die.
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	for _, child := range childrenOf(pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

// childrenOf gives the processes that a process has made, where /proc tells; without it there are none.
func childrenOf(parent int) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the only error is a bad pattern
	var children []int
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		// "pid (any name) state parent ...": the name may hold blanks and parentheses.
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			children = append(children, pid)
		}
	}
	return children
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
