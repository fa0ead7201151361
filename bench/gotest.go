package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// pairsMin is how many alternating pairs a ratio rests on.
const pairsMin = 3

var benchmarkLine = regexp.MustCompile(`^(Benchmark\w+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// goBenchmarks runs two Go benchmarks in turn, pairsMin times, and gives each one's values by unit ("ns/op" …).
func goBenchmarks(dir string, names [2]string, benchtime string) (map[string]map[string][]float64, error) {
	out := map[string]map[string][]float64{}
	for range pairsMin {
		for _, name := range names {
			cmd := exec.Command("go", "test", dir, "-run", "^$", "-bench", "^"+name+"$", "-benchmem", "-benchtime", benchtime, "-timeout", "60m")
			cmd.Stderr = os.Stderr
			raw, err := cmd.Output()
			if err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, raw)
			}
			if err := collect(out, raw); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range names {
		if len(out[name]) == 0 {
			return nil, fmt.Errorf("%s printed no figures", name)
		}
	}
	return out, nil
}

func collect(out map[string]map[string][]float64, raw []byte) error {
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		m := benchmarkLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		if out[m[1]] == nil {
			out[m[1]] = map[string][]float64{}
		}
		fields := strings.Fields(m[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("%s: %w", lines.Text(), err)
			}
			out[m[1]][fields[i+1]] = append(out[m[1]][fields[i+1]], value)
		}
	}
	return lines.Err()
}

// measureCommit compares one commit on a table of 1,000 snapshots with iceberg-go's parse, apply and marshal.
func measureCommit() ([]figure, error) {
	const ours, theirs = "BenchmarkCommitRaw", "BenchmarkCommitIcebergGo"
	got, err := goBenchmarks("./catalog/commit", [2]string{ours, theirs}, "50x")
	if err != nil {
		return nil, err
	}
	return []figure{
		against("commit engine, 1,000 snapshots", median(got[ours]["ns/op"])/1e6, "ms", "iceberg-go", median(got[theirs]["ns/op"])/1e6),
		against("commit engine, allocations", median(got[ours]["allocs/op"]), "allocs", "iceberg-go", median(got[theirs]["allocs/op"])),
	}, nil
}
