package telemetry

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// Limits of lines that are not written yet.
const (
	// linesDelayMax is how long a line may wait for others: a process that is killed loses no older ones.
	linesDelayMax = 100 * time.Millisecond
	// linesBytesMax bounds those that wait.
	linesBytesMax = 32 << 10
)

// Lines writes lines together, soon: a call of the system for each request's line is dear, and whoever reads them from a
// pipe is woken by each.
type Lines struct {
	w io.Writer

	mu      sync.Mutex
	waiting []byte
	timer   *time.Timer // runs while something waits
}

// NewLines writes to w. Whoever makes it calls Flush at the end.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Write takes a whole line. It gives the error of a write of earlier ones, if any.
func (l *Lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if len(l.waiting)+len(line) > linesBytesMax {
		err = l.flush()
	}
	if len(l.waiting) == 0 {
		l.timer = time.AfterFunc(linesDelayMax, l.Flush)
	}
	l.waiting = append(l.waiting, line...)
	return len(line), err
}

// Flush writes what waits.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.flush() // whoever cannot write a log cannot say so in it
}

func (l *Lines) flush() error {
	if len(l.waiting) == 0 {
		return nil
	}
	l.timer.Stop()
	_, err := l.w.Write(l.waiting)
	l.waiting = l.waiting[:0]
	return err
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
		lines.Flush()
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
