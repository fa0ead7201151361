package maintenance

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// Operations is what the management API offers. Every call asks the catalog first whether the caller may.
type Operations struct {
	Store     Store
	Tables    Tables
	OpenFiles OpenFiles
	Now       func() time.Time

	dryRuns atomic.Int32 // being made now: each holds a plan in memory
}

// Status is a table's maintenance as people see it.
type Status struct {
	Warehouse string
	Table     catalog.Identifier
	Settings  []Setting
	// Columns are those to cluster by, as resolved; FromOrder tells that the table's sort order gave them.
	Columns   []Column
	FromOrder bool
	Curve     Curve
	Layout    LayoutRecord
	// Blocked is why no run can do anything, as far as that can be known without reading files; nil: nothing known.
	Blocked *Reason
	Look    LookReport
	// NextLook is when the worker looks at the table by itself; zero: at the next commit, or never when switched off.
	NextLook time.Time
	Jobs     []Job
}

// TableName names a table for an operation.
type TableName struct {
	Warehouse string
	Ident     catalog.Identifier
}

// Show gives a table's effective settings, where each comes from, and its last jobs.
func (o *Operations) Show(ctx context.Context, c catalog.Caller, t TableName) (Status, error) {
	view, err := o.view(ctx, c, t, authz.TableReadProperties)
	if err != nil {
		return Status{}, err
	}
	return o.status(ctx, view, t)
}

// view loads a table's metadata for a caller who holds the privilege. The table itself is read as the server does:
// who may change a table's maintenance need not have a right to its properties.
func (o *Operations) view(ctx context.Context, c catalog.Caller, t TableName, p authz.Privilege) (*tableView, error) {
	warehouse, record, err := o.Tables.AuthorizeTable(ctx, c, t.Warehouse, t.Ident, p)
	if err != nil {
		return nil, err
	}
	v := &tableView{
		ref: TableRef{ID: record.ID, Warehouse: warehouse.Name, Ident: record.Ident}, warehouse: warehouse, record: record,
	}
	if err := o.reader().refresh(ctx, systemCaller(c.RequestID), v); err != nil {
		return nil, err
	}
	return v, nil
}

func (o *Operations) reader() reader { return reader{tables: o.Tables, open: o.OpenFiles} }

func (o *Operations) status(ctx context.Context, v *tableView, t TableName) (Status, error) {
	state, err := o.Store.LoadTableState(ctx, v.record.ID)
	if err != nil {
		return Status{}, err
	}
	jobs, err := o.Store.ListJobs(ctx, v.record.ID, jobsListedMax)
	if err != nil {
		return Status{}, err
	}
	s := Status{Warehouse: v.warehouse.Name, Table: v.record.Ident, Layout: state.Layout, Look: state.Look, NextLook: state.LookAfter, Jobs: jobs}
	settings, shown, err := ParseSettings(v.meta.Properties(), state.Settings)
	if err != nil {
		s.Blocked = &Reason{CodeSettings, fault.Message(err)}
		return s, nil
	}
	s.Settings = shown
	target, err := ResolveTarget(settings, v.shape())
	if err != nil {
		s.Blocked = &Reason{CodeSettings, fault.Message(err)}
		return s, nil
	}
	s.Columns, s.FromOrder, s.Curve = target.Columns, target.FromOrder, target.Curve
	if r, refused := refuseTable(Facts{
		Shape: v.shape(), FormatVersion: v.meta.Version(), Location: v.meta.Location(), Properties: v.meta.Properties(), Encrypted: v.encrypted(),
	}); refused {
		s.Blocked = &r
	}
	return s, nil
}

// Set merges a change into the stored settings and gives the status after it. Settings that could not work are
// refused here and not when a run meets them; switching off is always possible.
func (o *Operations) Set(ctx context.Context, c catalog.Caller, t TableName, body map[string]json.RawMessage) (Status, error) {
	view, err := o.view(ctx, c, t, authz.TableWriteData)
	if err != nil {
		return Status{}, err
	}
	change, err := ParseChange(body)
	if err != nil {
		return Status{}, err
	}
	if len(change) == 0 {
		return Status{}, fault.New(fault.BadRequest, "no maintenance setting is given; known are: %s", settingNames())
	}
	state, err := o.Store.LoadTableState(ctx, view.record.ID)
	if err != nil {
		return Status{}, err
	}
	if !onlySwitchesOff(change) {
		settings, _, err := ParseSettings(view.meta.Properties(), state.Settings.Apply(change))
		if err != nil {
			return Status{}, err
		}
		if _, err := ResolveTarget(settings, view.shape()); err != nil {
			return Status{}, err
		}
	}
	fact, err := o.fact(c, view, "set-maintenance", map[string]any{"settings": change})
	if err != nil {
		return Status{}, err
	}
	if _, err := o.Store.SaveSettings(ctx, view.record.ID, change, fact); err != nil {
		return Status{}, err
	}
	return o.status(ctx, view, t)
}

// onlySwitchesOff tells that a change takes settings away or sets enabled to false, and nothing else.
func onlySwitchesOff(change map[string]*string) bool {
	for key, value := range change {
		if value != nil && (key != KeyEnabled || *value != "false") {
			return false
		}
	}
	return true
}

// Run enqueues a job, or gives the table's open one. With dryRun it plans at once, writes nothing, and gives a job
// that is in no queue: its state is what a run would come to, nothing_to_do or refused, or queued for work to do.
func (o *Operations) Run(ctx context.Context, c catalog.Caller, t TableName, r RunRequest) (Job, error) {
	view, err := o.view(ctx, c, t, authz.TableWriteData)
	if err != nil {
		return Job{}, err
	}
	if r.DryRun {
		defer o.dryRuns.Add(-1)
		if o.dryRuns.Add(1) > dryRunsAtOnce {
			return Job{}, fault.New(fault.Busy, "%d other plans are being made; try again", dryRunsAtOnce)
		}
		return o.dryRun(ctx, view, r)
	}
	id, err := newJobID()
	if err != nil {
		return Job{}, err
	}
	fact, err := o.fact(c, view, "run-maintenance", map[string]any{"job_id": id, "job": r.Kind})
	if err != nil {
		return Job{}, err
	}
	job, _, err := o.Store.EnqueueJob(ctx, NewJob{
		ID: id, Kind: r.Kind, Table: view.ref, Trigger: OnDemand, RequestedBy: c.Principal.Name,
	}, &fact)
	return job, err
}

// RunRequest asks for a run.
type RunRequest struct {
	Kind   Kind
	DryRun bool
}

// dryRun plans as an on-demand run would.
func (o *Operations) dryRun(ctx context.Context, v *tableView, r RunRequest) (Job, error) {
	v, err := o.reader().load(ctx, systemCaller("dry-run-"+v.record.ID.String()), v.ref, vending.Read)
	if err != nil {
		return Job{}, err
	}
	now := o.Now()
	j := Job{
		Kind: r.Kind, TableID: v.record.ID, Warehouse: v.ref.Warehouse, Subject: v.ref.Ident.String(), Trigger: OnDemand,
		Phase: phaseDryRun, CreatedAt: now,
	}
	state, err := o.Store.LoadTableState(ctx, v.record.ID)
	if err != nil {
		return Job{}, err
	}
	settings, _, err := ParseSettings(v.meta.Properties(), state.Settings)
	if err != nil {
		j.State, j.Reason = Refused, Reason{CodeSettings, fault.Message(err)}
		return j, nil
	}
	facts, err := v.facts(ctx, settings, now)
	if reason, refused := refusedFor(err); refused {
		j.State, j.Reason = Refused, reason
		return j, nil
	}
	if err != nil {
		return Job{}, err
	}
	plan := PlanCompaction(facts, settings, state.Layout, Wish{Trigger: OnDemand, Now: now})
	j.Reason, j.Outcome = plan.Reason, outcomeOf(facts, plan)
	for _, g := range plan.Groups {
		j.Outcome.FilesReplaced += int64(len(g.Files))
		j.Outcome.RowsRewritten += g.Rows
	}
	switch plan.Verdict {
	case VerdictRun:
		j.State = Queued
	case VerdictRefuse:
		j.State = Refused
	default:
		j.State = NothingToDo
	}
	return j, nil
}

// phaseDryRun marks a plan that is shown as a job.
const phaseDryRun = "dry-run"

func (o *Operations) fact(c catalog.Caller, v *tableView, operation string, details map[string]any) (catalog.Fact, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return catalog.Fact{}, fmt.Errorf("make an event id: %w", err)
	}
	return catalog.Fact{
		ID: id, At: o.Now(), Caller: c, Operation: operation, Warehouse: v.warehouse.ID, Securable: v.record.ID,
		Subject: v.record.Ident.String(), Details: details,
	}, nil
}
