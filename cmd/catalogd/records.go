package main

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"catalogd/api/manage"
	"catalogd/catalog"
	"catalogd/internal/telemetry"
)

// Times of the records' upkeep.
const (
	denialsFlushEvery = 10 * time.Second
	recordsStopMax    = 10 * time.Second
)

const day = 24 * time.Hour

// keep is how long records stay.
func (r RetentionConfig) keep() catalog.Keep {
	days := func(n int) time.Duration { return time.Duration(n) * day }
	return catalog.Keep{Audit: days(r.Audit), Events: days(r.Events), Jobs: days(r.Jobs), Metrics: days(r.Metrics)}
}

// writeAudit sends the lines of the audit to w when they are wanted, and gives what writes the last of them.
func (c *Config) writeAudit(w io.Writer) (flush func()) {
	if !c.Audit.Log {
		return func() {}
	}
	lines := telemetry.NewLines(w)
	c.auditTo = lines
	return lines.Flush
}

// auditLines gives what writes a line for a row; nil when nobody wants any.
func auditLines(w io.Writer) func(catalog.AuditRow) {
	if w == nil {
		return nil
	}
	return func(a catalog.AuditRow) {
		if line, err := manage.AuditLine(a); err == nil {
			_, _ = w.Write(line) // the table has the row
		}
	}
}

// records keeps the audit complete while a server runs: it writes the counts of refusals that have no rows.
type records struct {
	service *catalog.Service
	log     *slog.Logger
	cancel  context.CancelFunc
	loops   sync.WaitGroup
}

func newRecords(a *app) *records { return &records{service: a.service, log: a.log} }

func (r *records) start() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.loops.Go(func() {
		tick := time.NewTicker(denialsFlushEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := r.service.FlushDenials(ctx); err != nil {
				r.log.Error("refusals that were counted could not be recorded; they are tried again", "cause", err)
			}
		}
	})
}

// stop ends the loops and writes what is counted. It comes after the last request has been answered.
func (r *records) stop() error {
	if r == nil || r.cancel == nil {
		return nil
	}
	r.cancel()
	r.loops.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), recordsStopMax)
	defer cancel()
	return r.service.FlushAllDenials(ctx)
}
