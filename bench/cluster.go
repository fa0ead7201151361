package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// rowsDefault is one reading each 20 minutes from 100 sensors for a year; BENCH_ROWS=52560000 is one a minute.
const (
	rowsDefault    = 2_628_000
	readingSeconds = 100 * 365 * 86_400 // sensors times the year: divided by rows, the seconds between two readings
)

// clusterRun is one line of what maintenance/layout/measure prints.
type clusterRun struct {
	Do            string
	Seconds       float64
	PeakRSSBytes  float64
	ChecksumEqual bool
	BytesOut      float64
	RowGroups     float64
	P1, P2, P3    float64
}

// measureCluster compares the clustering of the sensors table with a plain decode and encode by the same writer.
func measureCluster() ([]figure, error) {
	rows := rowsDefault
	if text := os.Getenv("BENCH_ROWS"); text != "" {
		if _, err := fmt.Sscanf(text, "%d", &rows); err != nil || rows < 1 {
			return nil, fmt.Errorf("BENCH_ROWS=%s is not a number of rows", text)
		}
	}
	dir, err := os.MkdirTemp("", "catalogd-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "run", "./maintenance/layout/measure", "-dir", dir, "-do", "generate,pairs",
		"-pairs", fmt.Sprint(pairsMin), "-interval", (readingSeconds * time.Second / time.Duration(rows)).Round(time.Second).String())
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("measure: %w\n%s", err, raw)
	}
	return clusterFigures(raw)
}

func clusterFigures(raw []byte) ([]figure, error) {
	seconds := map[string][]float64{}
	last := map[string]clusterRun{}
	var rss float64
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var r clusterRun
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		if r.Do == "" {
			continue // the tool's own summary
		}
		if !r.ChecksumEqual {
			return nil, fmt.Errorf("%s changed rows", r.Do)
		}
		seconds[r.Do] = append(seconds[r.Do], r.Seconds)
		last[r.Do], rss = r, max(rss, r.PeakRSSBytes)
	}
	clustered, copied := last["cluster"], last["copy"]
	if clustered.Do == "" || copied.Do == "" {
		return nil, fmt.Errorf("no figures in %q", raw)
	}
	return []figure{
		against("clustering, sensors", median(seconds["cluster"]), "s", "copy", median(seconds["copy"])),
		against("clustering, bytes written", clustered.BytesOut, "bytes", "copy", copied.BytesOut),
		{Name: "clustering, row groups", Value: clustered.RowGroups, Unit: "row groups"},
		{Name: "clustering, one sensor + one day", Value: 100 * clustered.P1, Unit: "% touched"},
		{Name: "clustering, one sensor + the year", Value: 100 * clustered.P2, Unit: "% touched"},
		{Name: "clustering, all sensors + one hour", Value: 100 * clustered.P3, Unit: "% touched"},
		{Name: "clustering, peak memory", Value: rss / (1 << 20), Unit: "MB"},
	}, lines.Err()
}
