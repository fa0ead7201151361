package main

import (
	"math"
	"slices"
	"testing"
)

func TestMissed_NamesWhatIsOutOfBounds(t *testing.T) {
	bars := slices.Concat(atLeast("rest", 0.8, "a", "b"), atMost("rest", 1.3, "c"), valueAtMost("rest", 0, "d", "e"), atMost("grants", 1, "f"))
	good := []figure{{Name: "a", Ratio: 0.8}, {Name: "b", Ratio: 4}, {Name: "c", Ratio: 1.3}, {Name: "d", Unit: "calls"}, {Name: "e", Ratio: 9}}
	if got := missed("rest", good, bars); got != nil {
		t.Errorf("good figures: %q", got)
	}
	bad := []figure{{Name: "a", Ratio: 0.79}, {Name: "c", Ratio: math.NaN()}, {Name: "d", Value: 1, Unit: "calls"}, {Name: "e"}}
	want := []string{"a: 0.790 ratio, wanted 0.8 or more", "b: not measured", "c: NaN ratio, wanted 1.3 or less", "d: 1.000 calls, wanted 0 or less"}
	if got := missed("rest", bad, bars); !slices.Equal(got, want) {
		t.Errorf("bad figures: %q, want %q", got, want)
	}
}

// Each suite's name in a bar is one that runs.
func TestBars_AreOfSuites(t *testing.T) {
	t.Setenv("BENCH_ROWS", "52560000")
	for _, b := range allBars() {
		if !slices.ContainsFunc(suites, func(name suite) bool { return name.name == b.suite }) {
			t.Errorf("%s: there is no suite %s", b.name, b.suite)
		}
	}
}
