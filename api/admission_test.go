package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
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
	ts.admission.wait = time.Millisecond
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
	ts.admission.wait = bodyWaitMax                                                               // a millisecond may be over before the semaphore is asked
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
