package store

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
)

// TestDropTable_KeepsWhatAPurgeNeeds looks at the row that a purge or an undrop will read.
func TestDropTable_KeepsWhatAPurgeNeeds(t *testing.T) {
	b := newOutcomeBench(t)
	fact := catalog.Fact{ID: uuid.New(), At: time.Now(), Operation: "drop-table"}
	err := b.near.DropTable(t.Context(), catalog.TableDrop{ID: b.record.ID, Kind: catalog.KindTable, Ident: b.record.Ident, PurgeRequested: true, Fact: fact})
	if err != nil {
		t.Fatal(err)
	}
	var got catalog.TableRecord
	var purge bool
	var owner string
	err = b.near.pool.QueryRow(t.Context(), `
SELECT dropped_tables.id, namespace, name, table_uuid, dropped_tables.location, metadata_location, purge_requested, owner_kind
FROM dropped_tables JOIN locations ON locations.owner_id = dropped_tables.id`).Scan(
		&got.ID, &got.Ident.Namespace, &got.Ident.Name, &got.UUID, &got.Location, &got.MetadataLocation, &purge, &owner)
	if err != nil {
		t.Fatal(err)
	}
	want := b.record
	if got.ID != want.ID || got.Ident.String() != "a.t" || got.UUID != want.UUID || got.Location != want.Location ||
		got.MetadataLocation != want.MetadataLocation || !purge || owner != ownerDropped {
		t.Errorf("kept %+v, purge %t, owner %s", got, purge, owner)
	}
}

// TestWriteFact_KeepsWhoAskedAndFromWhere looks at every column that an auditor will read.
func TestWriteFact_KeepsWhoAskedAndFromWhere(t *testing.T) {
	b := newOutcomeBench(t)
	change := b.swap()
	change.Fact.Subject, change.Fact.Warehouse, change.Fact.Securable = "a.t", b.home, b.record.ID
	change.Fact.Details = map[string]any{"snapshot-id": 12, "text": "a\u0001\"b"}
	change.Fact.Caller = catalog.Caller{
		Principal: auth.Principal{Name: "alice", TokenID: "jti-1"}, RequestID: "request-1", Client: "10.0.0.1",
	}
	if err := b.near.CommitPointers(t.Context(), []catalog.PointerChange{change}, catalog.Fence{}); err != nil {
		t.Fatal(err)
	}
	var event, audit string
	var at time.Time
	err := b.near.pool.QueryRow(t.Context(), `
SELECT concat_ws('|', e.operation, e.subject, e.warehouse_id = $2, e.securable_id = $3, e.details->>'snapshot-id'),
       concat_ws('|', a.request_id, a.principal, a.token_id, a.client, a.operation, a.subject, a.allowed, a.reason), e.at
FROM events e JOIN audit a ON a.event_id = e.id WHERE e.id = $1`, change.Fact.ID, b.home, b.record.ID).Scan(&event, &audit, &at)
	if err != nil {
		t.Fatal(err)
	}
	if event != "commit-table|a.t|t|t|12" {
		t.Errorf("event %s", event)
	}
	if audit != "request-1|alice|jti-1|10.0.0.1|commit-table|a.t|t|" {
		t.Errorf("audit %s", audit)
	}
	if !at.Equal(change.Fact.At.Truncate(time.Microsecond)) {
		t.Errorf("at %s, want %s", at, change.Fact.At)
	}
}

// TestDropTable_SweepsWhatHasLapsed: rows of unregistered and purged tables go when nothing needs them, a bounded number
// at a time.
func TestDropTable_SweepsWhatHasLapsed(t *testing.T) {
	b := newOutcomeBench(t)
	const lapsed = droppedSweepMax + 20
	_, err := b.near.pool.Exec(t.Context(), `
WITH made AS (
    INSERT INTO dropped_tables (id, warehouse_id, namespace, name, table_uuid, location, metadata_location, purge_requested, dropped_at,
                                unregistered_until, purged_until)
    SELECT gen_random_uuid(), $1, '{a}', 't', gen_random_uuid(), 's3://bucket/x/' || i, '', i % 2 = 0, now(),
           CASE WHEN i % 2 = 1 THEN now() - make_interval(secs => i) END, CASE WHEN i % 2 = 0 THEN now() - make_interval(secs => i) END
    FROM generate_series(1, $2::integer) AS i
    RETURNING id, location)
INSERT INTO locations (location, warehouse_id, owner_kind, owner_id) SELECT location || '/', $1, 'dropped', id FROM made`, b.home, lapsed)
	if err != nil {
		t.Fatal(err)
	}
	fact := catalog.Fact{ID: uuid.New(), At: time.Now(), Operation: "drop-table"}
	err = b.near.DropTable(t.Context(), catalog.TableDrop{ID: b.record.ID, Kind: catalog.KindTable, Ident: b.record.Ident, Fact: fact})
	if err != nil {
		t.Fatal(err)
	}
	var rows, places int
	err = b.near.pool.QueryRow(t.Context(), `
SELECT (SELECT count(*) FROM dropped_tables), (SELECT count(*) FROM locations WHERE owner_kind = 'dropped')`).Scan(&rows, &places)
	if err != nil {
		t.Fatal(err)
	}
	if want := lapsed - droppedSweepMax + 1; rows != want || places != want { // and the one that was dropped now
		t.Errorf("%d rows and %d places are left, want %d", rows, places, want)
	}
}

// TestStageTable_SweepsWhatHasLapsed: nothing else takes staged creates away that never came.
func TestStageTable_SweepsWhatHasLapsed(t *testing.T) {
	b := newOutcomeBench(t)
	stage := func() {
		t.Helper()
		id := uuid.New()
		err := b.near.StageTable(t.Context(), catalog.StagedTable{
			UUID: id, WarehouseID: b.home, Ident: catalog.Identifier{Namespace: catalog.Namespace{"a"}, Name: "s"},
			Location: "s3://bucket/base/" + id.String(), PrincipalID: uuid.New(), TTL: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	stage()
	stage()
	count := func() (staged, locations int) {
		t.Helper()
		err := b.near.pool.QueryRow(t.Context(), `
SELECT (SELECT count(*) FROM staged_tables), (SELECT count(*) FROM locations WHERE owner_kind = 'staged')`).Scan(&staged, &locations)
		if err != nil {
			t.Fatal(err)
		}
		return staged, locations
	}
	if staged, locations := count(); staged != 2 || locations != 2 {
		t.Fatalf("%d staged, %d locations", staged, locations)
	}
	if _, err := b.near.pool.Exec(t.Context(), `UPDATE staged_tables SET expires_at = now() - interval '11 hours'`); err != nil {
		t.Fatal(err)
	}
	stage() // the grace still runs
	if staged, locations := count(); staged != 3 || locations != 3 {
		t.Fatalf("within the grace: %d staged, %d locations", staged, locations)
	}
	if _, err := b.near.pool.Exec(t.Context(), `UPDATE staged_tables SET expires_at = now() - interval '13 hours'`); err != nil {
		t.Fatal(err)
	}
	stage()
	if staged, locations := count(); staged != 1 || locations != 1 {
		t.Errorf("after it: %d staged, %d locations", staged, locations)
	}
}
