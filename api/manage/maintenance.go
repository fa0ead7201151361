package manage

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/api"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
)

// Patterns of maintenance: a table's, and jobs by their ids.
const (
	maintenanceRoute = api.ManagementBase + "/v1/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/maintenance"
	jobRoute         = api.ManagementBase + "/v1/maintenance/jobs/{job}"
)

// dryRunDeadline bounds a plan, which reads a table's manifests.
const dryRunDeadline = 2 * time.Minute

// MaintenanceEndpoints gives the rows of table maintenance.
func MaintenanceEndpoints(ops *maintenance.Operations) []api.Endpoint {
	h := &maintenanceHandlers{ops: ops}
	return []api.Endpoint{
		{Method: http.MethodGet, Pattern: maintenanceRoute, Operation: "show-maintenance", Handler: h.show},
		{Method: http.MethodPut, Pattern: maintenanceRoute, Operation: "set-maintenance", Handler: h.set},
		{Method: http.MethodPost, Pattern: maintenanceRoute + "/run", Operation: "run-maintenance", Deadline: dryRunDeadline, Handler: h.run},
		{Method: http.MethodGet, Pattern: jobRoute, Operation: "load-job", Handler: h.job},
		{Method: http.MethodPost, Pattern: jobRoute + "/retry", Operation: "retry-job", Handler: h.retry},
		{Method: http.MethodGet, Pattern: manageV1 + catalogRoute + "/maintenance/jobs", Operation: "list-jobs", Handler: h.list},
	}
}

type maintenanceHandlers struct{ ops *maintenance.Operations }

// jobAnswer is a job as scripts read it; docs/decisions keeps the names of the first block stable.
type jobAnswer struct {
	JobID     string             `json:"job_id"`
	Job       maintenance.Kind   `json:"job"`
	Warehouse string             `json:"warehouse"`
	Table     string             `json:"table"`
	State     maintenance.State  `json:"state"`
	Phase     string             `json:"phase"`
	Reason    maintenance.Reason `json:"reason"`
	maintenance.Outcome

	Trigger     maintenance.Trigger `json:"trigger"`
	RequestedBy string              `json:"requested_by"`
	Progress    float64             `json:"progress"`
	Attempts    int                 `json:"attempts"`
	Worker      string              `json:"worker,omitempty"`
	CreatedAt   time.Time           `json:"created_at,omitzero"`
	StartedAt   time.Time           `json:"started_at,omitzero"`
	FinishedAt  time.Time           `json:"finished_at,omitzero"`
}

// newJobAnswer shows a job. A dry run's job has no id.
func newJobAnswer(j maintenance.Job) jobAnswer {
	a := jobAnswer{
		Job: j.Kind, Warehouse: j.Warehouse, Table: j.Subject, State: j.State, Phase: j.Phase, Reason: j.Reason,
		Outcome: j.Outcome, Trigger: j.Trigger, RequestedBy: j.RequestedBy, Progress: j.Progress, Attempts: j.Attempts,
		Worker: j.Worker, CreatedAt: j.CreatedAt, StartedAt: j.StartedAt, FinishedAt: j.FinishedAt,
	}
	if j.ID != uuid.Nil {
		a.JobID = j.ID.String()
	}
	return a
}

type columnAnswer struct {
	Name    string `json:"name"`
	FieldID int    `json:"field_id"`
	Type    string `json:"type"`
}

type maintenanceAnswer struct {
	Warehouse string                `json:"warehouse"`
	Table     string                `json:"table"`
	Settings  []maintenance.Setting `json:"settings"`
	// ClusterBy is what the settings come to for this table; empty: rows are packed and not moved.
	ClusterBy       []columnAnswer            `json:"cluster_by"`
	ClusterBySource string                    `json:"cluster_by_source,omitempty"`
	Curve           maintenance.Curve         `json:"curve,omitempty"`
	Blocked         *maintenance.Reason       `json:"blocked,omitempty"`
	Layout          *maintenance.LayoutRecord `json:"layout,omitempty"`
	LastLook        *maintenance.LookReport   `json:"last_look,omitempty"`
	NextLook        time.Time                 `json:"next_look,omitzero"`
	Jobs            []jobAnswer               `json:"jobs"`
}

func newMaintenanceAnswer(s maintenance.Status) maintenanceAnswer {
	a := maintenanceAnswer{
		Warehouse: s.Warehouse, Table: s.Table.String(), Settings: api.List(s.Settings), ClusterBy: []columnAnswer{},
		Curve: s.Curve, Blocked: s.Blocked, NextLook: s.NextLook, Jobs: []jobAnswer{},
	}
	for _, c := range s.Columns {
		a.ClusterBy = append(a.ClusterBy, columnAnswer{Name: c.Path, FieldID: c.FieldID, Type: c.Type.String()})
	}
	if len(s.Columns) > 0 {
		a.ClusterBySource = maintenance.KeyColumns
		if s.FromOrder {
			a.ClusterBySource = maintenance.SourceOrder
		}
	}
	if s.Layout.Layout != "" {
		a.Layout = &s.Layout
	}
	if !s.Look.At.IsZero() {
		a.LastLook = &s.Look
	}
	for _, j := range s.Jobs {
		a.Jobs = append(a.Jobs, newJobAnswer(j))
	}
	return a
}

// show answers settings in force with their sources, and the last jobs.
func (h *maintenanceHandlers) show(w http.ResponseWriter, r *http.Request) error {
	t, err := maintainedTable(r)
	if err != nil {
		return err
	}
	status, err := h.ops.Show(r.Context(), api.CallerOf(r), t)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, newMaintenanceAnswer(status))
}

// set merges {"settings": {...}} into the stored settings; null takes one away.
func (h *maintenanceHandlers) set(w http.ResponseWriter, r *http.Request) error {
	t, err := maintainedTable(r)
	if err != nil {
		return err
	}
	var body struct {
		Settings map[string]json.RawMessage `json:"settings"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	status, err := h.ops.Set(r.Context(), api.CallerOf(r), t, body.Settings)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, newMaintenanceAnswer(status))
}

// run enqueues a job, or tells what one would do.
func (h *maintenanceHandlers) run(w http.ResponseWriter, r *http.Request) error {
	t, err := maintainedTable(r)
	if err != nil {
		return err
	}
	var body struct {
		Job    string `json:"job"`
		DryRun bool   `json:"dry_run"`
	}
	if err := api.DecodeJSON(r, &body); err != nil {
		return err
	}
	kind, err := maintenance.ParseKind(body.Job)
	if err != nil {
		return err
	}
	job, err := h.ops.Run(r.Context(), api.CallerOf(r), t, maintenance.RunRequest{Kind: kind, DryRun: body.DryRun})
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, newJobAnswer(job))
}

// job answers one job.
func (h *maintenanceHandlers) job(w http.ResponseWriter, r *http.Request) error {
	return h.oneJob(w, r, h.ops.FindJob)
}

// retry begins a failed job again. It takes no body.
func (h *maintenanceHandlers) retry(w http.ResponseWriter, r *http.Request) error {
	return h.oneJob(w, r, h.ops.RetryJob)
}

// oneJob answers what an operation gives for the job of the path.
func (h *maintenanceHandlers) oneJob(
	w http.ResponseWriter, r *http.Request, ask func(context.Context, catalog.Caller, uuid.UUID) (maintenance.Job, error),
) error {
	text, err := api.Param(r, "job")
	if err != nil {
		return err
	}
	api.Annotate(r, "", text)
	id, err := uuid.Parse(text)
	if err != nil {
		return fault.New(fault.BadRequest, "%q is not a job id", text)
	}
	job, err := ask(r.Context(), api.CallerOf(r), id)
	if err != nil {
		return err
	}
	return api.JSON(w, r, http.StatusOK, newJobAnswer(job))
}

// list answers a warehouse's jobs page by page, the newest first: those in the states that the query names, or all.
func (h *maintenanceHandlers) list(w http.ResponseWriter, r *http.Request) error {
	warehouse, err := api.Param(r, "catalog")
	if err != nil {
		return err
	}
	api.Annotate(r, warehouse, "")
	query, err := api.Query(r)
	if err != nil {
		return err
	}
	var wanted maintenance.JobsPage
	for _, name := range query["state"] {
		state, err := maintenance.ParseState(name)
		if err != nil {
			return err
		}
		wanted.States = append(wanted.States, state)
	}
	paging, err := accessPaging(query)
	if err != nil {
		return err
	}
	if wanted.CreatedAt, wanted.ID, err = jobCursor(paging.After); err != nil {
		return err
	}
	wanted.Limit = paging.Items + 1
	jobs, err := h.ops.ListJobs(r.Context(), api.CallerOf(r), warehouse, wanted)
	if err != nil {
		return err
	}
	page, next := api.CutPage(paging, jobs, func(j maintenance.Job) string {
		return j.CreatedAt.UTC().Format(time.RFC3339Nano) + " " + j.ID.String()
	})
	answer := struct {
		Jobs []jobAnswer `json:"jobs"`
		Next *string     `json:"next-page-token"`
	}{[]jobAnswer{}, next}
	for _, j := range page {
		answer.Jobs = append(answer.Jobs, newJobAnswer(j))
	}
	return api.JSON(w, r, http.StatusOK, answer)
}

// jobCursor reads the last job of the page before.
func jobCursor(after string) (at time.Time, id uuid.UUID, err error) {
	if after == "" {
		return at, id, nil
	}
	when, which, _ := strings.Cut(after, " ")
	at, wrongTime := time.Parse(time.RFC3339Nano, when)
	id, wrongID := uuid.Parse(which)
	if wrongTime != nil || wrongID != nil || at.UTC().Year() < 1 { // Postgres has no year 0
		return at, id, fault.New(fault.BadRequest, "pageToken is not one of this list")
	}
	return at, id, nil
}

// maintainedTable reads the table that a maintenance path names.
func maintainedTable(r *http.Request) (maintenance.TableName, error) {
	var parts [3]string
	for i, name := range []string{"catalog", "namespace", "table"} {
		var err error
		if parts[i], err = api.Param(r, name); err != nil {
			return maintenance.TableName{}, err
		}
	}
	t := maintenance.TableName{Warehouse: parts[0], Ident: catalog.Identifier{
		Namespace: strings.Split(parts[1], namespaceSeparator), Name: parts[2],
	}}
	api.Annotate(r, t.Warehouse, t.Ident.String())
	return t, nil
}

// namespaceSeparator stands between the levels of a namespace in a path segment, as in the Iceberg REST routes.
const namespaceSeparator = "\x1f"
