package maintenance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// Limits of looks.
const (
	lookErrorDelay = retryDelayMax // before looking again at a table that could not be looked at
	// lookAttemptsMax bounds looks that end their worker before they end themselves; then the table is parked.
	lookAttemptsMax = 3
	// parkedDelay is when a look or a job is tried again that ended its workers, unless the settings are set before.
	parkedDelay = 24 * time.Hour
	// looksAtOnce is how many tables a worker looks at, so that one that takes long does not keep the others waiting.
	looksAtOnce = 2
)

// lookAtDue plans for tables that are switched on and that a commit, a setting or the time has made due, and enqueues
// jobs for those that need one. A table that cannot be looked at does not keep the others waiting. Tables are taken
// one by one: a look that kills the worker must count for its own table alone.
func (w *Worker) lookAtDue(ctx context.Context, did *Did) error {
	for range looksPerPoll {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		asked, done := context.WithTimeout(ctx, claimMax)
		claims, err := w.env.store.ClaimLooks(asked, 1)
		done()
		if err != nil {
			return err
		}
		if len(claims) == 0 {
			return nil
		}
		result, enqueued := w.lookUnderWatch(ctx, claims[0])
		did.Looked++
		if enqueued {
			did.Enqueued++
		}
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseMax)
		err = w.env.store.FinishLook(call, claims[0].ID, result)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// lookUnderWatch looks at a table for as long as a look may take, the table is there and the worker goes on.
func (w *Worker) lookUnderWatch(ctx context.Context, claim LookClaim) (result LookResult, enqueued bool) {
	if claim.Attempts > lookAttemptsMax {
		return LookResult{Report: LookReport{At: w.env.now(), Reason: Reason{CodeAttempts, fmt.Sprintf(
			"the worker ended without a word during %d looks at the table; it is left alone for %s, or until its maintenance settings are set",
			claim.Attempts-1, parkedDelay)}}, LookAfter: parkedDelay, Parked: true}, false
	}
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timed, done := context.WithTimeoutCause(watched, w.env.deadlines.Look, errLookTooLong)
	defer done()
	var heart sync.WaitGroup
	heart.Go(func() {
		w.beat(timed, func(ctx context.Context) error { return w.extendLook(ctx, claim) }, cancel)
	})
	err := w.safely(ctx, "look at table "+claim.Ident.String(), func() error {
		result, enqueued = w.look(timed, claim.TableRef)
		return nil
	})
	if err != nil {
		result = LookResult{Report: LookReport{At: w.env.now(), Reason: Reason{CodeError, err.Error()}}, LookAfter: refusedLookDelay}
	}
	if ctx.Err() != nil {
		result = LookResult{Released: true, LookAfter: lookReleasedDelay}
	}
	cancel(nil)
	heart.Wait()
	return result, enqueued
}

func (w *Worker) extendLook(ctx context.Context, claim LookClaim) error {
	err := w.env.store.ExtendLook(ctx, claim.ID)
	if fault.Is(err, fault.NoSuchTable) {
		return errTableGone
	}
	return err
}

// lookReleasedDelay is when a look that ended with its worker's order to stop is taken up by another.
const lookReleasedDelay = time.Second

// look plans for one table.
func (w *Worker) look(ctx context.Context, ref TableRef) (LookResult, bool) {
	result := LookResult{Report: LookReport{At: w.env.now()}}
	plan, err := w.planFor(ctx, ref)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = errors.Join(cause, err)
		}
		w.log.WarnContext(ctx, "a table could not be looked at", "warehouse", ref.Warehouse, "table", ref.Ident.String(), "error", err)
		result.Report.Reason, result.LookAfter = Reason{CodeError, explain(err)}, lookErrorDelay
		if reason, refused := refusedFor(err); refused {
			result.Report.Reason, result.LookAfter = reason, refusedLookDelay
		} else if fault.Is(err, fault.NoSuchTable) || fault.Is(err, fault.Validation) {
			result.LookAfter = 0 // until the next commit or setting
		}
		return result, false
	}
	result.Report.Reason = plan.Reason
	if plan.Verdict == VerdictWait {
		result.LookAfter = plan.After
	}
	if plan.Verdict != VerdictRun {
		return result, false
	}
	id, err := newJobID()
	if err == nil {
		var job Job
		var created bool
		job, created, err = w.env.store.EnqueueJob(ctx, NewJob{
			ID: id, Kind: Compaction, Table: ref, Trigger: Automatic, RequestedBy: systemCaller("").Principal.Name,
		}, nil)
		if err == nil {
			result.Report.JobID = job.ID
			return result, created
		}
	}
	w.log.WarnContext(ctx, "a job could not be added", "warehouse", ref.Warehouse, "table", ref.Ident.String(), "error", err)
	result.Report.Reason, result.LookAfter = Reason{CodeError, explain(err)}, lookErrorDelay
	return result, false
}

// planFor reads a table and plans an automatic run; a table that is switched off is left alone.
func (w *Worker) planFor(ctx context.Context, ref TableRef) (Plan, error) {
	view, err := reader{tables: w.env.tables, open: w.env.open}.load(ctx, systemCaller("look-"+ref.ID.String()), ref, vending.Read)
	if err != nil {
		return Plan{}, err
	}
	state, err := w.env.store.LoadTableState(ctx, ref.ID)
	if err != nil {
		return Plan{}, fmt.Errorf("read the maintenance state of %s: %w", ref.Ident, err)
	}
	settings, _, err := ParseSettings(view.meta.Properties(), state.Settings)
	if err != nil {
		return Plan{}, err
	}
	if !settings.Enabled {
		return Plan{Verdict: VerdictNothing, Reason: Reason{CodeSwitchedOff, "maintenance is not enabled for the table"}}, nil
	}
	now := w.env.now()
	facts, err := view.facts(ctx, settings, now)
	if err != nil {
		return Plan{}, err
	}
	return PlanCompaction(facts, settings, state.Layout, Wish{Trigger: Automatic, Now: now, LastFinished: state.LastFinished}), nil
}
