package catalogtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
)

// feeds are the audit and the events as they are read: in the order of their transactions.
type feeds struct {
	audit  []catalog.AuditRow
	events []catalog.EventRow
	// given counts positions, also of rows that are gone.
	auditGiven, eventsGiven     int64
	auditRemoved, eventsRemoved int64
}

func (f *feeds) change(c catalog.Fact) error {
	details := json.RawMessage("{}")
	if len(c.Details) > 0 {
		text, err := json.Marshal(c.Details)
		if err != nil {
			return fmt.Errorf("encode the details of %s: %w", c.Operation, err)
		}
		details = text
	}
	f.eventsGiven++
	f.events = append(slices.Clip(f.events), catalog.EventRow{
		Position: f.eventsGiven, Turn: f.eventsGiven, ID: c.ID, At: c.At, Operation: c.Operation, Principal: c.Caller.Principal.Name,
		WarehouseID: c.Warehouse, SecurableID: c.Securable, Subject: c.Subject, Details: details,
	})
	f.add(catalog.AuditRow{
		At: c.At, EventID: c.ID, Operation: c.Operation, WarehouseID: c.Warehouse, SecurableID: c.Securable, Subject: c.Subject, Allowed: true,
	}, c.Caller)
	return nil
}

func (f *feeds) denial(d catalog.Denial) {
	row := catalog.AuditRow{
		At: d.At, Operation: d.Operation, WarehouseID: d.Warehouse, SecurableID: d.On.ID, Subject: d.Subject, Reason: d.Reason,
		Privilege: string(d.Privilege), Repeats: d.Repeats,
	}
	if d.On.Kind != "" {
		row.Securable = d.On.String()
	}
	f.add(row, d.Caller)
}

func (f *feeds) add(row catalog.AuditRow, c catalog.Caller) {
	f.auditGiven++
	row.ID, row.Position = f.auditGiven, f.auditGiven
	row.RequestID, row.Principal, row.TokenID = c.RequestID, c.Principal.Name, c.Principal.TokenID
	row.Client, row.UserAgent, row.Actor = c.Client, c.UserAgent, c.Principal.ActorName()
	if c.Principal.PersonalToken != uuid.Nil {
		row.Credential = "personal-token " + c.Principal.PersonalToken.String()
	}
	f.audit = append(slices.Clip(f.audit), row)
}

// nameOf gives a warehouse's name, "" when it is gone.
func (st *state) nameOf(row *catalog.AuditRow) { row.Warehouse = st.warehouses[row.WarehouseID].Name }

func matchesAudit(a catalog.AuditRow, f catalog.AuditFilter) bool {
	same := func(wanted, is string) bool { return wanted == "" || wanted == is }
	return same(f.Principal, a.Principal) && same(f.Operation, a.Operation) && same(f.Subject, a.Subject) && same(f.RequestID, a.RequestID) &&
		(f.WarehouseID == uuid.Nil || f.WarehouseID == a.WarehouseID) && (f.SecurableID == uuid.Nil || f.SecurableID == a.SecurableID) &&
		(f.Allowed == nil || *f.Allowed == a.Allowed) && !a.At.Before(f.Since) && (f.Until.IsZero() || a.At.Before(f.Until))
}

// ListAudit gives a page of the audit.
func (s *Store) ListAudit(ctx context.Context, q catalog.AuditQuery) (found []catalog.AuditRow, feed catalog.Feed, err error) {
	err = s.tx(ctx, "ListAudit", func(st *state) error {
		found = nil
		all := slices.Clone(st.feeds.audit)
		if q.Oldest {
			feed = catalog.Feed{Through: st.feeds.auditGiven, Removed: st.feeds.auditRemoved}
		} else {
			slices.Reverse(all)
		}
		for _, a := range all {
			if q.Oldest && a.Position <= q.After || !q.Oldest && q.Before > 0 && a.ID >= q.Before || !matchesAudit(a, q.AuditFilter) {
				continue
			}
			st.nameOf(&a)
			if !q.Oldest {
				a.Position = 0
			}
			if found = append(found, a); len(found) == q.Limit {
				break
			}
		}
		return nil
	})
	return found, feed, err
}

// ListEvents gives events behind a position.
func (s *Store) ListEvents(ctx context.Context, q catalog.EventQuery) (found []catalog.EventRow, feed catalog.Feed, err error) {
	err = s.tx(ctx, "ListEvents", func(st *state) error {
		feed = catalog.Feed{Through: st.feeds.eventsGiven, Removed: st.feeds.eventsRemoved}
		found = st.eventsOf(q)
		return nil
	})
	return found, feed, err
}

// eventsOf gives the events that a query asks for.
func (st *state) eventsOf(q catalog.EventQuery) (found []catalog.EventRow) {
	for _, e := range st.feeds.events {
		if e.Position <= q.After || q.WarehouseID != uuid.Nil && q.WarehouseID != e.WarehouseID ||
			q.SecurableID != uuid.Nil && q.SecurableID != e.SecurableID || q.Subject != "" && q.Subject != e.Subject ||
			len(q.Operations) > 0 && !slices.Contains(q.Operations, e.Operation) {
			continue
		}
		e.Warehouse = st.warehouses[e.WarehouseID].Name
		if found = append(found, e); len(found) == q.Limit {
			break
		}
	}
	return found
}

// SweepRecords removes what is old.
func (s *Store) SweepRecords(ctx context.Context, k catalog.Keep) (removed int, err error) {
	err = s.tx(ctx, "SweepRecords", func(st *state) error {
		removed = 0
		old := func(at time.Time, keep time.Duration) bool { return keep > 0 && st.now.Sub(at) > keep }
		st.feeds.audit = slices.DeleteFunc(slices.Clone(st.feeds.audit), func(a catalog.AuditRow) bool {
			if !old(a.At, k.Audit) {
				return false
			}
			removed++
			st.feeds.auditRemoved = max(st.feeds.auditRemoved, a.Position)
			return true
		})
		st.feeds.events = slices.DeleteFunc(slices.Clone(st.feeds.events), func(e catalog.EventRow) bool {
			if !old(e.At, k.Events) {
				return false
			}
			removed++
			st.feeds.eventsRemoved = max(st.feeds.eventsRemoved, e.Position)
			return true
		})
		st.reports = slices.DeleteFunc(slices.Clone(st.reports), func(r catalog.MetricsReport) bool {
			if !old(r.At, k.Metrics) {
				return false
			}
			removed++
			return true
		})
		return nil
	})
	return removed, err
}
