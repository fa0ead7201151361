package maintenance_test

import (
	"context"
	"iter"
	"maps"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"catalogd/catalog"
	"catalogd/maintenance"
	"catalogd/maintenance/layout"
)

// meddling puts other people's commits into the worker's way: after the files were rewritten, or just before the
// worker's commit arrives.
type meddling struct {
	maintenance.Tables
	before func(try int) // the worker's commit
	tries  int
}

func (m *meddling) CommitTable(ctx context.Context, c catalog.Caller, r catalog.CommitTableRequest) (catalog.LoadedTable, error) {
	m.tries++
	if m.before != nil {
		m.before(m.tries)
	}
	return m.Tables.CommitTable(ctx, c, r)
}

// afterRewrite gives a worker that calls meddle once, when the first group's files are written.
func (b *bench) afterRewrite(meddle func()) *maintenance.Worker {
	var once sync.Once
	return b.worker(func(c *maintenance.Config) {
		c.Cluster = func(ctx context.Context, j layout.Job) (layout.Result, error) {
			r, err := layout.Cluster(ctx, j)
			once.Do(meddle)
			return r, err
		}
	})
}

// beforeCommit gives a worker before whose commits meddle is called.
func (b *bench) beforeCommit(meddle func(try int)) *maintenance.Worker {
	return b.worker(func(c *maintenance.Config) { c.Tables = &meddling{Tables: c.Tables, before: meddle} })
}

// twoPartitions makes a table with three appends to each of the partitions A and B.
func twoPartitions(b *bench, o tableOptions) (*testTable, map[int64]row) {
	b.t.Helper()
	tt := b.createTable("readings", o)
	want := map[int64]row{}
	for range 3 {
		for _, part := range []string{"A", "B"} {
			rows := tt.rows(part, 40)
			maps.Copy(want, byID(rows))
			tt.append(rows)
		}
	}
	return tt, want
}

func TestRace_AppendsBeforeEachCommit(t *testing.T) {
	b := newBench(t)
	tt, want := twoPartitions(b, tableOptions{})
	job := tt.run(b.beforeCommit(func(try int) {
		if try <= 3 {
			rows := tt.rows("A", 10)
			maps.Copy(want, byID(rows))
			tt.append(rows)
		}
	}))
	expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
	if job.Outcome.Conflicts != 3 || job.Outcome.GroupsDropped != 0 || job.Outcome.RowsAfter != 240 {
		t.Errorf("outcome: %+v", job.Outcome)
	}
	tt.expect(want)
	tt.expectNoGarbage()
}

// A copy-on-write delete replaces a file of one group: that group is given up, the other is not.
func TestRace_DeleteOfAReplacedFile(t *testing.T) {
	for name, worker := range map[string]func(b *bench, meddle func()) *maintenance.Worker{
		"after the rewrite": (*bench).afterRewrite,
		"before the commit": func(b *bench, meddle func()) *maintenance.Worker {
			return b.beforeCommit(func(try int) {
				if try == 1 {
					meddle()
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			tt, want := twoPartitions(b, tableOptions{})
			job := tt.run(worker(b, func() {
				tt.transact("delete", func(tx *table.Transaction) error {
					return tx.Delete(t.Context(), iceberg.EqualTo(iceberg.Reference("id"), int64(5)), nil)
				})
				delete(want, 5)
			}))
			expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
			if job.Outcome.GroupsDropped != 1 || job.Outcome.FilesReplaced != 3 {
				t.Errorf("outcome: %+v", job.Outcome)
			}
			tt.expect(want)
			tt.expectNoGarbage()
		})
	}
}

// Every group is gone: the job plans anew in its next attempt.
func TestRace_OverwriteOfEverything(t *testing.T) {
	b := newBench(t)
	tt, _ := twoPartitions(b, tableOptions{})
	rows := tt.rows("A", 7)
	w := b.afterRewrite(func() { tt.overwrite(rows) })
	job := tt.enqueue()
	tt.drain(w)
	if got := tt.job(job.ID); got.State != maintenance.Queued || got.Reason.Code != maintenance.CodeConflict {
		t.Fatalf("after the conflict: %+v", got)
	}
	tt.expectNoGarbage()
	tt.hasten()
	tt.drain(w)
	expectState(t, tt.job(job.ID), maintenance.Succeeded, maintenance.CodeDone) // one fresh file, asked for
	tt.expect(byID(rows))
	tt.expectNoGarbage()
}

// A table that gets another name is the same table: its job goes on under that name.
func TestRace_Rename(t *testing.T) {
	b := newBench(t)
	tt, want := twoPartitions(b, tableOptions{})
	to := catalog.Identifier{Namespace: tt.ident.Namespace, Name: "renamed"}
	w := b.afterRewrite(func() {
		err := b.service.RenameTable(t.Context(), caller(), catalog.RenameTableRequest{Warehouse: "w", From: tt.ident, To: to})
		if err != nil {
			t.Error(err)
		}
		tt.ident = to
	})
	job := tt.enqueue()
	tt.drain(w)
	if got := tt.job(job.ID); got.State != maintenance.Queued || got.Reason.Code != maintenance.CodeConflict {
		t.Fatalf("after the rename: %s %s %s", got.State, got.Reason.Code, got.Reason.Message)
	}
	tt.hasten()
	tt.drain(w)
	expectState(t, tt.job(job.ID), maintenance.Succeeded, maintenance.CodeDone)
	tt.expect(want)
	tt.expectNoGarbage()
}

// overwrite puts rows in the place of all that there are.
func (tt *testTable) overwrite(rows []row) {
	tt.t.Helper()
	tt.retry("overwrite", func() error {
		now := tt.load()
		batch := record(tt.t, now.Schema(), rows)
		defer batch.Release()
		reader, err := array.NewRecordReader(batch.Schema(), []arrow.RecordBatch{batch})
		if err != nil {
			return err
		}
		defer reader.Release()
		_, err = now.Overwrite(tt.t.Context(), reader, nil)
		return err
	})
}

// hasten makes a waiting job due, as a second request does.
func (tt *testTable) hasten() { tt.t.Helper(); tt.enqueue() }

// Position deletes that came between the reading and the commit would be lost with the files that they are for.
func TestField_C203_PositionDeleteDuringTheRewrite(t *testing.T) {
	b := newBench(t)
	tt, want := twoPartitions(b, tableOptions{properties: map[string]string{"write.delete.mode": "merge-on-read"}})
	job := tt.run(b.afterRewrite(func() {
		tt.transact("delete", func(tx *table.Transaction) error {
			return tx.Delete(t.Context(), iceberg.EqualTo(iceberg.Reference("id"), int64(5)), nil)
		})
		delete(want, 5)
	}))
	expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
	if job.Outcome.GroupsDropped != 1 {
		t.Errorf("outcome: %+v", job.Outcome)
	}
	tt.expect(want)
	tt.expectNoGarbage()
	expectState(t, tt.run(b.worker(nil)), maintenance.Refused, maintenance.CodeDeleteFiles)
	tt.expect(want)
}

// Equality deletes that came between still apply: the new files carry the sequence number of what was read.
func TestField_C204_EqualityDeleteDuringTheRewrite(t *testing.T) {
	b := newBench(t)
	tt, want := twoPartitions(b, tableOptions{fields: []any{}})
	job := tt.run(b.afterRewrite(func() {
		tt.transact("equality delete", func(tx *table.Transaction) error {
			return tx.CommitEqualityDeletes(t.Context(), []int{1}, idsOf(t, 5, 77), nil)
		})
		delete(want, 5)
		delete(want, 77)
		late := tt.rows("A", 3)
		late[0].ID = 5 // inserted again after the delete
		maps.Copy(want, byID(late))
		tt.append(late)
	}))
	expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
	if job.Outcome.GroupsDropped != 0 || job.Outcome.FilesReplaced != 6 {
		t.Errorf("outcome: %+v", job.Outcome)
	}
	tt.expect(want)
	tt.expectNoGarbage()
}

func idsOf(t *testing.T, ids ...int64) iter.Seq2[arrow.RecordBatch, error] {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{
		Name: "id", Type: arrow.PrimitiveTypes.Int64, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"1"}),
	}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues(ids, nil)
	batch := b.NewRecordBatch()
	return func(yield func(arrow.RecordBatch, error) bool) { yield(batch, nil) }
}

// Schema changes while a rewrite runs: the new files are by field id and stay right.
func TestField_C239_SchemaChangesDuringTheRewrite(t *testing.T) {
	for name, change := range map[string]func(*table.UpdateSchema) *table.UpdateSchema{
		"add": func(u *table.UpdateSchema) *table.UpdateSchema {
			return u.AddColumn([]string{"extra"}, iceberg.PrimitiveTypes.String, "", false, nil)
		},
		"rename": func(u *table.UpdateSchema) *table.UpdateSchema { return u.RenameColumn([]string{"value"}, "reading") },
		"drop":   func(u *table.UpdateSchema) *table.UpdateSchema { return u.DeleteColumn([]string{"value"}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			tt, want := twoPartitions(b, tableOptions{})
			job := tt.run(b.afterRewrite(func() {
				tt.transact(name, func(tx *table.Transaction) error { return change(tx.UpdateSchema(true, false)).Commit() })
			}))
			expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
			got := tt.read()
			if len(got) != len(want) {
				t.Errorf("%d rows, want %d", len(got), len(want))
			}
			for id, r := range want {
				if name != "add" {
					r.Value = 0 // read by its old name
				}
				if got[id] != r {
					t.Fatalf("row %d: %+v, want %+v", id, got[id], r)
				}
			}
			tt.expectNoGarbage()
		})
	}
}

// The partition spec changes while a rewrite runs: the new files keep the spec of their partition.
func TestField_C239_SpecChangesDuringTheRewrite(t *testing.T) {
	b := newBench(t)
	tt, want := twoPartitions(b, tableOptions{})
	job := tt.run(b.afterRewrite(func() {
		tt.transact("spec", func(tx *table.Transaction) error {
			return tx.UpdateSpec(true).AddField("sensor", iceberg.BucketTransform{NumBuckets: 4}, "bucket").Commit()
		})
		rows := tt.rows("A", 20)
		maps.Copy(want, byID(rows))
		tt.append(rows)
	}))
	expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
	tt.expect(want)
	tt.expectNoGarbage()
	expectState(t, tt.run(b.worker(nil)), maintenance.Refused, maintenance.CodeOldSpecs)
	tt.expect(want)
}
