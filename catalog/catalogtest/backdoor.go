package catalogtest

import (
	"testing"

	"github.com/google/uuid"

	"catalogd/catalog"
)

// Backdoor reaches what no port does, for the suite to set up and to look at. A store under test implements it
// beside the ports.
type Backdoor interface {
	// SetLease makes the lease of a job good for the epoch, or ends it.
	SetLease(t testing.TB, f catalog.Fence, held bool)
	// EventRows and AuditRows give everything that was written, in order.
	EventRows(t testing.TB) []Event
	AuditRows(t testing.TB) []Audit
	// MaintenanceOf gives what commits left for the worker.
	MaintenanceOf(t testing.TB, table uuid.UUID) (enabled, dirty bool)
	// LapseStaged moves the end of a staged create so far into the past that nothing needs it any more.
	LapseStaged(t testing.TB, staged uuid.UUID)
	// LapseOutcome ends what is kept under a principal's key.
	LapseOutcome(t testing.TB, principal, key uuid.UUID)
	// Replica gives another store on the same database, as another server has it.
	Replica(t testing.TB) catalog.Store
	UpkeepBackdoor
}

// UpkeepBackdoor is the part of Backdoor about dropped tables and outdated files.
type UpkeepBackdoor interface {
	// LapseDropped moves a table's drop so far into the past that nothing holds its place by then.
	LapseDropped(t testing.TB, dropped uuid.UUID)
	// MarkPurging marks a dropped table's purge as begun.
	MarkPurging(t testing.TB, dropped uuid.UUID)
	// FinishPurge ends a dropped table's purge, as a worker that has removed its files does.
	FinishPurge(t testing.TB, dropped uuid.UUID)
	// PurgeOf gives the purge job that a drop left; false when there is none.
	PurgeOf(t testing.TB, dropped uuid.UUID) (catalog.PurgeJob, bool)
	// LapseOutdated ends the grace of all outdated files, and their claims.
	LapseOutdated(t testing.TB)
}

// Replica is the store itself: it keeps nothing apart.
func (s *Store) Replica(testing.TB) catalog.Store { return s }

// SetLease makes the lease of a job good for the epoch, or ends it.
func (s *Store) SetLease(_ testing.TB, f catalog.Fence, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state.leases, f.JobID)
	if held {
		s.state.leases[f.JobID] = f.Epoch
	}
}

// EventRows gives all events.
func (s *Store) EventRows(testing.TB) []Event { return s.Events() }

// AuditRows gives all audit rows.
func (s *Store) AuditRows(testing.TB) []Audit { return s.Audits() }

// MaintenanceOf gives what commits left for the worker.
func (s *Store) MaintenanceOf(_ testing.TB, table uuid.UUID) (enabled, dirty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.state.maintenance[table]
	return row.enabled, row.dirty
}

// LapseStaged ends a staged create long ago.
func (s *Store) LapseStaged(_ testing.TB, staged uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.state.staged[staged]
	row.expires = s.Now().Add(-2 * stagedGrace)
	s.state.staged[staged] = row
}
