package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

var auditVerbs = []*command{
	{name: "list", summary: "changes and refusals, the newest first; --follow shows them as they come", run: auditList},
}

// auditFlags are what audit list may be asked for.
type auditFlags struct {
	query  url.Values
	limit  int
	follow bool
}

func (a *auditFlags) add(k *connection, fs *flag.FlagSet) {
	a.query = url.Values{}
	fs.StringVar(&k.warehouse, "warehouse", "", "`name` of the warehouse whose rows are wanted; without it those of the whole service (CATALOG_WAREHOUSE does not count here)")
	fs.StringVar(&k.warehouse, "w", "", "the same as --warehouse `name`")
	for _, f := range []struct{ name, parameter, help string }{
		{"principal", "principal", "only what this `principal` did or was refused"},
		{"operation", "operation", "only this `operation`, for example commit-table"},
		{"subject", "subject", "only on this `subject`, for example iot.readings"},
		{"securable", "securableId", "only on the securable with this `uuid`, whatever it was called"},
		{"request-id", "requestId", "only of the request with this `id`"},
	} {
		fs.Func(f.name, f.help, func(value string) error { a.query.Set(f.parameter, value); return nil })
	}
	fs.BoolFunc("denied", "only what was refused", func(string) error { a.query.Set("allowed", "false"); return nil })
	fs.BoolFunc("allowed", "only what was done", func(string) error { a.query.Set("allowed", "true"); return nil })
	for _, name := range []string{"since", "until"} {
		fs.Func(name, map[string]string{"since": "from", "until": "before"}[name]+" this `time`: 2026-03-04T05:06:07Z, or so long ago: 24h, 7d", func(value string) error {
			at, err := timeOrAgo(value, time.Now())
			if err == nil {
				a.query.Set(name, at.UTC().Format(time.RFC3339Nano))
			}
			return err
		})
	}
	limitFlag(k, fs, &a.limit)
	fs.BoolVar(&a.follow, "follow", false, "show rows as they come, the oldest first, until interrupted: those from now on, or from --since on")
}

// timeOrAgo reads a time, or a span before now.
func timeOrAgo(value string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return at, nil
	}
	if n := len(value); n > 1 && value[n-1] == 'd' {
		if days, err := strconv.Atoi(value[:n-1]); err == nil && days >= 0 {
			return now.AddDate(0, 0, -days), nil
		}
	}
	if span, err := time.ParseDuration(value); err == nil && span >= 0 {
		return now.Add(-span), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a time like 2026-03-04T05:06:07Z nor a span like 24h or 7d", value)
}

// auditLine is a row as the API gives it; the whole object is kept for --output json.
type auditLine struct {
	At        time.Time `json:"at"`
	Principal string    `json:"principal"`
	Client    string    `json:"clientAddress"`
	Operation string    `json:"operation"`
	Catalog   string    `json:"catalog"`
	Subject   string    `json:"subject"`
	Allowed   bool      `json:"allowed"`
	Reason    string    `json:"reason"`
}

func (l auditLine) cells() []string {
	what := "done"
	if !l.Allowed {
		what = "refused"
	}
	return []string{l.At.UTC().Format(time.RFC3339), l.Principal, l.Client, l.Operation, l.Catalog, l.Subject, what, l.Reason}
}

var auditHeader = []string{"AT", "PRINCIPAL", "FROM", "OPERATION", "WAREHOUSE", "SUBJECT", "WHAT", "REASON"}

var auditFeed = recordFeed{path: "audit", header: auditHeader, cells: cellsOf[auditLine]}

func auditList(ctx context.Context, c *call) error {
	var wanted auditFlags
	s, err := c.begin(ctx, 0, wanted.add)
	if err != nil {
		return err
	}
	if s.warehouse != "" {
		wanted.query.Set("catalog", s.warehouse)
	}
	if wanted.follow {
		wanted.query.Set("order", "oldest")
		if !wanted.query.Has("since") {
			wanted.query.Set("latest", "true")
		}
		return c.follow(ctx, s, auditFeed, wanted.query, "")
	}
	rows, _, err := s.records(ctx, auditFeed, wanted.query, "", wanted.limit)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, struct {
			Rows []json.RawMessage `json:"rows"`
		}{rows})
	}
	if len(rows) == 0 {
		fmt.Fprintln(c.Err, "no row of the audit that you may see is so; names are compared as they are, and rows stay for retention.audit")
	}
	return c.printRecords(auditFeed, rows)
}
