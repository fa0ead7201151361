package maintenance

import (
	"context"
	"fmt"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// lookErrorDelay is when to look again at a table that could not be looked at.
const lookErrorDelay = retryDelayMax

// lookAtDue plans for tables that are switched on and that a commit, a setting or the time has made due, and enqueues
// jobs for those that need one. A table that cannot be looked at does not keep the others waiting.
func (w *Worker) lookAtDue(ctx context.Context, did *Did) error {
	refs, err := w.env.store.ClaimLooks(ctx, looksPerPoll)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if ctx.Err() != nil {
			return context.Cause(ctx) // the others come back when their claim ends
		}
		result, enqueued := w.look(ctx, ref)
		did.Looked++
		if enqueued {
			did.Enqueued++
		}
		if err := w.env.store.FinishLook(ctx, ref.ID, result); err != nil {
			return err
		}
	}
	return nil
}

// look plans for one table.
func (w *Worker) look(ctx context.Context, ref TableRef) (LookResult, bool) {
	result := LookResult{Report: LookReport{At: w.env.now()}}
	plan, err := w.planFor(ctx, ref)
	if err != nil {
		w.log.WarnContext(ctx, "a table could not be looked at", "warehouse", ref.Warehouse, "table", ref.Ident.String(), "error", err)
		result.Report.Reason, result.LookAfter = Reason{CodeError, explain(err)}, lookErrorDelay
		if fault.Is(err, fault.NoSuchTable) || fault.Is(err, fault.Validation) {
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
