package store

import (
	"context"
	"maps"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/catalog"
)

// A piece of a list is one row: its names joined, which costs the database and this process a fraction of as many rows;
// and the access epoch, so that what is kept about the caller is known to hold for exactly these names. A page that is
// longer than a piece is read anew in one transaction that sees one moment, piece by piece, as fast as the database gives
// them: no connection waits for a client.

// namesOfPieceMax is how many names are read, and in memory, at a time. The page that clients get who name no size, and
// the name that tells whether another follows, fit.
const namesOfPieceMax = 2000

// nameSeparator stands between the names of a piece: no name holds a control character.
const nameSeparator = impossible

// The epoch that the list must be of, or 0, stands between namesBegin and namesOf. At another one the names are not even
// read.
const (
	namesBegin = `SELECT access_epoch.value, CASE WHEN (SELECT `
	namesOf    = `::bigint) IN (0, access_epoch.value) THEN (SELECT string_agg(page.name, E'\x01') FROM (`
	namesEnd   = `) AS page) END FROM (SELECT 1) AS always LEFT JOIN access_epoch ON true`
)

// Only columns of tables_name_key, so that rows need not be looked at. Arguments are subqueries, here and below, so that
// the database has one plan for all of them and does not make one for each list, which costs as much as the list.
const sqlListTables = namesBegin + `$5` + namesOf + `
    SELECT tables.name FROM tables
    WHERE tables.namespace_id = (SELECT $1::uuid) AND tables.kind = (SELECT $2::text) AND tables.name > (SELECT $3::text)
    ORDER BY tables.name
    LIMIT (SELECT $4::bigint)` + namesEnd

// Brothers differ in their last level alone, so the order of their levels is the order of their names, and a page begins
// inside the index namespaces_children, which has all that is wanted. Top levels have a statement and an index of their
// own, namespaces_top.
const sqlListTopNamespaces = namesBegin + `$4` + namesOf + `
    SELECT namespaces.levels[1] AS name FROM namespaces
    WHERE namespaces.warehouse_id = (SELECT $1::uuid) AND namespaces.parent_id IS NULL AND namespaces.levels > (SELECT ARRAY[$2::text])
    ORDER BY namespaces.levels
    LIMIT (SELECT $3::bigint)` + namesEnd

const sqlListNamespaces = namesBegin + `$5` + namesOf + `
    SELECT namespaces.levels[cardinality(namespaces.levels)] AS name FROM namespaces
    WHERE namespaces.warehouse_id = (SELECT $1::uuid) AND namespaces.parent_id = (SELECT $2::uuid)
      AND namespaces.levels > (SELECT above.levels || $3::text FROM namespaces AS above WHERE above.id = $2::uuid)
    ORDER BY namespaces.levels
    LIMIT (SELECT $4::bigint)` + namesEnd

// Two ways to the roles that count, which are this warehouse's: they are found here, or named by what is kept, which
// holds if the list is of its epoch.
const (
	sqlListGranted = `
WITH ` + activeRoles + `, acting AS (
    SELECT DISTINCT catalog_roles.id
    FROM active
    JOIN catalog_role_members ON catalog_role_members.principal_role_id = active.id
    JOIN catalog_roles ON catalog_roles.id = catalog_role_members.catalog_role_id
    WHERE catalog_roles.warehouse_id = (SELECT namespaces.warehouse_id FROM namespaces WHERE namespaces.id = (SELECT @namespace::uuid))
)` + grantedNames
	sqlListGrantedTo = `
WITH acting AS (
    SELECT unnest((SELECT @acting::text)::uuid[]) AS id
)` + grantedNames
)

// Nothing is read but the grants of these roles on what is in the namespace (grants_inside), and those tables.
const grantedNames = `, inside AS (
    SELECT held.securable_id AS id, held.securable_kind AS kind
    FROM acting
    CROSS JOIN LATERAL (
        SELECT grants.securable_id, grants.securable_kind FROM grants
        WHERE grants.role_id = acting.id AND grants.namespace_id = (SELECT @namespace::uuid)
          AND grants.privilege = ANY ((SELECT @privileges::text[])::text[])
        OFFSET 0
    ) AS held
    UNION
    SELECT tables.id, tables.kind FROM tables
    WHERE tables.owner_id = (SELECT @owner::uuid) AND tables.namespace_id = (SELECT @namespace::uuid)
)
` + namesBegin + `@epoch` + namesOf + `
    SELECT named.name
    FROM inside
    CROSS JOIN LATERAL (
        SELECT tables.name FROM tables
        WHERE tables.id = inside.id AND tables.kind = inside.kind AND tables.namespace_id = (SELECT @namespace::uuid)
          AND ((SELECT @kind::text) = '' OR tables.kind = (SELECT @kind::text)) AND tables.name > (SELECT @after::text)
        LIMIT 1
    ) AS named
    ORDER BY named.name
    LIMIT (SELECT @limit::bigint)` + namesEnd

// namesQuery gives the statement for a piece of so many names of a list behind one, and its arguments.
func namesQuery(l nameList, behind string, limit int) (statement string, args []any) {
	behind = after(behind)
	w := l.wanted
	switch {
	case w.Kind == catalog.KindNamespace && w.In == uuid.Nil:
		return sqlListTopNamespaces, []any{w.WarehouseID, behind, limit, l.epoch}
	case w.Kind == catalog.KindNamespace:
		return sqlListNamespaces, []any{w.WarehouseID, w.In, behind, limit, l.epoch}
	case w.GrantedTo == nil:
		return sqlListTables, []any{w.In, string(w.Kind), behind, limit, l.epoch}
	}
	privileges := make([]string, len(w.GrantedTo.Privileges))
	for i, p := range w.GrantedTo.Privileges {
		privileges[i] = string(p)
	}
	named := pgx.NamedArgs{
		"namespace": w.In, "kind": string(w.Kind), "privileges": privileges, "owner": ownerArg(w.GrantedTo.Principal),
		"after": behind, "limit": limit, "epoch": l.epoch,
	}
	if l.acting != "" {
		named["acting"] = l.acting
		return sqlListGrantedTo, []any{named}
	}
	caller := resolveArgs(catalog.Lookup{Principal: w.GrantedTo.Principal})
	for _, name := range []string{"principal", "all_roles", "roles", "brought_roles"} {
		named[name] = caller[name]
	}
	return sqlListGranted, []any{named}
}

// ownerArg makes an argument of somebody as an owner: NULL where its token does not count what it owns.
func ownerArg(p auth.Principal) any {
	if p.Kind == auth.System || !p.Roles.All {
		return nil
	}
	return nullable(p.ID)
}

// namePiece is one row: names, and the epoch of that moment, 0 where there is none.
type namePiece struct {
	epoch int64
	names []string
}

// readNames reads a piece, or nothing but the epoch of that moment where that is not the list's.
func readNames(ctx context.Context, q querier, l nameList, behind string, limit int) (namePiece, error) {
	statement, args := namesQuery(l, behind, limit)
	var epoch *int64
	var joined *string
	if err := q.QueryRow(ctx, statement, args...).Scan(&epoch, &joined); err != nil {
		return namePiece{}, err
	}
	var piece namePiece
	if epoch != nil {
		piece.epoch = *epoch
	}
	if joined != nil {
		piece.names = strings.Split(*joined, nameSeparator)
	}
	return piece, nil
}

// nameList is a list on its way to who wants it.
type nameList struct {
	wanted catalog.NamesWanted
	each   func(names []string) bool
	// epoch, unless 0, is the one that the list must be of.
	epoch int64
	// acting, unless "", are the roles at that epoch whose grants on single things count, as idArray spells them.
	acting string
}

// list gives the page of one moment, or false and nothing when that moment has another epoch than the list must have.
func (s *Store) list(ctx context.Context, l nameList) (same bool, err error) {
	limit := namesOfPieceMax
	if l.wanted.Page.Limit > 0 {
		limit = min(limit, l.wanted.Page.Limit)
	}
	var first namePiece
	err = s.read(ctx, func(q querier) error {
		first, err = readNames(ctx, q, l, l.wanted.Page.After, limit)
		return err
	})
	if err != nil {
		return false, err
	}
	if l.moved(first) {
		return false, nil
	}
	if len(first.names) < limit || limit == l.wanted.Page.Limit {
		if len(first.names) > 0 {
			l.each(first.names)
		}
		return true, nil
	}
	return s.listLong(ctx, l)
}

func (l nameList) moved(p namePiece) bool { return l.epoch != 0 && p.epoch != l.epoch }

// listLong is list for more than a piece. Nothing is tried again once names were given away.
func (s *Store) listLong(ctx context.Context, l nameList) (same bool, err error) {
	err = s.atOneMoment(ctx, func(q querier) error {
		behind, left := l.wanted.Page.After, l.wanted.Page.Limit
		for {
			limit := namesOfPieceMax
			if l.wanted.Page.Limit > 0 {
				limit = min(limit, left)
			}
			piece, err := readNames(ctx, q, l, behind, limit)
			if err != nil {
				return err
			}
			if same = !l.moved(piece); !same || len(piece.names) == 0 || !l.each(piece.names) || len(piece.names) < limit {
				return nil
			}
			if left -= limit; left == 0 {
				return nil
			}
			behind = piece.names[limit-1]
		}
	})
	return same, err
}

// ListNames gives a page of names of one moment.
func (s *Store) ListNames(ctx context.Context, w catalog.NamesWanted, each func(names []string) bool) error {
	_, err := s.list(ctx, nameList{wanted: w, each: each})
	return err
}

// listRequest is what ResolveNames is asked.
type listRequest struct {
	lookup catalog.Lookup
	key    string // the lookup's, as decisionKey gives it
	names  func(catalog.Resolution) (catalog.NamesWanted, bool)
	each   func(names []string) bool
}

// ResolveNames answers what a request names and what its caller may do there, and lists names after that. What is kept of
// an earlier answer decides which; it holds if the list was read at the epoch that it was read with, else nothing of that
// list is given away and all is asked anew.
func (s *Store) ResolveNames(
	ctx context.Context, l catalog.Lookup, names func(catalog.Resolution) (catalog.NamesWanted, bool), each func(names []string) bool,
) (catalog.Resolution, error) {
	r := listRequest{lookup: l, key: decisionKey(l), names: names, each: each}
	if res, listed, err := s.listKept(ctx, r); listed || err != nil {
		return res, err
	}
	done, err := s.decisions.turn(ctx, r.key)
	if err != nil {
		return catalog.Resolution{}, err
	}
	if done == nil {
		if res, listed, err := s.listKept(ctx, r); listed || err != nil {
			return res, err
		}
		done = func() {}
	}
	res, err := func() (catalog.Resolution, error) {
		defer done() // before the names are read
		return s.resolveWhole(ctx, l, r.key)
	}()
	if err != nil {
		return res, err
	}
	wanted, list := r.names(res)
	if kept, ok := s.decisions.find(r.key); ok && list && wanted.GrantedTo != nil {
		if same, err := s.list(ctx, kept.nameList(wanted, r.each)); same || err != nil {
			return res, err
		}
	}
	return s.listAfter(ctx, res, r)
}

// listKept answers from what is kept; listed tells whether there was something that holds.
func (s *Store) listKept(ctx context.Context, r listRequest) (res catalog.Resolution, listed bool, err error) {
	kept, ok := s.decisions.find(r.key)
	if !ok {
		return res, false, nil
	}
	res = kept.copied()
	wanted, list := r.names(res)
	if !list {
		if res, err = s.Resolve(ctx, r.lookup); err == nil {
			res, err = s.listAfter(ctx, res, r)
		}
		return res, true, err
	}
	listed, err = s.list(ctx, kept.nameList(wanted, r.each))
	return res, listed, err
}

// nameList is a list that holds at the decision's epoch, with the roles that are kept.
func (d *decision) nameList(wanted catalog.NamesWanted, each func(names []string) bool) nameList {
	l := nameList{wanted: wanted, each: each, epoch: d.epoch}
	if wanted.GrantedTo != nil {
		l.acting = idArray(maps.Keys(d.tableRoles))
	}
	return l
}

// listAfter lists names of a moment soon after that of the resolution.
func (s *Store) listAfter(ctx context.Context, res catalog.Resolution, r listRequest) (catalog.Resolution, error) {
	wanted, list := r.names(res)
	if !list {
		return res, nil
	}
	return res, s.ListNames(ctx, wanted, r.each)
}
