package main

import (
	"context"
	"encoding/json"
	"flag"
	"net/url"
	"time"
)

// eventLine is an event as the API gives it; the whole object is kept for --output json.
type eventLine struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	Operation string    `json:"operation"`
	Principal string    `json:"principal"`
	Catalog   string    `json:"catalog"`
	Subject   string    `json:"subject"`
}

func (l eventLine) cells() []string {
	return []string{l.At.UTC().Format(time.RFC3339), l.Principal, l.Operation, l.Catalog, l.Subject, l.ID}
}

var eventFeed = recordFeed{
	path: "events", header: []string{"AT", "PRINCIPAL", "OPERATION", "WAREHOUSE", "SUBJECT", "EVENT"}, cells: cellsOf[eventLine],
}

// runEvents lists changes, the oldest first.
func runEvents(ctx context.Context, c *call) error {
	query, after, limit, follow := url.Values{}, "", 0, false
	s, err := c.begin(ctx, 0, func(k *connection, fs *flag.FlagSet) {
		k.warehouseFlag(fs, "`name` of the warehouse whose events are wanted; without it those of the whole service (CATALOG_WAREHOUSE does not count here)")
		fs.Func("operation", "only this `operation`, for example commit-table; may be given several times", func(value string) error {
			query.Add("operation", value)
			return nil
		})
		fs.StringVar(&after, "after", "", "only behind this `cursor`, which --output json shows")
		limitFlag(k, fs, &limit)
		fs.BoolVar(&follow, "follow", false, "show events as they come, until interrupted: those from now on, or behind --after")
	})
	if err != nil {
		return err
	}
	if s.warehouse != "" {
		query.Set("catalog", s.warehouse)
	}
	if follow {
		if after == "" {
			query.Set("latest", "true")
		}
		return c.follow(ctx, s, eventFeed, query, after)
	}
	events, cursor, err := s.records(ctx, eventFeed, query, after, limit)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, struct {
			Events []json.RawMessage `json:"events"`
			Cursor string            `json:"cursor"`
		}{events, cursor})
	}
	return c.printRecords(eventFeed, events)
}
