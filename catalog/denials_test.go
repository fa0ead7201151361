package catalog

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func denialOf(principal, client string, at time.Time) Denial {
	d := Denial{At: at, Operation: "load-table", Subject: "a.t", Reason: "missing"}
	d.Caller.Principal.Name, d.Caller.Client, d.Caller.RequestID = principal, client, "r"
	return d
}

// Whatever comes, rows and counts together are all refusals.
func TestDenials_NoneIsLost(t *testing.T) {
	d, at := newDenials(), time.Unix(1_000_000, 0)
	var rows []Denial
	told := 0
	for i := range 500 {
		told++
		rows = append(rows, d.take(denialOf("bob", "10.0.0.1", at.Add(time.Duration(i)*time.Second)))...)
	}
	for i := range denialKeysMax + 300 { // more callers than are told apart
		told++
		rows = append(rows, d.take(denialOf(fmt.Sprint("p", i), "10.0.0.2", at.Add(500*time.Second)))...)
	}
	if early := d.due(at.Add(500*time.Second), false); len(early) > 2 {
		t.Errorf("%d counts before their time", len(early))
	} else {
		rows = append(rows, early...)
	}
	rows = append(rows, d.due(at.Add(501*time.Second), true)...)
	var sum int64
	for _, r := range rows {
		sum += max(r.Repeats, 1)
	}
	if sum != int64(told) {
		t.Errorf("%d refusals are told of, there were %d", sum, told)
	}
	if again := d.due(at.Add(time.Hour), true); len(again) != 0 {
		t.Errorf("told twice: %+v", again)
	}
}

// A count that could not be written is written the next time.
func TestDenials_ACountComesBack(t *testing.T) {
	d, at := newDenials(), time.Unix(1_000_000, 0)
	for range denialsInFull + 5 {
		d.take(denialOf("bob", "10.0.0.1", at))
	}
	counts := d.due(at.Add(denialWindow), false)
	if len(counts) != 1 || counts[0].Repeats != 5 || counts[0].Caller.RequestID != "" {
		t.Fatalf("counts %+v", counts)
	}
	d.giveBack(counts[0], at)
	d.take(denialOf("bob", "10.0.0.1", at))
	if counts = d.due(at, true); len(counts) != 1 || counts[0].Repeats != 6 {
		t.Errorf("counts %+v", counts)
	}
}

// silent is a database that answers nothing.
type silent struct{ Store }

func (silent) RecordDenial(ctx context.Context, _ Denial) error { return ctx.Err() }

// A server that ends waits for its counts no longer than it is given, whatever the database does.
func TestDenials_AFlushEndsWithItsTime(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	s := &Service{Store: silent{}, Now: func() time.Time { return at }, denials: newDenials()}
	for range denialsInFull + 5 {
		s.denials.take(denialOf("bob", "10.0.0.1", at))
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.FlushAllDenials(over); err == nil {
		t.Error("the flush went on after its time")
	}
	if counts := s.denials.due(at, true); len(counts) != 1 || counts[0].Repeats != 5 {
		t.Errorf("kept are %+v", counts)
	}
}
