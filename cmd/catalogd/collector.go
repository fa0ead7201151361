package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// garbageBytesMin is how much garbage may gather before it is collected, however little is alive. Go collects when there is
// as much garbage as is alive (GOGC=100), and a server has little alive beside its cache: with each collection it would
// mark its whole cache again, several times a second. With a full cache of 64 MiB the process still stays below 250 MB.
const garbageBytesMin = 80 << 20

// Bounds of GOGC, in percent.
const (
	percentMin = 100
	percentMax = 1000
)

// liveMetric is what the last collection left alive.
const liveMetric = "/gc/heap/live:bytes"

// paceCollector makes collections rarer while little is alive. What an operator says, by GOGC or GOMEMLIMIT, comes first.
func paceCollector(c *call) {
	if c.lookup("GOGC") == "" && c.lookup("GOMEMLIMIT") == "" {
		(&pace{percent: percentMin}).afterNext()
	}
}

// pace is GOGC as it was set last.
type pace struct{ percent int }

// mark is collected with each collection, which is how the next one is told from the last.
type mark struct{ pace *pace }

// afterNext adjusts GOGC after the next collection and so on.
func (p *pace) afterNext() {
	runtime.SetFinalizer(&mark{p}, func(*mark) {
		live := []metrics.Sample{{Name: liveMetric}}
		metrics.Read(live)
		if percent := percentFor(live[0].Value.Uint64()); percent != p.percent {
			p.percent = percent
			debug.SetGCPercent(percent)
		}
		p.afterNext()
	})
}

// percentFor gives the GOGC that lets garbageBytesMin gather beside so many bytes that are alive, in steps: each change
// stops the program for a moment.
func percentFor(live uint64) int {
	if live == 0 {
		return percentMin
	}
	percent := int(garbageBytesMin * 100 / live)
	return max(percentMin, min(percent/10*10, percentMax))
}
