package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
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

// beginTable is begin for a verb about one table, the argument; path is that of its maintenance.
func (c *call) beginTable(ctx context.Context, more ...verbFlags) (s *session, path []string, err error) {
	var given string
	s, err = c.begin(ctx, 1, append(more, c.oneWarehouse, func(k *connection, fs *flag.FlagSet) {
		fs.StringVar(&given, "namespace", "", "namespace as a `JSON list`, when a level has a dot in its name; the argument is then the table alone")
		k.check(func(args []string) error {
			namespace, table, err := tableName(args[0], given)
			path = []string{"catalogs", k.warehouse, "namespaces", namespaceSegment(namespace), "tables", table, "maintenance"}
			return err
		})
	})...)
	return s, path, err
}

func maintenanceRun(ctx context.Context, c *call) error {
	var job string
	var dryRun, wait bool
	s, path, err := c.beginTable(ctx, func(_ *connection, fs *flag.FlagSet) {
		fs.StringVar(&job, "job", "", "`kind` of work; this version has one: compaction (default)")
		fs.BoolVar(&dryRun, "dry-run", false, "only tell what would be done")
		fs.BoolVar(&wait, "wait", false, "wait for the end; exit code 1 when the job was refused or failed")
	})
	if err != nil {
		return err
	}
	request := map[string]any{"job": firstOf(job, string(maintenance.Compaction)), "dry_run": dryRun}
	return c.beginJob(ctx, s, append(path, "run"), request, wait && !dryRun)
}

// beginJob asks for a job, waits for its end where that is wanted, and shows it. A nil request sends none.
func (c *call) beginJob(ctx context.Context, s *session, path []string, request any, wait bool) error {
	var status jobStatus
	if err := s.do(ctx, http.MethodPost, path, request, &status); err != nil {
		return err
	}
	if wait {
		if err := c.waitForJob(ctx, s.admin, &status); err != nil {
			return err
		}
	}
	return c.printJob(s.output, status)
}

// waitForJob asks until the job has ended. An interrupt ends the waiting, not the job. A server that restarts or a
// token that runs out meanwhile is no end either: jobs live in the database.
func (c *call) waitForJob(ctx context.Context, a *admin, status *jobStatus) error {
	shown, silentSince := "", time.Time{}
	for delay := jobLookMin; !status.State.Final(); delay = min(2*delay, jobLookMax) {
		if now := fmt.Sprintf("%s %s %.0f %%", status.State, status.Phase, 100*status.Progress); now != shown {
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
func (c *call) printJob(output string, s jobStatus) error {
	failed := s.State == maintenance.Refused || s.State == maintenance.Failed
	if output == "json" {
		if err := printJSON(c.Out, s.raw); err != nil {
			return err
		}
	} else {
		shown := s
		if failed {
			shown.Reason = maintenance.Reason{} // it comes on standard error, and once is enough
		}
		if err := printFields(c.Out, shown.fields()); err != nil {
			return err
		}
	}
	if failed {
		fmt.Fprintf(c.Err, "%s: %s: %s\n", c.Name, s.State, s.Reason.String())
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
		fields = append(fields, [2]string{"reason", s.Reason.String()})
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
	change := map[string]any{}
	var unset stringList
	return c.tableMaintenance(ctx, http.MethodPut, map[string]any{"settings": change}, func(k *connection, fs *flag.FlagSet) {
		for _, s := range settingNames {
			fs.Func(s.key, s.help, func(value string) error { change[s.key] = value; return nil })
		}
		fs.Var(&unset, "unset", "take this `setting` away again; may be given several times")
		k.check(func([]string) error {
			for _, key := range unset {
				change[strings.TrimPrefix(key, maintenance.PropertyPrefix)] = nil
			}
			if len(change) == 0 {
				return wrongUsage("nothing to set: give --enabled, --strategy or another setting")
			}
			return nil
		})
	})
}

func maintenanceShow(ctx context.Context, c *call) error {
	return c.tableMaintenance(ctx, http.MethodGet, nil)
}

// tableMaintenance makes a request to a table's maintenance, with the body as it is once flags are read, and shows the
// answer.
func (c *call) tableMaintenance(ctx context.Context, method string, body any, more ...verbFlags) error {
	s, path, err := c.beginTable(ctx, more...)
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := s.do(ctx, method, path, body, &answer); err != nil {
		return err
	}
	return c.printMaintenance(s.output, answer)
}

// printMaintenance shows settings in force with their sources, what the last look found, and the last jobs.
func (c *call) printMaintenance(output string, answer json.RawMessage) error {
	if output == "json" {
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
		rows = append(rows, []string{j.JobID, j.Job, string(j.State), fmt.Sprintf("%.1f", j.Seconds), j.Reason.String()})
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
		fields = append(fields, [2]string{"blocked", s.Blocked.String()})
	}
	if s.LastLook != nil {
		looked := s.LastLook.At.UTC().Format(time.RFC3339) + " " + s.LastLook.Reason.String()
		fields = append(fields, [2]string{"last look", looked})
	}
	if !s.NextLook.IsZero() {
		fields = append(fields, [2]string{"next look", s.NextLook.UTC().Format(time.RFC3339)})
	}
	return fields
}
