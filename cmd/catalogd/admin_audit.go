package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// auditFollowEvery is how often --follow asks for more.
const auditFollowEvery = time.Second

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
	fs.IntVar(&a.limit, "limit", 100, "`number` of rows at most; 0: all")
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

// auditPage is an answer of the API.
type auditPage struct {
	Rows   []json.RawMessage `json:"rows"`
	Missed bool              `json:"missed"`
	Cursor string            `json:"cursor"`
	Next   *string           `json:"next-page-token"`
}

func auditList(ctx context.Context, c *call) error {
	var wanted auditFlags
	s, err := c.begin(ctx, 0, wanted.add)
	if err != nil {
		return err
	}
	if wanted.limit < 0 {
		return wrongUsage("--limit is %d, wanted is a number of rows", wanted.limit)
	}
	if s.warehouse != "" {
		wanted.query.Set("catalog", s.warehouse)
	}
	if wanted.follow {
		return c.followAudit(ctx, s, wanted.query)
	}
	var rows []json.RawMessage
	for token := ""; wanted.limit == 0 || len(rows) < wanted.limit; {
		if left := wanted.limit - len(rows); wanted.limit > 0 {
			wanted.query.Set("pageSize", strconv.Itoa(left))
		}
		page, err := s.auditPage(ctx, wanted.query, token)
		if err != nil {
			return err
		}
		rows = append(rows, page.Rows...)
		if page.Next == nil {
			break
		}
		token = *page.Next
	}
	if s.output == "json" {
		return printJSON(c.Out, struct {
			Rows []json.RawMessage `json:"rows"`
		}{append([]json.RawMessage{}, rows...)})
	}
	table := make([][]string, len(rows))
	for i, raw := range rows {
		var line auditLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return fmt.Errorf("the answer is not what a catalogd sends: %w", err)
		}
		table[i] = line.cells()
	}
	return printRows(c.Out, auditHeader, table)
}

func (a *admin) auditPage(ctx context.Context, query url.Values, token string) (auditPage, error) {
	query.Set("pageToken", token)
	var page auditPage
	err := a.call(ctx, http.MethodGet, "audit?"+query.Encode(), nil, &page)
	return page, err
}

// followAudit shows rows as they come. Without --since it begins with what comes after the start of the command.
func (c *call) followAudit(ctx context.Context, s *session, query url.Values) error {
	query.Set("order", "oldest")
	if !query.Has("since") {
		query.Set("latest", "true")
	}
	token := ""
	for ; ; query.Del("latest") {
		page, err := s.auditPage(ctx, query, token)
		if err != nil && s.login != nil && isRefusal(err, http.StatusUnauthorized) { // the token has ended
			if err = s.login(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		if page.Missed {
			fmt.Fprintf(c.Err, "%s: rows that were not shown yet have been removed for their age\n", c.Name)
		}
		for _, raw := range page.Rows {
			if err := c.printAuditLine(s.output, raw); err != nil {
				return err
			}
		}
		token = page.Cursor
		if page.Next != nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil // it was meant to end so
		case <-time.After(auditFollowEvery):
		}
	}
}

// printAuditLine shows a row alone: as it is for programs, one object a line.
func (c *call) printAuditLine(output string, raw json.RawMessage) error {
	if output == "json" {
		_, err := fmt.Fprintf(c.Out, "%s\n", raw)
		return err
	}
	var line auditLine
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("the answer is not what a catalogd sends: %w", err)
	}
	cells := line.cells()
	for i, cell := range cells {
		cells[i] = firstOf(cell, "-")
	}
	_, err := fmt.Fprintln(c.Out, strings.Join(cells, "  "))
	return err
}
