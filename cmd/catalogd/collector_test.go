package main

import "testing"

func TestPercentFor_LetsTheSameGarbageGather(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 100, 1: 1000, 8 << 20: 1000, 10 << 20: 800, 40 << 20: 200, 64 << 20: 120, 79 << 20: 100, 80 << 20: 100, 1 << 40: 100,
	} {
		if got := percentFor(live); got != want {
			t.Errorf("%d alive: %d, want %d", live, got, want)
		}
	}
}
