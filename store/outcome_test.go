package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"catalogd/catalog"
	"catalogd/internal/deflate"
	"catalogd/internal/fault"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/vending"
)

// outcomeBench is one table, seen by a store behind a proxy and by one that is not.
type outcomeBench struct {
	proxy  *proxy
	far    *Store // behind the proxy
	near   *Store
	record catalog.TableRecord
	home   uuid.UUID // the warehouse
}

func newOutcomeBench(t *testing.T) *outcomeBench { return newOutcomeBenchBy(t, false) }

// newOutcomeBenchBy is one whose far store speaks as to a pooler, or not.
func newOutcomeBenchBy(t *testing.T, simple bool) *outcomeBench {
	t.Helper()
	database := pgtest.Database(t)
	proxy, url := startProxy(t, database)
	b := &outcomeBench{proxy: proxy, far: openAt(t, Config{URL: url, SimpleProtocol: simple}), near: openAt(t, Config{URL: database}), home: uuid.New()}
	fact := func() catalog.Fact { return catalog.Fact{ID: uuid.New(), At: time.Now(), Operation: "set-up"} }
	w := catalog.Warehouse{ID: b.home, Name: "w", Location: "s3://bucket/base", Storage: vending.Profile{StorageType: "S3"}}
	if err := b.near.CreateWarehouse(t.Context(), w, fact()); err != nil {
		t.Fatal(err)
	}
	n := catalog.NamespaceRecord{ID: uuid.New(), Levels: catalog.Namespace{"a"}}
	if err := b.near.CreateNamespace(t.Context(), catalog.NamespaceCreate{Record: n, WarehouseID: b.home, Fact: fact()}); err != nil {
		t.Fatal(err)
	}
	id := uuid.New()
	b.record = catalog.TableRecord{
		ID: uuid.New(), Kind: catalog.KindTable, NamespaceID: n.ID, Ident: catalog.Identifier{Namespace: n.Levels, Name: "t"}, UUID: id,
		Location: "s3://bucket/base/" + id.String(), MetadataLocation: "m0", FormatVersion: 2,
	}
	err := b.near.CommitPointers(t.Context(), []catalog.PointerChange{{Record: b.record, WarehouseID: b.home, Fact: fact()}}, catalog.Fence{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *outcomeBench) swap() catalog.PointerChange {
	change := catalog.PointerChange{
		Record: b.record, WarehouseID: b.home, Old: b.record.MetadataLocation,
		Fact: catalog.Fact{ID: uuid.New(), At: time.Now(), Operation: "commit-table"},
	}
	change.Record.MetadataLocation = uuid.NewString()
	return change
}

func (b *outcomeBench) pointer(t *testing.T) string {
	t.Helper()
	res, err := b.near.Resolve(t.Context(), catalog.Lookup{Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: "t"})
	if err != nil || res.Table == nil {
		t.Fatalf("resolve: %v, %+v", err, res)
	}
	return res.Table.MetadataLocation
}

func (b *outcomeBench) commit(t *testing.T, change catalog.PointerChange) error {
	t.Helper()
	return b.far.CommitPointers(t.Context(), []catalog.PointerChange{change}, catalog.Fence{})
}

// awaitLockedOut asks the database until one of its sessions waits for a lock; ended tells of one that will not.
func (b *outcomeBench) awaitLockedOut(t *testing.T, ended <-chan error) {
	t.Helper()
	for waiting := 0; waiting == 0; {
		select {
		case err := <-ended:
			t.Fatalf("ended and waited for no lock: %v", err)
		default:
		}
		err := b.near.pool.QueryRow(t.Context(), `
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bothProtocols runs a test on a store that prepares statements and on one that speaks as to a pooler.
func bothProtocols(t *testing.T, test func(t *testing.T, b *outcomeBench)) {
	for name, simple := range map[string]bool{"prepared": false, "pooler": true} {
		t.Run(name, func(t *testing.T) { test(t, newOutcomeBenchBy(t, simple)) })
	}
}

// An answer whose end is missing is none: the database commits behind the statements' own answers.
func TestField_C246_AnswerLostAfterTheCommit(t *testing.T) {
	for _, at := range []cut{loseAnswer, loseEnd} {
		bothProtocols(t, func(t *testing.T, b *outcomeBench) {
			change := b.swap()
			b.proxy.atNextCommit(at)
			if err := b.commit(t, change); !fault.Is(err, fault.CommitUnknown) {
				t.Fatalf("got %v, want an unknown outcome", err)
			}
			<-b.proxy.answered
			landed, err := b.far.CommitLanded(t.Context(), change.Fact.ID)
			if err != nil || !landed {
				t.Fatalf("landed %t, %v; Postgres had committed", landed, err)
			}
			if got := b.pointer(t); got != change.Record.MetadataLocation {
				t.Errorf("pointer %s", got)
			}
		})
	}
}

func TestField_C246_CommitLostOnItsWay(t *testing.T) {
	bothProtocols(t, func(t *testing.T, b *outcomeBench) {
		change := b.swap()
		b.proxy.atNextCommit(loseRequest)
		if err := b.commit(t, change); !fault.Is(err, fault.CommitUnknown) {
			t.Fatalf("got %v, want an unknown outcome", err)
		}
		landed, err := b.far.CommitLanded(t.Context(), change.Fact.ID)
		if err != nil || landed {
			t.Fatalf("landed %t, %v; Postgres never saw the end of it", landed, err)
		}
		if got := b.pointer(t); got != b.record.MetadataLocation {
			t.Errorf("pointer %s", got)
		}
		// Whoever tries again under the same id must not land after it was said that nothing would.
		if err := b.commit(t, change); !fault.Is(err, fault.CommitRace) {
			t.Errorf("the same commit once more: %v", err)
		}
	})
}

// TestCommit_BehindALockIsCalledOff has a commit whose time is over while it waits for its row: who asks is told that it did
// not land, and it never does.
func TestCommit_BehindALockIsCalledOff(t *testing.T) {
	bothProtocols(t, func(t *testing.T, b *outcomeBench) {
		held, err := b.near.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = held.Rollback(context.Background()) }()
		if _, err := held.Exec(t.Context(), "SELECT id FROM tables FOR UPDATE"); err != nil {
			t.Fatal(err)
		}
		change := b.swap()
		hurried, over := context.WithCancel(t.Context())
		defer over()
		told := make(chan error, 1)
		go func() { told <- b.far.CommitPointers(hurried, []catalog.PointerChange{change}, catalog.Fence{}) }()
		b.awaitLockedOut(t, told)
		over()
		if err := <-told; !fault.Is(err, fault.CommitUnknown) {
			t.Fatalf("got %v, want an unknown outcome", err)
		}
		if landed, err := b.near.CommitLanded(t.Context(), change.Fact.ID); err != nil || landed {
			t.Fatalf("landed %t, %v; it stands behind a lock", landed, err)
		}
		if err := held.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.commit(t, b.swap()); err != nil { // behind it, when it is still there
			t.Fatal(err)
		}
		if landed, err := b.near.CommitLanded(t.Context(), change.Fact.ID); err != nil || landed {
			t.Errorf("landed %t, %v after all", landed, err)
		}
	})
}

// TestCommit_LostRaceWritesNothing: the parts of a commit's statement, and what is sent with it, hang on the pointer.
func TestCommit_LostRaceWritesNothing(t *testing.T) {
	bothProtocols(t, func(t *testing.T, b *outcomeBench) {
		kept := b.swap()
		kept.Packed = deflate.Pack([]byte("the text"))
		if err := b.commit(t, kept); err != nil {
			t.Fatal(err)
		}
		look := func() (all string) {
			err := b.near.pool.QueryRow(t.Context(), `
SELECT concat_ws(' ', (SELECT count(*) FROM events), (SELECT count(*) FROM audit), (SELECT count(*) FROM outdated_metadata),
                 (SELECT count(*) FROM idempotency_keys), (SELECT string_agg(metadata_location, ' ') FROM table_metadata),
                 (SELECT string_agg(enabled::text, ' ') FROM table_maintenance), (SELECT string_agg(version::text, ' ') FROM tables))`).Scan(&all)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		before := look()
		for name, packed := range map[string]deflate.Packed{"with a copy": deflate.Pack([]byte("another")), "without": {}} {
			on := true
			lost := b.swap() // from the pointer before
			lost.Packed, lost.Outdated, lost.Maintenance = packed, []string{"s3://bucket/old"}, &on
			lost.Fact.Caller.Key.ID, lost.Fact.Outcome = uuid.New(), &catalog.Outcome{}
			if err := b.commit(t, lost); !fault.Is(err, fault.CommitRace) {
				t.Fatalf("%s: %v", name, err)
			}
			if after := look(); after != before {
				t.Errorf("%s: %s, before %s", name, after, before)
			}
		}
	})
}

// kindCase is an error of the driver's and the kind of fault that is made of it.
type kindCase struct {
	name string
	err  error
	kind fault.Kind
}

func wantKinds(t *testing.T, made func(error) error, cases []kindCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := fault.KindOf(made(c.err)); got != c.kind {
				t.Errorf("got %q, want %q", got, c.kind)
			}
		})
	}
}

// What failed before the commit was sent is no unknown outcome, and what the database refused is none either.
func TestSentOutcome(t *testing.T) {
	wantKinds(t, sentOutcome, []kindCase{
		{"landed", nil, ""},
		{"an error proves the rollback", &pgconn.PgError{SeverityUnlocalized: "ERROR", Code: stateDeadlock}, fault.Internal},
		{"a session that was ended", &pgconn.PgError{SeverityUnlocalized: "FATAL", Code: stateAdminShutdown}, fault.CommitUnknown},
		{"an end of the stream", io.ErrUnexpectedEOF, fault.CommitUnknown},
		{"a preparation that failed", pgx.ErrPreprocessingBatch{}, fault.Internal},
	})
}

// TestCommitLanded_WaitsForACommitOnItsWay asks while the COMMIT is still travelling: nobody knows yet, and the
// answer comes when it has arrived.
// A database that is being failed over answers as a standby for a while: that passes, and is no defect of the server.
func TestReadOnlyDatabaseIsBusy(t *testing.T) {
	u, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("default_transaction_read_only", "on")
	u.RawQuery = query.Encode()
	s := openAt(t, Config{URL: u.String()})
	err = s.RecordDenial(t.Context(), catalog.Denial{At: time.Now(), Operation: "x"})
	if !fault.Is(err, fault.Busy) {
		t.Errorf("got %v (%s)", err, fault.KindOf(err))
	}
	record := catalog.TableRecord{ID: uuid.New(), Kind: catalog.KindTable, MetadataLocation: "s3://bucket/new"}
	err = s.CommitPointers(t.Context(), []catalog.PointerChange{{Record: record, Old: "s3://bucket/old", Fact: catalog.Fact{ID: uuid.New(), At: time.Now()}}}, catalog.Fence{})
	if !fault.Is(err, fault.Busy) {
		t.Errorf("a commit: %v (%s)", err, fault.KindOf(err))
	}
}

func TestCommitLanded_WaitsForACommitOnItsWay(t *testing.T) {
	b := newOutcomeBench(t)
	change := b.swap()
	b.proxy.atNextCommit(hold)
	if err := b.commit(t, change); !fault.Is(err, fault.CommitUnknown) {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
	<-b.proxy.held
	impatient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if landed, err := b.near.CommitLanded(impatient, change.Fact.ID); err == nil {
		t.Fatalf("landed %t was answered while nobody could know", landed)
	}
	type answer struct {
		landed bool
		err    error
	}
	asked := make(chan answer)
	go func() {
		landed, err := b.near.CommitLanded(t.Context(), change.Fact.ID)
		asked <- answer{landed, err}
	}()
	close(b.proxy.released)
	if a := <-asked; a.err != nil || !a.landed {
		t.Fatalf("landed %t, %v", a.landed, a.err)
	}
	if got := b.pointer(t); got != change.Record.MetadataLocation {
		t.Errorf("pointer %s", got)
	}
}

func TestInTx_UnknownOutcomeIsNotTriedAgain(t *testing.T) {
	b := newOutcomeBench(t)
	runs := 0
	b.proxy.atNextCommit(loseRequest)
	err := b.far.InTx(t.Context(), func(tx pgx.Tx) error {
		runs++
		_, err := tx.Exec(t.Context(), "UPDATE tables SET version = version + 1")
		return err
	})
	if !fault.Is(err, fault.CommitUnknown) || runs != 1 {
		t.Fatalf("%d runs, %v", runs, err)
	}
}

func TestInTx_RunsAgainWhatLost(t *testing.T) {
	s := openStore(t)
	for _, tt := range []struct {
		name string
		fail func(tx pgx.Tx) error
	}{
		{"serialization failure", func(pgx.Tx) error { return &pgconn.PgError{Code: stateSerializationFailure} }},
		{"deadlock", func(pgx.Tx) error { return &pgconn.PgError{Code: stateDeadlock} }},
		{"ended session", func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
			return err
		}},
		{"cut connection", func(tx pgx.Tx) error {
			tx.Conn().PgConn().Conn().Close()
			_, err := tx.Exec(t.Context(), "SELECT 1")
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs := 0
			err := s.InTx(t.Context(), func(tx pgx.Tx) error {
				if runs++; runs < 3 {
					return tt.fail(tx)
				}
				return nil
			})
			if err != nil || runs != 3 {
				t.Errorf("%d runs, %v", runs, err)
			}
			runs = 0
			err = s.InTx(t.Context(), func(tx pgx.Tx) error {
				runs++
				return tt.fail(tx)
			})
			if !fault.Is(err, fault.Busy) || runs != txAttemptsMax {
				t.Errorf("without end: %d runs, %v", runs, err)
			}
		})
	}
}

// A defect while many rows are read at one moment costs no connection: a pool that loses one each time would stand still.
func TestAtOneMoment_APanicGivesTheConnectionBack(t *testing.T) {
	s := openAt(t, Config{URL: pgtest.Database(t), MaxConns: 1})
	func() {
		defer func() { _ = recover() }()
		_ = s.atOneMoment(t.Context(), func(q querier) error {
			if _, err := q.Exec(t.Context(), "SELECT 1"); err != nil {
				t.Fatal(err)
			}
			panic("a defect")
		})
	}()
	if held := s.pool.Stat().AcquiredConns(); held != 0 {
		t.Fatalf("%d connections are still held", held)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestInTx_RollsBackWhatFailed(t *testing.T) {
	s := openStore(t)
	refused := fault.New(fault.Forbidden, "no")
	runs := 0
	err := s.InTx(t.Context(), func(tx pgx.Tx) error {
		runs++
		if _, err := tx.Exec(t.Context(), "INSERT INTO events (id, at, operation) VALUES (gen_random_uuid(), now(), 'x')"); err != nil {
			return err
		}
		return refused
	})
	if !errors.Is(err, refused) || runs != 1 {
		t.Fatalf("%d runs, %v", runs, err)
	}
	var n int
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM events").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d events, %v", n, err)
	}
}

func TestInTx_EndedRequestSendsNoCommit(t *testing.T) {
	s := openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO events (id, at, operation) VALUES (gen_random_uuid(), now(), 'x')")
		cancel()
		return err
	})
	if !fault.Is(err, fault.Busy) {
		t.Fatalf("got %v, want a certain refusal", err)
	}
	var n int
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM events").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d events, %v", n, err)
	}
}

// TestInTx_RealDeadlock has two transactions that lock two rows in opposite orders; both succeed in the end.
func TestInTx_RealDeadlock(t *testing.T) {
	s := openStore(t)
	ids := []uuid.UUID{uuid.New(), uuid.New()}
	for _, id := range ids {
		if _, err := s.pool.Exec(t.Context(), "INSERT INTO events (id, at, operation) VALUES ($1, now(), 'x')", id); err != nil {
			t.Fatal(err)
		}
	}
	var both sync.WaitGroup // each holds its first row before either wants its second
	both.Add(2)
	done := make(chan error)
	for i := range 2 {
		go func() {
			first := true
			done <- s.InTx(t.Context(), func(tx pgx.Tx) error {
				for n, id := range []uuid.UUID{ids[i], ids[1-i]} {
					if _, err := tx.Exec(t.Context(), "UPDATE events SET operation = operation || 'x' WHERE id = $1", id); err != nil {
						return err
					}
					if n == 0 && first {
						first = false
						both.Done()
						both.Wait()
					}
				}
				return nil
			})
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var operation string
	if err := s.pool.QueryRow(t.Context(), "SELECT string_agg(DISTINCT operation, ',') FROM events").Scan(&operation); err != nil || operation != "xxx" {
		t.Errorf("operations %q, %v", operation, err)
	}
}

func TestCommitOutcome(t *testing.T) {
	wantKinds(t, commitOutcome, []kindCase{
		{"landed", nil, ""},
		{"an error proves the rollback", &pgconn.PgError{SeverityUnlocalized: "ERROR", Code: stateUniqueViolation}, fault.Internal},
		{"a session that was ended proves nothing", &pgconn.PgError{SeverityUnlocalized: "FATAL", Code: stateAdminShutdown}, fault.CommitUnknown},
		{"a crash proves nothing", &pgconn.PgError{SeverityUnlocalized: "PANIC"}, fault.CommitUnknown},
		{"an end of the stream", io.ErrUnexpectedEOF, fault.CommitUnknown},
		{"a deadline", context.DeadlineExceeded, fault.CommitUnknown},
		{"a rollback instead", pgx.ErrTxCommitRollback, fault.Internal},
	})
}

func TestTranslate(t *testing.T) {
	state := func(code, constraint string) error { return &pgconn.PgError{Code: code, ConstraintName: constraint} }
	wantKinds(t, translate, []kindCase{
		{"nothing", nil, ""},
		{"a fault stays", fault.New(fault.Forbidden, "no"), fault.Forbidden},
		{"a name that is taken", state(stateUniqueViolation, "tables_name_key"), fault.AlreadyExists},
		{"a place that is taken", state(stateUniqueViolation, "locations_pkey"), fault.BadRequest},
		{"a namespace that is gone", state(stateForeignKeyViolation, "tables_namespace_fkey"), fault.NoSuchNamespace},
		{"an event that is taken", state(stateUniqueViolation, "events_pkey"), fault.CommitRace},
		{"a constraint that nobody named", state(stateUniqueViolation, "tables_pkey"), fault.Internal},
		{"U+0000 in a name", state(stateBadText, ""), fault.BadRequest},
		{"U+0000 in a property", state(stateBadJSONText, ""), fault.BadRequest},
		{"a name that no index holds", state(stateLimitExceeded, ""), fault.BadRequest},
		{"a starting database", state(stateCannotConnectNow, ""), fault.Busy},
		{"too many connections", state(stateTooManyConnections, ""), fault.Busy},
		{"an old schema", state(stateUndefinedTable, ""), fault.Internal},
		{"an ended request", context.Canceled, fault.Busy},
		{"a broken connection", io.ErrUnexpectedEOF, fault.Busy},
		{"a connection that broke some messages ago", fmt.Errorf("receive: %w", pgconn.ErrConnClosed), fault.Busy},
		{"a defect", errors.New("boom"), fault.Internal},
	})
}
