package manage_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/outbox"
	"catalogd/store"
)

// doorbell is a webhook's receiver that knows nothing of this server but what Standard Webhooks says.
type doorbell struct {
	*httptest.Server
	mu     sync.Mutex
	secret []byte
	rings  []string          // webhook-ids that were taken, in order
	bodies map[string]string // by webhook-id
	wrong  []string          // whose signature was wrong
	refuse func(id, body string) bool
}

func newDoorbell(t *testing.T) *doorbell {
	t.Helper()
	d := &doorbell{bodies: map[string]string{}}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *doorbell) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	defer d.mu.Unlock()
	id := r.Header.Get("webhook-id")
	mac := hmac.New(sha256.New, d.secret)
	mac.Write([]byte(id + "." + r.Header.Get("webhook-timestamp") + "." + string(body)))
	if r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		d.wrong = append(d.wrong, id)
	}
	if d.refuse != nil && d.refuse(id, string(body)) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	d.rings, d.bodies[id] = append(d.rings, id), string(body)
}

// heard gives the operations that arrived, with their subjects.
func (d *doorbell) heard(t *testing.T) (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range d.rings {
		var m struct {
			Type string
			Data struct{ ID, Subject string }
		}
		if err := json.Unmarshal([]byte(d.bodies[id]), &m); err != nil || m.Data.ID != id {
			t.Errorf("%v: %s", err, d.bodies[id])
		}
		all = append(all, m.Type+" "+m.Data.Subject)
	}
	return all
}

// hook makes a webhook for the receiver and gives its path.
func (d *doorbell) hook(t *testing.T, p *person, more string) string {
	t.Helper()
	r := p.want(201, post, "/webhooks", `{"url":`+quote(d.URL+"/x?token=s3cret")+more+`}`)
	secret, _ := r.at(t, "secret").(string)
	text, found := strings.CutPrefix(secret, "whsec_")
	raw, err := base64.StdEncoding.DecodeString(text)
	if !found || err != nil || len(raw) != 32 || r.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%v %s", r.header, r.body)
	}
	d.mu.Lock()
	d.secret = raw
	d.mu.Unlock()
	id, _ := r.at(t, "webhook", "id").(string)
	return "/webhooks/" + id
}

func (o *office) deliverer() *outbox.Deliverer {
	return outbox.New(outbox.Config{
		Store: o.store, Sender: outbox.NewSender(true, nil), OpenSecret: o.service.OpenWebhook, Log: slog.New(slog.DiscardHandler),
		PollEvery: 10 * time.Millisecond, RetryDelay: time.Millisecond,
	})
}

// deliver works until there is nothing to do at this moment.
func (o *office) deliver(one *outbox.Deliverer) {
	o.t.Helper()
	for {
		worked, err := one.RunOnce(o.t.Context())
		if err != nil {
			o.t.Fatal(err)
		}
		if !worked {
			return
		}
	}
}

func newHookedOffice(t *testing.T) *office {
	o := newOffice(t)
	o.plainHooks = true
	o.serve()
	o.open("lake")
	return o
}

func (p *person) changeTable(t *testing.T, name string, n int) {
	t.Helper()
	body := fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"%d"}}]}`, n)
	if r := p.catalogCall(post, "/lake/namespaces/a/tables/"+name, body); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
}

func (p *person) makeTables(t *testing.T, names ...string) {
	t.Helper()
	p.catalogCall(post, "/lake/namespaces", `{"namespace":["a"]}`)
	for _, name := range names {
		if r := p.catalogCall(post, "/lake/namespaces/a/tables", plainTable(name, "")); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
}

// A webhook is made, tried, gets what happens in its warehouse and nothing else, is changed, repeats, and goes.
func TestStory_AWebhookIsToldWhatHappens(t *testing.T) {
	o := newHookedOffice(t)
	o.open("other")
	root, bell := o.admin(), newDoorbell(t)
	path := bell.hook(t, root, `,"catalog":"lake","operations":["create-table","commit-table"]`)
	if r := root.want(200, post, path+"/test", ""); r.at(t, "delivered") != true || bell.heard(t)[0] != "test webhook "+strings.TrimPrefix(path, "/webhooks/") {
		t.Fatalf("%s, heard %v", r.body, bell.heard(t))
	}
	root.makeTables(t, "t")
	root.changeTable(t, "t", 1)
	o.deliver(o.deliverer())
	if got := bell.heard(t)[1:]; !slices.Equal(got, []string{"create-table a.t", "commit-table a.t"}) || len(bell.wrong) > 0 {
		t.Fatalf("heard %v, wrong signatures %v", got, bell.wrong)
	}
	r := root.want(200, get, path, "")
	if r.at(t, "webhook", "behind") != 0.0 || r.at(t, "webhook", "deliveredAt") == nil || strings.Contains(r.body, "whsec") {
		t.Errorf("%s", r.body)
	}
	if r := root.want(200, get, "/webhooks?catalog=other", ""); strings.Contains(r.body, "url") {
		t.Errorf("the other warehouse has %s", r.body)
	}
	// Once more, with the same id.
	root.want(200, post, path+"/redeliver", `{"eventId":`+quote(bell.rings[2])+`}`)
	o.deliver(o.deliverer())
	if bell.rings[len(bell.rings)-1] != bell.rings[2] || len(bell.rings) != 4 {
		t.Errorf("rings %v", bell.rings)
	}
	root.want(404, post, path+"/redeliver", `{"eventId":"`+strings.TrimPrefix(path, "/webhooks/")+`"}`)
	// Switched off it gets nothing, switched on all that was meant for it.
	root.want(200, put, path, `{"enabled":false}`)
	root.changeTable(t, "t", 2)
	o.deliver(o.deliverer())
	if len(bell.rings) != 4 {
		t.Errorf("heard %v", bell.heard(t))
	}
	root.want(200, put, path, `{"enabled":true}`)
	o.deliver(o.deliverer())
	if len(bell.rings) != 5 {
		t.Errorf("heard %v", bell.heard(t))
	}
	root.want(204, del, path, "")
	root.want(404, get, path, "")
	if n := o.count("SELECT count(*) FROM catalogd.audit WHERE subject LIKE '%s3cret%'") + o.count("SELECT count(*) FROM catalogd.events WHERE details::text LIKE '%s3cret%'"); n != 0 {
		t.Errorf("the address is in %d rows", n)
	}
	if strings.Contains(o.log.String(), "s3cret") {
		t.Error("the address is in the log")
	}
}

func TestWebhooks_WhoMayAndWhatMayNot(t *testing.T) {
	o := newHookedOffice(t)
	root, bell := o.admin(), newDoorbell(t)
	path := bell.hook(t, root, `,"catalog":"lake"`)
	everywhere := bell.hook(t, root, ``)
	ann := o.login(o.hire("ann", "hooks"), "")
	for _, at := range []string{path, everywhere, "/webhooks/00000000-0000-4000-8000-000000000000"} {
		for _, call := range [][3]string{{get, at, ""}, {put, at, `{"enabled":false}`}, {del, at, ""}, {post, at + "/test", ""}, {post, at + "/redeliver", ""}} {
			if r := ann.want(403, call[0], call[1], call[2]); strings.Contains(r.body, "lake") || !strings.Contains(r.body, "SERVICE_MANAGE_ACCESS") {
				t.Errorf("%v tells %s", call, r.body)
			}
		}
	}
	ann.want(403, get, "/webhooks", "")
	ann.want(403, get, "/webhooks?catalog=lake", "")
	o.let("hooks", "lake", "CATALOG_MANAGE_ACCESS")
	ann.want(200, get, path, "")
	ann.want(200, get, "/webhooks?catalog=lake", "")
	ann.want(403, get, everywhere, "")
	ann.want(403, post, "/webhooks", `{"url":"https://hooks.example.com"}`)
	ann.want(201, post, "/webhooks", `{"url":"https://hooks.example.com","catalog":"lake"}`)
	for _, body := range []string{
		`{}`, `{"url":"ftp://x"}`, `{"url":"https://"}`, `{"url":"https://u:p@x"}`, `{"url":"https://x/#f"}`, `{"url":"https://x","operations":[""]}`,
		`{"url":"https://` + strings.Repeat("x", 2100) + `"}`, `{"url":"/x"}`,
		`{"url":"https://x","subject":"` + strings.Repeat("x", 4097) + `"}`, `{"url":"https://x","operations":["` + strings.Repeat("x", 101) + `"]}`,
	} {
		root.want(400, post, "/webhooks", body)
	}
	misspelt := `{"url":"https://x","operations":["create-table","comit-table"]}`
	for _, r := range []reply{root.want(400, post, "/webhooks", misspelt), root.want(400, put, path, `{"filter":{"operations":["comit-table"]}}`), root.want(400, get, "/events?operation=comit-table", "")} {
		if !strings.Contains(r.body, "did you mean commit-table?") {
			t.Errorf("%s", r.body)
		}
	}
	root.want(404, post, "/webhooks", `{"url":"https://x","catalog":"none"}`)
	root.want(400, put, path, `{}`)
	root.want(400, put, path, `{"url":"ftp://x"}`)
	root.want(400, get, "/webhooks/x", "")
	o.plainHooks = false
	o.serve()
	if r := o.admin().want(400, post, "/webhooks", `{"url":"http://hooks.example.com"}`); !strings.Contains(r.body, "webhooks.allow_private") {
		t.Errorf("%s", r.body)
	}
	o.admin().want(200, put, path, `{"enabled":false}`)
}

// The key that secrets are sealed with is changed: they are sealed anew at the next start, and signatures stay good.
func TestWebhooks_SecretsOutliveTheKey(t *testing.T) {
	o := newHookedOffice(t)
	root, bell := o.admin(), newDoorbell(t)
	path := bell.hook(t, root, ``)
	if n, err := o.service.ResealWebhooks(t.Context()); n != 0 || err != nil {
		t.Errorf("%d are sealed anew under the same key (%v)", n, err)
	}
	if n := o.count(`SELECT count(*) FROM catalogd.webhooks WHERE position('whsec' in encode(secret, 'escape')) > 0`); n != 0 {
		t.Error("a secret is in the database as it is")
	}
	fresh := auth.NewRingKey()
	both, err := auth.NewRing(fresh, o.ringKey)
	if err != nil {
		t.Fatal(err)
	}
	o.service.Webhooks.Ring = both
	if n, err := o.service.ResealWebhooks(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d are sealed anew (%v)", n, err)
	}
	if o.service.Webhooks.Ring, err = auth.NewRing(fresh); err != nil {
		t.Fatal(err)
	}
	if r := root.want(200, post, path+"/test", ""); r.at(t, "delivered") != true || len(bell.wrong) > 0 {
		t.Errorf("%s", r.body)
	}
}

// Two servers deliver to receivers that fail now and then: everything arrives, of each table in order, and nothing twice
// that was taken.
func TestWebhooks_TwoServersDeliverInOrder(t *testing.T) {
	o := newHookedOffice(t)
	root, bell := o.admin(), newDoorbell(t)
	bell.hook(t, root, `,"operations":["commit-table"]`)
	root.makeTables(t, "t", "u")
	const changes = 12
	tries := 0
	bell.refuse = func(string, string) bool { tries++; return tries%3 == 1 }
	branch := o.branch()
	for _, at := range []*office{o, branch} {
		one := at.deliverer()
		one.Start()
		defer one.Stop()
	}
	for n := range changes {
		root.changeTable(t, []string{"t", "u"}[n%2], n)
	}
	deadline := time.Now().Add(60 * time.Second)
	for len(bell.heard(t)) < changes && time.Now().Before(deadline) {
		// What rests after failures is called at once, as an operator would.
		o.count("WITH due AS (UPDATE catalogd.webhooks SET not_before = now() RETURNING 1), d AS (UPDATE catalogd.webhook_deliveries SET not_before = now() RETURNING 1) SELECT count(*) FROM due")
	}
	bell.mu.Lock()
	defer bell.mu.Unlock()
	seen := map[string]bool{}
	last := map[string]float64{}
	for _, id := range bell.rings {
		var m struct {
			Data struct {
				Subject  string
				Sequence float64
			}
		}
		if err := json.Unmarshal([]byte(bell.bodies[id]), &m); err != nil {
			t.Fatal(err)
		}
		if seen[id] || m.Data.Sequence <= last[m.Data.Subject] {
			t.Errorf("%s of %s at %v comes behind %v, or twice", id, m.Data.Subject, m.Data.Sequence, last[m.Data.Subject])
		}
		seen[id], last[m.Data.Subject] = true, m.Data.Sequence
	}
	if len(seen) != changes || len(last) != 2 {
		t.Errorf("%d of %d events of %d tables arrived", len(seen), changes, len(last))
	}
}

const (
	envVictim     = "CATALOGD_TEST_VICTIM_DATABASE"
	envVictimRing = "CATALOGD_TEST_VICTIM_RING"
)

// TestVictim_Delivers is a process of its own that the next test starts, and kills.
func TestVictim_Delivers(t *testing.T) {
	url := os.Getenv(envVictim)
	if url == "" {
		return // nobody's victim
	}
	s, err := store.Open(t.Context(), store.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := auth.NewRing(os.Getenv(envVictimRing))
	if err != nil {
		t.Fatal(err)
	}
	service := catalog.New(catalog.Config{Store: s, Admin: s, Webhooks: catalog.WebhookConfig{Ring: ring}})
	one := outbox.New(outbox.Config{Store: s, Sender: outbox.NewSender(true, nil), OpenSecret: service.OpenWebhook})
	for t.Context().Err() == nil {
		if _, err := one.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A server is killed when its message has arrived and before it could keep that: another one sends it again, with its id,
// and goes on behind it.
func TestWebhooks_AKilledServersMessageIsRepeated(t *testing.T) {
	o := newHookedOffice(t)
	root, bell := o.admin(), newDoorbell(t)
	bell.hook(t, root, `,"operations":["commit-table"]`)
	root.makeTables(t, "t")
	for n := range 3 {
		root.changeTable(t, "t", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	victim := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestVictim_Delivers$")
	victim.Env = append(os.Environ(), envVictim+"="+o.url, envVictimRing+"="+o.ringKey)
	killed := make(chan struct{})
	n := 0
	bell.mu.Lock() // until the victim is started: it rings from another process
	bell.refuse = func(id, body string) bool {
		if n++; n == 2 {
			bell.rings, bell.bodies[id] = append(bell.rings, id), body // it has arrived
			_ = victim.Process.Kill()
			close(killed)
			return true
		}
		return false
	}
	err := victim.Start()
	bell.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-killed:
	case <-ctx.Done():
		t.Fatal("no second message came")
	}
	_ = victim.Wait() // it was killed
	one := o.deliverer()
	o.deliver(one)
	if got := len(bell.rings); got != 2 {
		t.Fatalf("%d messages while the lease of the killed one holds, want 2", got)
	}
	o.count("WITH ended AS (UPDATE catalogd.webhooks SET lease_until = now() RETURNING 1) SELECT count(*) FROM ended")
	o.deliver(one)
	if len(bell.rings) != 4 || bell.rings[1] != bell.rings[2] || bell.rings[0] == bell.rings[1] || bell.rings[3] == bell.rings[2] {
		t.Errorf("messages %v, want the second twice", bell.rings)
	}
}
