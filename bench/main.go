// Package main measures what this project claims about speed, each figure beside a baseline of the same run, and
// writes bench/result.json. It fails where a figure does not show what it has to; on a busy machine one may. Figures are medians over alternating pairs; absolute ones are printed for information.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// figure is one row of result.json.
type figure struct {
	Name          string  `json:"name"`
	Value         float64 `json:"value"`
	Unit          string  `json:"unit"`
	BaselineName  string  `json:"baseline_name,omitempty"`
	BaselineValue float64 `json:"baseline_value,omitempty"`
	Ratio         float64 `json:"ratio,omitempty"`
}

type suite struct {
	name string
	run  func() ([]figure, error)
}

// suites are what can be asked for by name, in the order in which they run.
var suites = []suite{
	{"commit", measureCommit},
	{"rest", measureREST},
	{"access", measureAccess},
	{"grants", measureGrants},
	{"cluster", measureCluster},
	{"start", measureStart},
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == bareArgument {
		if err := serveBare(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "bare server:", err)
			os.Exit(1)
		}
		return
	}
	var figures []figure
	var below []string
	for _, s := range suites {
		if len(os.Args) > 1 && !slices.Contains(os.Args[1:], s.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s ...\n", s.name)
		got, err := s.run()
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", s.name, err)
			os.Exit(1)
		}
		for _, f := range got {
			fmt.Printf("%-36s %14.3f %-10s", f.Name, f.Value, f.Unit)
			if f.BaselineName != "" {
				fmt.Printf(" %s %.3f, ratio %.3f", f.BaselineName, f.BaselineValue, f.Ratio)
			}
			fmt.Println()
		}
		figures = append(figures, got...)
		below = append(below, missed(s.name, got, allBars())...)
	}
	raw, err := json.MarshalIndent(map[string][]figure{"benchmarks": figures}, "", " ")
	if err == nil {
		err = os.WriteFile("bench/result.json", append(raw, '\n'), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	for _, line := range below {
		fmt.Println("MISSED", line)
	}
	if below != nil {
		os.Exit(1)
	}
}

// median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// against makes a figure with its baseline.
func against(name string, value float64, unit, baselineName string, baseline float64) figure {
	return figure{Name: name, Value: value, Unit: unit, BaselineName: baselineName, BaselineValue: baseline, Ratio: value / baseline}
}
