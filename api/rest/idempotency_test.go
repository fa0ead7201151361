package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"catalogd/api"
	"catalogd/authz"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
)

// unkeyed are mutations that a key does not protect: what is told twice is told twice.
var unkeyed = map[string]string{"report-metrics": "a report changes no table", "issue-token": "is no part of a warehouse", "revoke-token": "is no part of a warehouse"}

// keyedRows are the rows whose repeats are answered from what is kept.
func keyedRows() (rows []api.Endpoint) {
	for _, e := range (&handlers{}).served() {
		if e.Method != http.MethodGet && e.Method != http.MethodHead && unkeyed[e.Operation] == "" {
			rows = append(rows, e)
		}
	}
	return rows
}

// keyed sends a request under a key.
func (d *door) keyed(t *testing.T, key uuid.UUID, method, target, body string) answer {
	t.Helper()
	return d.send(t, method, target, body, "Idempotency-Key", key.String())
}

func sameAnswer(a, b answer) bool {
	return a.status == b.status && a.body == b.body && a.header.Get("ETag") == b.header.Get("ETag")
}

// Every mutation: the repeat is answered as the first was and changes nothing; the same key on another request is
// refused; the key of somebody else is another key; the key in the other case is the same.
func TestField_C090_RepeatsOfEveryMutation(t *testing.T) {
	for _, e := range keyedRows() {
		l := newLake(t)
		l.furnish(t, "a")
		l.addPrincipal(t, "bob", "service_admin")
		target, body := requestOf(e, "a")
		key := uuid.New()
		first := l.keyed(t, key, e.Method, target, body)
		if first.status >= 300 {
			t.Errorf("%s: %d %s", e.Operation, first.status, first.body)
			continue
		}
		events, files := l.traces()
		for _, text := range []string{key.String(), strings.ToUpper(key.String())} {
			again := l.send(t, e.Method, target, body, "Idempotency-Key", text)
			if !sameAnswer(first, again) {
				t.Errorf("%s: first %d %s, again %d %s", e.Operation, first.status, first.body, again.status, again.body)
			}
		}
		if other := l.keyed(t, key, e.Method, target+"?other=1", body); other.status != 422 || other.errorType() != "UnprocessableEntityException" {
			t.Errorf("%s: another request under the key: %d %s", e.Operation, other.status, other.body)
		}
		if eventsNow, filesNow := l.traces(); eventsNow != events || filesNow != files {
			t.Errorf("%s: the repeats left %d events and %d files", e.Operation, eventsNow-events, filesNow-files)
		}
		if bobs := l.as("bob").keyed(t, key, e.Method, target, body); bobs.status == 422 {
			t.Errorf("%s: somebody else's key is not his own: %s", e.Operation, bobs.body)
		}
	}
}

// A final refusal is given again though its reason has gone.
func TestField_C090_RefusalsAreKept(t *testing.T) {
	l := newLake(t)
	l.furnish(t, "a")
	key := uuid.New()
	first := l.keyed(t, key, "DELETE", namespacesOfLake+"/a", "")
	if first.status != 409 || first.errorType() != "NamespaceNotEmptyException" {
		t.Fatalf("%d %s", first.status, first.body)
	}
	l.expect(t, "DELETE", namespacesOfLake+"/a/tables/t", "", 204, "")
	l.expect(t, "DELETE", namespacesOfLake+"/a/views/v", "", 204, "")
	if again := l.keyed(t, key, "DELETE", namespacesOfLake+"/a", ""); !sameAnswer(first, again) {
		t.Errorf("again: %d %s", again.status, again.body)
	}
	l.expect(t, "DELETE", namespacesOfLake+"/a", "", 204, "")
}

// What may be different the next time is not kept: 401, 403, 503 and 500 are answered anew, and then it is done.
func TestField_C090_PassingRefusalsAreNotKept(t *testing.T) {
	for _, e := range keyedRows() {
		l := newLake(t)
		l.furnish(t, "a")
		target, body := requestOf(e, "a")
		key := uuid.New()
		if a := l.as("").keyed(t, key, e.Method, target, body); a.status != 401 {
			t.Errorf("%s by a stranger: %d", e.Operation, a.status)
		}
		l.addPrincipal(t, "carl", "")
		if a := l.as("carl").keyed(t, key, e.Method, target, body); a.status != 403 {
			t.Errorf("%s without rights: %d %s", e.Operation, a.status, a.body)
		}
		for _, kind := range []fault.Kind{fault.Busy, fault.Internal, fault.RateLimited} {
			l.store.Inject(catalogtest.FailMethod("Resolve", fault.Wrap(kind, errors.New("cause"), "not now")))
			status, _ := api.WireError(kind)
			if a := l.keyed(t, key, e.Method, target, body); a.status != status {
				t.Errorf("%s while the store says %s: %d %s", e.Operation, kind, a.status, a.body)
			}
		}
		l.store.Inject(nil)
		if a := l.keyed(t, key, e.Method, target, body); a.status >= 300 {
			t.Errorf("%s afterwards: %d %s", e.Operation, a.status, a.body)
		}
	}
}

// Who has no rights any more gets no answer out of his old request.
func TestField_C090_ReplaysAskForRights(t *testing.T) {
	l := newLake(t)
	l.furnish(t, "a")
	l.letOnly(t, "maker", authz.TableCreate)
	key := uuid.New()
	target := namespacesOfLake + "/a/tables"
	if a := l.as("maker").keyed(t, key, "POST", target, createBody("mine")); a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	w, err := l.store.FindWarehouse(t.Context(), "lake")
	if err != nil {
		t.Fatal(err)
	}
	role, err := l.store.FindRole(t.Context(), w.ID, "makers")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.store.DropRole(t.Context(), role, fact("drop-role")); err != nil {
		t.Fatal(err)
	}
	if a := l.as("maker").keyed(t, key, "POST", target, createBody("mine")); a.status != 403 {
		t.Errorf("%d %s", a.status, a.body)
	}
	refused := uuid.New()
	if a := l.keyed(t, refused, "POST", target, createBody("t")); a.status != 409 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if err := l.store.DropPrincipal(t.Context(), idOf("ann"), fact("drop-principal")); err != nil {
		t.Fatal(err)
	}
	for _, k := range []uuid.UUID{key, refused} {
		if a := l.keyed(t, k, "POST", target, createBody("t")); a.status != 401 {
			t.Errorf("a principal that was deleted: %d %s", a.status, a.body)
		}
	}
}

// Requests of one key at the same time: one runs, the others wait for it and are answered alike.
func TestField_C090_DuplicatesAtOnce(t *testing.T) {
	for _, e := range keyedRows() {
		l := newLake(t)
		l.furnish(t, "a")
		events, _ := l.traces()
		target, body := requestOf(e, "a")
		key := uuid.New()
		answers := make([]answer, 8)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = l.keyed(t, key, e.Method, target, body) })
		}
		all.Wait()
		for _, a := range answers {
			if a.status >= 300 || !sameAnswer(a, answers[0]) {
				t.Errorf("%s: %d %s beside %d %s", e.Operation, a.status, a.body, answers[0].status, answers[0].body)
			}
		}
		if eventsNow, _ := l.traces(); eventsNow != events+1 {
			t.Errorf("%s: %d events of one request", e.Operation, eventsNow-events)
		}
	}
}

// The repeat of a commit is answered as the commit was, though the table went on; it does not go back.
func TestTrap12_TheRepeatOfALandedCommit(t *testing.T) {
	l := newLake(t)
	l.furnish(t, "a")
	key, target := uuid.New(), namespacesOfLake+"/a/tables/t"
	first := l.keyed(t, key, "POST", target, setProperty)
	l.expect(t, "POST", target, strings.ReplaceAll(setProperty, `"v"`, `"later"`), 200, "")
	again := l.keyed(t, key, "POST", target, setProperty)
	if first.status != 200 || !sameAnswer(first, again) {
		t.Errorf("first %d %s\nagain %d %s", first.status, first.body, again.status, again.body)
	}
	if now := l.expect(t, "GET", target, "", 200, ""); !strings.Contains(now.body, `"k":"later"`) {
		t.Errorf("the repeat changed the table: %s", now.body)
	}
}

func TestConfig_AnnouncesTheLifeOfKeys(t *testing.T) {
	a := newLake(t).expect(t, "GET", "/api/catalog/v1/config?warehouse=lake", "", 200, "")
	if got := fmt.Sprint(a.json()["idempotency-key-lifetime"]); got != "PT24H" {
		t.Errorf("%q in %s", got, a.body)
	}
}

// The client goes away while its commit is being written. The commit is finished without it, and when the client comes
// back with its key, it is answered.
func TestManners_ClientLeavesDuringItsCommit(t *testing.T) {
	l := newLake(t)
	l.furnish(t, "a")
	writing, gone := make(chan struct{}), make(chan struct{})
	l.files.Inject(func(method string, _ int) (f catalogtest.Failure) {
		if method == "WriteMetadata" {
			close(writing)
			<-gone
		}
		return f
	})
	ctx, leave := context.WithCancel(t.Context())
	key, target := uuid.New(), namespacesOfLake+"/a/tables/t"
	r, err := http.NewRequestWithContext(ctx, "POST", l.server.URL+target, strings.NewReader(setProperty))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer ann")
	r.Header.Set("Idempotency-Key", key.String())
	answered := make(chan error, 1)
	go func() {
		res, err := l.server.Client().Do(r)
		if err == nil {
			_ = res.Body.Close()
		}
		answered <- err
	}()
	<-writing
	leave()
	if err := <-answered; err == nil {
		t.Fatal("the client had an answer before it left")
	}
	close(gone)
	again := l.keyed(t, key, "POST", target, setProperty) // it waits for the first one
	if again.status != 200 || !strings.Contains(again.body, `"k":"v"`) {
		t.Errorf("%d %s", again.status, again.body)
	}
	commits := 0
	for _, e := range l.store.Events() {
		if e.Operation == "commit-table" {
			commits++
		}
	}
	if commits != 1 {
		t.Errorf("%d commits", commits)
	}
}
