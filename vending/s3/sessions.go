package s3

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// session is what the token service gave, and when it was asked.
type session struct {
	credentials vending.Credentials
	asked       time.Time
}

// fresh tells whether half of the life is left. Clients renew some minutes before the end; what is younger than
// that would be of no use to them.
func (s session) fresh(now time.Time) bool {
	life := s.credentials.ExpiresAt.Sub(s.asked)
	return life > 0 && now.Sub(s.asked) <= life/2
}

// sessions keeps sessions by key, and lets one caller of many make a missing one. Errors are not kept.
type sessions struct {
	now     func() time.Time
	limit   int
	flights singleflight.Group

	mu    sync.Mutex
	byKey map[string]session
}

func newSessions(limit int, now func() time.Time) *sessions {
	return &sessions{now: now, limit: limit, byKey: map[string]session{}}
}

func (c *sessions) load(
	ctx context.Context, key string, assume func(context.Context) (session, error),
) (vending.Credentials, error) {
	if s, ok := c.find(key); ok {
		return copied(s.credentials), nil
	}
	// The call outlives a caller who goes away, for others may wait for it; assume has a deadline of its own.
	detached := context.WithoutCancel(ctx)
	flight := c.flights.DoChan(key, func() (any, error) {
		if s, ok := c.find(key); ok {
			return s, nil
		}
		s, err := caught(detached, assume)
		if err == nil {
			c.keep(key, s)
		}
		return s, err
	})
	select {
	case <-ctx.Done():
		return vending.Credentials{}, fault.Wrap(fault.Busy, ctx.Err(), "the request ended before the token service answered")
	case landed := <-flight:
		if landed.Err != nil {
			return vending.Credentials{}, landed.Err
		}
		return copied(landed.Val.(session).credentials), nil
	}
}

// caught makes a panic the call's error. No request's goroutine runs here, so the whole server would end with it.
func caught(ctx context.Context, assume func(context.Context) (session, error)) (s session, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fault.Wrap(fault.Internal, fmt.Errorf("%v\n%s", cause, debug.Stack()), "defect in the server: asking the token service stumbled: %v", cause)
		}
	}()
	return assume(ctx)
}

func (c *sessions) find(key string) (session, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.byKey[key]
	if ok && !s.fresh(c.now()) {
		delete(c.byKey, key)
		ok = false
	}
	return s, ok
}

func (c *sessions) keep(key string, s session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byKey) >= c.limit {
		c.shrink()
	}
	c.byKey[key] = s
}

// shrink drops what is stale, and if that is not enough, any of the others until a tenth is free.
func (c *sessions) shrink() {
	now := c.now()
	for key, s := range c.byKey {
		if !s.fresh(now) {
			delete(c.byKey, key)
		}
	}
	for key := range c.byKey {
		if len(c.byKey) <= c.limit-max(1, c.limit/10) {
			return
		}
		delete(c.byKey, key)
	}
}

// copied keeps callers, who add keys of their own, away from each other's maps.
func copied(c vending.Credentials) vending.Credentials {
	config := make(map[string]string, len(c.Config)+1)
	for k, v := range c.Config {
		config[k] = v
	}
	c.Config = config
	return c
}
