package maintenance

import (
	"context"
	"time"

	"github.com/google/uuid"

	icebergio "github.com/apache/iceberg-go/io"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/vending"
)

// Tables is what maintenance needs of the catalog: the same operations that every client has.
type Tables interface {
	LoadTable(ctx context.Context, c catalog.Caller, r catalog.LoadTableRequest) (catalog.LoadedTable, error)
	CommitTable(ctx context.Context, c catalog.Caller, r catalog.CommitTableRequest) (catalog.LoadedTable, error)
	// AuthorizeTable gives the table's rows when the caller holds the privilege on it.
	AuthorizeTable(ctx context.Context, c catalog.Caller, warehouse string, ident catalog.Identifier, p authz.Privilege) (catalog.Warehouse, catalog.TableRecord, error)
	// AuthorizePlace gives the warehouse when the caller holds the privilege on the namespace, or, where that is gone or
	// none is named, on what it was in.
	AuthorizePlace(ctx context.Context, c catalog.Caller, warehouse string, ns catalog.Namespace, p authz.Privilege) (catalog.Warehouse, error)
	// LoadDropped gives a dropped table and its metadata: fault.NotFound when it is gone or back.
	LoadDropped(ctx context.Context, c catalog.Caller, id uuid.UUID) (catalog.DroppedTable, *commit.Document, error)
	// RemoveOutdated removes metadata files whose grace has passed, up to a limit, and tells how many it looked at.
	RemoveOutdated(ctx context.Context, c catalog.Caller, limit int) (int, error)
	// SweepRecords removes records that are older than is wanted, a bounded number, and tells how many.
	SweepRecords(ctx context.Context, c catalog.Caller, k catalog.Keep) (int, error)
}

// Files reads and writes one table's files, with credentials narrowed to that table.
type Files interface {
	icebergio.WriteFileIO
	// WalkDir calls fn for each file below a folder in the table's location.
	icebergio.ListableIO
}

// aborter is a file writer that can give up and leave nothing, as object stores allow.
type aborter interface{ Abort() }

// OpenFiles opens a table's files, for as long as ctx lasts.
type OpenFiles func(ctx context.Context, p vending.Profile, s vending.Scope) (Files, error)

// JobQueue hands out jobs. Every method is one transaction; times are the database's. A method that takes a Lease
// answers ErrLeaseLost when it is not held any more, and changes nothing then.
type JobQueue interface {
	// EnqueueJob adds a job, or gives the table's open job of the kind (created is false then); an on-demand request
	// makes a waiting one due now. The fact is written when a job was added; nil writes none.
	EnqueueJob(ctx context.Context, n NewJob, f *catalog.Fact) (j Job, created bool, err error)
	// ClaimJob takes the oldest job that is due or whose lease has run out, and moves its epoch. nil: there is none.
	ClaimJob(ctx context.Context, worker string) (*Claim, error)
	// ExtendLease makes the lease good for LeaseDuration from now.
	ExtendLease(ctx context.Context, l Lease) error
	// SaveProgress keeps phase, progress and figures so far.
	SaveProgress(ctx context.Context, l Lease, p Progress) error
	// FinishJob ends the job and, in the same transaction, keeps what the table's next plan needs. Seconds of the
	// outcome are set from the database's clock.
	FinishJob(ctx context.Context, l Lease, f Finish) error
	// ReleaseJob gives an unfinished job back, due after the delay. Uncounted takes this claim out of Attempts.
	ReleaseJob(ctx context.Context, l Lease, r Release) error
	// RetryJob puts a failed job back into the queue, due now and with all its attempts, and writes the fact. A job that
	// is open already, or another open one of its table and kind, is given as it is, without the fact.
	// fault.NotFound: there is no such job. fault.IllegalArgument: it has not failed, or what it was about is gone.
	RetryJob(ctx context.Context, r Retry, f catalog.Fact) (Job, error)
}

// Retry asks for a failed job to be begun again.
type Retry struct {
	JobID       uuid.UUID
	WarehouseID uuid.UUID // of the table
	RequestedBy string
}

// Progress is what a running job shows.
type Progress struct {
	Phase    string
	Fraction float64
	Outcome  Outcome
}

// Finish is the end of a job.
type Finish struct {
	State   State
	Reason  Reason
	Outcome Outcome
	// Layout replaces the table's layout record when it is not nil.
	Layout *LayoutRecord
	// Kept are files that the table names now: they are the table's and no longer recorded as the job's.
	Kept []string
	// Dropped says what becomes of the dropped table that a purge was about.
	Dropped DroppedFate
	// LookAfter, when not 0, makes an automatic look at the table due after that time, dirty or not.
	LookAfter time.Duration
}

// DroppedFate is what becomes of a dropped table.
type DroppedFate string

// The fates. Without one the table stays as it is: its purge has begun, and its place is reserved.
const (
	DroppedForgotten DroppedFate = "forgotten" // its files are gone; its place is free when its grace is over
	DroppedKept      DroppedFate = "kept"      // no file was touched: it can be registered again
)

// Purges fences purges.
type Purges interface {
	// BeginPurge marks the purge of the job's dropped table as begun: from now on it cannot be registered again. False
	// when the table is not there any more.
	BeginPurge(ctx context.Context, l Lease) (begun bool, err error)
	// ConfirmPurge tells whether the dropped table still has the location, and gives the keys of the locations in it
	// or around it that are somebody else's.
	ConfirmPurge(ctx context.Context, l Lease, location string) (neighbours []string, held bool, err error)
}

// Release gives a job back. Outcome, when not nil, is what was done so far and stays done.
type Release struct {
	Delay     time.Duration
	Reason    Reason
	Outcome   *Outcome
	Uncounted bool
}

// JobFiles records the files that a job is about to write.
type JobFiles interface {
	// RecordFiles must return before the files are written.
	RecordFiles(ctx context.Context, l Lease, paths []string) error
	// ListFiles gives the recorded files of a job, of every epoch.
	ListFiles(ctx context.Context, jobID uuid.UUID) ([]string, error)
	// ForgetFiles takes records away, after the files are removed.
	ForgetFiles(ctx context.Context, l Lease, paths []string) error
}

// JobReader shows jobs.
type JobReader interface {
	// FindJob: fault.NotFound.
	FindJob(ctx context.Context, id uuid.UUID) (Job, error)
	// ListJobs gives a table's jobs, newest first.
	ListJobs(ctx context.Context, tableID uuid.UUID, limit int) ([]Job, error)
	// ListWarehouseJobs gives a page of the jobs in some states on a warehouse's tables, those that are dropped included,
	// newest first.
	ListWarehouseJobs(ctx context.Context, warehouseID uuid.UUID, p JobsPage) ([]Job, error)
	// FindTableRef gives a table's present name: fault.NotFound when it is gone.
	FindTableRef(ctx context.Context, tableID uuid.UUID) (TableRef, error)
}

// TableState is what the database keeps of a table's maintenance.
type TableState struct {
	Settings  Stored
	Layout    LayoutRecord
	Look      LookReport // of the last automatic look
	CheckedAt time.Time  // zero: never looked at
	LookAfter time.Time  // zero: nothing planned
	Dirty     bool       // a commit came since the last look
	// LastFinished is when the last job of kind compaction ended that did something or failed; zero: never.
	LastFinished time.Time
}

// LookReport is what an automatic look found.
type LookReport struct {
	At     time.Time `json:"at,omitzero"`
	Reason Reason    `json:"reason,omitzero"`
	JobID  uuid.UUID `json:"job_id,omitzero"`
}

// LookClaim is a table that this worker is to look at.
type LookClaim struct {
	TableRef
	// Attempts counts looks, with this one, since one came to its end.
	Attempts int
}

// LookResult ends a look. LookAfter 0 waits for the next commit.
type LookResult struct {
	Report    LookReport
	LookAfter time.Duration
	// Parked leaves the attempts as they are, so that the next look is refused as well.
	Parked bool
	// Released says that the look did not come to its end: nothing is reported, and it does not count.
	Released bool
}

// TableStates keeps what is known of tables.
type TableStates interface {
	// LoadTableState never fails because there is nothing: the zero value then.
	LoadTableState(ctx context.Context, tableID uuid.UUID) (TableState, error)
	// SaveSettings merges into the stored settings (nil takes a key away), gives the result, and makes the
	// table due for a look.
	SaveSettings(ctx context.Context, tableID uuid.UUID, change map[string]*string, f catalog.Fact) (Stored, error)
	// ClaimLooks takes up to limit tables that are switched on and due for a look, which no other worker gets for
	// the time of a lease.
	ClaimLooks(ctx context.Context, limit int) ([]LookClaim, error)
	// ExtendLook keeps others away from the table for LeaseDuration from now: fault.NoSuchTable when it was dropped.
	ExtendLook(ctx context.Context, tableID uuid.UUID) error
	// FinishLook ends a look.
	FinishLook(ctx context.Context, tableID uuid.UUID, r LookResult) error
}

// Store is everything that maintenance needs of the database.
type Store interface {
	JobQueue
	JobFiles
	JobReader
	Purges
	TableStates
}
