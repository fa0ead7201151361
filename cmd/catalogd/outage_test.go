package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"catalogd/auth"
	"catalogd/internal/pgserver/pgtest"
)

// gate stands between the server and Postgres, so that a test can take Postgres away and give it back.
type gate struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	loops  sync.WaitGroup
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	g.loops.Go(g.accept)
	t.Cleanup(func() { l.Close(); g.shut(true); g.loops.Wait() })
	return g
}

func (g *gate) accept() {
	for {
		in, err := g.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", g.target)
		if err != nil {
			in.Close()
			continue
		}
		g.mu.Lock()
		closed := g.closed // asked where the connection is noted: it may have been shut meanwhile
		if !closed {
			g.conns[in], g.conns[out] = struct{}{}, struct{}{}
		}
		g.mu.Unlock()
		if closed {
			in.Close()
			out.Close()
			continue
		}
		pipe := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			to.Close()
		}
		g.loops.Go(func() { pipe(out, in) })
		g.loops.Go(func() { pipe(in, out) })
	}
}

// shut cuts every connection and lets no new one through, until it is opened again.
func (g *gate) shut(closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = closed
	for c := range g.conns {
		c.Close()
	}
	g.conns = map[net.Conn]struct{}{}
}

// outageServer is a whole server in this process whose Postgres is behind a gate.
type outageServer struct {
	running    *running
	gate       *gate
	credential url.Values
}

func startOutageServer(t *testing.T) *outageServer {
	t.Helper()
	database, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &outageServer{gate: newGate(t, database.Host)}
	database.Host = s.gate.listener.Addr().String()
	config := defaultConfig()
	config.Listen, config.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	config.Database.URL, config.Secrets.Key = database.String(), auth.NewRingKey()
	apiListener, ops, err := listenBoth(config)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newApp(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	made, err := a.bootstrap(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	s.credential = url.Values{
		"grant_type": {"client_credentials"}, "client_id": {made.Credential.ClientID},
		"client_secret": {made.Credential.Secret.Reveal()}, "scope": {adminDefaultScope},
	}
	s.running = &running{app: a, api: apiListener, ops: ops, withWorker: true}
	if err := s.running.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.running.stop(); err != nil {
			t.Error(err)
		}
		a.close()
	})
	return s
}

// ask gives an answer's status, Retry-After and body.
func (s *outageServer) ask(t *testing.T, base, path, token string) (int, string, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Retry-After"), string(body)
}

// login gives the status of the token route and a token.
func (s *outageServer) login(t *testing.T) (int, string) {
	t.Helper()
	res, err := http.PostForm(s.running.api.url()+tokenPath, s.credential)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, field(bodyText(res), "access_token")
}

// Postgres goes and comes back: requests are refused as something that passes, never as a wrong login; readiness says
// no and liveness yes; and everything works again without a restart.
func TestField_C245_PostgresGoesAndComesBack(t *testing.T) {
	s := startOutageServer(t)
	api, ops := s.running.api.url(), s.running.ops.url()
	_, token := s.login(t)
	if code, _, body := s.ask(t, api, "/api/management/v1/catalogs", token); code != http.StatusOK {
		t.Fatalf("before: %d %s", code, body)
	}
	for round := range 2 {
		s.gate.shut(true)
		code, retry, body := s.ask(t, api, "/api/management/v1/catalogs", token)
		if code != http.StatusServiceUnavailable || retry == "" {
			t.Errorf("round %d: a request got %d, Retry-After %q: %s", round, code, retry, body)
		}
		if code, _ := s.login(t); code != http.StatusServiceUnavailable {
			t.Errorf("round %d: the token route answered %d; clients take 4xx as final", round, code)
		}
		if code, _, _ := s.ask(t, ops, "/readyz", ""); code != http.StatusServiceUnavailable {
			t.Errorf("round %d: readiness is %d", round, code)
		}
		if code, _, _ := s.ask(t, ops, "/healthz", ""); code != http.StatusOK {
			t.Errorf("round %d: liveness is %d: the process would be killed for Postgres' fault", round, code)
		}
		s.gate.shut(false)
		recovered := func() bool { code, _, _ := s.ask(t, ops, "/readyz", ""); return code == http.StatusOK }
		for began := time.Now(); !recovered(); {
			if time.Since(began) > readyMax {
				t.Fatalf("round %d: not ready again", round)
			}
		}
		if code, _, body := s.ask(t, api, "/api/management/v1/catalogs", token); code != http.StatusOK {
			t.Errorf("round %d: after: %d %s", round, code, body)
		}
	}
}

// Probes need no token, show no secret, and are cheap enough to be asked all the time.
func TestField_C260_ProbesAreOpenAndSilent(t *testing.T) {
	s := startOutageServer(t)
	secret := s.running.app.config.Secrets.Key
	var probers sync.WaitGroup
	for range 3 {
		probers.Go(func() {
			for range 20 {
				for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
					code, _, body := s.ask(t, s.running.ops.url(), path, "")
					if code != http.StatusOK {
						t.Errorf("%s: %d", path, code)
					}
					if strings.Contains(body, secret) || strings.Contains(body, "postgres://") || strings.Contains(body, s.credential.Get("client_secret")) {
						t.Errorf("%s shows a secret", path)
					}
				}
			}
		})
	}
	probers.Wait()
	// The API's listener has none of them: it may be public.
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if code, _, _ := s.ask(t, s.running.api.url(), path, ""); code != http.StatusNotFound {
			t.Errorf("the API answers %s with %d", path, code)
		}
	}
}

// A server that is asked to start before Postgres waits for it, and gives up when it is told to end.
func TestOpenStore_WaitsForPostgres(t *testing.T) {
	database, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, database.Host)
	g.shut(true)
	database.Host = g.listener.Addr().String()
	config := defaultConfig()
	config.Database.URL = database.String()
	warned := make(chan struct{})
	log := slog.New(onRecord{slog.DiscardHandler, sync.OnceFunc(func() { close(warned) })})
	opened := make(chan error, 1)
	go func() {
		s, err := openStore(t.Context(), config, log)
		if err == nil {
			s.Close()
		}
		opened <- err
	}()
	<-warned
	g.shut(false)
	if err := <-opened; err != nil {
		t.Errorf("Postgres came, and the start failed: %v", err)
	}
	g.shut(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := openStore(ctx, config, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an interrupted start succeeded")
	}
}

// onRecord calls a function at each log line.
type onRecord struct {
	slog.Handler
	call func()
}

func (onRecord) Enabled(context.Context, slog.Level) bool { return true }

func (o onRecord) Handle(context.Context, slog.Record) error { o.call(); return nil }

// Somebody who waits for events holds up no end: the request is answered, and the server goes.
func TestServe_EndsWhileSomebodyWaitsForEvents(t *testing.T) {
	s := startOutageServer(t)
	_, token := s.login(t)
	answered := make(chan int, 1)
	events := s.running.api.url() + "/api/management/v1/events"
	_, _, latest := s.ask(t, events, "?latest=true", token)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		events+"?wait=30&pageToken="+url.QueryEscape(field(latest, "cursor")), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	for begun := false; !begun; { // before that it would be refused
		_, _, metrics := s.ask(t, s.running.ops.url(), "/metrics", "")
		begun = strings.Contains(metrics, "catalogd_http_requests_in_flight 1")
	}
	began := time.Now()
	if err := s.running.servers.stop(); err != nil {
		t.Error(err)
	}
	if took, status := time.Since(began), <-answered; took > 20*time.Second || status != http.StatusOK {
		t.Errorf("ended after %s, the request got %d", took, status)
	}
}
