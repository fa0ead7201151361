package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// ticksPerSecond is Linux' unit of processor times.
const ticksPerSecond = 100

// processorSeconds gives what a process and its direct children that still run have used, 0 for one that is gone.
func processorSeconds(pid int) float64 {
	ticks := 0
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		_, rest, _ := bytes.Cut(raw, []byte(") ")) // the name before may hold anything
		fields := bytes.Fields(rest)
		if len(fields) < 13 || path != fmt.Sprintf("/proc/%d/stat", pid) && string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		for _, field := range fields[11:13] {
			n, err := strconv.Atoi(string(field))
			if err != nil {
				return 0
			}
			ticks += n
		}
	}
	return float64(ticks) / ticksPerSecond
}
