package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// outboxPoints are the steps of the delivery of an event.
var outboxPoints = []string{"webhook-sent"}

// A server is killed when a message has arrived and before it could keep that. The next one sends it again, with its id, and what
// comes behind it after it.
func TestCrash_Webhook(t *testing.T) {
	var mu sync.Mutex
	var ids, bodies []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		ids, bodies = append(ids, r.Header.Get("webhook-id")), append(bodies, string(body))
	}))
	t.Cleanup(receiver.Close)
	arrived := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ids)
	}
	c := newCrashing(t)
	c.start()
	r := c.rest(t)
	management := &rest{t, c.env["CATALOGD_MANAGEMENT_URI"], r.token}
	if status, body := management.call("POST", "/webhooks", map[string]any{"url": receiver.URL, "catalog": "dev", "operations": []string{"create-namespace"}}); status != 201 {
		t.Fatalf("make the webhook: %d %s", status, body)
	}
	for _, point := range outboxPoints {
		c.wishFor(point, "")
		if status, body := r.call("POST", "/dev/namespaces", map[string]any{"namespace": []string{"told"}}); status != 200 && status != 0 {
			t.Fatalf("make a namespace: %d %s", status, body)
		}
		if err := c.cmd.Wait(); !killed(err) {
			t.Fatalf("%s: the server ended with %v:\n%s", point, err, tail(c.log.String(), 20))
		}
	}
	if got := arrived(); len(got) != 1 {
		t.Fatalf("%q arrived before the server died", got)
	}
	c.start()
	db, err := pgx.Connect(t.Context(), c.env["CATALOGD_DEV_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	// Who is dead holds the webhook till its lease ends.
	if _, err := db.Exec(t.Context(), "UPDATE catalogd.webhooks SET lease_until = clock_timestamp(), not_before = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	r = c.rest(t)
	if status, body := r.call("POST", "/dev/namespaces", map[string]any{"namespace": []string{"after"}}); status != 200 {
		t.Fatalf("make another namespace: %d %s", status, body)
	}
	await(t, "the message came again, and the next one", func() bool { return len(arrived()) >= 3 })
	got := arrived()
	if len(got) != 3 || got[0] != got[1] || got[2] == got[1] {
		t.Errorf("messages %q", got)
	}
	if bodies[0] != bodies[1] || !strings.Contains(bodies[0], `"told"`) || !strings.Contains(bodies[2], `"after"`) {
		t.Errorf("bodies %q", bodies)
	}
}
