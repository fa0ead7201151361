package catalogtest

import (
	"bytes"
	"context"
	"slices"

	"github.com/google/uuid"

	"catalogd/catalog"
)

// AddReport keeps a client's report.
func (s *Store) AddReport(ctx context.Context, r catalog.MetricsReport) error {
	return s.tx(ctx, "AddReport", func(st *state) error {
		st.reports = append(st.reports[:len(st.reports):len(st.reports)], r)
		return nil
	})
}

// newestFirst is the order of reports, which their ids have.
func newestFirst(a, b catalog.MetricsReport) int { return bytes.Compare(b.ID[:], a.ID[:]) }

// ListReports gives a table's reports, newest first.
func (s *Store) ListReports(ctx context.Context, tableID uuid.UUID, p catalog.MetricsPage) ([]catalog.MetricsReport, error) {
	var found []catalog.MetricsReport
	err := s.tx(ctx, "ListReports", func(st *state) error {
		for _, r := range slices.SortedFunc(slices.Values(st.reports), newestFirst) {
			later := p.Before != uuid.Nil && bytes.Compare(r.ID[:], p.Before[:]) >= 0
			if r.TableID == tableID && (p.Type == "" || r.Type == p.Type) && !later && len(found) < p.Limit {
				found = append(found, r)
			}
		}
		return nil
	})
	return found, err
}

// SweepReports takes away what is beyond the newest of a table, and what is old of any table.
func (s *Store) SweepReports(ctx context.Context, sweep catalog.MetricsSweep) error {
	return s.tx(ctx, "SweepReports", func(st *state) error {
		sorted := slices.SortedFunc(slices.Values(st.reports), newestFirst)
		gone := map[uuid.UUID]bool{}
		newer, surplus := 0, 0
		for i, r := range sorted {
			if r.TableID == sweep.TableID {
				if newer++; newer > sweep.Keep && surplus < sweep.Limit {
					surplus++
					gone[r.ID] = true
				}
			}
			if i >= len(sorted)-sweep.Limit && r.At.Before(sweep.Before) {
				gone[r.ID] = true
			}
		}
		st.reports = slices.DeleteFunc(sorted, func(r catalog.MetricsReport) bool { return gone[r.ID] })
		return nil
	})
}
