package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// startsOfEach is how many starts a median rests on.
const startsOfEach = 5

var readyLine = regexp.MustCompile(`^catalogd ready on \S+ in (\d+) ms`)

// serverFolder makes a temporary folder that a server and its Postgres, which is another user, can reach.
func serverFolder() (string, error) {
	dir, err := os.MkdirTemp("", "catalogd-bench-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

// measureStart times `catalogd dev` by its own ready line: a start on a folder that was stopped in order, and one on
// a folder whose server was killed; and reads the idle server's memory.
func measureStart() ([]figure, error) {
	dir, err := serverFolder()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "data")
	first, cmd, err := startDev(data)
	if err != nil {
		return nil, err
	}
	end(cmd, syscall.SIGTERM)
	var second, killed, rss []float64
	for range startsOfEach {
		ms, cmd, err := startDev(data)
		if err != nil {
			return nil, err
		}
		second = append(second, ms)
		kb, err := residentKB(cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		rss = append(rss, kb/1024)
		end(cmd, syscall.SIGKILL)
		if ms, cmd, err = startDev(data); err != nil {
			return nil, err
		}
		killed = append(killed, ms)
		end(cmd, syscall.SIGTERM)
	}
	return []figure{
		{Name: "dev, first start", Value: first, Unit: "ms"},
		{Name: "dev, second start", Value: median(second), Unit: "ms"},
		{Name: "dev, start after kill -9", Value: median(killed), Unit: "ms"},
		{Name: "dev, resident when idle", Value: median(rss), Unit: "MB"},
	}, nil
}

func startDev(data string) (float64, *exec.Cmd, error) {
	cmd := exec.Command("bin/catalogd", "dev", "--data", data, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := readyLine.FindStringSubmatch(lines.Text()); m != nil {
			ms, err := strconv.ParseFloat(m[1], 64)
			return ms, cmd, err
		}
	}
	return 0, nil, fmt.Errorf("catalogd dev ended before it was ready: %w", cmd.Wait())
}

func end(cmd *exec.Cmd, signal syscall.Signal) {
	_ = cmd.Process.Signal(signal)
	_ = cmd.Wait()
}

// residentKB reads VmRSS of a process.
func residentKB(pid int) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.ParseFloat(strings.Fields(value)[0], 64)
		}
	}
	return 0, fmt.Errorf("no VmRSS for process %d", pid)
}
