package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"time"

	"catalogd/maintenance"
)

// maintenanceJobs lists a warehouse's jobs.
func maintenanceJobs(ctx context.Context, c *call) error {
	var states stringList
	s, err := c.begin(ctx, 0, func(k *connection, fs *flag.FlagSet) {
		fs.Var(&states, "state", "only jobs in this `state`: queued, running, succeeded, nothing_to_do, refused or failed; may be given several times")
		k.check(func([]string) error {
			for _, state := range states {
				if _, err := maintenance.ParseState(state); err != nil {
					return wrongUsage("%v", err)
				}
			}
			return nil
		})
	}, c.oneWarehouse)
	if err != nil {
		return err
	}
	jobs := []json.RawMessage{}
	path := []string{"catalogs", s.warehouse, "maintenance", "jobs"}
	if err := pages(ctx, s.admin, path, url.Values{"state": states}, func(page jobsPage) { jobs = append(jobs, page.Jobs...) }); err != nil {
		return err
	}
	return c.printJobs(s.output, jobs)
}

// jobsPage is a page of jobs, each as it came.
type jobsPage struct {
	Jobs []json.RawMessage `json:"jobs"`
}

// printJobs shows jobs, newest first.
func (c *call) printJobs(output string, jobs []json.RawMessage) error {
	if output == "json" {
		return printJSON(c.Out, jobsPage{jobs})
	}
	var rows [][]string
	for _, raw := range jobs {
		var j jobStatus
		if err := json.Unmarshal(raw, &j); err != nil {
			return fmt.Errorf("the answer is not what a catalogd sends: %w", err)
		}
		ended := ""
		if !j.Finished.IsZero() {
			ended = j.Finished.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{j.JobID, j.Job, j.Table, string(j.State), ended, j.Reason.String()})
	}
	return printRows(c.Out, []string{"JOB", "KIND", "TABLE", "STATE", "ENDED", "REASON"}, rows)
}

// maintenanceRetry begins a failed job again.
func maintenanceRetry(ctx context.Context, c *call) error {
	var wait bool
	s, err := c.begin(ctx, 1, func(_ *connection, fs *flag.FlagSet) {
		fs.BoolVar(&wait, "wait", false, "wait for the end; exit code 1 when the job was refused or failed again")
	})
	if err != nil {
		return err
	}
	return c.beginJob(ctx, s, []string{"maintenance", "jobs", s.args[0], "retry"}, nil, wait)
}
