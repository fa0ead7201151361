package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"catalogd/api"
	"catalogd/internal/telemetry"
)

// startServers runs both listeners with the handler as the API.
func startServers(t *testing.T, handler http.Handler, grace time.Duration) *servers {
	t.Helper()
	apiListener, err := listen("listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ops, err := listen("ops_listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &servers{api: apiListener, ops: ops, handler: handler, log: slog.New(slog.DiscardHandler), grace: grace}
	s.health = api.OpsHandler(func(context.Context) error {
		if s.stopping.Load() {
			return errStopping
		}
		return nil
	}, nil, telemetry.NewRegistry())
	s.start()
	return s
}

func statusOf(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// TestServers_DrainRequestsWhileReadinessSaysNo: a request that runs when the end is asked for is answered, and
// meanwhile a load balancer can learn that no more should come.
func TestServers_DrainRequestsWhileReadinessSaysNo(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	s := startServers(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = w.Write([]byte("answered"))
	}), time.Minute)
	if code, _ := statusOf(t, s.ops.url()+"/readyz"); code != http.StatusOK {
		t.Fatalf("readiness is %d before the end", code)
	}
	answer, stopped := make(chan string, 1), make(chan error, 1)
	go func() {
		res, err := http.Get(s.api.url())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		answer <- string(body)
	}()
	<-entered
	go func() { stopped <- s.stop() }()
	for {
		code, body := statusOf(t, s.ops.url()+"/readyz")
		if code == http.StatusServiceUnavailable && strings.Contains(body, "stopping") {
			break
		}
	}
	close(release)
	if got := <-answer; got != "answered" {
		t.Errorf("the running request got %q", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestServers_DelayKeepsServing: between the signal and the end of listening a balancer has time to learn that it must
// send no more, and what it sends until then is answered, on new connections too.
func TestServers_DelayKeepsServing(t *testing.T) {
	s := startServers(t, http.NotFoundHandler(), time.Second)
	s.delay = time.Hour
	gone, lingered := make(chan struct{}), make(chan error, 1)
	go func() { lingered <- s.linger(gone) }()
	for {
		if code, _ := statusOf(t, s.ops.url()+"/readyz"); code == http.StatusServiceUnavailable {
			break
		}
	}
	for range 3 {
		fresh := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := fresh.Get(s.api.url())
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("a request during the delay: %d, %v", res.StatusCode, err)
		}
	}
	select {
	case err := <-lingered:
		t.Fatalf("the delay of an hour is over: %v", err)
	default:
	}
	close(gone)
	if err := <-lingered; err != nil {
		t.Errorf("a Postgres that the same interrupt ended: %v", err)
	}
	if err := s.stop(); err != nil {
		t.Error(err)
	}
}

// TestServers_DelayEnds: by its time, and at once when there is nothing left to serve with.
func TestServers_DelayEnds(t *testing.T) {
	s := startServers(t, http.NotFoundHandler(), time.Second)
	for _, delay := range []time.Duration{0, time.Millisecond} {
		s.delay = delay
		if err := s.linger(nil); err != nil || !s.stopping.Load() {
			t.Errorf("a delay of %s: %v", delay, err)
		}
	}
	s.delay = time.Hour
	s.api.net.Close()
	if err := s.linger(nil); err == nil || !strings.Contains(err.Error(), "serve listen") {
		t.Errorf("a dead listener during the delay: %v", err)
	}
	_ = s.stop()
}

// TestServers_GraceEnds: a request that never ends does not keep the server.
func TestServers_GraceEnds(t *testing.T) {
	entered := make(chan struct{})
	s := startServers(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}), time.Millisecond)
	failed := make(chan error, 1)
	go func() { _, err := http.Get(s.api.url()); failed <- err }()
	<-entered
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the cut request got an answer")
	}
}

// TestField_C253_ConnectionsOutliveABalancers: the keep-alive is longer than the 60 seconds of common balancers, or these
// would send requests into connections that are being closed; and nothing that a client does holds one for ever.
func TestField_C253_ConnectionsOutliveABalancers(t *testing.T) {
	s := startServers(t, http.NotFoundHandler(), time.Second)
	defer func() { _ = s.stop() }()
	for _, server := range s.running {
		if server.IdleTimeout <= 60*time.Second {
			t.Errorf("idle connections are closed after %s", server.IdleTimeout)
		}
		if server.ReadHeaderTimeout == 0 || server.ReadTimeout == 0 || server.WriteTimeout == 0 || server.MaxHeaderBytes == 0 {
			t.Errorf("a client may hold a connection for ever: %+v", server)
		}
	}
	if code, _ := statusOf(t, s.api.url()+"/"+strings.Repeat("x", 80<<10)); code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers of 80 KiB: %d", code)
	}
}

// TestField_C253_NoNewRequestsDuringTheDrain: what came before the end was asked for is answered, what comes later finds
// nobody, on a connection that was kept as well as on a new one.
func TestField_C253_NoNewRequestsDuringTheDrain(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	s := startServers(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/commit" {
			close(entered)
			<-release
		}
		calls.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}), time.Minute)
	client := &http.Client{Transport: &http.Transport{}}
	ask := func(path string) error {
		res, err := client.Get(s.api.url() + path)
		if err == nil {
			err = res.Body.Close()
		}
		return err
	}
	if err := ask("/before"); err != nil { // the connection is kept
		t.Fatal(err)
	}
	commit, stopped := make(chan error, 1), make(chan error, 1)
	go func() { commit <- ask("/commit") }()
	<-entered
	go func() { stopped <- s.stop() }()
	for {
		if err := ask("/late"); err != nil { // those until then came before the listener was closed
			break
		}
	}
	close(release)
	if err := <-commit; err != nil {
		t.Errorf("the running commit: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	served := calls.Load()
	if err := ask("/later"); err == nil || calls.Load() != served {
		t.Errorf("a request after the end: %v", err)
	}
}

func TestServers_WaitEndsForEachReason(t *testing.T) {
	s := startServers(t, http.NotFoundHandler(), time.Second)
	gone := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.wait(ctx, gone); err != nil {
		t.Errorf("an ended context: %v", err)
	}
	close(gone)
	if err := s.wait(t.Context(), gone); err == nil || !strings.Contains(err.Error(), "postgres.log") {
		t.Errorf("a dead Postgres: %v", err)
	}
	s.api.net.Close()
	if err := s.wait(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "serve listen") {
		t.Errorf("a dead listener: %v", err)
	}
	_ = s.stop()
}

func TestListen_TakenAddressNamesTheSetting(t *testing.T) {
	first, err := listen("ops_listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.net.Close()
	_, err = listen("ops_listen", first.net.Addr().String())
	var p *problem
	if !errors.As(err, &p) || p.Key != "ops_listen" || !strings.Contains(p.Remedy, "--ops-listen") {
		t.Errorf("the refusal is %v", err)
	}
	if any, err := listen("listen", "0.0.0.0:0"); err != nil || !strings.HasPrefix(any.url(), "http://127.0.0.1:") {
		t.Errorf("a wildcard is shown as %v (%v)", any.url(), err)
	}
}
