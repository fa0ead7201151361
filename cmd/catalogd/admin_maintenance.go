package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"catalogd/maintenance"
)

var maintenanceVerbs = []*command{
	{name: "run", arguments: "NAMESPACE.TABLE", summary: "run maintenance of a table now", run: maintenanceRun},
	{name: "set", arguments: "NAMESPACE.TABLE", summary: "change a table's maintenance settings", run: maintenanceSet},
	{name: "show", arguments: "NAMESPACE.TABLE", summary: "settings and where each comes from, last and next runs", run: maintenanceShow},
	{name: "jobs", summary: "a warehouse's jobs, each with its reason", run: maintenanceJobs},
	{name: "retry", arguments: "JOB_ID", summary: "begin a failed job again, also a purge", run: maintenanceRetry},
}

// How long --wait waits between two looks at a job: short at first, because small tables take moments.
const (
	jobLookMin = 100 * time.Millisecond
	jobLookMax = 2 * time.Second
	// jobSilenceMax is how long a server may be away before --wait gives up.
	jobSilenceMax = 2 * time.Minute
)

// planPhase is the phase of what --dry-run gives.
const planPhase = "dry-run"

// jobStatus is a job as scripts read it (docs/operations.md); raw keeps whatever else the server says.
type jobStatus struct {
	JobID     string             `json:"job_id"`
	Job       string             `json:"job"`
	Warehouse string             `json:"warehouse"`
	Table     string             `json:"table"`
	State     maintenance.State  `json:"state"`
	Phase     string             `json:"phase"`
	Progress  float64            `json:"progress"`
	Reason    maintenance.Reason `json:"reason"`
	Finished  time.Time          `json:"finished_at"`
	maintenance.Outcome

	raw json.RawMessage
}

// UnmarshalJSON keeps the text too, so that --output json passes on what this version does not know.
func (j *jobStatus) UnmarshalJSON(body []byte) error {
	type plain jobStatus
	if err := json.Unmarshal(body, (*plain)(j)); err != nil {
		return err
	}
	j.raw = append(json.RawMessage(nil), body...)
	return nil
}

// tableFlags are what every maintenance verb has: which table, of which server.
type tableFlags struct {
	*connection
	namespace string
}

func (c *call) tableFlags(fs *flag.FlagSet) *tableFlags {
	k := &tableFlags{connection: c.connectionFlags(fs)}
	k.warehouseFlag(fs)
	fs.StringVar(&k.namespace, "namespace", "", "namespace as a `JSON list`, when a level has a dot in its name; the argument is then the table alone")
	return k
}

// beginTable finds the server, and the path of the maintenance of the table that the argument names.
func (c *call) beginTable(ctx context.Context, k *tableFlags, argument string) (a *admin, path []string, err error) {
	warehouse, err := c.warehouseOf(k.connection)
	if err != nil {
		return nil, nil, err
	}
	namespace, table, err := tableName(argument, k.namespace)
	if err != nil {
		return nil, nil, err
	}
	path = []string{"catalogs", warehouse, "namespaces", namespaceSegment(namespace), "tables", table, "maintenance"}
	a, err = c.connect(ctx, k.connection)
	return a, path, err
}

func maintenanceRun(ctx context.Context, c *call) error {
	fs := c.newFlags()
	k := c.tableFlags(fs)
	job := fs.String("job", "", "`kind` of work; this version has one: compaction (default)")
	dryRun := fs.Bool("dry-run", false, "only tell what would be done")
	wait := fs.Bool("wait", false, "wait for the end; exit code 1 when the job was refused or failed")
	args, err := c.parse(fs, 1, 1)
	if err != nil {
		return err
	}
	a, path, err := c.beginTable(ctx, k, args[0])
	if err != nil {
		return err
	}
	request := map[string]any{"job": firstOf(*job, string(maintenance.Compaction)), "dry_run": *dryRun}
	var status jobStatus
	if err := a.do(ctx, http.MethodPost, append(slices.Clone(path), "run"), request, &status); err != nil {
		return err
	}
	if *wait && !*dryRun {
		if err := c.waitForJob(ctx, a, &status, k.output == "table"); err != nil {
			return err
		}
	}
	return c.printJob(k.connection, status)
}

// waitForJob asks until the job has ended. An interrupt ends the waiting, not the job. A server that restarts or a
// token that runs out meanwhile is no end either: jobs live in the database.
func (c *call) waitForJob(ctx context.Context, a *admin, status *jobStatus, talk bool) error {
	shown, silentSince := "", time.Time{}
	for delay := jobLookMin; !status.State.Final(); delay = min(2*delay, jobLookMax) {
		if now := fmt.Sprintf("%s %s %.0f %%", status.State, status.Phase, 100*status.Progress); talk && now != shown {
			fmt.Fprintln(c.Err, now)
			shown = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the job %s goes on without us: %w", status.JobID, ctx.Err())
		case <-time.After(delay):
		}
		err := a.do(ctx, http.MethodGet, []string{"maintenance", "jobs", status.JobID}, nil, status)
		if isRefusal(err, http.StatusUnauthorized) && a.login != nil {
			err = a.login(ctx)
		}
		switch {
		case err == nil:
			silentSince = time.Time{}
		case !passes(err):
			return err
		case silentSince.IsZero():
			silentSince = time.Now()
			fmt.Fprintf(c.Err, "%v; the job goes on, asking again\n", err)
		case time.Since(silentSince) > jobSilenceMax:
			return err
		}
	}
	return nil
}

// passes tells whether a failure to ask may be gone at the next try: no answer, or a server that is not ready.
func passes(err error) bool {
	var refused *refusal
	return !errors.As(err, &refused) || refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
}

// printJob shows a job. A job that was refused or failed makes the command fail, with the reason on standard error.
func (c *call) printJob(k *connection, s jobStatus) error {
	if k.output == "json" {
		if err := printJSON(c.Out, s.raw); err != nil {
			return err
		}
	} else if err := printFields(c.Out, s.fields()); err != nil {
		return err
	}
	if s.State == maintenance.Refused || s.State == maintenance.Failed {
		fmt.Fprintf(c.Err, "%s: %s: %s\n", c.Name, s.State, firstOf(s.Reason.Message, s.Reason.Code))
		return errFailedShown
	}
	return nil
}

func (s jobStatus) fields() [][2]string {
	change := func(before, after int64) string {
		return strconv.FormatInt(before, 10) + " → " + strconv.FormatInt(after, 10)
	}
	fields := [][2]string{
		{"job", strings.TrimSpace(s.Job + " " + s.JobID)}, {"table", s.Warehouse + " " + s.Table}, {"state", s.stateText()},
	}
	if s.Reason.Message != "" || s.Reason.Code != "" {
		fields = append(fields, [2]string{"reason", firstOf(s.Reason.Message, s.Reason.Code)})
	}
	switch {
	case s.FilesBefore == 0:
	case s.Phase == planPhase:
		share := func(part, whole int64) string { return fmt.Sprintf("%d of %d would be rewritten", part, whole) }
		fields = append(fields,
			[2]string{"files", share(s.FilesReplaced, s.FilesBefore)}, [2]string{"rows", share(s.RowsRewritten, s.RowsBefore)},
			[2]string{"bytes", fmt.Sprintf("%d now", s.BytesBefore)}, [2]string{"row groups", fmt.Sprintf("%d now", s.RowGroupsBefore)},
			[2]string{"clustering", nowText(s.ClusteringBefore)})
	default:
		fields = append(fields,
			[2]string{"files", change(s.FilesBefore, s.FilesAfter)}, [2]string{"rows", change(s.RowsBefore, s.RowsAfter)},
			[2]string{"bytes", change(s.BytesBefore, s.BytesAfter)}, [2]string{"row groups", change(s.RowGroupsBefore, s.RowGroupsAfter)},
			[2]string{"clustering", clustering(s.ClusteringBefore) + " → " + clustering(s.ClusteringAfter)},
			[2]string{"seconds", fmt.Sprintf("%.1f", s.Seconds)})
	}
	return fields
}

// stateText says where a job is. A plan has the state that its job would begin in, but none was queued.
func (s jobStatus) stateText() string {
	if s.Phase == planPhase && s.State == maintenance.Queued {
		return "planned, nothing was queued"
	}
	return strings.TrimSpace(string(s.State) + " " + s.Phase)
}

func nowText(depth float64) string {
	if depth == 0 {
		return clustering(depth)
	}
	return clustering(depth) + " now"
}

// clustering shows the mean number of row groups that cover a point: 1 is perfect, 0 is not known.
func clustering(depth float64) string {
	if depth == 0 {
		return "not known"
	}
	return fmt.Sprintf("%.2f", depth)
}

// settingNames are the settings that `maintenance set` has flags for.
var settingNames = []struct{ key, help string }{
	{maintenance.KeyEnabled, "maintain the table by itself: `true or false`"},
	{maintenance.KeyStrategy, "`strategy`: auto, bin-pack, sort or z-order"},
	{maintenance.KeyColumns, "`columns` to cluster by, with commas (default: the table's sort order)"},
	{maintenance.KeyCurve, "`curve`: hilbert, zorder or linear"},
	{maintenance.KeyRowGroupRows, "`rows` of a row group"},
	{maintenance.KeyTargetBytes, "`bytes` of a data file"},
	{maintenance.KeyMinInterval, "`seconds` between two automatic runs at least"},
}

func maintenanceSet(ctx context.Context, c *call) error {
	fs := c.newFlags()
	k := c.tableFlags(fs)
	change := map[string]any{}
	for _, s := range settingNames {
		fs.Func(s.key, s.help, func(value string) error { change[s.key] = value; return nil })
	}
	var unset stringList
	fs.Var(&unset, "unset", "take this `setting` away again; may be given several times")
	args, err := c.parse(fs, 1, 1)
	if err != nil {
		return err
	}
	for _, key := range unset {
		change[strings.TrimPrefix(key, maintenance.PropertyPrefix)] = nil
	}
	if len(change) == 0 {
		return wrongUsage("nothing to set: give --enabled, --strategy or another setting")
	}
	a, path, err := c.beginTable(ctx, k, args[0])
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := a.do(ctx, http.MethodPut, path, map[string]any{"settings": change}, &answer); err != nil {
		return err
	}
	return c.printMaintenance(k.connection, answer)
}

func maintenanceShow(ctx context.Context, c *call) error {
	fs := c.newFlags()
	k := c.tableFlags(fs)
	args, err := c.parse(fs, 1, 1)
	if err != nil {
		return err
	}
	a, path, err := c.beginTable(ctx, k, args[0])
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := a.do(ctx, http.MethodGet, path, nil, &answer); err != nil {
		return err
	}
	return c.printMaintenance(k.connection, answer)
}

// printMaintenance shows settings in force with their sources, what the last look found, and the last jobs.
func (c *call) printMaintenance(k *connection, answer json.RawMessage) error {
	if k.output == "json" {
		return printJSON(c.Out, answer)
	}
	var shown maintenanceStatus
	if err := json.Unmarshal(answer, &shown); err != nil {
		return fmt.Errorf("the answer is not what a catalogd sends: %w", err)
	}
	if err := printFields(c.Out, shown.fields()); err != nil {
		return err
	}
	var rows [][]string
	for _, s := range shown.Settings {
		rows = append(rows, []string{s.Key, s.Value, s.Source})
	}
	fmt.Fprintln(c.Out)
	if err := printRows(c.Out, []string{"SETTING", "VALUE", "FROM"}, rows); err != nil || len(shown.Jobs) == 0 {
		return err
	}
	rows = nil
	for _, j := range shown.Jobs {
		rows = append(rows, []string{j.JobID, j.Job, string(j.State), fmt.Sprintf("%.1f", j.Seconds), firstOf(j.Reason.Message, j.Reason.Code)})
	}
	fmt.Fprintln(c.Out)
	return printRows(c.Out, []string{"JOB", "KIND", "STATE", "SECONDS", "REASON"}, rows)
}

// maintenanceStatus is a table's maintenance as the server tells it.
type maintenanceStatus struct {
	Warehouse string                `json:"warehouse"`
	Table     string                `json:"table"`
	Settings  []maintenance.Setting `json:"settings"`
	ClusterBy []struct {
		Name string `json:"name"`
	} `json:"cluster_by"`
	ClusterBySource string                  `json:"cluster_by_source"`
	Curve           maintenance.Curve       `json:"curve"`
	Blocked         *maintenance.Reason     `json:"blocked"`
	LastLook        *maintenance.LookReport `json:"last_look"`
	NextLook        time.Time               `json:"next_look"`
	Jobs            []jobStatus             `json:"jobs"`
}

func (s maintenanceStatus) fields() [][2]string {
	names := make([]string, len(s.ClusterBy))
	for i, column := range s.ClusterBy {
		names[i] = column.Name
	}
	clustered := "not clustered"
	if len(names) > 0 {
		clustered = fmt.Sprintf("%s (%s, from %s)", strings.Join(names, ", "), s.Curve, s.ClusterBySource)
	}
	fields := [][2]string{{"table", s.Warehouse + " " + s.Table}, {"clustered by", clustered}}
	if s.Blocked != nil {
		fields = append(fields, [2]string{"blocked", firstOf(s.Blocked.Message, s.Blocked.Code)})
	}
	if s.LastLook != nil {
		looked := s.LastLook.At.UTC().Format(time.RFC3339) + " " + firstOf(s.LastLook.Reason.Message, s.LastLook.Reason.Code)
		fields = append(fields, [2]string{"last look", looked})
	}
	if !s.NextLook.IsZero() {
		fields = append(fields, [2]string{"next look", s.NextLook.UTC().Format(time.RFC3339)})
	}
	return fields
}
