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

// followEvery is how often --follow asks for more.
const followEvery = time.Second

// recordFeed is a list of the API that is read page by page and can be followed: the audit or the events.
type recordFeed struct {
	path   string // below the management API
	header []string
	cells  func(raw json.RawMessage) ([]string, error)
}

// recordPage is an answer of the API: rows of the audit, or events.
type recordPage struct {
	Rows   []json.RawMessage `json:"rows"`
	Events []json.RawMessage `json:"events"`
	Missed bool              `json:"missed"`
	Cursor string            `json:"cursor"`
	Next   *string           `json:"next-page-token"`
}

// cellsOf reads a row as the API gives it for a line of a table.
func cellsOf[T interface{ cells() []string }](raw json.RawMessage) ([]string, error) {
	var line T
	if err := json.Unmarshal(raw, &line); err != nil {
		return nil, fmt.Errorf("the answer is not what a catalogd sends: %w", err)
	}
	return line.cells(), nil
}

// limitFlag adds --limit.
func limitFlag(k *connection, fs *flag.FlagSet, limit *int) {
	fs.IntVar(limit, "limit", 100, "`number` of rows at most; 0: all")
	k.check(func([]string) error {
		if *limit < 0 {
			return wrongUsage("--limit is %d, wanted is a number of rows", *limit)
		}
		return nil
	})
}

func (a *admin) recordPage(ctx context.Context, f recordFeed, query url.Values, token string) (recordPage, error) {
	query.Set("pageToken", token)
	var page recordPage
	err := a.call(ctx, http.MethodGet, f.path+"?"+query.Encode(), nil, &page)
	page.Rows = append(page.Rows, page.Events...)
	return page, err
}

// records reads rows behind a page token, up to a limit, 0 for all, and gives the cursor behind them.
func (a *admin) records(ctx context.Context, f recordFeed, query url.Values, token string, limit int) (rows []json.RawMessage, cursor string, err error) {
	rows = []json.RawMessage{}
	for limit == 0 || len(rows) < limit {
		if limit > 0 {
			query.Set("pageSize", strconv.Itoa(limit-len(rows)))
		}
		page, err := a.recordPage(ctx, f, query, token)
		if err != nil {
			return nil, "", err
		}
		rows, cursor = append(rows, page.Rows...), page.Cursor
		if page.Next == nil {
			break
		}
		token = *page.Next
	}
	return rows, cursor, nil
}

// printRecords shows rows as a table.
func (c *call) printRecords(f recordFeed, rows []json.RawMessage) (err error) {
	table := make([][]string, len(rows))
	for i, raw := range rows {
		if table[i], err = f.cells(raw); err != nil {
			return err
		}
	}
	return printRows(c.Out, f.header, table)
}

// follow shows rows as they come. With latest in the query it begins with what comes after the start of the command.
func (c *call) follow(ctx context.Context, s *session, f recordFeed, query url.Values, token string) error {
	for ; ; query.Del("latest") {
		page, err := s.recordPage(ctx, f, query, token)
		if err != nil && s.login != nil && isRefusal(err, http.StatusUnauthorized) { // the token has ended
			if err = s.login(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil // it was meant to end so
			}
			return err
		}
		if page.Missed {
			fmt.Fprintf(c.Err, "%s: rows that were not shown yet have been removed for their age\n", c.Name)
		}
		for _, raw := range page.Rows {
			if err := c.printRecord(s.output, f, raw); err != nil {
				return err
			}
		}
		token = page.Cursor
		if page.Next != nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
}

// printRecord shows a row alone: as it is for programs, one object a line.
func (c *call) printRecord(output string, f recordFeed, raw json.RawMessage) error {
	if output == "json" {
		_, err := fmt.Fprintf(c.Out, "%s\n", raw)
		return err
	}
	cells, err := f.cells(raw)
	if err != nil {
		return err
	}
	for i, cell := range cells {
		cells[i] = firstOf(cell, "-")
	}
	_, err = fmt.Fprintln(c.Out, strings.Join(cells, "  "))
	return err
}
