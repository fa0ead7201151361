package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// Limits of metrics reports.
const (
	// reportBytesMax is how much of one report is kept; what is longer is taken and shortened.
	reportBytesMax = 64 << 10
	// reportCutsMax is how many members are taken out of a long report before only its type is kept.
	reportCutsMax = 8
	// reportDepthMax bounds how deeply a report's values nest. Readers of JSON stop at some depth, most at 1,000, and
	// one report must not hide the others of a list.
	reportDepthMax = 500
	// reportTypeBytesMax bounds the name of a report's type; the specification has two.
	reportTypeBytesMax = 128
	// reportsPerTableMax is how many reports a table keeps, the newest. Sweeps come after every reportSweepEvery-th
	// report of a server, so a table may have a few more meanwhile.
	reportsPerTableMax = 1000
	reportAgeDefault   = 30 * 24 * time.Hour
	reportSweepEvery   = 16
	// reportSweepMax bounds what one sweep takes away, by number and by age each.
	reportSweepMax = 500
)

// Types of reports. Others are kept too.
const reportTypeCommit = "commit-report"

// MetricsReport is a client's report of a scan or a commit, as it came. Nothing in it is trusted: the table is the one
// that it was sent to.
type MetricsReport struct {
	ID         uuid.UUID // time-ordered
	TableID    uuid.UUID
	At         time.Time
	Principal  string // the name of who sent it
	Type       string // as the report says: "scan-report", "commit-report" or anything
	SnapshotID *int64 // as the report says; nil when it says nothing of use
	Report     json.RawMessage
}

// MetricsPage asks for a table's reports, newest first.
type MetricsPage struct {
	Type   string    // "" is all
	Before uuid.UUID // the last id of the page before; uuid.Nil for the first
	Limit  int
}

// MetricsSweep says what of all reports may go: beyond the newest Keep of the table, and of any table what is older.
type MetricsSweep struct {
	TableID uuid.UUID
	Keep    int
	Before  time.Time
	Limit   int // of rows for each of the two
}

// MetricsStore keeps clients' reports. They change nothing in the catalog, so they leave no facts.
type MetricsStore interface {
	AddReport(ctx context.Context, r MetricsReport) error
	ListReports(ctx context.Context, tableID uuid.UUID, p MetricsPage) ([]MetricsReport, error)
	SweepReports(ctx context.Context, s MetricsSweep) error
}

// ReportMetrics keeps a client's report. A report of a commit needs the right to write the table's data, all others
// the right to read them, as Polaris has it.
func (s *Service) ReportMetrics(ctx context.Context, c Caller, warehouse string, id Identifier, body []byte) error {
	report, err := parseReport(body)
	if err != nil {
		return err
	}
	wanted := authz.TableReadData
	if report.Type == reportTypeCommit {
		wanted = authz.TableWriteData
	}
	res, err := s.resolveTable(ctx, c, warehouse, id, need{"report-metrics", id.String(), wanted})
	if err != nil {
		return err
	}
	report.ID, report.TableID, report.At, report.Principal = newID(), res.Table.ID, s.Now(), c.Principal.Name
	if err := s.Store.AddReport(ctx, report); err != nil {
		return fmt.Errorf("keep a metrics report of %s: %w", id, err)
	}
	if s.reports.Add(1)%reportSweepEvery == 0 {
		s.sweepReports(ctx, report.TableID)
	}
	return nil
}

// sweepReports takes old reports away. Nobody waits for it to succeed: the next one has more to do.
func (s *Service) sweepReports(ctx context.Context, tableID uuid.UUID) {
	err := s.Store.SweepReports(ctx, MetricsSweep{
		TableID: tableID, Keep: reportsPerTableMax, Before: s.Now().Add(-s.reportAge), Limit: reportSweepMax,
	})
	if err != nil {
		s.Log.Warn("old metrics reports could not be taken away", "cause", err)
	}
}

func parseReport(body []byte) (MetricsReport, error) {
	if deeperThan(reportDepthMax, body) {
		return MetricsReport{}, fault.New(fault.BadRequest, "the values of the metrics report nest more than %d deep", reportDepthMax)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return MetricsReport{}, fault.New(fault.BadRequest, "the metrics report is not a JSON object with a report-type")
	}
	r := MetricsReport{Report: body}
	if text := members["report-type"]; text != nil && json.Unmarshal(text, &r.Type) != nil {
		return r, fault.New(fault.BadRequest, "the metrics report is not a JSON object with a report-type")
	}
	if r.Type == "" {
		return r, fault.New(fault.BadRequest, "the metrics report has no report-type")
	}
	if err := validateName("report-type", r.Type, reportTypeBytesMax); err != nil {
		return r, err
	}
	var snapshot int64
	if text := members["snapshot-id"]; text != nil && string(text) != "null" && json.Unmarshal(text, &snapshot) == nil {
		r.SnapshotID = &snapshot
	}
	if len(body) > reportBytesMax {
		short, err := shorten(members)
		if err != nil {
			return r, fault.Wrap(fault.BadRequest, err, "the metrics report is not valid JSON")
		}
		r.Report = short
	}
	return r, nil
}

// deeperThan tells whether lists and objects of a JSON text nest more than depth deep. Of other texts it says nothing of
// use.
func deeperThan(depth int, text []byte) bool {
	inString, open := false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			inString = !inString
		case inString && c == '\\':
			i++
		case inString:
		case c == '[', c == '{':
			if open++; open > depth {
				return true
			}
		case c == ']', c == '}':
			open--
		}
	}
	return false
}

// shortenedMember is what a shortened report says of itself: the names of what is missing in it.
const shortenedMember = "catalogd.shortened"

// shorten replaces a report's longest members by null until it is short enough. Filters with thousands of values are
// what is long in practice.
func shorten(members map[string]json.RawMessage) (json.RawMessage, error) {
	longest := slices.SortedFunc(maps.Keys(members), func(a, b string) int { return len(members[b]) - len(members[a]) })
	kept, cut := maps.Clone(members), []string{}
	for _, name := range longest[:min(len(longest), reportCutsMax)] {
		if name == "report-type" {
			continue
		}
		cut = append(cut, name)
		kept[name] = json.RawMessage("null")
		var err error
		if kept[shortenedMember], err = json.Marshal(cut); err != nil {
			return nil, err
		}
		text, err := json.Marshal(kept)
		if err != nil || len(text) <= reportBytesMax {
			return text, err
		}
	}
	return json.Marshal(map[string]json.RawMessage{"report-type": members["report-type"], shortenedMember: json.RawMessage(`["*"]`)})
}

// ListMetrics gives a table's reports, newest first. It needs the right to write the table's data, not only to read
// them: reports say who asks for what.
func (s *Service) ListMetrics(ctx context.Context, c Caller, warehouse string, id Identifier, p MetricsPage) ([]MetricsReport, error) {
	res, err := s.resolveTable(ctx, c, warehouse, id, need{"list-metrics", id.String(), authz.TableWriteData})
	if err != nil {
		return nil, err
	}
	reports, err := s.Store.ListReports(ctx, res.Table.ID, p)
	if err != nil {
		return nil, fmt.Errorf("list the metrics reports of %s: %w", id, err)
	}
	return reports, nil
}
