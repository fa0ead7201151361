package maintenance

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// FindJob gives a job to who may read its table's properties; one on a dropped table to who may read those of the
// tables that are in its namespace. Any other job of a table that is gone is nobody's.
func (o *Operations) FindJob(ctx context.Context, c catalog.Caller, id uuid.UUID) (Job, error) {
	job, err := o.Store.FindJob(ctx, id)
	if err != nil {
		return Job{}, err
	}
	_, err = o.authorizeJob(ctx, c, job, authz.TableReadProperties)
	if err != nil {
		return Job{}, err
	}
	return job, nil
}

// authorizeJob requires privileges on what a job is about, and gives its warehouse. A dropped table has no rights of its
// own any more: its namespace stands for it, by name.
func (o *Operations) authorizeJob(ctx context.Context, c catalog.Caller, job Job, wanted ...authz.Privilege) (w catalog.Warehouse, err error) {
	if job.DroppedFrom != nil {
		for _, p := range wanted {
			if w, err = o.Tables.AuthorizePlace(ctx, c, job.Warehouse, job.DroppedFrom, p); err != nil {
				return catalog.Warehouse{}, err
			}
		}
		return w, nil
	}
	ref, err := o.Store.FindTableRef(ctx, job.TableID)
	if err != nil {
		return catalog.Warehouse{}, err
	}
	for _, p := range wanted {
		if w, _, err = o.Tables.AuthorizeTable(ctx, c, ref.Warehouse, ref.Ident, p); err != nil {
			return catalog.Warehouse{}, err
		}
	}
	return w, nil
}

// RetryJob begins a failed job again, for who may ask for such a job: a purge takes the rights of a drop with purge. A
// job that is open is given as it is, so a repeat of the call changes nothing.
func (o *Operations) RetryJob(ctx context.Context, c catalog.Caller, id uuid.UUID) (Job, error) {
	job, err := o.Store.FindJob(ctx, id)
	if err != nil {
		return Job{}, err
	}
	wanted := []authz.Privilege{authz.TableWriteData}
	if job.DroppedFrom != nil {
		wanted = []authz.Privilege{authz.TableDrop, authz.TableWriteData}
	}
	w, err := o.authorizeJob(ctx, c, job, wanted...)
	if err != nil {
		return Job{}, err
	}
	factID, err := uuid.NewV7()
	if err != nil {
		return Job{}, fmt.Errorf("make an event id: %w", err)
	}
	return o.Store.RetryJob(ctx, Retry{JobID: id, WarehouseID: w.ID, RequestedBy: c.Principal.Name}, catalog.Fact{
		ID: factID, At: o.Now(), Caller: c, Operation: "retry-job", Warehouse: w.ID, Securable: job.TableID, Subject: job.Subject,
		Details: map[string]any{"job_id": id, "job": job.Kind, "reason": job.Reason.Code},
	})
}

// JobsPage asks for jobs of a warehouse in some states, the newest first.
type JobsPage struct {
	States []State // none: all
	// CreatedAt and ID are those of the last job of the page before; the zero values for the first page.
	CreatedAt time.Time
	ID        uuid.UUID
	Limit     int
}

// ListJobs gives jobs on a warehouse's tables to who may read the properties of all its tables.
func (o *Operations) ListJobs(ctx context.Context, c catalog.Caller, warehouse string, p JobsPage) ([]Job, error) {
	w, err := o.Tables.AuthorizePlace(ctx, c, warehouse, nil, authz.TableReadProperties)
	if err != nil {
		return nil, err
	}
	if len(p.States) == 0 {
		p.States = States()
	}
	p.Limit = min(p.Limit, warehouseJobsMax+1)
	return o.Store.ListWarehouseJobs(ctx, w.ID, p)
}

// WhyNotRetried is the refusal of a retry, by how the job stands.
func WhyNotRetried(j Job) error {
	if j.State != Failed {
		remedy := "run maintenance of its table instead"
		if j.Kind == Purge {
			remedy = "register the table from its last metadata file and drop it again with purge"
		}
		return fault.New(fault.IllegalArgument, "job %s has not failed, it is %s: %s", j.ID, j.State, remedy)
	}
	return fault.New(fault.IllegalArgument,
		"job %s cannot be begun again: its table %s is not there any more, was registered again, or another has its place", j.ID, j.Subject)
}
