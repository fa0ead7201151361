// Package catalogtest has what tests of the domain need: a store and a metadata file system in memory, both of which
// fail where a test wants, and the suite that every store must pass. The store in memory and the one in Postgres pass
// the same suite, so whatever is tested on the first holds for the second.
package catalogtest

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/deflate"
	"catalogd/internal/fault"
)

// Failure is what a test does to one call. The zero value does nothing.
type Failure struct {
	// Err is the call's answer instead of its own.
	Err error
	// Applied tells that the call did its work and only its answer was lost. Else it does nothing.
	Applied bool
}

// Failures decides over each call: its method's name, and its number among all calls, from 1.
type Failures func(method string, number int) Failure

// Unknown is the answer of a commit whose outcome nobody knows.
func Unknown() error {
	return fault.New(fault.CommitUnknown, "the database's answer to the commit was lost")
}

// FailNth lets the nth call fail with err before it does anything. A loop over n, until nothing fails any more,
// visits every place where a test's operation can break.
func FailNth(n int, err error) Failures {
	return func(_ string, number int) Failure {
		if number == n {
			return Failure{Err: err}
		}
		return Failure{}
	}
}

// FailMethod lets every call of a method fail with err before it does anything.
func FailMethod(method string, err error) Failures {
	return func(called string, _ int) (f Failure) {
		if called == method {
			f.Err = err
		}
		return f
	}
}

// LoseAnswer lets the nth call of a method answer that its outcome is unknown; applied says what it was in truth.
func LoseAnswer(method string, n int, applied bool) Failures {
	var mu sync.Mutex
	seen := 0
	return func(called string, _ int) Failure {
		if called != method {
			return Failure{}
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen == n {
			return Failure{Err: Unknown(), Applied: applied}
		}
		return Failure{}
	}
}

// Event is an event row.
type Event struct {
	ID        uuid.UUID
	Operation string
	Warehouse uuid.UUID
	Securable uuid.UUID
	Subject   string
}

// Audit is an audit row.
type Audit struct {
	Event     uuid.UUID // uuid.Nil for refused attempts
	Principal string
	Operation string
	Subject   string
	Allowed   bool
	Reason    string
}

// Store is a catalog.Store, a catalog.AdminStore, an auth.AccountStore and an auth.KeyStore in memory. It is safe
// for concurrent use.
type Store struct {
	// Now is the database's clock.
	Now func() time.Time

	mu       sync.Mutex
	failures Failures
	calls    int
	state    state
}

// state is everything that a transaction can roll back. The maps hold values; what these point to is never changed.
type state struct {
	warehouses  map[uuid.UUID]catalog.Warehouse
	namespaces  map[uuid.UUID]namespaceRow
	tables      map[uuid.UUID]tableRow
	dropped     map[uuid.UUID]droppedRow
	staged      map[uuid.UUID]stagedRow
	locations   map[string]locationRow // by vending.Key
	leases      map[uuid.UUID]int64    // epochs of the jobs whose lease is held
	maintenance map[uuid.UUID]maintenanceRow
	metadata    map[uuid.UUID]metadataRow // by table or view
	outdated    map[string]outdatedRow
	purges      map[uuid.UUID]catalog.PurgeJob // by the dropped table's id

	principals     map[uuid.UUID]principalRow
	roles          map[uuid.UUID]catalog.RoleRecord
	principalRoles map[membership]bool // principal has principal role
	catalogRoles   map[membership]bool // principal role has catalog role
	grants         map[grantRow]bool
	keys           []auth.StoredKey
	outcomes       map[outcomeKey]outcomeRow
	personal       map[uuid.UUID]personalRow
	revoked        map[revokedToken]time.Time
	networks       map[uuid.UUID]auth.NetworkPolicy
	webhooks       map[uuid.UUID]webhookRow
	deliveries     map[deliveryKey]catalog.Delivery

	reports []catalog.MetricsReport
	events  []Event
	audits  []Audit
	feeds   feeds

	now time.Time // when the transaction began
}

type namespaceRow struct {
	catalog.NamespaceRecord
	warehouse, parent uuid.UUID
}

type tableRow struct {
	catalog.TableRecord
	warehouse uuid.UUID
}

type droppedRow struct {
	tableRow
	unregistered, purging, purged bool
	at                            time.Time // by the store's clock: of the drop, or of the end of the purge
	gone                          bool      // the purge has ended
	droppedAt                     time.Time
}

type outdatedRow struct {
	catalog.OutdatedFile
	due, claimedUntil time.Time
}

type stagedRow struct {
	catalog.StagedTable
	expires time.Time
}

type locationRow struct {
	warehouse uuid.UUID
	kind      authz.SecurableKind
	dropped   bool
	former    bool // of a dropped table that had moved before
	staged    bool
	owner     uuid.UUID
}

type metadataRow struct {
	location string
	packed   deflate.Packed
}

type maintenanceRow struct{ enabled, dirty bool }

type principalRow struct {
	catalog.PrincipalRecord
	secret    auth.StoredSecret
	keys      []auth.ClientKey
	spent     [][]byte // marks of assertions
	notBefore time.Time
	linked    []catalog.LinkedIdentity // by issuer and subject
}

type membership struct{ member, role uuid.UUID }

type grantRow struct {
	role      uuid.UUID
	kind      authz.SecurableKind
	securable uuid.UUID
	privilege authz.Privilege
}

// NewStore makes an empty store.
func NewStore() *Store {
	return &Store{Now: time.Now, state: state{
		warehouses: map[uuid.UUID]catalog.Warehouse{}, namespaces: map[uuid.UUID]namespaceRow{},
		tables: map[uuid.UUID]tableRow{}, dropped: map[uuid.UUID]droppedRow{}, staged: map[uuid.UUID]stagedRow{},
		locations: map[string]locationRow{}, leases: map[uuid.UUID]int64{}, maintenance: map[uuid.UUID]maintenanceRow{},
		metadata: map[uuid.UUID]metadataRow{},
		outdated: map[string]outdatedRow{}, purges: map[uuid.UUID]catalog.PurgeJob{},
		principals: map[uuid.UUID]principalRow{}, roles: map[uuid.UUID]catalog.RoleRecord{},
		principalRoles: map[membership]bool{}, catalogRoles: map[membership]bool{}, grants: map[grantRow]bool{},
		outcomes: map[outcomeKey]outcomeRow{}, personal: map[uuid.UUID]personalRow{}, revoked: map[revokedToken]time.Time{},
		networks: map[uuid.UUID]auth.NetworkPolicy{}, webhooks: map[uuid.UUID]webhookRow{}, deliveries: map[deliveryKey]catalog.Delivery{},
	}}
}

func (s state) clone() state {
	c := s
	c.warehouses, c.namespaces, c.tables = maps.Clone(s.warehouses), maps.Clone(s.namespaces), maps.Clone(s.tables)
	c.dropped, c.staged, c.locations = maps.Clone(s.dropped), maps.Clone(s.staged), maps.Clone(s.locations)
	c.leases, c.maintenance = maps.Clone(s.leases), maps.Clone(s.maintenance)
	c.metadata = maps.Clone(s.metadata)
	c.principals, c.roles = maps.Clone(s.principals), maps.Clone(s.roles)
	c.principalRoles, c.catalogRoles = maps.Clone(s.principalRoles), maps.Clone(s.catalogRoles)
	c.grants, c.outcomes = maps.Clone(s.grants), maps.Clone(s.outcomes)
	c.personal, c.revoked, c.networks = maps.Clone(s.personal), maps.Clone(s.revoked), maps.Clone(s.networks)
	c.webhooks, c.deliveries = maps.Clone(s.webhooks), maps.Clone(s.deliveries)
	c.outdated, c.purges = maps.Clone(s.outdated), maps.Clone(s.purges)
	return c
}

// Inject sets what happens to calls from now on, and counts them from 1 again. nil lets everything succeed.
func (s *Store) Inject(f Failures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.calls = f, 0
}

// Calls tells how many calls there were since the last Inject.
func (s *Store) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// tx runs fn alone, with all or nothing of what it does, unless the test wants the call to fail.
func (s *Store) tx(ctx context.Context, method string, fn func(st *state) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Busy, err, "the request ended before the database had answered; nothing changed")
	}
	var failure Failure
	if s.failures != nil {
		failure = s.failures(method, s.calls)
	}
	if failure.Err != nil && !failure.Applied {
		return failure.Err
	}
	before := s.state
	next := before.clone()
	next.now = s.Now()
	if err := fn(&next); err != nil {
		return err
	}
	s.state = next
	return failure.Err
}

// write keeps a fact and its outcome. An event's id is taken once: by a commit, or by who asked in vain whether it had
// landed.
func (st *state) write(f catalog.Fact) error {
	if _, taken := st.event(f.ID); taken {
		return fault.New(fault.CommitRace, "this commit was given up before it arrived")
	}
	st.events = append(st.events[:len(st.events):len(st.events)], Event{
		ID: f.ID, Operation: f.Operation, Warehouse: f.Warehouse, Securable: f.Securable, Subject: f.Subject,
	})
	st.audit(Audit{
		Event: f.ID, Principal: f.Caller.Principal.Name, Operation: f.Operation, Subject: f.Subject, Allowed: true,
	})
	if err := st.feeds.change(f); err != nil {
		return err
	}
	return st.keepOf(f)
}

func (st *state) audit(a Audit) {
	st.audits = append(st.audits[:len(st.audits):len(st.audits)], a)
}

func (st *state) event(id uuid.UUID) (Event, bool) {
	for _, e := range st.events {
		if e.ID == id {
			return e, true
		}
	}
	return Event{}, false
}

// Events gives all event rows in order.
func (s *Store) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.events
}

// Audits gives all audit rows in order.
func (s *Store) Audits() []Audit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.audits
}

// RecordDenial keeps a refused attempt.
func (s *Store) RecordDenial(ctx context.Context, d catalog.Denial) error {
	return s.tx(ctx, "RecordDenial", func(st *state) error {
		st.audit(Audit{Principal: d.Caller.Principal.Name, Operation: d.Operation, Subject: d.Subject, Reason: d.Reason})
		st.feeds.denial(d)
		return nil
	})
}

// FindMetadata gives the copy that is kept of a table's or a view's current metadata file.
func (s *Store) FindMetadata(ctx context.Context, id uuid.UUID, metadataLocation string) (packed deflate.Packed, found bool, err error) {
	err = s.tx(ctx, "FindMetadata", func(st *state) error {
		row, ok := st.metadata[id]
		packed, found = row.packed, ok && row.location == metadataLocation
		if !found {
			packed = deflate.Packed{}
		}
		return nil
	})
	return packed, found, err
}

// ForgetCopies takes the kept copies of metadata away, as if all documents were too large to be kept.
func (s *Store) ForgetCopies() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, row := range s.state.metadata {
		row.packed.Blocks = nil
		s.state.metadata[id] = row
	}
}

// ForgetDigests takes everything away that is kept of metadata files, as if a server had written them that kept nothing.
func (s *Store) ForgetDigests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.metadata = map[uuid.UUID]metadataRow{}
}

// keep follows the pointer with the copy of its metadata.
func (st *state) keep(c catalog.PointerChange) {
	delete(st.metadata, c.Record.ID)
	if c.Packed.Bytes > 0 {
		if len(c.Packed.Blocks) > catalog.PackedBytesMax {
			c.Packed.Blocks = nil
		}
		st.metadata[c.Record.ID] = metadataRow{c.Record.MetadataLocation, c.Packed}
	}
}
