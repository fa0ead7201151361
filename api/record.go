package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// clientHeaderBytesMax bounds what a log line keeps of a header that the client chose.
const clientHeaderBytesMax = 128

// operationUnmatched is the operation of requests that no endpoint matches.
const operationUnmatched = "unmatched"

// event is what is known about a request; it becomes one log line at the request's end.
type event struct {
	operation string
	requestID string
	origin    origin
	principal auth.Principal
	clientID  string      // of a login, whether it succeeds or not; "" elsewhere
	key       *requestKey // of a mutation that may be sent again
	warehouse string
	subject   string
	format    int // the format version of a table that is answered; 0 elsewhere
	err       error
	// clientGone tells that nobody was there any more to be answered.
	clientGone bool
	// notice is a stack trace of a panic.
	notice string
}

// Annotate notes for the log line what a request is about: the warehouse as the client named it, and the dotted name
// of the thing in it.
func Annotate(r *http.Request, warehouse, subject string) {
	e := eventOf(r.Context())
	e.warehouse, e.subject = warehouse, subject
}

// AnnotateClient notes for the log line of a login which client it is for. It must be an id that exists: anything else may be
// a secret in the wrong field.
func AnnotateClient(r *http.Request, clientID string) { eventOf(r.Context()).clientID = clientID }

// AnnotateFormat notes for the log line the format version of the table that is answered: clients that are too old for it
// fail on an answer that is right, and only this line tells.
func AnnotateFormat(r *http.Request, version int) { eventOf(r.Context()).format = version }

// CallerOf gives the caller as the domain's operations want it. Handlers of mutations call it after they have read the
// body, which the caller's key covers.
func CallerOf(r *http.Request) catalog.Caller {
	e := eventOf(r.Context())
	return catalog.Caller{Principal: e.principal, RequestID: e.requestID, Client: e.origin.text, UserAgent: cut(r.UserAgent()), Key: e.keyOf()}
}

// Address gives where a request comes from, as far as that is known: the zero Addr else.
func Address(r *http.Request) netip.Addr { return eventOf(r.Context()).origin.address }

// recorder remembers what went out. Its status is 0 until the header is written.
type recorder struct {
	http.ResponseWriter
	begun  time.Time
	status int
	bytes  int64
	piece  int // bytes of the next piece; 0 means answerPieceBytes
}

// WriteHeader notes the first final status.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts bytes. A long answer goes out piece by piece, and each piece has its time: whoever stops reading holds
// what the answer is made of no longer than that.
func (w *recorder) Write(p []byte) (n int, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for {
		piece := p[n:min(len(p), n+max(w.piece, answerPieceBytes))]
		begun := time.Now()
		if w.bytes+int64(len(piece)) > answerUntimedBytes {
			w.deadline(begun)
		}
		written, err := w.ResponseWriter.Write(piece)
		n += written
		w.bytes += int64(written)
		if len(piece) >= answerPieceBytes {
			w.piece = pieceAfter(len(piece), time.Since(begun))
		}
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// pieceAfter gives the size of the piece behind one of so many bytes that took so long.
func pieceAfter(bytes int, took time.Duration) int {
	if took > answerPieceQuick {
		return answerPieceBytes
	}
	return min(2*bytes, answerPieceBytesMax)
}

// deadline is for a piece that begins now, and never after that of the whole answer. Writers without a connection have
// none.
func (w *recorder) deadline(now time.Time) {
	at := now.Add(answerPieceMax)
	if whole := w.begun.Add(answerTimeoutMax); at.After(whole) {
		at = whole
	}
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(at)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// record gives each request its event and writes the one log line and the metrics at its end.
func record(c ServerConfig, next http.Handler) http.Handler {
	log, metrics, trusted := c.Log, c.Metrics, c.TrustedProxies
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now()
		metrics.RequestBegan()
		c := &requestContext{Context: r.Context(), client: r.Context()}
		e := &c.event
		e.operation, e.origin = operationUnmatched, originOf(r, trusted)
		rec := &recorder{ResponseWriter: w, begun: begun}
		defer func() {
			took := time.Since(begun)
			status := rec.status
			switch {
			case e.clientGone:
				status = statusClientGone
			case status == 0:
				status = http.StatusOK
			}
			metrics.RequestEnded(e.operation, status, took)
			logRequest(log, r, e, status, rec.bytes, took)
		}()
		next.ServeHTTP(rec, r.WithContext(c))
	})
}

// logRequest writes the canonical line. Refusals are told by kind; a cause is told only for what is our fault.
func logRequest(log *slog.Logger, r *http.Request, e *event, status int, bytes int64, took time.Duration) {
	level := levelOf(status)
	if !log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("operation", e.operation),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("request_id", e.requestID),
		slog.String("principal", e.principal.Name),
		slog.String("warehouse", cut(e.warehouse)),
		slog.String("subject", cut(e.subject)),
		slog.String("client", e.origin.text),
		slog.String("user_agent", cut(r.UserAgent())),
		slog.String("client_version", cut(r.Header.Get("X-Client-Version"))),
		slog.Int64("bytes", bytes),
	}
	if e.clientID != "" {
		attrs = append(attrs, slog.String("client_id", cut(e.clientID)))
	}
	if e.format > 0 {
		attrs = append(attrs, slog.Int("format_version", e.format))
	}
	if e.operation == operationUnmatched {
		attrs = append(attrs, slog.String("method", cut(r.Method)), slog.String("path", cut(r.URL.EscapedPath())))
	}
	if e.err != nil {
		attrs = append(attrs, slog.String("kind", string(fault.KindOf(e.err))))
		if status >= 500 {
			attrs = append(attrs, slog.String("cause", e.err.Error()))
		} else {
			attrs = append(attrs, slog.String("reason", messageOf(e.err)))
		}
	}
	if e.notice != "" {
		attrs = append(attrs, slog.String("stack", e.notice))
	}
	// Not by LogAttrs: it looks up from where it was called, which is always here.
	line := slog.NewRecord(time.Now(), level, "request", 0)
	line.AddAttrs(attrs...)
	_ = log.Handler().Handle(context.WithoutCancel(r.Context()), line) // whoever cannot write a log cannot write that either
}

// levelOf: engines probe for names that are not there all day long, so misses are not news.
func levelOf(status int) slog.Level {
	switch {
	case status >= 500:
		return slog.LevelError
	case status == http.StatusNotFound, status == statusClientGone:
		return slog.LevelDebug
	default:
		return slog.LevelInfo
	}
}

func cut(s string) string {
	if len(s) > clientHeaderBytesMax {
		return s[:clientHeaderBytesMax] + "..."
	}
	return s
}
