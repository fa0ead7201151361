package catalogtest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// webhookPromises are about webhooks and what is delivered to them.
var webhookPromises = []promise{
	{"WebhooksAreKept", webhooksAreKept},
	{"WebhooksThatAreNotThere", func(b *bench) {
		b.leavesNoTrace(func() {
			id := uuid.New()
			_, err := b.admin.FindWebhook(b.Context(), id)
			b.refused(err, fault.NotFound, "")
			b.refused(b.admin.UpdateWebhook(b.Context(), id, enabled(true), b.fact("update-webhook", "h")), fault.NotFound, "")
			b.refused(b.admin.DropWebhook(b.Context(), id, b.fact("drop-webhook", "h")), fault.NotFound, "")
			_, err = b.admin.RedeliverWebhook(b.Context(), id, uuid.Nil, b.fact("redeliver-webhook", "h"))
			b.refused(err, fault.NotFound, "")
			w := hook(uuid.New(), "none")
			b.refused(b.admin.CreateWebhook(b.Context(), w, b.fact("create-webhook", "h")), fault.NoSuchWarehouse, "")
		})
	}},
	{"WebhooksGoWithTheirWarehouse", func(b *bench) {
		other := b.addWarehouse("other", "s3://other/base")
		w := b.hook(hook(other.ID, other.Name))
		b.must(b.store.DropWarehouse(b.Context(), other.ID, b.fact("drop-warehouse", "other")))
		_, err := b.admin.FindWebhook(b.Context(), w.ID)
		b.refused(err, fault.NotFound, "")
	}},
	{"WebhookSecretsAreResealedOnce", func(b *bench) {
		w := b.hook(hook(uuid.Nil, ""))
		b.must(b.admin.ResealWebhook(b.Context(), w.ID, []byte("another"), []byte("lost")))
		b.must(b.admin.ResealWebhook(b.Context(), w.ID, w.Sealed, []byte("fresh")))
		if got := b.webhook(w.ID); string(got.Sealed) != "fresh" {
			b.Errorf("the secret is %q", got.Sealed)
		}
	}},
	{"AWebhookIsOneDeliverers", func(b *bench) {
		w := b.hook(hook(b.warehouse.ID, "w"))
		d := b.deliveries()
		b.namespace("a")
		first := b.claim()
		if first == nil || first.ID != w.ID || first.Lease <= 0 {
			b.Fatalf("claimed %+v", first)
		}
		if second := b.claim(); second != nil {
			b.Fatalf("claimed twice: %+v", second)
		}
		b.must(d.ReleaseWebhook(b.Context(), *first, catalog.WebhookRelease{}))
		second := b.claim()
		if second == nil || second.Epoch <= first.Epoch {
			b.Fatalf("after a release: %+v", second)
		}
		b.refused(d.MarkWebhook(b.Context(), *first, catalog.WebhookMark{Position: first.Through}), fault.VersionConflict, "")
		b.must(d.ReleaseWebhook(b.Context(), *first, catalog.WebhookRelease{Disabled: first.DisabledFact(at, "gone")}))
		if third := b.claim(); third != nil {
			b.Errorf("who has lost the lease gave it back: %+v", third)
		}
		if !b.webhook(w.ID).Enabled || len(b.events("disable-webhook")) != 0 {
			b.Error("who has lost the lease disabled the webhook")
		}
		b.must(b.admin.UpdateWebhook(b.Context(), w.ID, enabled(true), b.fact("update-webhook", "h")))
		b.refused(d.MarkWebhook(b.Context(), *second, catalog.WebhookMark{Position: 1}), fault.VersionConflict, "")
		if b.claim() == nil {
			b.Error("a change does not take the webhook from who has it")
		}
	}},
	{"DeliveriesGoOnWhereTheyWere", func(b *bench) {
		b.hook(hook(b.warehouse.ID, "w"))
		d := b.deliveries()
		b.namespace("a")
		b.namespace("b")
		c := b.claim()
		work := b.work(c)
		if got := operationsOf(work.Fresh); !slices.Equal(got, []string{"create-webhook", "create-namespace", "create-namespace"}) || !work.Open {
			b.Fatalf("fresh %v", got)
		}
		b.must(d.MarkWebhook(b.Context(), *c, catalog.WebhookMark{Position: work.Fresh[1].Position, Delivered: true}))
		b.must(d.ReleaseWebhook(b.Context(), *c, catalog.WebhookRelease{}))
		c = b.claim()
		if rest := b.work(c).Fresh; len(rest) != 1 || rest[0].ID != work.Fresh[2].ID {
			b.Errorf("left are %+v", rest)
		}
		b.must(d.MarkWebhook(b.Context(), *c, catalog.WebhookMark{Position: c.Through, Delivered: true}))
		b.must(d.ReleaseWebhook(b.Context(), *c, catalog.WebhookRelease{}))
		if again := b.claim(); again != nil {
			b.Errorf("there is work left: %+v", again)
		}
		if w := b.webhook(c.ID); w.Behind != 0 || w.DeliveredAt.IsZero() || w.Failures != 0 {
			b.Errorf("%+v", w)
		}
	}},
	{"FailuresWaitInOrder", failuresWait},
	{"AWarehouseLeavesWebhooksToOthers", func(b *bench) {
		for range catalog.WebhooksOfWarehouseMax {
			b.hook(hook(b.warehouse.ID, "w"))
		}
		b.leavesNoTrace(func() {
			err := b.admin.CreateWebhook(b.Context(), hook(b.warehouse.ID, "w"), b.fact("create-webhook", "h"))
			b.refused(err, fault.BadRequest, "")
		})
		other := b.addWarehouse("other", "s3://other/base")
		b.hook(hook(other.ID, other.Name))
		b.hook(hook(uuid.Nil, ""))
	}},
	{"WebhooksTellOfTheirOwnEventsAlone", func(b *bench) {
		w := hook(b.warehouse.ID, "w")
		w.Filter.Operations = []string{"create-namespace"}
		b.hook(w)
		b.addWarehouse("other", "s3://other/base")
		if got := b.webhook(w.ID).Behind; got != 0 {
			b.Errorf("it is %d behind by what is not for it", got)
		}
		b.namespace("a")
		b.namespace("b")
		if got := b.webhook(w.ID).Behind; got != 2 {
			b.Errorf("it is %d behind, want 2", got)
		}
	}},
	{"TurnsOrderTheEventsOfOneThing", turnsOrder},
	{"WebhooksRestAndAreDisabled", func(b *bench) {
		w := b.hook(hook(b.warehouse.ID, "w"))
		d := b.deliveries()
		b.namespace("a")
		b.must(d.ReleaseWebhook(b.Context(), *b.claim(), catalog.WebhookRelease{Delay: time.Hour}))
		if c := b.claim(); c != nil {
			b.Fatalf("one that rests is claimed: %+v", c)
		}
		w = b.webhook(w.ID)
		b.must(b.admin.UpdateWebhook(b.Context(), w.ID, enabled(true), b.fact("update-webhook", "h")))
		c := b.claim()
		b.must(d.ReleaseWebhook(b.Context(), *c, catalog.WebhookRelease{Problem: "gone", Disabled: c.DisabledFact(at, "gone")}))
		if n := len(b.events("disable-webhook")); n != 1 {
			b.Errorf("%d events of a webhook that was disabled", n)
		}
		if w = b.webhook(w.ID); w.Enabled || w.Problem != "gone" {
			b.Errorf("%+v", w)
		}
		if c := b.claim(); c != nil {
			b.Fatalf("one that is disabled is claimed: %+v", c)
		}
		b.must(b.admin.UpdateWebhook(b.Context(), w.ID, enabled(true), b.fact("update-webhook", "h")))
		if w = b.webhook(w.ID); !w.Enabled || w.Problem != "" || b.claim() == nil {
			b.Errorf("%+v is not enabled again", w)
		}
	}},
	{"EventsAreRedelivered", redelivered},
}

func enabled(yes bool) catalog.WebhookChange { return catalog.WebhookChange{Enabled: &yes} } //nolint:revive // it is what is stored

func hook(warehouse uuid.UUID, name string) catalog.Webhook {
	return catalog.Webhook{
		ID: uuid.New(), URL: "https://hooks.example.com/x?token=1", Sealed: []byte("sealed"), WarehouseID: warehouse, Warehouse: name,
		Enabled: true, CreatedBy: "alice", CreatedAt: at,
	}
}

func (b *bench) hook(w catalog.Webhook) catalog.Webhook {
	b.Helper()
	b.must(b.admin.CreateWebhook(b.Context(), w, b.fact("create-webhook", "hooks.example.com")))
	return w
}

func (b *bench) webhook(id uuid.UUID) catalog.Webhook {
	b.Helper()
	w, err := b.admin.FindWebhook(b.Context(), id)
	b.must(err)
	return w
}

func (b *bench) deliveries() catalog.DeliveryStore {
	b.Helper()
	return storeAs[catalog.DeliveryStore](b)
}

func (b *bench) claim() *catalog.WebhookClaim {
	b.Helper()
	c, err := b.deliveries().ClaimWebhook(b.Context())
	b.must(err)
	return c
}

func (b *bench) work(c *catalog.WebhookClaim) catalog.WebhookWork {
	b.Helper()
	if c == nil {
		b.Fatal("nothing was claimed")
	}
	work, err := b.deliveries().WebhookWork(b.Context(), *c, 100)
	b.must(err)
	return work
}

func operationsOf(events []catalog.EventRow) (all []string) {
	for _, e := range events {
		all = append(all, e.Operation)
	}
	return all
}

func webhooksAreKept(b *bench) {
	everywhere, here := hook(uuid.Nil, ""), hook(b.warehouse.ID, "w")
	here.Filter = catalog.WebhookFilter{Operations: []string{"commit-table"}, Subject: "a.t"}
	here.CreatedAt = at.Add(time.Hour)
	b.hook(everywhere)
	b.hook(here)
	all, err := b.admin.ListWebhooks(b.Context(), uuid.Nil)
	b.must(err)
	some, err := b.admin.ListWebhooks(b.Context(), b.warehouse.ID)
	b.must(err)
	if len(all) != 2 || all[0].ID != everywhere.ID || len(some) != 1 {
		b.Fatalf("all %+v, of the warehouse %+v", all, some)
	}
	got := some[0]
	if got.Position != 2 {
		b.Errorf("it begins at %d, want behind the events of the warehouse and of the other webhook", got.Position)
	}
	got.Position, got.Behind = 0, 0
	if !reflect.DeepEqual(got, here) {
		b.Errorf("got  %+v\nwant %+v", got, here)
	}
	// Each change leaves what it does not name as it is by then, whatever its maker has read before.
	address := "https://other.example.com"
	for _, change := range []catalog.WebhookChange{{URL: &address}, enabled(false), {Filter: &catalog.WebhookFilter{}}} {
		b.must(b.admin.UpdateWebhook(b.Context(), here.ID, change, b.fact("update-webhook", "h")))
	}
	if got = b.webhook(here.ID); got.URL != address || got.Enabled || len(got.Filter.Operations) != 0 {
		b.Errorf("changed: %+v", got)
	}
	if c := b.claim(); c == nil || c.ID != everywhere.ID || string(c.Sealed) != "sealed" {
		b.Errorf("claimed %+v", c)
	}
	b.must(b.admin.DropWebhook(b.Context(), everywhere.ID, b.fact("drop-webhook", "h")))
	if c := b.claim(); c != nil {
		b.Errorf("one that is not enabled is claimed: %+v", c)
	}
	if n := len(b.events("create-webhook")) + len(b.events("update-webhook")) + len(b.events("drop-webhook")); n != 6 {
		b.Errorf("%d events of webhooks, want 6", n)
	}
}

// turnsOrder reads after each change, and after several.
func turnsOrder(b *bench) {
	lanes := []uuid.UUID{uuid.New(), uuid.New()}
	change := func(n int) {
		f := b.fact("commit-table", "a.t")
		f.Securable = lanes[n]
		b.must(b.store.UpdateWarehouse(b.Context(), b.warehouse, f))
		b.warehouse.Version++
	}
	for n := range 12 {
		change(n % 2)
		if n%3 == 0 {
			_, _, err := b.store.ListEvents(b.Context(), catalog.EventQuery{Limit: 1})
			b.must(err)
		}
	}
	for _, lane := range lanes {
		events, _, err := b.store.ListEvents(b.Context(), catalog.EventQuery{Limit: 100, EventFilter: catalog.EventFilter{SecurableID: lane}})
		b.must(err)
		last := int64(0)
		for _, e := range events {
			if e.Turn <= last {
				b.Errorf("turn %d comes behind %d", e.Turn, last)
			}
			last = e.Turn
		}
		if len(events) != 6 {
			b.Errorf("%d events, want 6", len(events))
		}
	}
}

func failuresWait(b *bench) {
	w := b.hook(hook(b.warehouse.ID, "w"))
	d := b.deliveries()
	lane, other := uuid.New(), uuid.New()
	for i := range 3 {
		f := b.fact("commit-table", fmt.Sprint("a.t", i))
		if f.Securable = lane; i == 2 {
			f.Securable = other
		}
		b.must(b.store.UpdateWarehouse(b.Context(), b.warehouse, f))
		b.warehouse.Version++
	}
	c := b.claim()
	events := b.work(c).Fresh[1:]
	put := func(position int64, e catalog.EventRow, attempts int, dead bool, delay time.Duration) {
		b.Helper()
		problem := ""
		if attempts > 0 {
			problem = "the receiver answered 500"
		}
		b.must(d.MarkWebhook(b.Context(), *c, catalog.WebhookMark{
			Position: position, Problem: problem, Delay: delay,
			Put: []catalog.Delivery{{Event: e, Position: e.Position, Lane: e.SecurableID, Attempts: attempts, Problem: problem, Dead: dead}},
		}))
	}
	put(events[0].Position, events[0], 1, false, time.Hour)
	put(events[1].Position, events[1], 0, false, 0)
	if work := b.work(c); len(work.Due) != 0 || !slices.Equal(work.Blocked, []uuid.UUID{lane}) {
		b.Errorf("the second of a table is tried before the first: %+v", work)
	}
	if got := b.webhook(w.ID); got.Failures != 1 || got.Problem != "the receiver answered 500" || got.Waiting != 2 {
		b.Errorf("%+v", got)
	}
	put(0, events[0], 2, false, 0)
	work := b.work(c)
	if len(work.Due) != 1 || work.Due[0].Event.ID != events[0].ID || work.Due[0].Attempts != 2 || work.Due[0].FirstAt.IsZero() ||
		!strings.HasPrefix(work.Due[0].Event.Subject, "a.t0") {
		b.Fatalf("due are %+v", work.Due)
	}
	put(0, events[0], 3, true, 0)
	work = b.work(c)
	if len(work.Due) != 1 || work.Due[0].Event.ID != events[1].ID {
		b.Errorf("behind one that was given up are due %+v", work.Due)
	}
	b.must(d.MarkWebhook(b.Context(), *c, catalog.WebhookMark{Done: events[1].Position, Delivered: true}))
	if work = b.work(c); len(work.Due) != 0 || len(work.Blocked) != 0 {
		b.Errorf("still waiting: %+v", work)
	}
	list, err := b.admin.ListDeliveries(b.Context(), w.ID, 10)
	b.must(err)
	if len(list) != 1 || !list[0].Dead || list[0].Problem != "the receiver answered 500" || list[0].Attempts != 3 {
		b.Errorf("kept are %+v", list)
	}
	if got := b.webhook(w.ID); got.Dead != 1 || got.Waiting != 0 {
		b.Errorf("%+v", got)
	}
}

func redelivered(b *bench) {
	w := b.hook(hook(b.warehouse.ID, "w"))
	d := b.deliveries()
	b.namespace("a")
	b.namespace("b")
	c := b.claim()
	events := b.work(c).Fresh
	redeliver := func(event uuid.UUID) (int, error) {
		return b.admin.RedeliverWebhook(b.Context(), w.ID, event, b.fact("redeliver-webhook", "h"))
	}
	b.must(d.MarkWebhook(b.Context(), *c, catalog.WebhookMark{Position: events[0].Position, Delivered: true}))
	_, err := redeliver(events[2].ID)
	b.refused(err, fault.NotFound, "") // its turn comes
	_, err = redeliver(uuid.New())
	b.refused(err, fault.NotFound, "")
	b.must(d.MarkWebhook(b.Context(), *c, catalog.WebhookMark{Position: events[1].Position, Problem: "no", Put: []catalog.Delivery{
		{Event: events[1], Position: events[1].Position, Lane: events[1].SecurableID, Attempts: 9, Problem: "no", Dead: true},
	}}))
	b.must(d.MarkWebhook(b.Context(), *c, catalog.WebhookMark{Position: c.Through, Delivered: true}))
	b.must(d.ReleaseWebhook(b.Context(), *c, catalog.WebhookRelease{Delay: time.Hour}))
	if n, err := redeliver(uuid.Nil); n != 1 || err != nil {
		b.Fatalf("%d are sent again (%v), want the one that was given up", n, err)
	}
	if n, err := redeliver(events[2].ID); n != 1 || err != nil {
		b.Fatalf("%d are sent again (%v), want the one that was named", n, err)
	}
	if n, err := redeliver(uuid.Nil); n != 0 || err != nil {
		b.Errorf("%d that were given up are left (%v)", n, err)
	}
	c = b.claim()
	due := b.work(c).Due
	if len(due) != 1 || due[0].Attempts != 0 || due[0].Event.ID != events[1].ID {
		b.Fatalf("due are %+v, want the first of the two", due)
	}
	b.must(d.MarkWebhook(b.Context(), *c, catalog.WebhookMark{Done: due[0].Position, Delivered: true}))
	if due = b.work(c).Due; len(due) != 1 || due[0].Event.ID != events[2].ID {
		b.Errorf("then are due %+v", due)
	}
	// Another warehouse's events are nobody's here.
	other := b.addWarehouse("other", "s3://other/base")
	foreign := b.events("create-warehouse")
	b.must(d.MarkWebhook(b.Context(), *c, catalog.WebhookMark{Position: 1 << 40}))
	for _, e := range foreign {
		if e.Warehouse != other.ID {
			continue
		}
		_, err := redeliver(e.ID)
		b.refused(err, fault.NotFound, "")
	}
}
