// Command measure runs the data engine on the sensors table and prints figures as JSON: time of clustering against a plain
// copy in alternating pairs, peak memory, shares of row groups, bytes.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"catalogd/maintenance/layout"
	"catalogd/maintenance/layout/sensors"
	"catalogd/maintenance/zorder"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	dir, what, curve, profile string
	interval                  time.Duration
	memory, limit             int64
	pairs                     int
}

func run() error {
	var o options
	flag.StringVar(&o.dir, "dir", "", "folder of inputs and outputs")
	flag.StringVar(&o.what, "do", "generate,pairs", "comma list of: generate, copy, cluster, pairs")
	flag.StringVar(&o.curve, "curve", "hilbert", "curve")
	flag.StringVar(&o.profile, "profile", "", "CPU profile")
	flag.DurationVar(&o.interval, "interval", time.Minute, "between two readings")
	flag.Int64Var(&o.memory, "memory", 0, "bytes of the job")
	flag.Int64Var(&o.limit, "limit", 0, "Go memory limit")
	flag.IntVar(&o.pairs, "pairs", 3, "alternating pairs")
	flag.Parse()
	if o.limit > 0 {
		debug.SetMemoryLimit(o.limit)
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, step := range strings.Split(o.what, ",") {
		if err := o.step(step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

func (o options) step(step string) error {
	switch step {
	case "generate":
		return o.generate()
	case "copy", "cluster":
		_, err := o.one(step)
		return err
	case "pairs":
		var ratios, cpu []float64
		for range o.pairs {
			a, err := o.one("copy")
			if err != nil {
				return err
			}
			b, err := o.one("cluster")
			if err != nil {
				return err
			}
			ratios, cpu = append(ratios, b.Seconds/a.Seconds), append(cpu, b.CPUSeconds/a.CPUSeconds)
		}
		slices.Sort(ratios)
		slices.Sort(cpu)
		return json.NewEncoder(os.Stdout).Encode(map[string]any{
			"ratio_median": ratios[len(ratios)/2], "cpu_ratio_median": cpu[len(cpu)/2], "ratios": ratios})
	}
	return fmt.Errorf("unknown step")
}

func (o options) generate() error {
	d := sensors.Full
	d.Interval = o.interval
	year := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range sensors.Chunks {
		f, err := os.Create(filepath.Join(o.dir, fmt.Sprintf("in-%02d.parquet", n)))
		if err != nil {
			return err
		}
		rows, err := d.Write(f, n, sensors.Slice{From: year, To: year.AddDate(1, 0, 0)})
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "chunk %d: %d rows\n", n, rows)
	}
	return nil
}

type figures struct {
	Do                  string
	Seconds, CPUSeconds float64
	Phases              map[layout.Phase]float64
	PeakRSSBytes        int64
	Rows                int64
	ChecksumEqual       bool
	BytesIn, BytesOut   int64
	RowGroups, Files    int
	P1, P2, P3          float64
	DepthBefore         float64
	DepthAfter          float64
	Spilled             int64
	RowGroupRowsMin     int64
	RowGroupRowsMax     int64
}

func (o options) one(what string) (figures, error) {
	inputs, err := filepath.Glob(filepath.Join(o.dir, "in-*.parquet"))
	if err != nil {
		return figures{}, err
	}
	started := time.Now()
	cpu := cpuSeconds()
	phases := map[layout.Phase]float64{}
	job := layout.Job{Schema: sensors.Schema(), Columns: sensors.Columns(), Curve: zorder.Curve(o.curve), MemoryBytes: o.memory,
		SpillDir: o.dir, Create: func(_ context.Context, n int) (layout.Output, error) {
			return layout.CreateFile(filepath.Join(o.dir, fmt.Sprintf("%s-%d.parquet", what, n)))
		}, Progress: func(p layout.Phase, _ float64) { phases[p] = time.Since(started).Seconds() }}
	for _, path := range inputs {
		input, err := layout.FileInput(path)
		if err != nil {
			return figures{}, err
		}
		job.Inputs = append(job.Inputs, input)
	}
	do := layout.Cluster
	if what == "copy" {
		do = layout.Copy
		job.Progress = nil
	}
	result, err := do(context.Background(), job)
	if err != nil {
		return figures{}, err
	}
	f := figures{Do: what, Seconds: time.Since(started).Seconds(), CPUSeconds: cpuSeconds() - cpu, Phases: phases, PeakRSSBytes: peak(),
		Rows: result.RowsOut, ChecksumEqual: result.ChecksumIn == result.ChecksumOut, BytesIn: result.BytesIn, BytesOut: result.BytesOut,
		RowGroups: result.RowGroupsOut, Files: len(result.Files), DepthBefore: result.DepthBefore, DepthAfter: result.DepthAfter,
		Spilled: result.SpilledBytes}
	var boxes []layout.Box
	for _, file := range result.Files {
		boxes = append(boxes, file.Boxes...)
	}
	f.RowGroupRowsMin = 1 << 40
	for _, b := range boxes {
		f.RowGroupRowsMin, f.RowGroupRowsMax = min(f.RowGroupRowsMin, b.Rows), max(f.RowGroupRowsMax, b.Rows)
	}
	d := sensors.Full
	d.Interval = o.interval
	f.P1, f.P2, f.P3 = d.Ask(200, 1, time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC), sensors.End).Shares(boxes)
	text, err := json.Marshal(f)
	fmt.Println(string(text))
	return f, err
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

func peak() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(status), "\n") {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
