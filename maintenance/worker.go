package maintenance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance/layout"
)

// Config says how a worker works.
type Config struct {
	Store     Store
	Tables    Tables
	OpenFiles OpenFiles
	// Cluster rewrites files; nil: layout.Cluster.
	Cluster ClusterFunc
	// Name is shown as the job's worker; "" makes one of host and process.
	Name string
	// PollEvery is how often the worker asks for work; 0 means pollEveryDefault. Each wait has jitter.
	PollEvery time.Duration
	// Jobs is how many jobs run at a time; 0 means one.
	Jobs int
	// MemoryBytes is what one job's rewrite may hold; 0 means layout.MemoryBytesDefault.
	MemoryBytes int64
	// Threads is how many goroutines one rewrite uses; 0 means the engine's default.
	Threads int
	// SpillDir is where rewrites spill; "" means the system's folder for temporary files. The worker makes folders of
	// its own in it and removes those that dead processes left.
	SpillDir string
	// Deadlines bound how long one table can keep the worker busy.
	Deadlines Deadlines
	// HeartbeatEvery is how often a lease is extended; 0 means the default, which leaves two misses.
	HeartbeatEvery time.Duration
	// Now is the clock of snapshots and of waiting; nil: time.Now. Leases go by the database's clock.
	Now func() time.Time
	Log *slog.Logger // nil: slog.Default()
	// Keep is how long records stay that nobody needs any more; the zero value keeps all.
	Keep catalog.Keep
}

// Limits of a worker.
const (
	pollEveryDefault = time.Second
	looksPerPoll     = 8
	retryDelayMin    = 5 * time.Second  // of a job that failed for a reason that may pass
	retryDelayMax    = 2 * time.Minute  //
	failedLookDelay  = 5 * time.Minute  // before an automatic job is tried again after one failed for good
	refusedLookDelay = time.Hour        // after one found that the files cannot be rewritten
	releaseMax       = 10 * time.Second // for giving a job back when the worker ends
	claimMax         = 30 * time.Second // for asking for work: a database that fell silent must not keep the worker for good
	errorDelayMax    = 30 * time.Second // between polls while the database does not answer
	settlesMax       = 2                // claims that only clear away; after them a job is ended unseen
)

// errStopping is why a job's context ends when its worker ends.
var errStopping = errors.New("the worker is stopping")

// Worker claims and runs jobs. Make it with New, then Start and Stop it, or call RunOnce.
type Worker struct {
	config Config
	env    environment
	log    *slog.Logger

	mu     sync.Mutex
	housed time.Time               // when the last housekeeping began
	cancel context.CancelCauseFunc // nil while not started
	loops  sync.WaitGroup
	spill  string
}

// New makes a worker. It touches nothing yet.
func New(c Config) *Worker {
	if c.Cluster == nil {
		c.Cluster = layout.Cluster
	}
	if c.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		c.Name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	if c.PollEvery == 0 {
		c.PollEvery = pollEveryDefault
	}
	if c.Jobs == 0 {
		c.Jobs = 1
	}
	if c.HeartbeatEvery == 0 {
		c.HeartbeatEvery = heartbeatEvery
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Worker{config: c, log: c.Log, env: environment{
		store: c.Store, tables: c.Tables, open: c.OpenFiles, cluster: c.Cluster, memory: c.MemoryBytes, workers: c.Threads, now: c.Now,
		deadlines: c.Deadlines.orDefault(),
	}}
}

// Start begins to work in the background. A second call before Stop does nothing.
func (w *Worker) Start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil {
		return nil
	}
	if err := w.openSpill(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	w.cancel = cancel
	for range w.config.Jobs {
		w.loops.Go(func() { w.loop(ctx, w.takeJob) })
	}
	for range looksAtOnce {
		w.loops.Go(func() { w.loop(ctx, w.lookAround) })
	}
	return nil
}

// Stop ends the work: a running job gives up what it has not committed, removes its files and goes back to the queue.
// It waits for that until ctx ends.
func (w *Worker) Stop(ctx context.Context) error {
	w.mu.Lock()
	cancel := w.cancel
	w.cancel = nil
	w.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel(errStopping)
	done := make(chan struct{})
	go func() { w.loops.Wait(); close(done) }()
	select {
	case <-done:
		return w.closeSpill()
	case <-ctx.Done():
		return fmt.Errorf("stop the maintenance worker: %w", context.Cause(ctx))
	}
}

// loop does rounds until ctx ends. While there is work it does not wait; while the database does not answer it waits
// longer.
func (w *Worker) loop(ctx context.Context, round func(ctx context.Context) (busy bool, err error)) {
	delay := w.config.PollEvery
	for {
		busy := false
		err := w.safely(ctx, "a round", func() (err error) { busy, err = round(ctx); return err })
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.log.WarnContext(ctx, "the maintenance worker cannot look for work", "error", err)
			delay = min(2*delay, errorDelayMax)
		default:
			delay = w.config.PollEvery
		}
		if err == nil && busy {
			continue
		}
		timer := time.NewTimer(delay/2 + rand.N(delay))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// Did is what one round came to.
type Did struct {
	Looked   int  // tables looked at
	Enqueued int  // jobs added by looks
	Job      *Job // the job that was claimed, as it was then; nil: there was none
}

// RunOnce looks at the tables that are due, then claims one job at most and works on it until it ends or is given
// back. A job's own failure is no error here; it is in the job.
func (w *Worker) RunOnce(ctx context.Context) (Did, error) {
	var did Did
	if err := w.lookAtDue(ctx, &did); err != nil {
		return did, err
	}
	var err error
	did.Job, err = w.doJob(ctx)
	return did, err
}

// lookAround is a round of looks. Looks and jobs have loops of their own: a long one of either keeps none of the other
// waiting.
func (w *Worker) lookAround(ctx context.Context) (busy bool, err error) {
	var did Did
	err = w.lookAtDue(ctx, &did)
	return did.Looked == looksPerPoll, err
}

// takeJob is a round of jobs.
func (w *Worker) takeJob(ctx context.Context) (busy bool, err error) {
	job, err := w.doJob(ctx)
	return job != nil, err
}

// doJob claims one job at most and works on it. nil: there is none.
func (w *Worker) doJob(ctx context.Context) (*Job, error) {
	w.keepHouse(ctx)
	call, cancel := context.WithTimeout(ctx, claimMax)
	claim, err := w.env.store.ClaimJob(call, w.config.Name)
	cancel()
	if err != nil || claim == nil {
		return nil, err
	}
	w.work(ctx, claim)
	return &claim.Job, nil
}

// work runs a claimed job under a heartbeat and settles how it ended.
func (w *Worker) work(ctx context.Context, claim *Claim) {
	started := w.env.now()
	jobCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var heart sync.WaitGroup
	timed, done := context.WithTimeoutCause(jobCtx, w.env.deadlines.Job, errJobTooLong)
	defer done()
	heart.Go(func() { w.beat(jobCtx, func(ctx context.Context) error { return w.extend(ctx, claim) }, cancel) })
	end, files, err := w.execute(timed, claim)
	state, reason := w.settle(timed, claim, end, files, err)
	cancel(nil)
	heart.Wait()
	w.log.Log(ctx, jobLevel(state), "maintenance job", "job", claim.Job.ID, "kind", claim.Job.Kind, "warehouse", claim.Job.Warehouse,
		"table", claim.Job.Subject, "trigger", claim.Job.Trigger, "state", state, "code", reason.Code, "reason", reason.Message,
		"attempt", claim.Job.Attempts, "files_replaced", end.Outcome.FilesReplaced, "files_written", end.Outcome.FilesWritten,
		"duration_ms", w.env.now().Sub(started).Milliseconds(), "error", errorText(err))
}

// jobLevel is a job's level in the log: an operator who reads warnings alone learns of a failed one.
func jobLevel(state State) slog.Level {
	if state == Failed {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// extend is a job's heartbeat. A table that was dropped ends the jobs that need it.
func (w *Worker) extend(ctx context.Context, claim *Claim) error {
	if err := w.env.store.ExtendLease(ctx, claim.Job.Lease()); err != nil {
		return err
	}
	if kind, known := rowOf(claim.Job.Kind); !known || !kind.needsTable || claim.Table == nil {
		return nil
	}
	_, err := w.env.store.FindTableRef(ctx, claim.Job.TableID)
	if fault.Is(err, fault.NotFound) {
		return errTableGone
	}
	return nil // whatever else: the lease is extended
}

// beat extends a lease until ctx ends, and cancels the work when the lease is lost or can no longer be known to hold,
// for from then on somebody else may work on the job; or when the table is gone.
func (w *Worker) beat(ctx context.Context, extend func(context.Context) error, cancel context.CancelCauseFunc) {
	held := time.Now()
	ticker := time.NewTicker(w.config.HeartbeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		call, done := context.WithTimeout(ctx, heartbeatEvery)
		asked := time.Now()
		err := w.safely(call, "a heartbeat", func() error { return extend(call) })
		done()
		switch {
		case err == nil:
			held = asked
		case errors.Is(err, errTableGone):
			cancel(errTableGone)
			return
		case fault.Is(err, fault.VersionConflict):
			cancel(ErrLeaseLost)
			return
		case ctx.Err() == nil:
			w.log.WarnContext(ctx, "a lease could not be extended", "error", err)
		}
		if time.Since(held) > LeaseDuration-heartbeatEvery {
			cancel(ErrLeaseLost)
			return
		}
	}
}

// cleaner removes what a claim wrote, apart from what is kept.
type cleaner interface {
	removeOwn(ctx context.Context, keep map[string]bool)
}

// task is one claim of a job at work.
type task interface {
	cleaner
	// run works until the job has an end. An error means that it has none yet.
	run(ctx context.Context) (Finish, error)
	// giveUp ends a job that has had its attempts, after settling what the last one left.
	giveUp(ctx context.Context) (Finish, error)
	// figures gives the outcome so far.
	figures() Outcome
}

// execute runs the job. The cleaner is nil when nothing was written. A defect that panics ends the attempt and not the
// server; where it happened nobody knows, so it counts as an unknown outcome and nothing is removed here.
func (w *Worker) execute(ctx context.Context, claim *Claim) (end Finish, files cleaner, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			w.log.ErrorContext(ctx, "a maintenance job panicked", "job", claim.Job.ID, "cause", cause, "stack", string(debug.Stack()))
			end, files, err = Finish{}, nil, fmt.Errorf("%w: defect in the server: %v", errUnknown, cause)
		}
	}()
	kind, known := rowOf(claim.Job.Kind)
	if !known {
		return Finish{}, nil, fault.New(fault.Unsupported, "this worker does not know jobs of kind %q", claim.Job.Kind)
	}
	if claim.Table == nil && kind.needsTable {
		return Finish{State: Failed, Outcome: claim.Job.Outcome, Reason: Reason{CodeTableGone, "the table was dropped"}}, nil, nil
	}
	if claim.Job.Attempts > kind.attemptsMax+settlesMax {
		return Finish{State: Failed, Outcome: claim.Job.Outcome, Reason: attemptsOver(claim.Job), LookAfter: parkedDelay}, nil, nil
	}
	work := kind.begin(w, claim)
	if claim.Job.Attempts > kind.attemptsMax {
		// One more claim than attempts: only to clear away what the last one left.
		end, err = work.giveUp(ctx)
		return end, work, err
	}
	if end, err = work.run(ctx); err != nil {
		end.Outcome = work.figures()
	}
	return end, work, err
}

func (c *compaction) figures() Outcome { return c.outcome }

// giveUp ends a job that has had its attempts, after settling what the last one left.
func (c *compaction) giveUp(ctx context.Context) (Finish, error) {
	if err := c.load(ctx); err != nil {
		return Finish{}, err
	}
	if end, done, err := c.recover(ctx); err != nil || done {
		return end, err
	}
	return Finish{State: Failed, Outcome: c.job.Outcome, Reason: attemptsOver(c.job), LookAfter: parkedDelay}, nil
}

// attemptsOver says why a job that kept losing its workers is not tried again.
func attemptsOver(j Job) Reason {
	last := j.Reason.Message
	if last == "" {
		last = "the worker stopped each time without a word: perhaps it ran out of memory or disk"
	}
	return Reason{CodeAttempts, fmt.Sprintf("given up after %d attempts; the last: %s", j.Attempts-1, last)}
}

func (w *Worker) compaction(claim *Claim) *compaction {
	env := w.env
	env.spillDir = w.spillFolder()
	return &compaction{job: claim.Job, lease: claim.Job.Lease(), ref: *claim.Table, env: env, log: w.log, ledger: newLedger()}
}

// settle turns how a job's work ended into the job's state, and removes what may be removed.
func (w *Worker) settle(ctx context.Context, claim *Claim, end Finish, files cleaner, err error) (State, Reason) {
	cause := context.Cause(ctx)
	call, done := context.WithTimeout(context.WithoutCancel(ctx), releaseMax+cleanUpMax)
	defer done()
	if err == nil {
		if files != nil && end.State != Succeeded {
			files.removeOwn(call, nil)
		}
		return w.finish(call, claim, end)
	}
	if errors.Is(err, errUnknown) {
		// Whoever claims the job next has a higher epoch, so the commit has landed by then or never will. That claim
		// may be one more than the kind's attempts: it only settles.
		return w.release(call, claim, Release{Delay: retryDelayMin, Reason: Reason{CodeError, err.Error()}})
	}
	// Every other error is certain: nothing of this claim was committed, and this claim's names are its own.
	if files != nil {
		files.removeOwn(call, nil)
	}
	var no refusal
	reason, refused := refusedFor(err)
	switch {
	case errors.Is(err, ErrLeaseLost) || errors.Is(cause, ErrLeaseLost):
		return Running, Reason{CodeError, "the lease was lost; another worker goes on"}
	case errors.Is(cause, errStopping) || (ctx.Err() != nil && cause == context.Canceled):
		kind, _ := rowOf(claim.Job.Kind)
		return w.release(call, claim, Release{Uncounted: true, Outcome: kind.keeps(end.Outcome)})
	case errors.Is(cause, errTableGone):
		return w.finish(call, claim, Finish{State: Failed, Outcome: end.Outcome, Reason: Reason{CodeTableGone, "the table was dropped during the job"}})
	case errors.Is(cause, errJobTooLong):
		return w.tooLong(call, claim, end)
	case errors.As(err, &no):
		state := Refused
		if no.reason.Code == CodeUnverified {
			state = Failed
		}
		return w.finish(call, claim, Finish{State: state, Reason: no.reason, Outcome: end.Outcome, LookAfter: refusedLookDelay})
	case refused:
		return w.finish(call, claim, Finish{State: Refused, Reason: reason, Outcome: end.Outcome, LookAfter: refusedLookDelay})
	case errors.Is(err, errAllDropped):
		return w.again(call, claim, end.Outcome, Reason{CodeConflict, conflictReasons}, retryDelayMin/5)
	case fault.Is(err, fault.NoSuchTable) || fault.Is(err, fault.NoSuchNamespace) || fault.Is(err, fault.NoSuchWarehouse):
		if w.renamed(call, claim) { // the next claim has the new name
			return w.again(call, claim, end.Outcome, Reason{CodeConflict, "the table was renamed during the job"}, retryDelayMin/5)
		}
		return w.finish(call, claim, Finish{State: Failed, Outcome: claim.Job.Outcome, Reason: Reason{CodeTableGone, fault.Message(err)}})
	}
	delay := min(retryDelayMin<<min(claim.Job.Attempts, 10), retryDelayMax)
	return w.again(call, claim, end.Outcome, Reason{CodeError, explain(err)}, delay)
}

// renamed tells whether a claim's table is still there, under another name than it had.
func (w *Worker) renamed(ctx context.Context, claim *Claim) bool {
	if claim.Table == nil {
		return false
	}
	now, err := w.env.store.FindTableRef(ctx, claim.Job.TableID)
	return err == nil && (now.Warehouse != claim.Table.Warehouse || now.Ident.String() != claim.Table.Ident.String())
}

// tooLong ends a job whose time is over, or gives it back when what it did so far stays done.
func (w *Worker) tooLong(ctx context.Context, claim *Claim, end Finish) (State, Reason) {
	why := Reason{CodeTooLong, fmt.Sprintf("the job took longer than %s", w.env.deadlines.Job)}
	if kind, known := rowOf(claim.Job.Kind); known && !kind.needsTable {
		return w.again(ctx, claim, end.Outcome, why, retryDelayMin)
	}
	return w.finish(ctx, claim, Finish{State: Failed, Reason: why, Outcome: end.Outcome, LookAfter: refusedLookDelay})
}

// explain gives people the reason of a failure: the message that was made for them, else the error's own text.
func explain(err error) string {
	var known *fault.Error
	if errors.As(err, &known) && known.Kind != fault.Internal {
		return known.Message
	}
	return err.Error()
}

// again gives a failed job back while it has attempts left, else ends it. reached is how far this one came.
func (w *Worker) again(ctx context.Context, claim *Claim, reached Outcome, why Reason, delay time.Duration) (State, Reason) {
	kind, known := rowOf(claim.Job.Kind)
	kept := kind.keeps(reached)
	if known && claim.Job.Attempts < kind.attemptsMax {
		return w.release(ctx, claim, Release{Delay: delay, Reason: why, Outcome: kept})
	}
	f := Finish{State: Failed, Outcome: claim.Job.Outcome, LookAfter: failedLookDelay}
	why.Message = fmt.Sprintf("%s (%d attempts)", why.Message, claim.Job.Attempts)
	if kept != nil {
		f.Outcome = *kept
		why.Message += kind.remains(claim.Job, *kept)
	}
	f.Reason = why
	return w.finish(ctx, claim, f)
}

func (w *Worker) finish(ctx context.Context, claim *Claim, f Finish) (State, Reason) {
	if err := w.env.store.FinishJob(ctx, claim.Job.Lease(), f); err != nil {
		// The lease runs out, and the next claim finds the commit or begins anew.
		w.log.WarnContext(ctx, "a job's end could not be recorded", "job", claim.Job.ID, "state", f.State, "error", err)
	}
	return f.State, f.Reason
}

func (w *Worker) release(ctx context.Context, claim *Claim, r Release) (State, Reason) {
	if err := w.env.store.ReleaseJob(ctx, claim.Job.Lease(), r); err != nil {
		w.log.WarnContext(ctx, "a job could not be given back; its lease runs out", "job", claim.Job.ID, "error", err)
	}
	return Queued, r.Reason
}

// newJobID makes ids that sort by time.
func newJobID() (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, fmt.Errorf("make a job id: %w", err)
	}
	return id, nil
}
