package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"catalogd/maintenance"
)

// maintenanceJobs lists a warehouse's jobs.
func maintenanceJobs(ctx context.Context, c *call) error {
	fs := c.newFlags()
	k := c.connectionFlags(fs)
	k.warehouseFlag(fs)
	var states stringList
	fs.Var(&states, "state", "only jobs in this `state`: queued, running, succeeded, nothing_to_do, refused or failed; may be given several times")
	if _, err := c.parse(fs, 0, 0); err != nil {
		return err
	}
	for _, state := range states {
		if _, err := maintenance.ParseState(state); err != nil {
			return wrongUsage("%v", err)
		}
	}
	warehouse, err := c.warehouseOf(k)
	if err != nil {
		return err
	}
	a, err := c.connect(ctx, k)
	if err != nil {
		return err
	}
	var answer json.RawMessage
	target := joinPath([]string{"catalogs", warehouse, "maintenance", "jobs"}) + "?" + url.Values{"state": states}.Encode()
	if err := a.call(ctx, http.MethodGet, target, nil, &answer); err != nil {
		return err
	}
	return c.printJobs(k, answer)
}

// printJobs shows jobs, newest first.
func (c *call) printJobs(k *connection, answer json.RawMessage) error {
	if k.output == "json" {
		var pretty any
		if err := json.Unmarshal(answer, &pretty); err != nil {
			return err
		}
		return printJSON(c.Out, pretty)
	}
	var shown struct {
		Jobs []jobStatus `json:"jobs"`
	}
	if err := json.Unmarshal(answer, &shown); err != nil {
		return fmt.Errorf("the answer is not what a catalogd sends: %w", err)
	}
	var rows [][]string
	for _, j := range shown.Jobs {
		ended := ""
		if !j.Finished.IsZero() {
			ended = j.Finished.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{j.JobID, j.Job, j.Table, string(j.State), ended, firstOf(j.Reason.Message, j.Reason.Code)})
	}
	return printRows(c.Out, []string{"JOB", "KIND", "TABLE", "STATE", "ENDED", "REASON"}, rows)
}

// maintenanceRetry begins a failed job again.
func maintenanceRetry(ctx context.Context, c *call) error {
	fs := c.newFlags()
	k := c.connectionFlags(fs)
	wait := fs.Bool("wait", false, "wait for the end; exit code 1 when the job was refused or failed again")
	args, err := c.parse(fs, 1, 1)
	if err != nil {
		return err
	}
	a, err := c.connect(ctx, k)
	if err != nil {
		return err
	}
	var status jobStatus
	if err := a.do(ctx, http.MethodPost, []string{"maintenance", "jobs", args[0], "retry"}, nil, &status); err != nil {
		return err
	}
	if *wait {
		if err := c.waitForJob(ctx, a, &status, k.output == "table"); err != nil {
			return err
		}
	}
	return c.printJob(k, status)
}
