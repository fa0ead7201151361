package outbox

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
)

// secret is what the tests' webhooks sign with.
var secret = []byte("0123456789abcdef0123456789abcdef")

// received is one message as a receiver got it.
type received struct {
	id, body, subject string
}

// receiver is a webhook's other end. It checks every signature.
type receiver struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	got    []received                                   // that it took
	answer func(r received, n int) int                  // status of the nth try of a message; nil: 200
	tries  map[string]int                               // by id
	before func(w http.ResponseWriter, _ received) bool // true: it has answered
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, tries: map[string]int{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var m message
	if err != nil || json.Unmarshal(body, &m) != nil || q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" {
		r.t.Errorf("%s with %v: %s", q.Method, q.Header, body)
	}
	id, seconds := q.Header.Get("webhook-id"), q.Header.Get("webhook-timestamp")
	at, err := time.Parse(time.RFC3339, "1970-01-01T00:00:00Z")
	if err == nil {
		var passed time.Duration
		passed, err = time.ParseDuration(seconds + "s")
		at = at.Add(passed)
	}
	if err != nil || q.Header.Get("webhook-signature") != signature(secret, id, at, body) || m.Data.ID.String() != id {
		r.t.Errorf("signature %v of %s", q.Header, body)
	}
	one := received{id, string(body), m.Data.Subject}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries[id]++
	if r.before != nil && r.before(w, one) {
		return
	}
	status := http.StatusOK
	if r.answer != nil {
		status = r.answer(one, r.tries[id])
	}
	if status == http.StatusOK {
		r.got = append(r.got, one)
	}
	w.WriteHeader(status)
}

// taken gives the subjects of what was taken, in order.
func (r *receiver) taken() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.got {
		all = append(all, one.subject)
	}
	return all
}

func anEvent() catalog.EventRow {
	return catalog.EventRow{
		ID: uuid.New(), Position: 7, At: time.Unix(1_700_000_000, 0), Operation: "commit-table", Principal: "ann", Warehouse: "w",
		Subject: "a.t", SecurableID: uuid.New(), Details: []byte(`{"n":1}`),
	}
}

// The example that libraries for Standard Webhooks test themselves with.
func TestSignature_IsTheStandardOne(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("signed %s", got)
	}
}

func TestIsPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.9.9.9": false, "10.1.2.3": false, "172.31.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "168.63.129.16": false,
		"100.64.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false,
		"::1": false, "::": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false, "::ffff:127.0.0.1": false,
		"::ffff:169.254.169.254": false, "64:ff9b::a00:1": false, "2002:7f00:1::": false, "2001::1": false, "2001:db8::1": false, "::127.0.0.1": false,
	} {
		if got := isPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is public: %v", address, got)
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// The guard sees the address that is connected to, whatever name led there.
func TestSender_ConnectsToPublicAddressesAlone(t *testing.T) {
	r := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request has arrived") }))
	defer r.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(r.URL, "https://"), ":")
	for _, address := range []string{r.URL, "https://localhost:" + port + "/x", "https://127.1.1.1:" + port, "https://[::ffff:127.0.0.1]:" + port, "https://2130706433:" + port} {
		err := NewSender(false, nil).SendEvent(t.Context(), catalog.Webhook{URL: address}, secret, anEvent())
		if err == nil || strings.Contains(err.Error(), "127.") && !strings.HasPrefix(address, "https://2130706433") {
			t.Errorf("%s: %v", address, err)
		}
	}
	err := NewSender(false, nil).SendEvent(t.Context(), catalog.Webhook{URL: "http://8.8.8.8:9"}, secret, anEvent())
	if err == nil || !strings.Contains(err.Error(), "https:") {
		t.Errorf("without TLS: %v", err)
	}
	err = NewSender(true, nil).SendEvent(t.Context(), catalog.Webhook{URL: r.URL}, secret, anEvent())
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate of nobody's: %v", err)
	}
}

func TestSender_FollowsNothingAndReadsLittle(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/away" {
			http.Redirect(w, q, elsewhere.URL, http.StatusTemporaryRedirect)
			return
		}
		for q.Context().Err() == nil { // till the sender has had enough
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	s := NewSender(true, nil)
	err := s.SendEvent(t.Context(), catalog.Webhook{URL: endless.URL + "/away"}, secret, anEvent())
	if refused, ok := err.(Refused); !ok || refused.Status != http.StatusTemporaryRedirect {
		t.Errorf("a redirect: %v", err)
	}
	began := time.Now()
	if err := s.SendEvent(t.Context(), catalog.Webhook{URL: endless.URL}, secret, anEvent()); err != nil || time.Since(began) > sendMax/2 {
		t.Errorf("an endless answer: %v after %s", err, time.Since(began))
	}
}

func TestSender_SaysWhyWithoutTheAddress(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, address := range []string{closed.URL + "/token-in-path?token=s3cret", "http://no-such-host.invalid/?token=s3cret", "http://[::1%25x]:1/s3cret", "::s3cret"} {
		err := NewSender(true, nil).SendEvent(t.Context(), catalog.Webhook{URL: address}, secret, anEvent())
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "token") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// What is at an address is not shown to who may only name the address, and neither is where the server itself is.
func TestSender_ShowsNothingOfWhatItFinds(t *testing.T) {
	for _, answer := range []string{
		"", "SSH-2.0-s3cret\r\n", "HTTP/1.1 s3cret\r\n\r\n", "HTTP/1.1 200 OK\r\ns3cret\r\n\r\n",
		"HTTP/1.1 307 Moved\r\nLocation: http://[s3cret\r\nContent-Length: 0\r\n\r\n",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Read(make([]byte, 64<<10))
				_, _ = io.WriteString(c, answer)
				_ = c.Close()
			}
		}()
		err = NewSender(true, nil).SendEvent(t.Context(), catalog.Webhook{URL: "http://" + l.Addr().String()}, secret, anEvent())
		_ = l.Close()
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "127.0.0.1") || !strings.Contains(err.Error(), "answer") {
			t.Errorf("%q: %v", answer, err)
		}
		err = NewSender(true, nil).SendEvent(t.Context(), catalog.Webhook{URL: "http://" + l.Addr().String()}, secret, anEvent())
		if err == nil || err.Error() != "the receiver refuses connections" {
			t.Errorf("nobody there: %v", err)
		}
	}
}

func TestBody_IsBounded(t *testing.T) {
	e := anEvent()
	e.Details = []byte(`{"x":"` + strings.Repeat("y", messageBytesMax) + `"}`)
	body, err := bodyOf(e)
	if err != nil || len(body) > 1024 || !strings.Contains(string(body), `"truncated":true`) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}
