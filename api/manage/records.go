package manage

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// Limits of reading the audit and the events.
const (
	recordsPageMax = 1000
	// eventsWaitMax is how long a request may wait for an event, eventsPollEvery how often it looks meanwhile.
	eventsWaitMax   = 30 * time.Second
	eventsPollEvery = 500 * time.Millisecond
	eventsDeadline  = eventsWaitMax + api.DeadlineDefault
	// eventWaitersMax is how many requests wait at a time; one more is answered at once.
	eventWaitersMax = 64
)

// Cursors are page tokens: of the oldest first, a position in the feed; of the newest first, an id. Both count what everybody
// does, and are sealed.
const (
	cursorOldest = "oldest:"
	cursorNewest = "newest:"
	cursorEvents = "events:"
)

func (h *handlers) recordRows() []api.Endpoint {
	events := row(http.MethodGet, "/events", "list-events", h.listEvents)
	events.Deadline = eventsDeadline
	return []api.Endpoint{row(http.MethodGet, "/audit", "list-audit", h.listAudit), events}
}

// auditAnswer is a row of the audit. Names are those of the JSON lines too.
type auditAnswer struct {
	At         time.Time  `json:"at"`
	Principal  string     `json:"principal"`
	Actor      string     `json:"actor,omitempty"`
	TokenID    string     `json:"tokenId,omitempty"`
	Credential string     `json:"credential,omitempty"`
	Client     string     `json:"clientAddress,omitempty"`
	UserAgent  string     `json:"userAgent,omitempty"`
	RequestID  string     `json:"requestId,omitempty"`
	Operation  string     `json:"operation"`
	Catalog    string     `json:"catalog,omitempty"`
	CatalogID  *uuid.UUID `json:"catalogId,omitempty"`
	Subject    string     `json:"subject"`
	Securable  *uuid.UUID `json:"securableId,omitempty"`
	Allowed    bool       `json:"allowed"`
	Reason     string     `json:"reason,omitempty"`
	Privilege  string     `json:"missingPrivilege,omitempty"`
	On         string     `json:"missingOn,omitempty"`
	Repeats    int64      `json:"repeats,omitempty"`
	EventID    *uuid.UUID `json:"eventId,omitempty"`
}

func newAuditAnswer(a catalog.AuditRow) auditAnswer {
	return auditAnswer{
		At: a.At.UTC(), Principal: a.Principal, Actor: a.Actor, TokenID: a.TokenID, Credential: a.Credential, Client: a.Client,
		UserAgent: a.UserAgent, RequestID: a.RequestID, Operation: a.Operation, Catalog: a.Warehouse, CatalogID: known(a.WarehouseID),
		Subject: a.Subject, Securable: known(a.SecurableID), Allowed: a.Allowed, Reason: a.Reason, Privilege: a.Privilege,
		On: a.Securable, Repeats: a.Repeats, EventID: known(a.EventID),
	}
}

// AuditLine is a row of the audit as a JSON object on a line of its own, with the names that the API gives it.
func AuditLine(a catalog.AuditRow) ([]byte, error) {
	line, err := json.Marshal(newAuditAnswer(a))
	return append(line, '\n'), err
}

// known leaves out the id that means none.
func known(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// listAudit answers rows newest first or, with order=oldest, in the order of the feed, with a cursor to go on from.
func (h *handlers) listAudit(w http.ResponseWriter, r *http.Request) error {
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	warehouse := query.Get("catalog")
	api.Annotate(r, warehouse, "")
	q, err := auditQuery(query)
	if err != nil {
		return err
	}
	paging, after, err := h.recordPaging(query, orderOf(q.Oldest))
	if err != nil {
		return err
	}
	latest, err := api.Flag(query, "latest")
	if err != nil {
		return err
	}
	q.After, q.Before, q.Limit, q.Oldest = after, after, paging.Items+1, q.Oldest || latest
	rows, feed, err := fromEnd(latest, func() ([]catalog.AuditRow, catalog.Feed, error) {
		return h.service.ListAudit(r.Context(), api.CallerOf(r), warehouse, q)
	})
	if err != nil {
		return err
	}
	page, next := api.CutPage(paging, rows, func(a catalog.AuditRow) string {
		if q.Oldest {
			return h.cursor(cursorOldest, a.Position)
		}
		return h.cursor(cursorNewest, a.ID)
	})
	answer := struct {
		Rows   []auditAnswer `json:"rows"`
		Missed bool          `json:"missed,omitempty"`
		Cursor string        `json:"cursor,omitempty"`
		Next   *string       `json:"next-page-token"`
	}{Rows: []auditAnswer{}, Next: next}
	for _, a := range page {
		answer.Rows = append(answer.Rows, newAuditAnswer(a))
	}
	if q.Oldest {
		answer.Cursor, answer.Missed = h.cursorAfter(cursorOldest, next, feed), missed(feed, after)
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// fromEnd reads a page. latest leaves out what is there, however much it is, and tells only where it ends.
func fromEnd[T any](latest bool, read func() ([]T, catalog.Feed, error)) ([]T, catalog.Feed, error) {
	rows, feed, err := read()
	for latest && err == nil && feed.More {
		_, feed, err = read()
	}
	if latest {
		rows = nil
	}
	return rows, feed, err
}

func orderOf(oldest bool) string {
	if oldest {
		return cursorOldest
	}
	return cursorNewest
}

// cursorAfter is where to go on: behind the page or, when there is no more, behind everything that was looked at.
func (h *handlers) cursorAfter(kind string, next *string, feed catalog.Feed) string {
	if next != nil {
		return *next
	}
	return api.PageToken(h.cursor(kind, feed.Through))
}

// cursor is what a page token holds of a number.
func (h *handlers) cursor(kind string, n int64) string {
	return kind + base64.RawURLEncoding.EncodeToString(h.cursors.SealCursor(kind, n))
}

// missed tells that rows behind a cursor are not to be had: they were removed, or the cursor is of another time. In a database that
// was restored the feed is shorter than the cursor tells, and what grows up to there would be left out without a word.
func missed(feed catalog.Feed, after int64) bool {
	return after > 0 && (after < feed.Removed || after > feed.Through)
}

func auditQuery(query url.Values) (q catalog.AuditQuery, err error) {
	q.Principal, q.Operation, q.Subject, q.RequestID = query.Get("principal"), query.Get("operation"), query.Get("subject"), query.Get("requestId")
	if text := query.Get("securableId"); text != "" {
		if q.SecurableID, err = uuid.Parse(text); err != nil {
			return q, fault.New(fault.BadRequest, "securableId is not a UUID")
		}
	}
	if query.Get("allowed") != "" {
		allowed, err := api.Flag(query, "allowed")
		if err != nil {
			return q, err
		}
		q.Allowed = &allowed
	}
	if q.Since, err = moment(query, "since"); err != nil {
		return q, err
	}
	if q.Until, err = moment(query, "until"); err != nil {
		return q, err
	}
	if !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return q, fault.New(fault.BadRequest, "since is not before until: nothing lies between them")
	}
	switch query.Get("order") {
	case "", "newest":
	case "oldest":
		q.Oldest = true
	default:
		return q, fault.New(fault.BadRequest, "order must be newest or oldest")
	}
	return q, nil
}

// moment reads a time of a query; zero when it is not there.
func moment(query url.Values, name string) (time.Time, error) {
	text := query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.UTC().Year() < 1 { // Postgres has no year 0
		return at, fault.New(fault.BadRequest, "%s must be a time like 2026-03-04T05:06:07Z", name)
	}
	return at, nil
}

// recordPaging reads how the records are wanted, and the number that the page's cursor of the kind holds: 0 for none.
func (h *handlers) recordPaging(query url.Values, kind string) (paging api.Paging, after int64, err error) {
	if !query.Has("pageToken") {
		query.Set("pageToken", "")
	}
	if paging, err = api.PagingOf(query); err != nil {
		return paging, 0, err
	}
	paging.Items = min(paging.Items, recordsPageMax)
	if paging.After == "" {
		return paging, 0, nil
	}
	text, found := strings.CutPrefix(paging.After, kind)
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if !found || err != nil {
		return paging, 0, fault.New(fault.BadRequest, "pageToken is not one of this list in this order")
	}
	if after, found = h.cursors.OpenCursor(kind, sealed); !found || after < 0 {
		return paging, 0, fault.New(fault.BadRequest, "pageToken is of another server, or of before a change of its keys: begin without one")
	}
	return paging, after, nil
}

type eventAnswer struct {
	ID        uuid.UUID       `json:"id"`
	Sequence  int64           `json:"sequence"` // grows from event to event of one securable
	At        time.Time       `json:"at"`
	Operation string          `json:"operation"`
	Principal string          `json:"principal,omitempty"`
	Catalog   string          `json:"catalog,omitempty"`
	CatalogID *uuid.UUID      `json:"catalogId,omitempty"`
	Subject   string          `json:"subject"`
	Securable *uuid.UUID      `json:"securableId,omitempty"`
	Details   json.RawMessage `json:"details"`
}

func newEventAnswer(e catalog.EventRow) eventAnswer {
	return eventAnswer{
		ID: e.ID, Sequence: e.Turn, At: e.At, Operation: e.Operation, Principal: e.Principal, Catalog: e.Warehouse,
		CatalogID: known(e.WarehouseID), Subject: e.Subject, Securable: known(e.SecurableID), Details: e.Details,
	}
}

// listEvents answers changes in their order. With wait it answers as soon as there is one.
func (h *handlers) listEvents(w http.ResponseWriter, r *http.Request) error {
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	scope := catalog.RecordScope{Warehouse: query.Get("catalog"), Table: query.Get("table")}
	if namespace := query.Get("namespace"); namespace != "" {
		scope.Namespace = strings.Split(namespace, namespaceSeparator)
	}
	api.Annotate(r, scope.Warehouse, scope.Table)
	if scope.Warehouse == "" && (scope.Table != "" || scope.Namespace != nil) {
		return fault.New(fault.BadRequest, "catalog is missing: namespace and table are in one")
	}
	paging, after, err := h.recordPaging(query, cursorEvents)
	if err != nil {
		return err
	}
	wait, err := waitOf(query)
	if err != nil {
		return err
	}
	latest, err := api.Flag(query, "latest")
	if err != nil {
		return err
	}
	q := catalog.EventQuery{After: after, Limit: paging.Items + 1, EventFilter: catalog.EventFilter{Operations: query["operation"]}}
	rows, feed, err := h.awaitEvents(r, scope, q, wait, latest)
	if err != nil {
		return err
	}
	page, next := api.CutPage(paging, rows, func(e catalog.EventRow) string { return h.cursor(cursorEvents, e.Position) })
	answer := struct {
		Events []eventAnswer `json:"events"`
		Missed bool          `json:"missed,omitempty"`
		Cursor string        `json:"cursor"`
		Next   *string       `json:"next-page-token"`
	}{Events: []eventAnswer{}, Missed: missed(feed, after), Cursor: h.cursorAfter(cursorEvents, next, feed), Next: next}
	for _, e := range page {
		answer.Events = append(answer.Events, newEventAnswer(e))
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

func waitOf(query url.Values) (time.Duration, error) {
	text := query.Get("wait")
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 {
		return 0, fault.New(fault.BadRequest, "wait must be a number of seconds")
	}
	return min(time.Duration(seconds)*time.Second, eventsWaitMax), nil
}

// awaitEvents reads events; where there is none it looks again until there is one or the time is over. The caller's right
// is asked for each time: one that is taken away ends the wait. So does the end of the server, with what there is: nothing. latest gives none of those that are there, only where
// they end.
func (h *handlers) awaitEvents(
	r *http.Request, scope catalog.RecordScope, q catalog.EventQuery, wait time.Duration, latest bool,
) ([]catalog.EventRow, catalog.Feed, error) {
	caller, ends := api.CallerOf(r), time.Now().Add(wait)
	if wait > 0 {
		defer h.waiters.Add(-1)
		if h.waiters.Add(1) > eventWaitersMax {
			ends = time.Now()
		}
	}
	for {
		rows, feed, err := fromEnd(latest, func() ([]catalog.EventRow, catalog.Feed, error) {
			return h.service.ListEvents(r.Context(), caller, scope, q)
		})
		if err != nil || latest || len(rows) > 0 || feed.More || !time.Now().Before(ends) {
			return rows, feed, err
		}
		q.After = max(q.After, feed.Through)
		select {
		case <-r.Context().Done():
			return nil, feed, r.Context().Err()
		case <-h.stopping:
			return rows, feed, nil
		case <-time.After(eventsPollEvery):
		}
	}
}
