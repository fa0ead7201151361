package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
)

// desk is a store with a clock of the test's own, and a receiver.
type desk struct {
	*receiver
	store *catalogtest.Store
	now   time.Time
	hook  catalog.Webhook
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{receiver: newReceiver(t), store: catalogtest.NewStore(), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	d.store.Now = func() time.Time { return d.now }
	d.hook = catalog.Webhook{ID: uuid.New(), URL: d.URL, Enabled: true, CreatedBy: "ann", CreatedAt: d.now,
		Filter: catalog.WebhookFilter{Operations: []string{"commit-table"}}}
	if err := d.store.CreateWebhook(t.Context(), d.hook, d.fact("create-webhook", "h", uuid.New())); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) fact(operation, subject string, securable uuid.UUID) catalog.Fact {
	return catalog.Fact{ID: uuid.New(), At: d.now, Operation: operation, Subject: subject, Securable: securable,
		Caller: catalog.Caller{Principal: auth.Principal{Name: "ann"}}}
}

// happen writes an event of a table.
func (d *desk) happen(t testing.TB, subject string, table uuid.UUID) {
	t.Helper()
	w := d.hook
	w.ID = uuid.New() // one that nothing is sent to carries the event
	w.Enabled = false
	if err := d.store.CreateWebhook(t.Context(), w, d.fact("commit-table", subject, table)); err != nil {
		t.Fatal(err)
	}
	if err := d.store.DropWebhook(t.Context(), w.ID, d.fact("drop-webhook", "h", w.ID)); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) deliverer() *Deliverer {
	return New(Config{
		Store: d.store, Sender: NewSender(true, func() time.Time { return d.now }), Now: func() time.Time { return d.now },
		OpenSecret: func(catalog.Webhook) ([]byte, error) { return secret, nil }, Log: slog.New(slog.DiscardHandler), RetryDelay: time.Second,
	})
}

// work runs until nothing is to be done at this moment.
func (d *desk) work(t testing.TB, one *Deliverer) {
	t.Helper()
	for n := 0; ; n++ {
		worked, err := one.RunOnce(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !worked {
			return
		}
		if n > 10_000 {
			t.Fatal("it works without an end")
		}
	}
}

func (d *desk) state(t testing.TB) catalog.Webhook {
	t.Helper()
	w, err := d.store.FindWebhook(t.Context(), d.hook.ID)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (d *desk) deliveries(t testing.TB) []catalog.Delivery {
	t.Helper()
	all, err := d.store.ListDeliveries(t.Context(), d.hook.ID, 100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// However often and wherever the receiver fails, everything arrives, and of each table in order.
func TestDeliverer_KeepsTheOrderOfEachTable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDesk(t)
		defer d.Close()
		tables := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
		fails := map[string]int{}
		wanted := map[int][]string{}
		for i := range rapid.IntRange(1, 12).Draw(rt, "events") {
			n := rapid.IntRange(0, 2).Draw(rt, "table")
			subject := fmt.Sprintf("t%d.%d", n, i)
			fails[subject] = max(rapid.IntRange(-3, 5).Draw(rt, "failures"), 0)
			wanted[n] = append(wanted[n], subject)
			d.happen(t, subject, tables[n])
		}
		d.answer = func(r received, n int) int {
			if n <= fails[r.subject] {
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}
		one := d.deliverer()
		for range 200 {
			d.work(t, one)
			d.now = d.now.Add(10 * time.Minute)
		}
		taken := d.taken()
		for n, subjects := range wanted {
			var got []string
			for _, s := range taken {
				if strings.HasPrefix(s, fmt.Sprintf("t%d.", n)) {
					got = append(got, s)
				}
			}
			if !slices.Equal(got, subjects) {
				rt.Fatalf("table %d: got %v, want %v", n, got, subjects)
			}
		}
		if w := d.state(t); w.Waiting+w.Dead+w.Behind != 0 || w.Failures != 0 {
			rt.Fatalf("left: %+v", w)
		}
	})
}

// What dies after a message arrived and before that is kept sends it again, with its id; nothing is lost.
func TestDeliverer_RepeatsWhatItDidNotKeep(t *testing.T) {
	d := newDesk(t)
	d.happen(t, "a.t", uuid.New())
	d.store.Inject(catalogtest.FailMethod("MarkWebhook", errors.New("killed")))
	if _, err := d.deliverer().RunOnce(t.Context()); err == nil {
		t.Fatal("nothing failed")
	}
	d.store.Inject(nil)
	d.now = d.now.Add(2 * time.Minute) // the lease, when nobody could give it back
	d.work(t, d.deliverer())
	if len(d.got) != 2 || d.got[0] != d.got[1] {
		t.Errorf("got %+v, want one message twice", d.got)
	}
}

// A deliverer that was held up past its lease marks nothing and sends nothing more.
func TestDeliverer_StopsWhenItsLeaseHasEnded(t *testing.T) {
	d := newDesk(t)
	d.happen(t, "a.t1", uuid.New())
	d.happen(t, "a.t2", uuid.New())
	other := d.deliverer()
	d.before = func(http.ResponseWriter, received) bool {
		d.before = nil
		d.now = d.now.Add(2 * time.Minute)
		return false
	}
	d.work(t, d.deliverer())
	d.work(t, other)
	if got := d.taken(); !slices.Equal(got, []string{"a.t1", "a.t1", "a.t2"}) {
		t.Errorf("got %v", got)
	}
}

// Several deliverers share the work: nothing is sent twice.
func TestDeliverer_TwoDoNotDouble(t *testing.T) {
	d := newDesk(t)
	d.store.Now = time.Now
	const events = 60
	for i := range events {
		d.happen(t, fmt.Sprint("a.t", i), uuid.New())
	}
	done := make(chan struct{})
	d.before = func(http.ResponseWriter, received) bool {
		if len(d.got) == events-1 {
			close(done)
		}
		return false
	}
	for range 2 {
		c := d.deliverer().Config
		c.Now, c.PollEvery = time.Now, time.Millisecond
		one := New(c)
		one.Start()
		defer one.Stop()
	}
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("got %d of %d", len(d.taken()), events)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, n := range d.tries {
		if n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
}

// What the receiver refuses is given up after some tries, with the reason, and the next of its table comes.
func TestDeliverer_GivesUp(t *testing.T) {
	d := newDesk(t)
	table := uuid.New()
	d.happen(t, "a.bad", table)
	d.happen(t, "a.good", table)
	d.answer = func(r received, _ int) int {
		if r.subject == "a.bad" {
			return http.StatusBadRequest
		}
		return http.StatusOK
	}
	one := d.deliverer()
	for range 50 {
		d.work(t, one)
		d.now = d.now.Add(2 * time.Hour)
	}
	left := d.deliveries(t)
	if len(left) != 1 || !left[0].Dead || left[0].Attempts != rejectedMax || left[0].Problem != "the receiver answered 400" ||
		!slices.Equal(d.taken(), []string{"a.good"}) {
		t.Fatalf("left %+v, got %v", left, d.taken())
	}
	// It is asked for again, and has its id still.
	id := left[0].Event.ID
	d.answer = nil
	if n, err := d.store.RedeliverWebhook(t.Context(), d.hook.ID, uuid.Nil, d.fact("redeliver-webhook", "h", d.hook.ID)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	d.work(t, one)
	if last := d.got[len(d.got)-1]; last.id != id.String() || d.state(t).Dead != 0 {
		t.Errorf("redelivered %+v", last)
	}
}

// One message that is not taken while others are is tried for days, with pauses, and not for ever.
func TestDeliverer_RestsAndGivesUpAfterDays(t *testing.T) {
	d := newDesk(t)
	d.happen(t, "a.t", uuid.New())
	bad := ""
	d.answer = func(r received, _ int) int {
		if r.subject == "a.t" {
			bad = r.id
			return http.StatusBadGateway
		}
		return http.StatusOK
	}
	one := d.deliverer()
	began, other := d.now, uuid.New()
	until := func(end time.Time) {
		for n := 0; d.now.Before(end); n++ {
			if n%12 == 0 {
				d.happen(t, "a.u", other)
			}
			d.work(t, one)
			d.now = d.now.Add(5 * time.Minute)
		}
	}
	until(began.Add(giveUpAfter - time.Hour))
	if w := d.state(t); w.Waiting != 1 || w.Dead != 0 || !w.Enabled {
		t.Errorf("%+v", w)
	}
	if n, hours := d.tries[bad], int(giveUpAfter.Hours()); n < hours/2 || n > 3*hours {
		t.Errorf("%d tries in %s", n, giveUpAfter)
	}
	until(began.Add(giveUpAfter + 5*time.Hour))
	if w := d.state(t); w.Waiting != 0 || w.Dead != 1 || !w.Enabled {
		t.Errorf("%+v", w)
	}
}

// A receiver that takes nothing for days is sent nothing more, and says why; what it has not got is not lost.
func TestDeliverer_DisablesAfterManyFailures(t *testing.T) {
	d := newDesk(t)
	d.happen(t, "a.t", uuid.New())
	d.happen(t, "a.u", uuid.New())
	d.answer = func(received, int) int { return http.StatusBadGateway }
	one := d.deliverer()
	began := d.now
	for d.state(t).Enabled && d.now.Before(began.Add(2*giveUpAfter)) {
		d.work(t, one)
		d.now = d.now.Add(5 * time.Minute)
	}
	took := d.now.Sub(began)
	if w := d.state(t); w.Enabled || w.Waiting != 2 || w.Dead != 0 || took < 24*time.Hour || took > giveUpAfter ||
		w.Problem != "disabled after 80 failures in a row, the last: the receiver answered 502" {
		t.Fatalf("after %s: %+v", took, w)
	}
	told, _, err := d.store.ListEvents(t.Context(), catalog.EventQuery{Limit: 10, EventFilter: catalog.EventFilter{Operations: []string{"disable-webhook"}}})
	if err != nil || len(told) != 1 || told[0].SecurableID != d.hook.ID || !strings.Contains(string(told[0].Details), "502") {
		t.Errorf("told is %+v (%v)", told, err)
	}
	d.answer = nil
	if err := d.store.UpdateWebhook(t.Context(), d.hook.ID, catalog.WebhookChange{Enabled: &d.hook.Enabled}, d.fact("update-webhook", "h", d.hook.ID)); err != nil {
		t.Fatal(err)
	}
	d.work(t, one)
	if w := d.state(t); len(d.taken()) != 2 || w.Waiting != 0 || w.Problem != "" || !w.Enabled {
		t.Errorf("got %v: %+v", d.taken(), w)
	}
}

// A defect ends a turn, and neither the server nor the webhook.
func TestDeliverer_APanicIsAnError(t *testing.T) {
	d := newDesk(t)
	d.happen(t, "a.t", uuid.New())
	one := d.deliverer()
	one.OpenSecret = func(catalog.Webhook) ([]byte, error) { panic("a defect") }
	if _, err := one.RunOnce(t.Context()); !fault.Is(err, fault.Internal) {
		t.Errorf("a panic is %v", err)
	}
	d.now = d.now.Add(2 * time.Minute) // the lease
	d.work(t, d.deliverer())
	if len(d.taken()) != 1 {
		t.Errorf("got %v", d.taken())
	}
}

func TestDeliverer_DisablesWhatIsGone(t *testing.T) {
	d := newDesk(t)
	d.happen(t, "a.t", uuid.New())
	d.answer = func(received, int) int { return http.StatusGone }
	d.work(t, d.deliverer())
	if w := d.state(t); w.Enabled || !strings.Contains(w.Problem, "410") || len(d.tries) != 1 {
		t.Errorf("%+v", w)
	}
	sealed := newDesk(t)
	sealed.happen(t, "a.t", uuid.New())
	one := sealed.deliverer()
	one.OpenSecret = func(catalog.Webhook) ([]byte, error) { return nil, fault.New(fault.Internal, "no key") }
	sealed.work(t, one)
	if w := sealed.state(t); !w.Enabled || !strings.Contains(w.Problem, "secrets.key") || len(sealed.tries) != 0 {
		t.Errorf("%+v", w)
	}
	sealed.now = sealed.now.Add(secretDelay)
	sealed.work(t, sealed.deliverer()) // a server that has the key
	if w := sealed.state(t); w.Problem != "" || len(sealed.tries) != 1 {
		t.Errorf("%+v", w)
	}
}

// A server that ends lets the message under way arrive and keeps that: an ordinary restart repeats nothing.
func TestDeliverer_StopWaitsForTheMessage(t *testing.T) {
	d := newDesk(t)
	d.store.Now = time.Now
	d.happen(t, "a.t1", uuid.New())
	d.happen(t, "a.t2", uuid.New())
	c := d.deliverer().Config
	c.Now, c.PollEvery, c.Loops = time.Now, time.Millisecond, 1
	one := New(c)
	stopped := make(chan struct{})
	d.before = func(http.ResponseWriter, received) bool {
		d.before = nil
		go func() { one.Stop(); close(stopped) }()
		<-one.stopping
		return false
	}
	one.Start()
	<-stopped
	one.Stop() // again, which does nothing
	if w := d.state(t); len(d.tries) != 1 || w.Behind == 0 || w.DeliveredAt.IsZero() || w.Waiting != 0 {
		t.Errorf("%v: %+v", d.tries, w)
	}
	c.Loops = 0
	d.work(t, New(c))
	if got := d.taken(); !slices.Equal(got, []string{"a.t1", "a.t2"}) {
		t.Errorf("got %v", got)
	}
}

// Ending a server in the middle of a message is no failure of the receiver's.
func TestDeliverer_EndsInTheMiddle(t *testing.T) {
	d := newDesk(t)
	d.happen(t, "a.t", uuid.New())
	ctx, cancel := context.WithCancel(t.Context())
	d.before = func(http.ResponseWriter, received) bool { cancel(); d.before = nil; return false }
	if _, err := d.deliverer().RunOnce(ctx); err != nil {
		t.Error(err)
	}
	if w := d.state(t); w.Failures != 0 || w.Waiting != 0 || w.Behind == 0 {
		t.Errorf("%+v", w)
	}
	d.work(t, d.deliverer()) // at once: the claim was given back
	if w := d.state(t); w.Behind != 0 || len(d.tries) != 1 {
		t.Errorf("%+v", w)
	}
}
