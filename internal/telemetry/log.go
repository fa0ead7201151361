package telemetry

import (
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
// secrets are masked; that is the second net, types that hold secrets mask themselves.
func NewLogger(w io.Writer, level slog.Leveler, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: redactAttr}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// plainNames are the attributes of a request's line and of every line, which need no look at their letters.
var plainNames = map[string]bool{
	slog.TimeKey: true, slog.LevelKey: true, slog.MessageKey: true, "operation": true, "status": true, "duration_ms": true,
	"request_id": true, "principal": true, "warehouse": true, "subject": true, "client": true, "user_agent": true,
	"client_version": true, "bytes": true, "kind": true, "reason": true, "cause": true,
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
