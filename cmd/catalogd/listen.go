package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"catalogd/api"
)

// stopPatience is what closing may take after the grace, for what must be closed all the same.
const stopPatience = 5 * time.Second

// listener is an address that is taken before anything else starts, so that a second server fails at once.
type listener struct {
	key string // of the setting, for messages
	net net.Listener
}

func listen(key, address string) (*listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &problem{key, address + " is in use by another program", "stop it, or choose another address by --" + flagName(key)}
	case err != nil:
		return nil, &problem{key, err.Error(), ""}
	}
	return &listener{key: key, net: l}, nil
}

// url is the address as a client on this machine writes it: a wildcard becomes loopback.
func (l *listener) url() string {
	address := l.net.Addr().(*net.TCPAddr)
	host := address.IP.String()
	if address.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(address.Port))
}

// servers runs the API and the ops listener until the context ends or one of them fails. A worker has no API.
type servers struct {
	api, ops        *listener
	handler, health http.Handler
	log             *slog.Logger
	delay           time.Duration // between readiness' no and the end of listening
	grace           time.Duration
	stopping        atomic.Bool // readiness answers no from then on
	ending          func()      // called once when requests are drained, so that none waits for what may come; nil: nothing

	failed  chan error
	running []*http.Server // the API first
	loops   sync.WaitGroup
}

// start serves the listeners in the background.
func (s *servers) start() {
	s.failed = make(chan error, 2)
	if s.api != nil {
		s.serve(s.api, s.handler)
	}
	s.serve(s.ops, s.health)
}

func (s *servers) serve(l *listener, handler http.Handler) {
	server := api.NewHTTPServer(handler)
	server.ErrorLog = slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)
	s.running = append(s.running, server)
	s.loops.Go(func() {
		if err := server.Serve(l.net); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve %s: %w", l.key, err)
		}
	})
}

// wait returns when the context ends (nil), a listener fails, or what else the server stands on is gone.
func (s *servers) wait(ctx context.Context, gone <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	case <-gone:
		if ctx.Err() != nil {
			return nil // an interrupt from the terminal reaches both at once
		}
		return errors.New("the private Postgres ended by itself; its log is postgres.log in the data folder")
	}
}

// linger serves on for the delay while readiness says no, so that balancers take the server out before its port is dead.
// It ends early when nothing is left to serve with; a second signal ends the process itself.
func (s *servers) linger(gone <-chan struct{}) error {
	s.stopping.Store(true)
	delay := time.NewTimer(s.delay)
	defer delay.Stop()
	select {
	case <-delay.C:
		return nil
	case err := <-s.failed:
		return err
	case <-gone:
		return nil // an interrupt from the terminal reaches the private Postgres too
	}
}

// stop lets running requests end within the grace, then closes what is left. The ops listener goes last, so that
// readiness can be asked during the drain.
func (s *servers) stop() error {
	s.stopping.Store(true)
	if s.ending != nil {
		s.ending()
		s.ending = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.grace)
	defer cancel()
	var all error
	for _, server := range s.running {
		if err := server.Shutdown(ctx); err != nil {
			s.log.Warn("requests were cut off", "after", s.grace.String())
			all = errors.Join(all, server.Close())
		}
	}
	s.loops.Wait()
	return all
}
