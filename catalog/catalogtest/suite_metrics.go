package catalogtest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
)

var metricsPromises = []promise{
	{"Field_C197_ReportsAreListedNewestFirst", func(b *bench) {
		table, other := uuid.New(), uuid.New()
		snapshot := int64(8888888888888888887)
		var made []catalog.MetricsReport
		for i := range 5 {
			r := b.report(table, i)
			if i%2 == 1 {
				r.Type, r.SnapshotID = "commit-report", &snapshot
			}
			b.must(b.store.AddReport(b.Context(), r))
			made = append(made, r)
		}
		b.must(b.store.AddReport(b.Context(), b.report(other, 9)))
		b.wantReports(table, catalog.MetricsPage{Limit: 10}, made[4], made[3], made[2], made[1], made[0])
		b.wantReports(table, catalog.MetricsPage{Limit: 2}, made[4], made[3])
		b.wantReports(table, catalog.MetricsPage{Limit: 2, Before: made[3].ID}, made[2], made[1])
		b.wantReports(table, catalog.MetricsPage{Limit: 10, Type: "commit-report"}, made[3], made[1])
		b.wantReports(table, catalog.MetricsPage{Limit: 10, Type: "none\x00"})
		b.wantReports(uuid.New(), catalog.MetricsPage{Limit: 10})
	}},
	{"AReportIsNoEvent", func(b *bench) {
		b.leavesNoTrace(func() { b.must(b.store.AddReport(b.Context(), b.report(uuid.New(), 1))) })
	}},
	{"ASweepKeepsTheNewestOfTheTable", func(b *bench) {
		table, other := uuid.New(), uuid.New()
		var made []catalog.MetricsReport
		for i := range 6 {
			made = append(made, b.report(table, i))
			b.must(b.store.AddReport(b.Context(), made[i]))
			b.must(b.store.AddReport(b.Context(), b.report(other, i)))
		}
		sweep := catalog.MetricsSweep{TableID: table, Keep: 2, Before: at.Add(-time.Hour), Limit: 3}
		b.must(b.store.SweepReports(b.Context(), sweep))
		b.wantReports(table, catalog.MetricsPage{Limit: 10}, made[5], made[4], made[0])
		b.must(b.store.SweepReports(b.Context(), sweep))
		b.wantReports(table, catalog.MetricsPage{Limit: 10}, made[5], made[4])
		if left, err := b.store.ListReports(b.Context(), other, catalog.MetricsPage{Limit: 10}); err != nil || len(left) != 6 {
			b.Errorf("another table's: %d, %v", len(left), err)
		}
	}},
	{"ASweepTakesWhatIsOldOfAnyTable", func(b *bench) {
		table := uuid.New()
		var made []catalog.MetricsReport
		for i := range 6 {
			made = append(made, b.report(table, i))
			b.must(b.store.AddReport(b.Context(), made[i]))
		}
		sweep := catalog.MetricsSweep{TableID: uuid.New(), Keep: 100, Before: made[3].At, Limit: 2}
		b.must(b.store.SweepReports(b.Context(), sweep))
		b.wantReports(table, catalog.MetricsPage{Limit: 10}, made[5], made[4], made[3], made[2])
		sweep.Limit = 100
		b.must(b.store.SweepReports(b.Context(), sweep))
		b.wantReports(table, catalog.MetricsPage{Limit: 10}, made[5], made[4], made[3])
	}},
}

// report makes a report whose id and time are in the order of i.
func (b *bench) report(table uuid.UUID, i int) catalog.MetricsReport {
	id := uuid.New()
	id[0] = byte(i)
	return catalog.MetricsReport{
		ID: id, TableID: table, At: at.Add(time.Duration(i) * time.Minute), Principal: "alice", Type: "scan-report",
		Report: []byte(fmt.Sprintf(`{"report-type":"x",  "filter":"\u0000%d"}`, i)),
	}
}

func (b *bench) wantReports(table uuid.UUID, p catalog.MetricsPage, want ...catalog.MetricsReport) {
	b.Helper()
	got, err := b.store.ListReports(b.Context(), table, p)
	b.must(err)
	if len(got) != len(want) {
		b.Fatalf("%d reports, want %d", len(got), len(want))
	}
	for i, g := range got {
		w := want[i]
		same := g.ID == w.ID && g.TableID == w.TableID && g.At.Equal(w.At) && g.Principal == w.Principal && g.Type == w.Type &&
			string(g.Report) == string(w.Report) && (g.SnapshotID == nil) == (w.SnapshotID == nil)
		if !same || g.SnapshotID != nil && *g.SnapshotID != *w.SnapshotID {
			b.Errorf("report %d is %+v, want %+v", i, g, w)
		}
	}
}
