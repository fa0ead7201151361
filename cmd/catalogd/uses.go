package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/store"
)

const (
	tokenUsesEvery = 10 * time.Second // between two writes
	tokenUsesMax   = 5 * time.Second  // that one may take
)

// usesWriter writes down when personal access tokens were used, beside the requests.
type usesWriter struct {
	uses  auth.TokenUses
	store *store.Store
	log   *slog.Logger
	stop  chan struct{}
	done  chan struct{}
}

func startUses(s *store.Store, log *slog.Logger) *usesWriter {
	w := &usesWriter{store: s, log: log, stop: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

func (w *usesWriter) run() {
	defer close(w.done)
	tick := time.NewTicker(tokenUsesEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			w.write()
			return
		case <-tick.C:
			w.write()
		}
	}
}

func (w *usesWriter) write() {
	ctx, cancel := context.WithTimeout(context.Background(), tokenUsesMax)
	defer cancel()
	if err := w.uses.Flush(ctx, w.store.RecordTokenUses); err != nil {
		w.log.Warn("uses of personal access tokens could not be written", "cause", err.Error())
	}
}

// close writes what is left.
func (w *usesWriter) close() {
	close(w.stop)
	<-w.done
}

// note is what the API calls after a request.
func (w *usesWriter) note(u api.Use) {
	if u.Principal.PersonalToken != uuid.Nil {
		w.uses.Note(auth.TokenUse{Token: u.Principal.PersonalToken, At: time.Now(), Address: u.Client, Client: u.UserAgent})
	}
}
