package main

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"catalogd/internal/telemetry"
	"catalogd/store"
)

// whenWritten calls a function at the first write.
type whenWritten func()

func (w whenWritten) Write(p []byte) (int, error) { w(); return len(p), nil }

// An interrupt while a start waits for Postgres ends it as an interrupt, at once and without blaming the database.
func TestAwaitDatabase_AnInterruptEndsTheWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := store.Open(ctx, store.Config{URL: "postgres://nobody@127.0.0.1:1/nothing", MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	log := telemetry.NewLogger(whenWritten(cancel), slog.LevelInfo, "text")
	if err := awaitDatabase(ctx, s, log); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// The log of one-off commands has the format that was asked for: it goes where the servers' logs go.
func TestMigrateAndBootstrap_HonourTheLogFormat(t *testing.T) {
	for _, command := range []string{"migrate", "bootstrap"} {
		for format, want := range map[string]string{"json": `"msg":"waiting for Postgres"`, "text": `msg="waiting for Postgres"`} {
			ctx, cancel := context.WithCancel(t.Context())
			log := &loggedText{written: cancel}
			code := run(ctx, &call{Out: io.Discard, Err: log, Args: []string{command, "--log-format", format,
				"--database-url", "postgres://nobody@127.0.0.1:1/nothing", "--secrets-key", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
				Environ: []string{"CATALOGD_ROOT_CREDENTIAL=root:" + strings.Repeat("x", 24)}})
			if code != exitFailed || !strings.Contains(log.text.String(), want) {
				t.Errorf("%s with %s: exit %d\n%s", command, format, code, log.text.String())
			}
			cancel()
		}
	}
}

// loggedText keeps what is written and tells of it.
type loggedText struct {
	text    strings.Builder
	written func()
}

func (l *loggedText) Write(p []byte) (int, error) { l.written(); return l.text.Write(p) }

// What has no more near names than a reader takes in is suggested, and only what can be granted there.
func TestNearPrivileges(t *testing.T) {
	for word, want := range map[string]string{
		"TABLE_READ_DATA": "", "table_read_data": "did you mean TABLE_READ_DATA?", "TABLE_REED_DATA": "did you mean TABLE_READ_DATA?",
		"READ_DATA": "there are TABLE_READ_DATA", "": "", "XYZZY": "",
	} {
		if got := nearPrivileges(grantBody{Type: "table", Privilege: word}); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := nearPrivileges(grantBody{Type: "namespace", Privilege: "READ"}); !strings.Contains(got, "TABLE_READ_DATA") {
		t.Errorf("READ on a namespace: %q", got)
	}
}
