package store

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// Lookups of tables by many requests at a time share round trips. While a statement is under way, those who come wait for
// the next one: the more of them it has, the less each costs. When it takes longer than lookupPatience, be it that the
// database is far away or that a connection hangs, the next one does not wait for it. A statement is sent after all of
// its members came, so it sees everything that had been committed when they did: nobody is given a pointer that is older
// than his question.

const (
	// lookupBatchesMax is how many statements are under way at a time, all but the last of them slow.
	lookupBatchesMax = 4
	// lookupPatience is how long a statement may be under way before the next one is sent beside it.
	lookupPatience = 5 * time.Millisecond
	// lookupMembersMax bounds the members of one statement.
	lookupMembersMax = 256
	// lookupRolesMax is how many roles a member names whose grants on its table it wants; beyond that it gets all grants.
	lookupRolesMax = 32
	// lookupSecondsMax bounds one statement; its members have deadlines of their own.
	lookupSecondsMax = 60 * time.Second
)

// wantedTables gives the epoch and one row for each member. The subquery makes the database look each name up by the
// index, whatever it guesses about their number; the arrays are subqueries so that it does not guess anew, and plan anew,
// for each number of members.
const (
	wantedTables = `
FROM access_epoch
CROSS JOIN unnest((SELECT $1::uuid[]), (SELECT $2::text[])) WITH ORDINALITY AS wanted (namespace, name, n)` + tableOfWanted
	wantedTablesOf = `
FROM access_epoch
CROSS JOIN unnest((SELECT $1::uuid[]), (SELECT $2::text[]), (SELECT $3::text[])) WITH ORDINALITY AS wanted (namespace, name, roles, n)` + tableOfWanted
)

const tableOfWanted = `
LEFT JOIN LATERAL (
    SELECT tables.id, tables.namespace_id, tables.kind, tables.name, tables.table_uuid, tables.location,
           tables.metadata_location, tables.format_version, tables.version, tables.owner_id
    FROM tables
    WHERE tables.namespace_id = wanted.namespace AND coalesce(tables.name_key, tables.name) = wanted.name
    LIMIT 1
) AS t ON true`

const foundColumns = `
SELECT wanted.n, access_epoch.value,
       t.id, t.namespace_id, t.kind, t.name, t.table_uuid, t.location, t.metadata_location, t.format_version, t.version, t.owner_id`

// sqlFindTables is for members of whom nobody wants grants, which is nearly always.
const sqlFindTables = foundColumns + `, NULL::json AS grants` + wantedTables

// Of a table that many roles have grants on, only those of the member's own roles are wanted, unless these are so many
// that naming them costs more: then all are.
const sqlFindTablesGrants = foundColumns + `, g.grants` + wantedTablesOf + `
LEFT JOIN LATERAL (
    SELECT json_agg(json_build_object('RoleID', held.role_id, 'Kind', t.kind, 'Privilege', held.privilege)) AS grants
    FROM (
        SELECT grants.role_id, grants.privilege FROM grants
        WHERE grants.role_id = ANY (wanted.roles::uuid[]) AND grants.securable_id = t.id AND grants.securable_kind = t.kind
        UNION ALL
        SELECT grants.role_id, grants.privilege FROM grants
        WHERE wanted.roles = '{}' AND grants.securable_id = t.id AND grants.securable_kind = t.kind
    ) AS held
) AS g ON true`

// everyRole names no role, as tableWanted has them, for all.
const everyRole = "{}"

// tableWanted asks for a table or view by its namespace's id, uuid.Nil for none, and its name as the database compares it.
type tableWanted struct {
	namespace uuid.UUID
	name      string
	roles     string // whose grants on the table are wanted too, as an array of ids reads in SQL: "" nobody's, everyRole all
}

// tableFound is the answer: what was there at the epoch.
type tableFound struct {
	epoch  int64
	record *catalog.TableRecord // without its namespace's levels; nil: nothing has the name
	grants []tableGrant
}

type tableGrant struct {
	RoleID    uuid.UUID
	Kind      authz.SecurableKind
	Privilege authz.Privilege
}

// lookups lets requests share statements.
type lookups struct {
	fetch func(ctx context.Context, wanted []tableWanted) ([]tableFound, error)

	ctx     context.Context //nolint:containedctx // of the statements, which belong to no single request
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	batches int // under way
	slow    int // of these, for longer than lookupPatience
	waiting []*lookupMember
}

// lookupMember is one who asks.
type lookupMember struct {
	wanted tableWanted
	batch  *lookupBatch // nil while it waits
	done   chan struct{}
	found  tableFound
	err    error
}

// lookupBatch is one statement under way.
type lookupBatch struct {
	present int // members that still want the answer
	cancel  context.CancelFunc
	timer   *time.Timer // of lookupPatience
	slow    bool
}

func newLookups(fetch func(ctx context.Context, wanted []tableWanted) ([]tableFound, error)) *lookups {
	l := &lookups{fetch: fetch}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// close ends the statements under way and waits for them. Who asks later is refused.
func (l *lookups) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.running.Wait()
}

// find asks together with others. An error is about the shared statement: whoever still wants to know asks alone.
func (l *lookups) find(ctx context.Context, wanted tableWanted) (tableFound, error) {
	m := &lookupMember{wanted: wanted, done: make(chan struct{})}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return tableFound{}, fault.New(fault.Busy, "the server is stopping")
	}
	l.waiting = append(l.waiting, m)
	l.begin()
	l.mu.Unlock()
	select {
	case <-m.done:
		return m.found, m.err
	case <-ctx.Done():
		l.leave(m)
		return tableFound{}, ctx.Err()
	}
}

// begin sends somebody with a statement for those who wait, unless one is on its way already. The lock is held.
func (l *lookups) begin() {
	if len(l.waiting) > 0 && l.batches == l.slow && l.batches < lookupBatchesMax {
		l.batches++
		l.running.Go(l.run)
	}
}

// leave takes a member out of those who wait. A statement that nobody waits for any more is ended.
func (l *lookups) leave(m *lookupMember) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.batch != nil {
		if m.batch.present--; m.batch.present == 0 {
			m.batch.cancel()
		}
		return
	}
	for i, other := range l.waiting {
		if other == m {
			l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
			return
		}
	}
}

// run sends statements while somebody waits. Before each it lets those requests go first that can run now: they come to
// this very statement, and fewer statements are sent. When there are none it goes on at once.
func (l *lookups) run() {
	for {
		runtime.Gosched()
		members, ctx, batch := l.next()
		if members == nil {
			return
		}
		wanted := make([]tableWanted, len(members))
		for i, m := range members {
			wanted[i] = m.wanted
		}
		found, err := l.ask(ctx, wanted)
		l.end(batch)
		for i, m := range members {
			if m.err = err; err == nil {
				m.found = found[i]
			}
			close(m.done)
		}
	}
}

// ask makes a panic the statement's error. No request's goroutine runs here, so nobody else would catch it and the whole
// server would end with it.
func (l *lookups) ask(ctx context.Context, wanted []tableWanted) (found []tableFound, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fault.Wrap(fault.Internal, fmt.Errorf("%v\n%s", cause, debug.Stack()), "defect in the server: a lookup stumbled: %v", cause)
		}
	}()
	return l.fetch(ctx, wanted)
}

// next takes those who wait into a batch; nil when there is nobody, or another who will.
func (l *lookups) next() ([]*lookupMember, context.Context, *lookupBatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || l.batches-l.slow > 1 {
		l.batches--
		return nil, nil, nil
	}
	members := l.waiting
	l.waiting = nil
	if len(members) > lookupMembersMax {
		l.waiting = append(l.waiting, members[lookupMembersMax:]...)
		members = members[:lookupMembersMax]
	}
	ctx, cancel := context.WithTimeout(l.ctx, lookupSecondsMax)
	batch := &lookupBatch{present: len(members), cancel: cancel}
	for _, m := range members {
		m.batch = batch
	}
	batch.timer = time.AfterFunc(lookupPatience, func() { l.outlasted(batch) })
	return members, ctx, batch
}

// outlasted lets the next statement go beside one that is slow.
func (l *lookups) outlasted(batch *lookupBatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if batch.timer == nil || l.closed {
		return // it has ended meanwhile
	}
	batch.slow = true
	l.slow++
	l.begin()
}

func (l *lookups) end(batch *lookupBatch) {
	batch.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	batch.timer.Stop()
	batch.timer = nil
	if batch.slow {
		l.slow--
	}
}

// findTables is one statement for many members. It is not tried again: they do that, each for itself.
func (s *Store) findTables(ctx context.Context, wanted []tableWanted) ([]tableFound, error) {
	// As flat arrays they are encoded without reflection.
	namespaces, names := make(pgtype.FlatArray[pgtype.UUID], len(wanted)), make([]string, len(wanted))
	roles := make(pgtype.FlatArray[pgtype.Text], len(wanted))
	statement, args := sqlFindTables, []any{namespaces, names}
	for i, w := range wanted {
		namespaces[i], names[i] = pgtype.UUID{Bytes: w.namespace, Valid: w.namespace != uuid.Nil}, w.name
		if roles[i] = (pgtype.Text{String: w.roles, Valid: w.roles != ""}); w.roles != "" {
			statement, args = sqlFindTablesGrants, []any{namespaces, names, roles}
		}
	}
	found := make([]tableFound, len(wanted))
	got := 0
	err := s.readOnce(ctx, func(q querier) error {
		rows, err := q.Query(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		var row foundRow
		targets := row.targets()
		for got = 0; rows.Next(); got++ {
			if err := rows.Scan(targets...); err != nil {
				return err
			}
			if err := row.into(found); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err == nil && got != len(wanted) {
		err = fault.New(fault.Internal, "%d tables were looked up and %d answers came", len(wanted), got)
	}
	return found, err
}

// foundRow is a row of sqlFindTables. Its types take NULL without an allocation for each column.
type foundRow struct {
	n, epoch                        int64
	id, namespace, tableUUID, owner pgtype.UUID
	kind, name, location, metadata  pgtype.Text
	format                          pgtype.Int4
	version                         pgtype.Int8
	grants                          []byte
}

func (r *foundRow) targets() []any {
	return []any{&r.n, &r.epoch, &r.id, &r.namespace, &r.kind, &r.name, &r.tableUUID, &r.location, &r.metadata, &r.format, &r.version, &r.owner, &r.grants}
}

// into puts the row where the answers of its statement are.
func (r *foundRow) into(found []tableFound) error {
	if r.n < 1 || int(r.n) > len(found) {
		return fault.New(fault.Internal, "answer %d of %d", r.n, len(found))
	}
	f := &found[r.n-1]
	f.epoch = r.epoch
	if r.id.Valid {
		f.record = &catalog.TableRecord{
			ID: r.id.Bytes, Kind: catalog.Kind(r.kind.String), NamespaceID: r.namespace.Bytes, UUID: r.tableUUID.Bytes,
			Ident: catalog.Identifier{Name: r.name.String}, Location: r.location.String, MetadataLocation: r.metadata.String,
			FormatVersion: int(r.format.Int32), Version: r.version.Int64, OwnerID: r.owner.Bytes, // uuid.Nil where it is NULL
		}
	}
	if r.grants != nil {
		if err := json.Unmarshal(r.grants, &f.grants); err != nil {
			return fmt.Errorf("decode grants on a table: %w", err)
		}
	}
	return nil
}
