package sim

import (
	"flag"
	"testing"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "play this seed alone")
	seedsFlag = flag.Uint64("seeds", 150, "how many seeds to play")
)

const stepsOfEach = 60

// TestHistories plays many seeded histories; `go test ./internal/sim -seed=N` plays one again.
func TestHistories(t *testing.T) {
	if *seedFlag != 0 {
		if err := Run(*seedFlag, stepsOfEach); err != nil {
			t.Fatal(err)
		}
		return
	}
	for seed := uint64(1); seed <= *seedsFlag; seed++ {
		if err := Run(seed, stepsOfEach); err != nil {
			t.Fatal(err)
		}
	}
}
