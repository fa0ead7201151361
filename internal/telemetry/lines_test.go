package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestLines_WaitForOthersAndNotForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out written
		lines := NewLines(&out)
		log := NewLogger(lines, slog.LevelInfo, "json")
		log.Info("one")
		log.Info("two", "some", true)
		if out.Len() > 0 {
			t.Fatalf("written at once: %s", &out)
		}
		<-time.After(linesDelayMax)
		synctest.Wait()
		if text := out.String(); strings.Count(text, "\n") != 2 || strings.Index(text, "one") > strings.Index(text, "two") {
			t.Errorf("after %v: %s", linesDelayMax, text)
		}
		for _, log := range []*slog.Logger{log, log.With("part", "x"), NewLogger(lines, slog.LevelInfo, "text")} {
			out.Reset()
			log.Info("three")
			log.Error("four")
			synctest.Wait()
			if strings.Count(out.String(), "\n") != 2 {
				t.Errorf("an error waits, or overtook a line: %s", &out)
			}
		}
		out.Reset()
		log.Info("five")
		lines.Flush()
		if !strings.Contains(out.String(), "five") {
			t.Error("Flush left a line")
		}
		out.Reset()
		for range 2 * linesBytesMax / 100 {
			log.Info(strings.Repeat("x", 100))
		}
		synctest.Wait()
		if len(lines.waiting) > linesBytesMax || out.Len() < linesBytesMax {
			t.Errorf("%d bytes wait, %d are written", len(lines.waiting), out.Len())
		}
		lines.Flush()
	})
}

// A reader that has stopped keeps nobody waiting: what finds no room is lost, and told once somebody reads again.
func TestLines_NobodyWaitsForTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := &stuckWriter{goOn: make(chan struct{})}
		lines := NewLines(stuck)
		log := NewLogger(lines, slog.LevelInfo, "json")
		before := linesLost.Load()
		const line = 1000
		sent := 3 * linesWaitingMax / line
		for range sent {
			log.Info(strings.Repeat("x", line))
		}
		log.Error("as well")
		lost := linesLost.Load() - before
		if lines.mu.Lock(); lost < uint64(sent)/2 || len(lines.waiting) > linesWaitingMax {
			t.Errorf("%d of %d lines are lost, %d bytes wait", lost, sent, len(lines.waiting))
		}
		lines.mu.Unlock()
		lines.Flush() // ends by itself
		close(stuck.goOn)
		log.Info("again")
		lines.Flush()
		text := stuck.String()
		if strings.Count(text, "\n") != sent-int(lost)+3 || strings.Count(text, `"lines":`) != 1 || !strings.Contains(text, `"again"`) {
			t.Errorf("%d lines of %d came, and %d are lost", strings.Count(text, "\n"), sent, lost)
		}
	})
}

// stuckWriter takes nothing until it may go on.
type stuckWriter struct {
	written
	goOn chan struct{}
}

func (s *stuckWriter) Write(p []byte) (int, error) {
	<-s.goOn
	return s.written.Write(p)
}

// written is what came out of Lines, which write on goroutines of their own.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func (w *written) Len() int { return len(w.String()) }

func (w *written) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Reset()
}

// TestAppendLine_IsAsSlogSpellsIt holds our lines against slog's own, as JSON is read.
func TestAppendLine_IsAsSlogSpellsIt(t *testing.T) {
	names := []string{"operation", "subject", "reason", "bytes", "duration_ms"}
	rapid.Check(t, func(t *rapid.T) {
		line := slog.NewRecord(time.UnixMicro(rapid.Int64Range(0, 1e15).Draw(t, "time")), slog.Level(rapid.IntRange(-4, 8).Draw(t, "level")),
			rapid.String().Draw(t, "message"), 0)
		for _, name := range names {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				line.AddAttrs(slog.String(name, rapid.String().Draw(t, "text")))
			case 1:
				line.AddAttrs(slog.Int64(name, rapid.Int64().Draw(t, "number")))
			default:
				line.AddAttrs(slog.Float64(name, float64(rapid.Int64Range(0, 1e12).Draw(t, "microseconds"))/1000))
			}
		}
		var theirs bytes.Buffer
		if err := slog.NewJSONHandler(&theirs, &slog.HandlerOptions{Level: slog.LevelDebug}).Handle(context.Background(), line); err != nil {
			t.Fatal(err)
		}
		if !isPlain(line) {
			t.Fatal("not plain")
		}
		ours := appendLine(nil, line)
		var got, want map[string]any
		if err := json.Unmarshal(ours, &got); err != nil || ours[len(ours)-1] != '\n' || bytes.Count(ours, []byte("\n")) != 1 {
			t.Fatalf("%q: %v", ours, err)
		}
		if err := json.Unmarshal(theirs.Bytes(), &want); err != nil || !maps.Equal(got, want) {
			t.Fatalf("%s is not as\n%s", ours, &theirs)
		}
	})
}
