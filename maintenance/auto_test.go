package maintenance_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/jackc/pgx/v5"

	"catalogd/internal/fault"
	"catalogd/maintenance"
)

// dueNow makes every look that is only spaced from the last one due.
func (b *bench) dueNow() {
	b.t.Helper()
	err := b.store.InTx(b.t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), `UPDATE table_maintenance SET checked_at = now() - interval '1 minute'`)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) once(w *maintenance.Worker) maintenance.Did {
	b.t.Helper()
	b.dueNow()
	did, err := w.RunOnce(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return did
}

// A table whose setting is on is clustered by itself when enough fragments have gathered, and then left in peace.
func TestAutomatic_RunsWhenFragmentsHaveGathered(t *testing.T) {
	b := newBench(t)
	tt := b.createTable("readings", tableOptions{properties: map[string]string{
		"catalogd.maintenance.enabled": "true", "catalogd.maintenance.min-interval-seconds": "3600",
	}})
	w := b.worker(nil)
	for range 4 {
		tt.append(tt.rows("A", 10))
	}
	if did := b.once(w); did.Looked != 1 || did.Enqueued != 0 || did.Job != nil {
		t.Fatalf("four fragments: %+v", did)
	}
	if did := b.once(w); did.Looked != 0 {
		t.Fatalf("nothing has changed: %+v", did)
	}
	tt.append(tt.rows("A", 10))
	did := b.once(w)
	if did.Looked != 1 || did.Enqueued != 1 || did.Job == nil || did.Job.Trigger != maintenance.Automatic {
		t.Fatalf("five fragments: %+v", did)
	}
	expectState(t, tt.job(did.Job.ID), maintenance.Succeeded, maintenance.CodeDone)
	// The run's own commit is one more reason to look; there is nothing to do, and not so soon.
	if did := b.once(w); did.Looked != 1 || did.Job != nil {
		t.Fatalf("after the run: %+v", did)
	}
	status, err := b.operations().Show(t.Context(), caller(), tt.name())
	if err != nil {
		t.Fatal(err)
	}
	if status.Look.Reason.Code != maintenance.CodeMinInterval || status.NextLook.Before(time.Now().Add(50*time.Minute)) || len(status.Jobs) != 1 {
		t.Fatalf("status: %+v", status)
	}
	for range 6 {
		tt.append(tt.rows("A", 10))
	}
	if did := b.once(w); did.Looked != 0 {
		t.Fatalf("within min-interval: %+v", did)
	}
	if n := len(tt.dataFiles()); n != 7 {
		t.Errorf("%d data files, want 7", n)
	}
}

// A table that is switched on by command alone is looked at too; switched off, it is not.
func TestAutomatic_SwitchedByCommand(t *testing.T) {
	b := newBench(t)
	tt := b.createTable("readings", tableOptions{})
	for range 5 {
		tt.append(tt.rows("A", 10))
	}
	w := b.worker(nil)
	if did := b.once(w); did.Looked != 0 {
		t.Fatalf("not switched on: %+v", did)
	}
	tt.set(`{"enabled": true}`)
	if did := b.once(w); did.Looked != 1 || did.Enqueued != 1 || did.Job == nil {
		t.Fatalf("switched on: %+v", did)
	}
	tt.set(`{"enabled": "false"}`)
	tt.transact("properties", func(tx *table.Transaction) error {
		return tx.SetProperties(iceberg.Properties{"catalogd.maintenance.enabled": "true"})
	})
	if did := b.once(w); did.Looked != 0 {
		t.Fatalf("switched off by command: %+v", did)
	}
	tt.set(`{"enabled": null}`)
	if did := b.once(w); did.Looked != 1 {
		t.Fatalf("the property holds again: %+v", did)
	}
}

func (tt *testTable) set(settings string) maintenance.Status {
	tt.t.Helper()
	status, err := tt.trySet(settings)
	if err != nil {
		tt.t.Fatal(err)
	}
	return status
}

func (tt *testTable) trySet(settings string) (maintenance.Status, error) {
	tt.t.Helper()
	var body map[string]json.RawMessage
	if err := json.Unmarshal([]byte(settings), &body); err != nil {
		tt.t.Fatal(err)
	}
	return tt.operations().Set(tt.t.Context(), caller(), tt.name(), body)
}

// Settings show their value and where it comes from; what could not work is refused when it is set.
func TestSettings_SourcesAndRefusals(t *testing.T) {
	b := newBench(t)
	tt := b.createTable("readings", tableOptions{properties: map[string]string{
		"catalogd.maintenance.curve": "zorder", "write.target-file-size-bytes": "1000",
	}})
	status := tt.set(`{"strategy": "z-order", "row-group-rows": 5000}`)
	want := map[string][2]string{
		"enabled": {"false", "default"}, "strategy": {"z-order", "maintenance-set"}, "row-group-rows": {"5000", "maintenance-set"},
		"curve":                  {"zorder", "table-property catalogd.maintenance.curve"},
		"target-file-size-bytes": {"1048576", "table-property write.target-file-size-bytes"},
		"cluster-columns":        {"", "default"}, "min-interval-seconds": {"60", "default"},
	}
	for _, s := range status.Settings {
		if w := want[s.Key]; s.Value != w[0] || s.Source != w[1] {
			t.Errorf("%s: %q from %q, want %q from %q", s.Key, s.Value, s.Source, w[0], w[1])
		}
	}
	if len(status.Settings) != len(want) || len(status.Columns) != 2 || !status.FromOrder || status.Columns[0].Path != "sensor" || status.Blocked != nil {
		t.Errorf("status: %+v", status)
	}
	for settings, message := range map[string]string{
		`{"strategy": "random"}`:                      `"random" is none of auto`,
		`{"cluster-columns": "sensor,nothing"}`:       `cannot cluster by "nothing"`,
		`{"cluster-columns": ["part"]}`:               `cannot cluster by "part": constant within a partition`,
		`{"cluster-columns": {"a": 1}}`:               `must be a text`,
		`{"curve": "linear"}`:                         `z-order does not go with curve linear`,
		`{"target-file-size-bytes": 12}`:              `not a whole number from 1048576`,
		`{"colour": "red"}`:                           `unknown maintenance setting "colour"`,
		`{"enabled": "perhaps"}`:                      `neither true nor false`,
		`{}`:                                          `no maintenance setting is given`,
		`{"min-interval-seconds": -1}`:                `not a whole number`,
		`{"catalogd.maintenance.row-group-rows": 10}`: `not a whole number from 100`,
	} {
		_, err := tt.trySet(settings)
		if err == nil || !strings.Contains(fault.Message(err), message) {
			t.Errorf("%s: %v, want %q", settings, err, message)
		}
		if kind := fault.KindOf(err); err != nil && kind != fault.Validation && kind != fault.BadRequest {
			t.Errorf("%s: kind %s", settings, kind)
		}
	}
	status = tt.set(`{"cluster-columns": ["AT", "sensor"]}`)
	if len(status.Columns) != 2 || status.Columns[0].Path != "at" || status.FromOrder {
		t.Errorf("columns: %+v", status.Columns)
	}
	// A column that is gone makes the settings useless; switching off must still be possible.
	tt.transact("drop", func(tx *table.Transaction) error {
		if err := tx.ReplaceSortOrder(table.UnsortedSortOrder); err != nil {
			return err
		}
		return tx.UpdateSchema(true, true).DeleteColumn([]string{"at"}).Commit()
	})
	status, err := b.operations().Show(t.Context(), caller(), tt.name())
	if err != nil || status.Blocked == nil || !strings.Contains(status.Blocked.Message, `"AT"`) {
		t.Errorf("blocked: %+v, %v", status.Blocked, err)
	}
	expectState(t, tt.run(b.worker(nil)), maintenance.Refused, maintenance.CodeSettings)
	tt.set(`{"enabled": false}`)
}
