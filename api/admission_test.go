package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// Large bodies in flight are bounded together: one of the maximum fits, the next waits, and then is refused untouched.
func TestServer_LargeBodiesInFlightAreBounded(t *testing.T) {
	entered, leave := make(chan struct{}, 8), make(chan struct{})
	row := publicRow("POST", "/x", func(w http.ResponseWriter, r *http.Request) error {
		if _, err := ReadBody(r); err != nil {
			return err
		}
		if r.Header.Get("Hold") != "" {
			entered <- struct{}{}
			<-leave
		}
		return NoContent(w)
	})
	row.BodyBytesMax = BodyBytesCommit
	ts := newTestServer(t, row)
	ts.admission.wait = 0 // whoever would have to wait is refused
	send := func(body io.Reader, length int64, hold string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/x", body)
		r.ContentLength = length
		r.Header.Set("Hold", hold)
		w := httptest.NewRecorder()
		ts.ServeHTTP(w, r)
		return w
	}
	first := make(chan int, 1)
	go func() { first <- send(strings.NewReader("{}"), BodyBytesCommit, "yes").Code }()
	<-entered

	body := strings.NewReader("{}")
	w := send(body, bodyBytesFree+1, "")
	if e := wireErrorOf(t, w); w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(e.Message, "nothing was changed") {
		t.Errorf("beside the largest: %d %v %+v", w.Code, w.Header(), e)
	}
	if body.Len() != 2 {
		t.Error("a refused body was read")
	}
	large := strings.Repeat("x", bodyBytesFree+1)
	if w := send(strings.NewReader(large), -1, ""); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("of unknown length, beside the largest: %d %s", w.Code, w.Body)
	}
	for _, length := range []int64{-1, bodyBytesFree} {
		if w := send(strings.NewReader(large[:bodyBytesFree]), length, ""); w.Code != 204 {
			t.Errorf("a small one of length %d: %d %s", length, w.Code, w.Body)
		}
	}
	close(leave)
	if status := <-first; status != 204 {
		t.Errorf("the largest: %d", status)
	}
	for _, length := range []int64{-1, BodyBytesCommit, BodyBytesCommit + 1, bodyBytesFree + 1} { // each gives back what it took
		if w := send(strings.NewReader(large), length, ""); w.Code != 204 {
			t.Errorf("of length %d, alone: %d %s", length, w.Code, w.Body)
		}
	}
}

// A counted body that does not arrive does not hold what others wait for.
func TestServer_LargeBodiesMustArrive(t *testing.T) {
	row := publicRow("POST", "/x", func(_ http.ResponseWriter, r *http.Request) error {
		_, err := ReadBody(r)
		return err
	})
	row.BodyBytesMax = BodyBytesCommit
	ts := newTestServer(t, row)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest("POST", "/x", strings.NewReader("{}"))
	r.ContentLength = BodyBytesCommit
	ts.ServeHTTP(w, r)
	if len(w.set) != 2 || w.set[0].IsZero() || time.Until(w.set[0]) > bodyReadMax || !w.set[1].IsZero() {
		t.Errorf("read deadlines were %v", w.set)
	}
}

// deadlines notes the read deadlines of a connection.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// Whoever sends large bodies slowly holds up himself, not others.
func TestAdmission_OneDoesNotHoldUpOthers(t *testing.T) {
	a := newAdmission()
	a.wait = 0
	one, two, three := uuid.New(), uuid.New(), uuid.New()
	take := func(who uuid.UUID, bytes int64) bool {
		err := a.take(t.Context(), who, claim{bytes: bytes})
		if err != nil && !fault.Is(err, fault.Busy) {
			t.Errorf("refused with %v", err)
		}
		return err == nil
	}
	if !take(one, BodyBytesCommit) || take(one, 1) {
		t.Error("one principal may have the largest body in flight, and no more")
	}
	if !take(two, BodyBytesCommit-1) || !take(two, 1) {
		t.Error("another principal was held up")
	}
	if take(three, 1) {
		t.Error("all together are not bounded")
	}
	a.give(one, claim{bytes: BodyBytesCommit})
	if !take(three, 1) {
		t.Error("what was given back is not free")
	}
	a.give(two, claim{bytes: BodyBytesCommit - 1})
	a.give(two, claim{bytes: 1})
	a.give(three, claim{bytes: 1})
	if len(a.shares) != 0 {
		t.Errorf("%d principals are remembered", len(a.shares))
	}
}

// A body of unknown length counts for what has come of it.
func TestAdmission_UnknownLengthCountsAsItComes(t *testing.T) {
	a := newAdmission()
	a.wait = 0
	body := &countedBody{
		ReadCloser: io.NopCloser(strings.NewReader(strings.Repeat("x", 3*bodyBytesStep))), admission: a, ctx: t.Context(),
		w: httptest.NewRecorder(), limit: BodyBytesCommit,
	}
	for _, step := range []struct{ read, counted int64 }{
		{bodyBytesFree, 0}, {bodyBytesFree + 2, bodyBytesStep}, {bodyBytesStep, bodyBytesStep}, {bodyBytesStep + 2, 2 * bodyBytesStep},
	} {
		if _, err := io.CopyN(io.Discard, body, step.read-body.read); err != nil || body.read != step.read || body.total != step.counted {
			t.Errorf("%d bytes read, %d counted, wanted %d and %d: %v", body.read, body.total, step.read, step.counted, err)
		}
	}
	body.release()
	if len(a.shares) != 0 || !a.bytes.TryAcquire(bodiesBytesMax) {
		t.Error("something is still counted")
	}
}

// Bodies of unknown length do not wait for each other with bytes in their hands.
func TestAdmission_GrowingBodiesDoNotHoldEachOtherUp(t *testing.T) {
	a := newAdmission()
	a.wait = time.Minute
	const size = 45 << 20
	var group sync.WaitGroup
	for i := range 6 { // two each of three principals
		principal := uuid.UUID{byte(1 + i%3)}
		group.Go(func() {
			body := &countedBody{
				ReadCloser: io.NopCloser(io.LimitReader(zeros{}, size)), admission: a, ctx: t.Context(), w: httptest.NewRecorder(),
				principal: principal, limit: BodyBytesCommit,
			}
			defer body.release()
			if n, err := io.Copy(io.Discard, body); n != size || err != nil {
				t.Errorf("%d bytes: %v", n, err)
			}
		})
	}
	group.Wait()
	if len(a.shares) != 0 || !a.bytes.TryAcquire(bodiesBytesMax) || !a.growing.TryAcquire(bodiesGrowingMax) {
		t.Error("something is still counted")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
