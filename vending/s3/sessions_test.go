package s3

import (
	"context"
	"fmt"
	"testing"
	"time"

	"catalogd/internal/fault"
	"catalogd/vending"
)

func TestSessions_StayBounded(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	c := newSessions(100, func() time.Time { return now })
	make1 := func(context.Context) (session, error) {
		return session{credentials: vending.Credentials{ExpiresAt: now.Add(time.Hour)}, asked: now}, nil
	}
	for i := range 1000 {
		if _, err := c.load(t.Context(), fmt.Sprint(i), make1); err != nil {
			t.Fatal(err)
		}
		if len(c.byKey) > 100 {
			t.Fatalf("%d sessions are kept", len(c.byKey))
		}
	}
	if _, ok := c.find("999"); !ok {
		t.Error("the newest session is gone")
	}
	now = now.Add(31 * time.Minute)
	if _, err := c.load(t.Context(), "new", make1); err != nil {
		t.Fatal(err)
	}
	for i := 0; len(c.byKey) < 100; i++ {
		c.keep(fmt.Sprint("k", i), session{credentials: vending.Credentials{ExpiresAt: now.Add(time.Hour)}, asked: now})
	}
	c.keep("last", session{credentials: vending.Credentials{ExpiresAt: now.Add(time.Hour)}, asked: now})
	for key, s := range c.byKey {
		if !s.fresh(now) {
			t.Errorf("the stale session %s stayed while others were dropped", key)
		}
	}
}

// A panic on the way to the token service is the error of those who wait for it, and the next one asks anew.
func TestSessions_PanicIsAnError(t *testing.T) {
	c := newSessions(1, time.Now)
	_, err := c.load(t.Context(), "k", func(context.Context) (session, error) { panic("torn") })
	if !fault.Is(err, fault.Internal) {
		t.Errorf("got %v", err)
	}
	expires := time.Now().Add(time.Hour)
	got, err := c.load(t.Context(), "k", func(context.Context) (session, error) {
		return session{credentials: vending.Credentials{ExpiresAt: expires}, asked: time.Now()}, nil
	})
	if err != nil || !got.ExpiresAt.Equal(expires) {
		t.Errorf("afterwards %v, %v", got.ExpiresAt, err)
	}
}
