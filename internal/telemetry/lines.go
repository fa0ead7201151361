package telemetry

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of lines that are not written yet.
const (
	// linesDelayMax is how long a line may wait for others: a process that is killed loses no older ones.
	linesDelayMax = 100 * time.Millisecond
	// linesBytesMax is what is written at once without waiting for more.
	linesBytesMax = 32 << 10
	// linesWaitingMax bounds what waits while nobody takes what is written; lines beyond it are lost and counted.
	linesWaitingMax = 1 << 20
	// linesFlushMax is how long the end of a process waits for who does not read.
	linesFlushMax = 2 * time.Second
)

// linesLost counts the lines of the process that were lost.
var linesLost atomic.Uint64

// Lines writes lines together, soon: a call of the system for each request's line is dear, and whoever reads them from a
// pipe is woken by each. They are written by a goroutine of its own, so that a request never waits for who reads.
type Lines struct {
	w io.Writer

	mu      sync.Mutex
	waiting []byte
	timer   *time.Timer   // runs while something waits
	written chan struct{} // closed once all that waits is written; nil while nobody writes
	lost    int           // since a line told of it
}

// NewLines writes to w. Whoever makes it calls Flush at the end.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Write takes a whole line, or loses it when too many wait; it gives no error, for nobody could do anything about it.
func (l *Lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting)+len(line) > linesWaitingMax {
		l.lost++
		linesLost.Add(1)
		return len(line), nil
	}
	if len(l.waiting) == 0 {
		l.timer = time.AfterFunc(linesDelayMax, l.hurry)
	}
	if l.waiting = append(l.waiting, line...); len(l.waiting) > linesBytesMax {
		l.begin()
	}
	return len(line), nil
}

// hurry has what waits written, and does not wait for it.
func (l *Lines) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
}

// Flush writes what waits, unless nobody takes it.
func (l *Lines) Flush() {
	l.mu.Lock()
	l.begin()
	written := l.written
	l.mu.Unlock()
	if written == nil {
		return
	}
	patience := time.NewTimer(linesFlushMax)
	defer patience.Stop()
	select {
	case <-written:
	case <-patience.C:
	}
}

// begin writes, unless that is under way: then what waits is taken along.
func (l *Lines) begin() {
	if l.written == nil && len(l.waiting) > 0 {
		l.written = make(chan struct{})
		go l.write()
	}
}

func (l *Lines) write() {
	var taken []byte
	for {
		l.mu.Lock()
		if len(l.waiting) == 0 {
			close(l.written)
			l.written = nil
			l.mu.Unlock()
			return
		}
		l.timer.Stop()
		taken, l.waiting = l.waiting, taken[:0]
		if l.lost > 0 {
			taken = append(taken, lostLine(l.lost)...)
			l.lost = 0
		}
		l.mu.Unlock()
		_, _ = l.w.Write(taken) // whoever cannot write a log cannot say so in it
	}
}

// lostLine tells that lines are missing before it.
func lostLine(lines int) []byte {
	record := slog.NewRecord(time.Now(), slog.LevelWarn, "lines were lost here: nobody took them in time", 0)
	record.AddAttrs(slog.Int("lines", lines))
	return appendLine(nil, record)
}

// oneAtATime is a writer for more than one handler, each of which would lock out only itself.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (o *oneAtATime) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

func (o *oneAtATime) flush() {
	if lines, ok := o.w.(*Lines); ok {
		lines.hurry()
	}
}

// texts are buffers for lines.
var texts = sync.Pool{New: func() any { text := make([]byte, 0, 1<<10); return &text }}

// isPlain tells that appendLine can spell the line: nothing in it is to be masked or is of a type with a spelling of its
// own.
func isPlain(line slog.Record) bool {
	plain := true
	line.Attrs(func(a slog.Attr) bool {
		switch a.Value.Kind() {
		case slog.KindString, slog.KindInt64, slog.KindFloat64:
			plain = plainNames[a.Key]
		default:
			plain = false
		}
		return plain
	})
	return plain
}

// appendLine spells a plain line as slog's handler of JSON does.
func appendLine(dst []byte, line slog.Record) []byte {
	dst = append(dst, `{"time":"`...)
	dst = line.Time.AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `","level":"`...)
	dst = append(dst, line.Level.String()...)
	dst = appendText(append(dst, `","msg":`...), line.Message)
	line.Attrs(func(a slog.Attr) bool {
		dst = append(append(append(dst, ',', '"'), a.Key...), '"', ':')
		switch a.Value.Kind() {
		case slog.KindInt64:
			dst = strconv.AppendInt(dst, a.Value.Int64(), 10)
		case slog.KindFloat64:
			dst = strconv.AppendFloat(dst, a.Value.Float64(), 'f', -1, 64)
		default:
			dst = appendText(dst, a.Value.String())
		}
		return true
	})
	return append(dst, '}', '\n')
}

// appendText appends a text as a JSON string.
func appendText(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			var escaped bytes.Buffer
			encoder := json.NewEncoder(&escaped)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(text); err != nil { // a string: cannot happen
				panic(err)
			}
			return append(dst, bytes.TrimSuffix(escaped.Bytes(), []byte("\n"))...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}
