package maintenance

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// State is where a job stands.
type State string

// The states. Queued and Running are open, the others final.
const (
	Queued      State = "queued"
	Running     State = "running"
	Succeeded   State = "succeeded"
	NothingToDo State = "nothing_to_do"
	Refused     State = "refused" // the table cannot be maintained as it is; the reason says what to do
	Failed      State = "failed"
)

// States gives all states.
func States() []State { return []State{Queued, Running, Succeeded, NothingToDo, Refused, Failed} }

// ParseState checks the name of a state.
func ParseState(name string) (State, error) {
	if slices.Contains(States(), State(name)) {
		return State(name), nil
	}
	return "", fault.New(fault.BadRequest, "unknown state of jobs %q; known are: %v", name, States())
}

// Final tells whether the state is an end.
func (s State) Final() bool { return s != Queued && s != Running }

// Trigger is why a job exists.
type Trigger string

// The triggers.
const (
	OnDemand  Trigger = "on-demand"
	Automatic Trigger = "automatic"
)

// Reason says why a job ended as it did, or why a plan is as it is. Code is stable and for programs; Message names
// the thing and the remedy, for people.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// String is for people: the code, by which the runbook is in order, and the message, as far as they are there.
func (r Reason) String() string {
	if r.Code == "" || r.Message == "" {
		return r.Code + r.Message
	}
	return r.Code + ": " + r.Message
}

// Outcome holds a job's figures. Before is the table's main branch when the job planned; After is the same with the
// job's replacements in place, so rows are equal in both whatever others commit meanwhile.
type Outcome struct {
	FilesBefore      int64   `json:"files_before"`
	FilesAfter       int64   `json:"files_after"`
	RowsBefore       int64   `json:"rows_before"`
	RowsAfter        int64   `json:"rows_after"`
	BytesBefore      int64   `json:"bytes_before"`
	BytesAfter       int64   `json:"bytes_after"`
	RowGroupsBefore  int64   `json:"row_groups_before"`
	RowGroupsAfter   int64   `json:"row_groups_after"`
	ClusteringBefore float64 `json:"clustering_before"` // 1 is perfect, 0 is not known
	ClusteringAfter  float64 `json:"clustering_after"`
	Seconds          float64 `json:"seconds"`

	// Overlap is what pruning by single columns feels: for each clustering column, how many boxes cover a value, divided
	// by what so many boxes can reach at best; the mean over the columns. 1 is perfect, 0 is not known. Before: of the
	// replaced files, by their manifest bounds; after: of the row groups written.
	OverlapBefore float64 `json:"overlap_before"`
	OverlapAfter  float64 `json:"overlap_after"`

	// What was replaced, and what the commit met.
	FilesReplaced int64            `json:"files_replaced"`
	FilesWritten  int64            `json:"files_written"`
	RowsRewritten int64            `json:"rows_rewritten"`
	GroupsDropped int64            `json:"groups_dropped"` // given up: another commit took their files
	Conflicts     int64            `json:"conflicts"`      // commits that had to be rebased
	SnapshotID    int64            `json:"snapshot_id,omitempty"`
	FilesSkipped  map[string]int64 `json:"files_skipped,omitempty"` // by reason
	FilesRemoved  int64            `json:"files_removed,omitempty"` // by a purge
	// FilesUnsettled are those of FilesRemoved that the next attempt removes, and counts, again: what names them is there.
	FilesUnsettled int64 `json:"files_unsettled,omitempty"`
}

// Job is a row of work on one table.
type Job struct {
	ID          uuid.UUID
	Kind        Kind
	TableID     uuid.UUID
	Warehouse   string
	Subject     string // ns.table, for people
	State       State
	Trigger     Trigger
	RequestedBy string
	Phase       string
	Progress    float64 // 0..1 of the phase's work
	Outcome     Outcome
	Reason      Reason
	Attempts    int // claims so far
	Epoch       int64
	Worker      string
	NotBefore   time.Time
	CreatedAt   time.Time
	StartedAt   time.Time // zero while queued
	FinishedAt  time.Time // zero while open
	// DroppedFrom is the namespace of a table that was dropped before the job was made; nil for other jobs.
	DroppedFrom catalog.Namespace
}

// Lease gives what fences this claim of the job.
func (j Job) Lease() Lease { return Lease{JobID: j.ID, Epoch: j.Epoch} }

// Lease is the right to work on a job: the job and the epoch of the claim. A later claim has a higher epoch.
type Lease struct {
	JobID uuid.UUID
	Epoch int64
}

// Fence is the lease as a commit carries it.
func (l Lease) Fence() catalog.Fence { return catalog.Fence{JobID: l.JobID, Epoch: l.Epoch} }

// TableRef is a table as the database names it now: renames do not lose jobs.
type TableRef struct {
	ID        uuid.UUID
	Warehouse string // name
	Ident     catalog.Identifier
}

// NewJob asks for work on a table.
type NewJob struct {
	ID          uuid.UUID
	Kind        Kind
	Table       TableRef
	Trigger     Trigger
	RequestedBy string
}

// Claim is a job that this worker holds now.
type Claim struct {
	Job Job
	// Table is nil when the table is gone.
	Table *TableRef
}

// ErrLeaseLost is what every fenced call answers when the lease is not held any more.
var ErrLeaseLost = fault.New(fault.VersionConflict, "the job's lease is held by somebody else now")

// Limits of jobs. docs/operations.md promises them.
const (
	// LeaseDuration is how long a claim holds without a heartbeat, by the database's clock.
	LeaseDuration = 30 * time.Second
	// heartbeatEvery leaves two misses before the lease ends.
	heartbeatEvery = 10 * time.Second
	// jobsListedMax bounds the list of a table's last jobs in answers, warehouseJobsMax that of a warehouse's.
	jobsListedMax    = 20
	warehouseJobsMax = 1000
)
