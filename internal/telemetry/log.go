package telemetry

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// redacted is printed instead of a secret.
const redacted = "***"

// secretWords are parts of attribute names whose values never reach a log, whoever logs them.
var secretWords = []string{
	"authorization", "password", "secret", "credential", "access-key", "access_key", "session-token", "session_token",
	"private_key", "private-key", "sas-token",
}

// NewLogger makes the server's logger: JSON lines, or text when format is "text". Attributes whose names sound like
// secrets are masked; that is the second net, types that hold secrets mask themselves. When w is Lines, errors are
// written through at once.
func NewLogger(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: redactAttr}
	one := &oneAtATime{w: w}
	if format == "text" {
		return slog.New(handler{Handler: slog.NewTextHandler(one, options), w: one})
	}
	return slog.New(handler{Handler: slog.NewJSONHandler(one, options), w: one, spells: true})
}

// handler masks, by the handler inside, and spells the lines itself that have nothing to mask: those of requests, whose
// cost is part of each request's.
type handler struct {
	slog.Handler
	w      *oneAtATime
	spells bool
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, line slog.Record) error {
	var err error
	if h.spells && isPlain(line) {
		text := texts.Get().(*[]byte)
		*text = appendLine((*text)[:0], line)
		_, err = h.w.Write(*text)
		texts.Put(text)
	} else {
		err = h.Handler.Handle(ctx, line)
	}
	if line.Level >= slog.LevelError {
		h.w.flush()
	}
	return err
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{Handler: h.Handler.WithAttrs(attrs), w: h.w}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{Handler: h.Handler.WithGroup(name), w: h.w}
}

// plainNames are the attributes of a request's line and of every line, which need no look at their letters.
var plainNames = map[string]bool{
	slog.TimeKey: true, slog.LevelKey: true, slog.MessageKey: true, "operation": true, "status": true, "duration_ms": true,
	"request_id": true, "principal": true, "warehouse": true, "subject": true, "client": true, "user_agent": true,
	"client_version": true, "bytes": true, "client_id": true, "format_version": true, "kind": true, "reason": true, "cause": true,
}

// redactAttr masks an attribute by its name.
func redactAttr(_ []string, a slog.Attr) slog.Attr {
	if plainNames[a.Key] {
		return a
	}
	name := strings.ToLower(a.Key)
	if name == "token" {
		return slog.String(a.Key, redacted)
	}
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return slog.String(a.Key, redacted)
		}
	}
	return a
}
