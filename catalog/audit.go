package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// auditPageMax bounds a page of the audit or of events.
const auditPageMax = 1000

// AuditRow is one row of the audit: a change, a refusal, or so many refusals that have no row of their own.
type AuditRow struct {
	ID          int64 // order of writing, without the order of commits
	Position    int64 // order in the feed; 0 where it was not asked for
	At          time.Time
	EventID     uuid.UUID // of a change; uuid.Nil for refusals
	RequestID   string
	Principal   string // "": nobody who was known
	Actor       string // who acted for the principal; "": the principal itself
	TokenID     string
	Credential  string // what the token was obtained with, where that is known
	Client      string // address
	UserAgent   string
	Operation   string
	WarehouseID uuid.UUID
	Warehouse   string // its name; "": none, or one that is gone
	SecurableID uuid.UUID
	Subject     string
	Allowed     bool
	Reason      string
	Privilege   string // that was missing
	Securable   string // that it was looked for on, as kind and name
	Repeats     int64  // more than 0: the row stands for so many refusals
}

// AuditFilter leaves rows that match all of it; what is "" or zero matches everything.
type AuditFilter struct {
	Principal   string
	Operation   string
	Subject     string
	RequestID   string
	WarehouseID uuid.UUID
	SecurableID uuid.UUID
	Allowed     *bool
	Since       time.Time // and from then on
	Until       time.Time // and before that
}

// AuditQuery asks for a page of the audit.
type AuditQuery struct {
	AuditFilter
	// Oldest gives rows in the order of the feed, those behind the position After. A reader that goes on behind the last
	// position misses no row, whenever its transaction was committed. Else the newest come first, those with ids below
	// Before, 0 for all.
	Oldest bool
	After  int64
	Before int64
	Limit  int
}

// EventRow is one change.
type EventRow struct {
	Position    int64 // in the feed. It counts everybody's changes: not to be shown
	Turn        int64 // of two events of one securable the later has the greater; it says nothing of others
	ID          uuid.UUID
	At          time.Time
	Operation   string
	Principal   string // "" for changes of a server before it was kept
	WarehouseID uuid.UUID
	Warehouse   string
	SecurableID uuid.UUID
	Subject     string
	Details     json.RawMessage
}

// EventFilter is as AuditFilter.
type EventFilter struct {
	WarehouseID uuid.UUID
	SecurableID uuid.UUID
	Subject     string
	Operations  []string
}

// EventQuery asks for events behind a position, in their order.
type EventQuery struct {
	EventFilter
	After int64
	Limit int
}

// Feed tells how far a feed is.
type Feed struct {
	// Through is the last position that was looked at: a page that is not full has everything up to it.
	Through int64
	// Removed is the last position whose row was removed for its age: who goes on from before it has missed rows.
	Removed int64
	// More tells that rows are there behind Through: they have waited long and come with the next calls.
	More bool
}

// FeedStore reads the audit and the events. Positions follow the order of commits as far as one thing is concerned: of
// two changes of one table the later has the greater position.
type FeedStore interface {
	ListAudit(ctx context.Context, q AuditQuery) ([]AuditRow, Feed, error)
	ListEvents(ctx context.Context, q EventQuery) ([]EventRow, Feed, error)
	// SweepRecords removes what is old, a bounded number of each, and tells how many: more may be left while it gives
	// any.
	SweepRecords(ctx context.Context, k Keep) (int, error)
}

// Keep says how long records stay; 0 keeps them for ever.
type Keep struct {
	Audit   time.Duration
	Events  time.Duration
	Jobs    time.Duration // finished ones; the last of its table and kind stays
	Metrics time.Duration
}

// EventsKeepMin is the shortest time for events: they settle commits whose outcome is unknown, which is asked for
// within minutes.
const EventsKeepMin = 24 * time.Hour

// EventsKeepFactor bounds how much longer than wanted events stay for a webhook that has not got them.
const EventsKeepFactor = 4

// SweepRecords removes records that are older than is wanted, and tells how many. Only the server itself may ask.
func (s *Service) SweepRecords(ctx context.Context, c Caller, k Keep) (int, error) {
	if !c.isSystem() {
		return 0, fault.New(fault.Forbidden, "old records are removed by the server alone")
	}
	if k.Events > 0 {
		k.Events = max(k.Events, EventsKeepMin)
	}
	n, err := s.Store.SweepRecords(ctx, k)
	if err != nil {
		return n, fmt.Errorf("remove old records: %w", err)
	}
	return n, nil
}

// RecordScope says of what somebody wants to read the audit or the events: of the service, of a warehouse, or of a table
// or view in it.
type RecordScope struct {
	Warehouse string
	Namespace Namespace
	Table     string
}

func (r RecordScope) subject() string {
	if r.Warehouse == "" {
		return "the whole service"
	}
	return "warehouse " + r.Warehouse
}

// ListAudit gives rows of the audit to who holds AUDIT_READ: on the service all rows, on a warehouse those of this
// warehouse.
func (s *Service) ListAudit(ctx context.Context, c Caller, warehouse string, q AuditQuery) ([]AuditRow, Feed, error) {
	id, err := s.authorizeRecords(ctx, c, "list-audit", RecordScope{Warehouse: warehouse})
	if err != nil {
		return nil, Feed{}, err
	}
	if err := checkOperation(q.Operation); err != nil {
		return nil, Feed{}, err
	}
	q.WarehouseID, q.Limit = id, min(q.Limit, auditPageMax+1)
	rows, feed, err := s.Store.ListAudit(ctx, q)
	if err != nil {
		return nil, Feed{}, fmt.Errorf("list the audit: %w", err)
	}
	return rows, feed, nil
}

// authorizeRecords requires AUDIT_READ and gives the warehouse's id, uuid.Nil for the service.
func (s *Service) authorizeRecords(ctx context.Context, c Caller, operation string, r RecordScope) (uuid.UUID, error) {
	n := need{operation, r.subject(), authz.AuditRead}
	if r.Warehouse == "" {
		return uuid.Nil, s.requireOnRoot(ctx, c, n)
	}
	w, err := s.requireOnWarehouse(ctx, c, r.Warehouse, n)
	return w.ID, err
}

// contentOperations are the changes of namespaces, tables and views: what somebody may learn of who may read these.
// Changes of rights and of the service are the audit's readers' alone.
var contentOperations = []string{
	"create-namespace", "update-namespace", "drop-namespace",
	"create-table", "register-table", "commit-table", "commit-transaction", "rename-table", "drop-table", "unregister-table",
	"create-view", "register-view", "replace-view", "rename-view", "drop-view",
}

// ContentOperations gives the operations whose events are about namespaces, tables and views.
func ContentOperations() []string { return append([]string(nil), contentOperations...) }

// ListEvents gives changes to who may know of them. Of the service: who holds AUDIT_READ on it, all. Of a warehouse: who
// holds AUDIT_READ on it, all of this warehouse; who holds TABLE_READ_PROPERTIES on it, those of namespaces, tables and
// views. Of a table or view: who may read its properties, those of it.
func (s *Service) ListEvents(ctx context.Context, c Caller, r RecordScope, q EventQuery) ([]EventRow, Feed, error) {
	var err error
	asked := q.Operations
	if q.EventFilter, err = s.eventsVisible(ctx, c, r, q.EventFilter); err != nil {
		return nil, Feed{}, err
	}
	if err := checkOperations(asked); err != nil {
		return nil, Feed{}, err
	}
	q.Limit = min(q.Limit, auditPageMax+1)
	rows, feed, err := s.Store.ListEvents(ctx, q)
	if err != nil {
		return nil, Feed{}, fmt.Errorf("list events: %w", err)
	}
	return rows, feed, nil
}

// eventsVisible narrows a filter to what the caller may see.
func (s *Service) eventsVisible(ctx context.Context, c Caller, r RecordScope, f EventFilter) (EventFilter, error) {
	if r.Warehouse == "" {
		_, err := s.authorizeRecords(ctx, c, "list-events", r)
		return f, err
	}
	res, err := s.resolve(ctx, c, Lookup{Warehouse: r.Warehouse, Namespace: r.Namespace, Table: r.Table})
	if err != nil {
		return f, err
	}
	f.WarehouseID = res.Warehouse.ID
	if r.Table == "" && len(r.Namespace) > 0 {
		return f, fault.New(fault.BadRequest, "events are of a warehouse, or of a table or view in it: table is missing")
	}
	if r.Table != "" {
		return s.eventsOfTable(ctx, c, res, r, f)
	}
	if allowed(res, res.Path(), authz.AuditRead) {
		return f, nil
	}
	if err := s.require(ctx, c, res, res.Path(), need{"list-events", r.subject(), authz.TableReadProperties}); err != nil {
		return f, err
	}
	f.Operations = contentOf(f.Operations)
	return f, nil
}

func (s *Service) eventsOfTable(ctx context.Context, c Caller, res Resolution, r RecordScope, f EventFilter) (EventFilter, error) {
	ident := Identifier{Namespace: r.Namespace, Name: r.Table}
	wanted, missing := authz.TableReadProperties, KindTable.Missing(ident)
	switch {
	case res.View != nil:
		f.SecurableID, wanted = res.View.ID, authz.ViewReadProperties
	case res.Table != nil:
		f.SecurableID = res.Table.ID
	default:
		if allowed(res, res.Path(), wanted) || allowed(res, res.Path(), authz.TableList) {
			return f, missing
		}
	}
	f.Operations = contentOf(f.Operations)
	return f, s.require(ctx, c, res, res.Path(), need{"list-events", ident.String(), wanted})
}

// contentOf leaves of the wanted operations those about content; none wanted are all of these.
func contentOf(wanted []string) []string {
	if len(wanted) == 0 {
		return ContentOperations()
	}
	left := []string{""} // matches nothing, where "none" would match everything
	for _, operation := range wanted {
		for _, known := range contentOperations {
			if operation == known {
				left = append(left, operation)
			}
		}
	}
	return left
}
