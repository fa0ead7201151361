package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
)

// fullRows is the size of the clustering that its bars are about.
const fullRows = 52_560_000

// bar is what a figure has to show: its ratio, or its value, in bounds.
type bar struct {
	suite, name string
	byValue     bool
	least, most float64
}

func atLeast(suite string, ratio float64, names ...string) (bars []bar) {
	for _, name := range names {
		bars = append(bars, bar{suite: suite, name: name, least: ratio, most: math.Inf(1)})
	}
	return bars
}

func atMost(suite string, ratio float64, names ...string) (bars []bar) {
	for _, name := range names {
		bars = append(bars, bar{suite: suite, name: name, most: ratio})
	}
	return bars
}

func valueAtMost(suite string, value float64, names ...string) (bars []bar) {
	for _, name := range names {
		bars = append(bars, bar{suite: suite, name: name, byValue: true, most: value})
	}
	return bars
}

// allBars are those of the suites.
func allBars() (bars []bar) {
	loads := []string{"load, small table", "load, 1,000 snapshots", "load, 1,000 snapshots, gzip"}
	unchanged := []string{"HEAD", "load, 304"}
	bars = append(bars, atMost("commit", 1.0/25, "commit engine, 1,000 snapshots")...)
	bars = append(bars, valueAtMost("commit", 500, "commit engine, allocations")...)
	bars = append(bars, atLeast("rest", 0.8, loads...)...)
	bars = append(bars, atLeast("rest", 1, unchanged...)...)
	bars = append(bars, atLeast("rest", 0.6, "commit, one table, one writer", "commit, 8 tables in parallel", "commit, 32 tables in parallel")...)
	for _, name := range append(append(loads, unchanged...), "load, missing table", "list 1,000 of 100,000") {
		bars = append(bars, valueAtMost("rest", 1.01, name+", database")...) // the server's own work beside them is counted too
		bars = append(bars, valueAtMost("rest", 0, name+", object store")...)
	}
	bars = append(bars, atMost("rest", 1, "serve, resident when idle", "serve, resident under load")...)
	bars = append(bars, atLeast("access", 0.5, "token route, client_credentials")...)
	bars = append(bars, atLeast("access", 1/1.15, "load, checked")...)
	bars = append(bars, atMost("access", 1.15, "load, checked, processor")...)
	for _, name := range []string{"HEAD of one table", "config", "load", "list of 1,000 tables", "list of 7 tables of 1,000, by grants on them"} {
		bars = append(bars, atMost("grants", 1.3, name+", kept decision", name+", new decision")...)
	}
	bars = append(bars, atMost("grants", 1, "serve, resident while somebody with 100,000 grants asks")...)
	if rows, err := strconv.Atoi(os.Getenv("BENCH_ROWS")); err == nil && rows >= fullRows {
		bars = append(bars, atMost("cluster", 3, "clustering, sensors")...)
		bars = append(bars, atMost("cluster", 1.6, "clustering, bytes written")...)
		bars = append(bars, valueAtMost("cluster", 1.2, "clustering, one sensor + one day")...)
		bars = append(bars, valueAtMost("cluster", 9, "clustering, one sensor + the year")...)
		bars = append(bars, valueAtMost("cluster", 13, "clustering, all sensors + one hour")...)
		bars = append(bars, valueAtMost("cluster", 600, "clustering, peak memory")...)
	}
	return bars
}

// missed gives a line for each bar of a suite that its figures do not reach, or that no figure is about.
func missed(suite string, figures []figure, bars []bar) (lines []string) {
	for _, b := range bars {
		if b.suite != suite {
			continue
		}
		found := false
		for _, f := range figures {
			if f.Name != b.name {
				continue
			}
			found = true
			got, what := f.Ratio, "ratio"
			if b.byValue {
				got, what = f.Value, f.Unit
			}
			if !(got >= b.least && got <= b.most) { // NaN is in no bounds
				lines = append(lines, fmt.Sprintf("%s: %.3f %s, wanted %s", b.name, got, what, b.wanted()))
			}
		}
		if !found {
			lines = append(lines, b.name+": not measured")
		}
	}
	return lines
}

func (b bar) wanted() string {
	if math.IsInf(b.most, 1) {
		return fmt.Sprintf("%.3g or more", b.least)
	}
	return fmt.Sprintf("%.3g or less", b.most)
}
