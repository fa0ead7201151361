package maintenance_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"catalogd/maintenance"
)

// A failed job is a warning in the log; one that was refused is news.
func TestWorker_LogsAFailedJobAsAWarning(t *testing.T) {
	b := newBench(t)
	tt := b.enabledTable("t")
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	line := func() string {
		_, after, _ := strings.Cut(out.String(), "level=")
		out.Reset()
		return after
	}
	w := tt.hookedWorker(stuck, func(c *maintenance.Config) {
		c.Deadlines, c.Log, c.Store = maintenance.Deadlines{Job: time.Millisecond}, log, noLooks{c.Store}
	})
	expectState(t, tt.run(w), maintenance.Failed, maintenance.CodeTooLong)
	got := line()
	if !strings.HasPrefix(got, `WARN msg="maintenance job"`) {
		t.Errorf("a failed job is logged as %q", got)
	}
	// As in the lines of requests: a duration by itself is nanoseconds in JSON.
	if !regexp.MustCompile(` duration_ms=\d+ `).MatchString(got) {
		t.Errorf("the line has no milliseconds: %q", got)
	}
	w = tt.worker(func(c *maintenance.Config) { c.Deadlines.Plan, c.Log, c.Store = 1, log, noLooks{c.Store} })
	expectState(t, tt.run(w), maintenance.Refused, maintenance.CodeTooLong)
	if got := line(); !strings.HasPrefix(got, `INFO msg="maintenance job"`) {
		t.Errorf("a refused job is logged as %q", got)
	}
}
