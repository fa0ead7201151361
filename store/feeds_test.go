package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/catalog/commit"
)

// heldFact begins a transaction with a fact's rows in it and gives what commits it.
func heldFact(t *testing.T, s *Store, subject string) (commit func()) {
	t.Helper()
	ctx := context.Background()
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(ctx) })
	if err := writeFact(ctx, tx, feedFact(subject)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

func feedFact(subject string) catalog.Fact {
	return catalog.Fact{
		ID: uuid.New(), At: time.Now(), Operation: "commit-table", Subject: subject,
		Caller: catalog.Caller{Principal: auth.Principal{Name: "alice"}},
	}
}

func (s *Store) mustWrite(t *testing.T, subject string) {
	t.Helper()
	if err := s.InTx(t.Context(), func(tx pgx.Tx) error { return writeFact(t.Context(), tx, feedFact(subject)) }); err != nil {
		t.Fatal(err)
	}
}

// follower reads the two feeds from where it stopped.
type follower struct{ audit, events int64 }

func (f *follower) next(t *testing.T, s *Store) []string {
	t.Helper()
	rows, feed, err := s.ListAudit(t.Context(), catalog.AuditQuery{Oldest: true, After: f.audit, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	f.audit = feed.Through
	events, feed, err := s.ListEvents(t.Context(), catalog.EventQuery{After: f.events, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	f.events = feed.Through
	subjects, same := make([]string, len(rows)), make([]string, len(events))
	for i, r := range rows {
		subjects[i] = r.Subject
	}
	for i, e := range events {
		same[i] = e.Subject
	}
	if !slices.Equal(subjects, same) {
		t.Errorf("audit %v, events %v", subjects, same)
	}
	return subjects
}

// A transaction that took its numbers first and commits last is neither missed nor waited for.
func TestFeeds_WhatCommitsLaterWithASmallerNumberIsNotMissed(t *testing.T) {
	s := openStore(t)
	var f follower
	commit := heldFact(t, s, "early")
	s.mustWrite(t, "late")
	if got := f.next(t, s); !slices.Equal(got, []string{"late"}) {
		t.Errorf("while the first is open: %v", got)
	}
	if got := f.next(t, s); len(got) != 0 {
		t.Errorf("again: %v", got)
	}
	s.mustWrite(t, "later")
	commit()
	if got := f.next(t, s); !slices.Equal(got, []string{"early", "later"}) {
		t.Errorf("after it has committed: %v", got)
	}
	if got := f.next(t, s); len(got) != 0 {
		t.Errorf("at the end: %v", got)
	}
}

// Writers and readers at once: every reader gets every row once.
func TestFeeds_EveryReaderGetsEveryRowOnce(t *testing.T) {
	s := openStore(t)
	const writers, each = 4, 25
	var writing, reading sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				s.mustWrite(t, fmt.Sprintf("%d/%d", w, i))
			}
		})
	}
	for range 2 {
		reading.Go(func() {
			seen := map[string]int{}
			var after int64
			for last := false; ; {
				rows, feed, err := s.ListAudit(context.Background(), catalog.AuditQuery{Oldest: true, After: after, Limit: 7})
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range rows {
					seen[r.Subject]++
					after = r.Position
				}
				if len(rows) < 7 {
					after = feed.Through
					if last {
						break
					}
				}
				select {
				case <-done:
					last = len(rows) < 7
				default:
				}
			}
			if len(seen) != writers*each {
				t.Errorf("a reader saw %d rows, want %d", len(seen), writers*each)
			}
			for subject, n := range seen {
				if n != 1 {
					t.Errorf("%s came %d times", subject, n)
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
}

func (c *calls) setProperty(table string) error {
	body, err := commit.DecodeRequest([]byte(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`))
	if err != nil {
		return err
	}
	_, err = c.CommitTable(context.Background(), callsCaller, catalog.CommitTableRequest{Warehouse: "w", Ident: ident(table), Change: body})
	return err
}

// What is told beside the table is told after the commit, once a row, and nothing of what was rolled back.
func TestAudited_ToldAfterTheCommit(t *testing.T) {
	var mu sync.Mutex
	var told []catalog.AuditRow
	c := newCalls(t, openStore(t))
	c.store.audited = func(a catalog.AuditRow) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, a)
	}
	take := func() (subjects []string) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range told {
			subjects = append(subjects, fmt.Sprint(a.Operation, " ", a.Subject, " ", a.Allowed))
		}
		told = nil
		return subjects
	}
	if err := c.setProperty("t"); err != nil { // one statement
		t.Fatal(err)
	}
	if got := take(); !slices.Equal(got, []string{"commit-table a.t true"}) {
		t.Errorf("of a commit: %v", got)
	}
	if err := c.store.RecordDenial(t.Context(), catalog.Denial{At: time.Now(), Operation: "load-table", Subject: "a.t"}); err != nil {
		t.Fatal(err)
	}
	if got := take(); !slices.Equal(got, []string{"load-table a.t false"}) {
		t.Errorf("of a denial: %v", got)
	}
	refused := fmt.Errorf("no")
	err := c.store.InTx(t.Context(), func(tx pgx.Tx) error {
		if err := writeFact(t.Context(), tx, feedFact("a.t")); err != nil {
			return err
		}
		return refused
	})
	if err == nil || len(take()) != 0 {
		t.Error("what was rolled back was told")
	}
	if _, err := c.CreateNamespace(t.Context(), callsCaller, "w", catalog.Namespace{"b"}, nil); err != nil {
		t.Fatal(err)
	}
	if got := take(); !slices.Equal(got, []string{"create-namespace b true"}) {
		t.Errorf("of a transaction: %v", got)
	}
}

// Who was away for longer than records stay learns that some are gone, also those that nobody had read.
func TestSweep_WhatNobodyReadIsMissed(t *testing.T) {
	s := openStore(t)
	var f follower
	s.mustWrite(t, "read")
	f.next(t, s)
	s.mustWrite(t, "unread")
	for _, table := range []string{"audit", "events"} {
		if _, err := s.pool.Exec(t.Context(), `UPDATE `+table+` SET at = now() - interval '2 days'`); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.SweepRecords(t.Context(), catalog.Keep{Audit: 24 * time.Hour, Events: 24 * time.Hour}); n != 4 || err != nil {
		t.Fatalf("%d records went: %v", n, err)
	}
	s.mustWrite(t, "new")
	for _, feed := range []func() (catalog.Feed, error){
		func() (catalog.Feed, error) {
			_, feed, err := s.ListAudit(t.Context(), catalog.AuditQuery{Oldest: true, After: f.audit, Limit: 10})
			return feed, err
		},
		func() (catalog.Feed, error) {
			_, feed, err := s.ListEvents(t.Context(), catalog.EventQuery{After: f.events, Limit: 10})
			return feed, err
		},
	} {
		if got, err := feed(); err != nil || got.Removed != 2 || got.Through != 3 {
			t.Errorf("the feed is %+v: %v", got, err)
		}
	}
	if got := f.next(t, s); !slices.Equal(got, []string{"new"}) {
		t.Errorf("behind what is gone: %v", got)
	}
	if got := f.next(t, s); len(got) != 0 {
		t.Errorf("again: %v", got)
	}
}

// A job's record stays while somebody may need it.
func TestSweep_JobsAndWhatWebhooksNeed(t *testing.T) {
	s := openStore(t)
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := s.pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	count := func(sql string) (n int) {
		t.Helper()
		if err := s.pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	table := uuid.New()
	run(`INSERT INTO warehouses (id, name, location, storage, created_at, updated_at) VALUES ($1, 'w', 's3://b', '{}', now(), now())`, table)
	run(`INSERT INTO dropped_tables (id, warehouse_id, namespace, name, table_uuid, location, metadata_location, purge_requested, dropped_at)
		VALUES ($1, $1, '{a}', 't', $1, 's3://b/t', 's3://b/t/m', false, now())`, table)
	job := func(kind, state string, days int) uuid.UUID {
		id := uuid.New()
		run(`INSERT INTO jobs (id, kind, table_id, warehouse, subject, state, trigger, not_before, created_at, finished_at)
			VALUES ($1, $2, $3, 'w', 'a.t', $4, 'on-demand', now(), now(), now() - make_interval(days => $5))`, id, kind, table, state, days)
		return id
	}
	job("compaction", "succeeded", 30)
	withFiles := job("compaction", "failed", 20)
	run(`INSERT INTO job_files VALUES ($1, 's3://b/t/1.parquet')`, withFiles)
	job("compaction", "failed", 10) // the last
	job("purge", "failed", 40)      // the only one
	keep := catalog.Keep{Jobs: 5 * 24 * time.Hour, Events: 24 * time.Hour}
	if n, err := s.SweepRecords(t.Context(), keep); n != 1 || err != nil {
		t.Errorf("%d jobs went, want the oldest compaction alone (%v)", n, err)
	}
	if got := count(`SELECT count(*) FROM jobs WHERE warehouse_id = (SELECT id FROM warehouses)`); got != 3 {
		t.Errorf("%d jobs are left in their warehouse", got)
	}

	s.mustWrite(t, "a.t")
	s.mustWrite(t, "a.u")
	if _, _, err := s.ListEvents(t.Context(), catalog.EventQuery{Limit: 10}); err != nil {
		t.Fatal(err)
	}
	run(`UPDATE events SET at = now() - interval '2 days'`)
	run(`INSERT INTO webhooks (id, url, secret, created_by, created_at, position, not_before) VALUES ($1, 'https://h', '', 'root', now(), 1, now())`, uuid.New())
	if n, err := s.SweepRecords(t.Context(), keep); n != 1 || err != nil {
		t.Errorf("%d events went, want the one that the webhook has (%v)", n, err)
	}
	run(`UPDATE events SET at = now() - interval '5 days'`)
	if n, err := s.SweepRecords(t.Context(), keep); n != 1 || err != nil {
		t.Errorf("%d events went, want the one that is too old for any webhook (%v)", n, err)
	}

	// What failed is needed still, although the webhook has gone on; what was given up is not.
	s.mustWrite(t, "a.v")
	if _, _, err := s.ListEvents(t.Context(), catalog.EventQuery{Limit: 10}); err != nil {
		t.Fatal(err)
	}
	run(`UPDATE events SET at = now() - interval '2 days'`)
	run(`UPDATE webhooks SET position = 100`)
	run(`INSERT INTO webhook_deliveries (webhook_id, position, event_id, lane, state, first_at, not_before)
		SELECT webhooks.id, events.position, events.id, events.id, 'waiting', now(), now() FROM webhooks, events`)
	if n, err := s.SweepRecords(t.Context(), keep); n != 0 || err != nil {
		t.Errorf("%d events went that a webhook waits for (%v)", n, err)
	}
	run(`UPDATE webhook_deliveries SET state = 'dead'`)
	if n, err := s.SweepRecords(t.Context(), keep); n != 1 || err != nil {
		t.Errorf("%d events went, want the one that was given up (%v)", n, err)
	}
}

// What is removed between the look at the feed and the reading of its rows is not left out without a word.
func TestFeeds_ReadAgainWhatIsRemovedMeanwhile(t *testing.T) {
	s := openStore(t)
	for range 3 {
		s.mustWrite(t, "a.t")
	}
	if _, err := s.pool.Exec(t.Context(), `UPDATE events SET at = now() - interval '9 days'`); err != nil {
		t.Fatal(err)
	}
	rounds := 0
	_, feed, err := untilStill(t.Context(), s, feedEvents, func() ([]catalog.EventRow, catalog.Feed, error) {
		rounds++
		feed, err := s.place(t.Context(), feedEvents)
		if err == nil && rounds == 1 {
			_, err = s.SweepRecords(t.Context(), catalog.Keep{Events: 48 * time.Hour})
		}
		if err != nil {
			return nil, feed, err
		}
		rows, err := s.eventsBetween(t.Context(), catalog.EventQuery{After: 1, Limit: 10}, feed.Through)
		return rows, feed, err
	})
	if err != nil || rounds != 2 || feed.Removed != 3 {
		t.Errorf("read %d times, removed up to %d (%v)", rounds, feed.Removed, err)
	}
	if _, feed, err = s.ListEvents(t.Context(), catalog.EventQuery{After: 1, Limit: 10}); err != nil || feed.Removed != 3 {
		t.Errorf("removed up to %d (%v)", feed.Removed, err)
	}
}

// Turns go on where the database's clock was set back.
func TestFeeds_TurnsOutliveTheClock(t *testing.T) {
	s := openStore(t)
	s.mustWrite(t, "a.t")
	const ahead = int64(1) << 60
	if _, err := s.pool.Exec(t.Context(), `INSERT INTO feeds (name, turn) VALUES ('events', $1) ON CONFLICT (name) DO UPDATE SET turn = EXCLUDED.turn`, ahead); err != nil {
		t.Fatal(err)
	}
	events, _, err := s.ListEvents(t.Context(), catalog.EventQuery{Limit: 10})
	if err != nil || len(events) != 1 || events[0].Turn != ahead+1 {
		t.Fatalf("%+v (%v)", events, err)
	}
	s.mustWrite(t, "a.u")
	if events, _, err = s.ListEvents(t.Context(), catalog.EventQuery{Limit: 10}); err != nil || len(events) != 2 || events[1].Turn != ahead+2 {
		t.Errorf("%+v (%v)", events, err)
	}
	// Placed by a binary of before there were turns.
	if _, err := s.pool.Exec(t.Context(), `UPDATE events SET turn = NULL`); err != nil {
		t.Fatal(err)
	}
	if events, _, err = s.ListEvents(t.Context(), catalog.EventQuery{Limit: 10}); err != nil || events[0].Turn != events[0].At.UnixMicro() {
		t.Errorf("%+v (%v)", events, err)
	}
}
