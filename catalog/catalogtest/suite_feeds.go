package catalogtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
)

// feedPromises are about reading the audit and the events.
var feedPromises = []promise{
	{"AuditSaysWhoWhatWhereAndWhy", func(b *bench) {
		d := catalog.Denial{
			At: at, Operation: "load-table", Subject: "a.t", Reason: "missing", Warehouse: b.warehouse.ID, Privilege: authz.TableReadProperties,
			On:     authz.Securable{Kind: authz.Table, ID: uuid.New(), Name: "a.t"},
			Caller: catalog.Caller{Principal: b.principal, RequestID: "r-1", Client: "10.0.0.1", UserAgent: "spark/4"},
		}
		d.Caller.Principal.PersonalToken, d.Caller.Principal.Actor = uuid.New(), &auth.Actor{Name: "trino"}
		b.must(b.store.RecordDenial(b.Context(), d))
		rows, _, err := b.store.ListAudit(b.Context(), catalog.AuditQuery{Limit: 10, AuditFilter: catalog.AuditFilter{Operation: "load-table"}})
		b.must(err)
		if len(rows) != 1 {
			b.Fatalf("%d rows", len(rows))
		}
		rows[0].ID = 0
		want := catalog.AuditRow{
			At: at, RequestID: "r-1", Principal: "alice", TokenID: "jti-1", Client: "10.0.0.1", UserAgent: "spark/4", Operation: "load-table",
			WarehouseID: b.warehouse.ID, Warehouse: "w", SecurableID: d.On.ID, Subject: "a.t", Reason: "missing",
			Privilege: "TABLE_READ_PROPERTIES", Securable: d.On.String(), Actor: "trino",
			Credential: "personal-token " + d.Caller.Principal.PersonalToken.String(),
		}
		if rows[0] != want {
			b.Errorf("got  %+v\nwant %+v", rows[0], want)
		}
		d.Repeats = 7
		b.must(b.store.RecordDenial(b.Context(), d))
		rows, _, err = b.store.ListAudit(b.Context(), catalog.AuditQuery{Limit: 1})
		b.must(err)
		if rows[0].Repeats != 7 {
			b.Errorf("a count is kept as %+v", rows[0])
		}
	}},
	{"AuditOfAChangeNamesItsWarehouseAndEvent", func(b *bench) {
		n := b.namespace("a")
		rows, _, err := b.store.ListAudit(b.Context(), catalog.AuditQuery{Limit: 1})
		b.must(err)
		events := b.events("create-namespace")
		if len(rows) != 1 || !rows[0].Allowed || rows[0].Warehouse != "w" || rows[0].EventID != events[0].ID || rows[0].Subject != n.Levels.String() {
			b.Errorf("row %+v of event %+v", rows, events)
		}
	}},
	{"AuditGoesBothWaysPageByPage", func(b *bench) {
		for i := range 7 {
			b.namespace(fmt.Sprint("n", i))
		}
		whole, _, err := b.store.ListAudit(b.Context(), catalog.AuditQuery{Oldest: true, Limit: 100})
		b.must(err)
		var oldest, newest []uuid.UUID
		for after := int64(0); ; {
			page, _, err := b.store.ListAudit(b.Context(), catalog.AuditQuery{Oldest: true, After: after, Limit: 3})
			b.must(err)
			for _, a := range page {
				oldest, after = append(oldest, a.EventID), a.Position
			}
			if len(page) < 3 {
				break
			}
		}
		for before := int64(0); ; {
			page, _, err := b.store.ListAudit(b.Context(), catalog.AuditQuery{Before: before, Limit: 3})
			b.must(err)
			for _, a := range page {
				newest, before = append(newest, a.EventID), a.ID
			}
			if len(page) < 3 {
				break
			}
		}
		slices.Reverse(newest)
		if len(whole) != 8 || len(oldest) != 8 || !slices.Equal(oldest, newest) {
			b.Errorf("%d rows, forwards %v, backwards %v", len(whole), oldest, newest)
		}
	}},
	{"AuditFilters", auditFilters},
	{"EventsAreGivenOnceInTheirOrder", func(b *bench) {
		first, feed, err := b.store.ListEvents(b.Context(), catalog.EventQuery{Limit: 100})
		b.must(err)
		n := b.namespace("a")
		r := b.table(n, "t")
		change := b.swap(r)
		b.must(b.commit(change))
		rows, next, err := b.store.ListEvents(b.Context(), catalog.EventQuery{After: feed.Through, Limit: 100})
		b.must(err)
		var operations []string
		for _, e := range rows {
			operations = append(operations, e.Operation)
		}
		if !slices.Equal(operations, []string{"create-namespace", "create-table", "commit-table"}) || len(first) != 1 || next.Through <= feed.Through {
			b.Errorf("first %v, then %v", first, operations)
		}
		last := rows[len(rows)-1]
		if last.ID != change.Fact.ID || last.Principal != "alice" || last.Warehouse != "w" || string(last.Details) != `{"n": 1}` && string(last.Details) != `{"n":1}` {
			b.Errorf("event %+v", last)
		}
		again, _, err := b.store.ListEvents(b.Context(), catalog.EventQuery{After: next.Through, Limit: 100})
		b.must(err)
		if len(again) != 0 {
			b.Errorf("%v behind the end", again)
		}
	}},
	{"EventsFilter", func(b *bench) {
		n := b.namespace("a")
		r := b.table(n, "t")
		b.table(n, "u")
		count := func(f catalog.EventFilter) int {
			b.Helper()
			rows, _, err := b.store.ListEvents(b.Context(), catalog.EventQuery{EventFilter: f, Limit: 100})
			b.must(err)
			return len(rows)
		}
		for _, c := range []struct {
			f    catalog.EventFilter
			want int
		}{
			{catalog.EventFilter{WarehouseID: b.warehouse.ID}, 3}, {catalog.EventFilter{WarehouseID: uuid.New()}, 0},
			{catalog.EventFilter{Operations: []string{"create-table", "drop-table"}}, 2}, {catalog.EventFilter{Operations: []string{""}}, 0},
			{catalog.EventFilter{Subject: "a.t"}, 1}, {catalog.EventFilter{SecurableID: uuid.New()}, 0},
		} {
			if c.f.WarehouseID == b.warehouse.ID {
				c.f.Operations = []string{"create-table", "create-namespace"}
			}
			if got := count(c.f); got != c.want {
				b.Errorf("%+v gives %d, want %d", c.f, got, c.want)
			}
		}
		change := b.swap(r)
		change.Fact.Securable = r.ID
		b.must(b.commit(change))
		if got := count(catalog.EventFilter{SecurableID: r.ID}); got != 1 {
			b.Errorf("the table has %d events, want 1", got)
		}
	}},
	{"AGivenUpCommitIsNoEvent", func(b *bench) {
		_, err := b.store.CommitLanded(b.Context(), uuid.New())
		b.must(err)
		rows, _, err := b.store.ListEvents(b.Context(), catalog.EventQuery{Limit: 100})
		b.must(err)
		if len(rows) != 1 || rows[0].Operation != "create-warehouse" {
			b.Errorf("events %+v", rows)
		}
	}},
	{"OldRecordsGoAndAreNotMistakenForNone", func(b *bench) {
		b.namespace("a") // whose time is long ago: all facts of this suite are
		fresh := b.fact("update-warehouse", "w")
		fresh.At = time.Now().UTC().Truncate(time.Microsecond)
		w := b.warehouse
		b.must(b.store.UpdateWarehouse(b.Context(), w, fresh))
		before, feed, err := b.store.ListEvents(b.Context(), catalog.EventQuery{Limit: 100})
		b.must(err)
		if len(before) != 3 || feed.Removed != 0 {
			b.Fatalf("%d events, removed %d", len(before), feed.Removed)
		}
		_, _, err = b.store.ListAudit(b.Context(), catalog.AuditQuery{Oldest: true, Limit: 100})
		b.must(err)
		if n, err := b.store.SweepRecords(b.Context(), catalog.Keep{}); n != 0 || err != nil {
			b.Errorf("%d records go although everything stays (%v)", n, err)
		}
		n, err := b.store.SweepRecords(b.Context(), catalog.Keep{Audit: time.Hour, Events: 24 * time.Hour, Jobs: time.Hour, Metrics: time.Hour})
		b.must(err)
		if n != 4 {
			b.Errorf("%d records are gone, want two events and two rows of the audit", n)
		}
		left, feed, err := b.store.ListEvents(b.Context(), catalog.EventQuery{Limit: 100})
		b.must(err)
		if len(left) != 1 || left[0].Operation != "update-warehouse" || feed.Removed != before[1].Position {
			b.Errorf("left are %+v, removed through %d", left, feed.Removed)
		}
		rows, feed, err := b.store.ListAudit(b.Context(), catalog.AuditQuery{Oldest: true, Limit: 100})
		b.must(err)
		if len(rows) != 1 || feed.Removed == 0 {
			b.Errorf("left in the audit are %+v, removed through %d", rows, feed.Removed)
		}
	}},
}

func auditFilters(b *bench) {
	b.namespace("a")
	denial := func(operation, subject string, when time.Time, c catalog.Caller) {
		b.must(b.store.RecordDenial(b.Context(), catalog.Denial{At: when, Operation: operation, Subject: subject, Caller: c, Warehouse: b.warehouse.ID}))
	}
	bob := b.principal
	bob.Name = "bob"
	denial("load-table", "a.t", at.Add(time.Hour), catalog.Caller{Principal: bob, RequestID: "r-2"})
	denial("load-view", "a.v", at.Add(2*time.Hour), catalog.Caller{Principal: bob, RequestID: "r-3"})
	yes, no := true, false
	for _, c := range []struct {
		name string
		f    catalog.AuditFilter
		want int
	}{
		{"everything", catalog.AuditFilter{}, 4}, {"principal", catalog.AuditFilter{Principal: "bob"}, 2},
		{"a name that cannot be", catalog.AuditFilter{Principal: "bob\x00"}, 0}, {"operation", catalog.AuditFilter{Operation: "load-view"}, 1},
		{"subject", catalog.AuditFilter{Subject: "a.t"}, 1}, {"request", catalog.AuditFilter{RequestID: "r-3"}, 1},
		{"allowed", catalog.AuditFilter{Allowed: &yes}, 2}, {"refused", catalog.AuditFilter{Allowed: &no}, 2},
		{"warehouse", catalog.AuditFilter{WarehouseID: uuid.New()}, 0}, {"securable", catalog.AuditFilter{SecurableID: uuid.New()}, 0},
		{"since", catalog.AuditFilter{Since: at.Add(time.Hour)}, 2}, {"until", catalog.AuditFilter{Until: at.Add(time.Hour)}, 2},
		{"several", catalog.AuditFilter{Principal: "bob", Since: at.Add(2 * time.Hour), WarehouseID: b.warehouse.ID}, 1},
	} {
		for _, oldest := range []bool{true, false} {
			rows, _, err := b.store.ListAudit(b.Context(), catalog.AuditQuery{AuditFilter: c.f, Oldest: oldest, Limit: 100})
			b.must(err)
			if len(rows) != c.want {
				b.Errorf("%s (oldest first: %v): %d rows, want %d", c.name, oldest, len(rows), c.want)
			}
		}
	}
}
