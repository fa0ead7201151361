package maintenance_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"catalogd/maintenance"
	"catalogd/maintenance/layout"
)

// The main case: appends in time order become clustered files, partition by partition, and no row changes.
func TestCompaction_ClustersEveryPartition(t *testing.T) {
	b := newBench(t)
	tt := b.createTable("readings", tableOptions{})
	want := map[int64]row{}
	for range 6 {
		for _, part := range []string{"A", "B"} {
			rows := tt.rows(part, 200)
			maps.Copy(want, byID(rows))
			tt.append(rows)
		}
	}
	job := tt.run(b.worker(nil))
	expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
	tt.expect(want)
	tt.expectNoGarbage()
	o := job.Outcome
	if o.FilesBefore != 12 || o.FilesAfter != 2 || o.RowsBefore != 2400 || o.RowsAfter != 2400 || o.FilesReplaced != 12 || o.FilesWritten != 2 ||
		o.BytesBefore == 0 || o.BytesAfter == 0 || o.RowGroupsBefore != 12 || o.RowGroupsAfter != 2 || o.ClusteringBefore < 1 || o.ClusteringAfter < 1 || o.Seconds <= 0 {
		t.Errorf("outcome: %+v", o)
	}
	head := tt.load().CurrentSnapshot()
	if head.Summary.Operation != table.OpReplace || head.SnapshotID != o.SnapshotID || head.Summary.Properties["catalogd.job-id"] != job.ID.String() ||
		head.Summary.Properties["total-records"] != "2400" || head.Summary.Properties["total-data-files"] != "2" || head.Summary.Properties["deleted-records"] != "2400" {
		t.Errorf("snapshot: %+v", head.Summary)
	}
	for _, path := range tt.dataFiles() {
		if maintenance.RunOf(path) != job.ID.String() || !strings.Contains(path, "/data/part=") {
			t.Errorf("data file %s", path)
		}
	}
	if files, err := b.store.ListFiles(t.Context(), job.ID); err != nil || len(files) != 0 {
		t.Errorf("still recorded as the job's: %v, %v", files, err)
	}
	again := tt.run(b.worker(nil))
	expectState(t, again, maintenance.NothingToDo, maintenance.CodeWellLaidOut)
	if again.Outcome.FilesBefore != 2 || again.Outcome.FilesAfter != 2 || again.Outcome.RowsAfter != 2400 {
		t.Errorf("outcome of the second run: %+v", again.Outcome)
	}
	if tt.load().CurrentSnapshot().SnapshotID != head.SnapshotID {
		t.Error("a run that did nothing made a snapshot")
	}
}

// What is asked for a job that does not exist in a queue: only what would happen.
func TestCompaction_DryRun(t *testing.T) {
	b := newBench(t)
	tt := b.createTable("readings", tableOptions{})
	for range 3 {
		tt.append(tt.rows("A", 50))
	}
	head := tt.load().CurrentSnapshot().SnapshotID
	job, err := b.operations().Run(t.Context(), caller(), tt.name(), maintenance.RunRequest{Kind: maintenance.Compaction, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if job.State != maintenance.Queued || job.Phase != "dry-run" || job.Outcome.FilesReplaced != 3 || job.Outcome.FilesBefore != 3 || job.Reason.Code != maintenance.CodePlanned {
		t.Errorf("dry run: %+v", job)
	}
	b.drain(b.worker(nil))
	if tt.load().CurrentSnapshot().SnapshotID != head {
		t.Error("a dry run changed the table")
	}
}

// A file may leave out a column of which its partition has the value, so the rewrite is told which columns these are.
func TestCompaction_NamesWhatThePartitionHas(t *testing.T) {
	b := newBench(t)
	tt, want := crashTable(b, 0)
	part, _ := tt.load().Schema().FindFieldByName("part")
	var told [][]int
	job := tt.run(b.worker(func(c *maintenance.Config) {
		c.Cluster = func(ctx context.Context, j layout.Job) (layout.Result, error) {
			told = append(told, j.InPartition)
			return layout.Cluster(ctx, j)
		}
	}))
	expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
	if len(told) != 2 || !slices.Equal(told[0], []int{part.ID}) || !slices.Equal(told[1], []int{part.ID}) {
		t.Errorf("told %v, the column is %d", told, part.ID)
	}
	tt.expect(want)
}
