package store

import (
	"context"
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

// What counts is what the roles of this warehouse hold on things in it; all of that is read, for there is no way from a
// namespace to the grants on what is in it that reads less of others'.
const sqlListGranted = `
WITH ` + activeRoles + `, acting AS (
    SELECT DISTINCT catalog_roles.id
    FROM active
    JOIN catalog_role_members ON catalog_role_members.principal_role_id = active.id
    JOIN catalog_roles ON catalog_roles.id = catalog_role_members.catalog_role_id
    WHERE catalog_roles.warehouse_id = (SELECT namespaces.warehouse_id FROM namespaces WHERE namespaces.id = (SELECT @namespace::uuid))
)
` + namesBegin + `@epoch` + namesOf + `
    SELECT tables.name FROM tables
    WHERE tables.namespace_id = (SELECT @namespace::uuid)
      AND ((SELECT @kind::text) = '' OR tables.kind = (SELECT @kind::text)) AND tables.name > (SELECT @after::text)
      AND (tables.owner_id = (SELECT @owner::uuid) OR EXISTS (
          SELECT 1 FROM grants JOIN acting ON acting.id = grants.role_id
          WHERE grants.securable_id = tables.id AND grants.securable_kind = tables.kind
            AND grants.privilege = ANY ((SELECT @privileges::text[])::text[])))
    ORDER BY tables.name
    LIMIT (SELECT @limit::bigint)` + namesEnd

// namesQuery gives the statement for a piece of so many names behind one, and its arguments. epoch, unless 0, is the one
// that they must be of.
func namesQuery(w catalog.NamesWanted, behind string, limit int, epoch int64) (statement string, args []any) {
	behind = after(behind)
	switch {
	case w.Kind == catalog.KindNamespace && w.In == uuid.Nil:
		return sqlListTopNamespaces, []any{w.WarehouseID, behind, limit, epoch}
	case w.Kind == catalog.KindNamespace:
		return sqlListNamespaces, []any{w.WarehouseID, w.In, behind, limit, epoch}
	case w.GrantedTo == nil:
		return sqlListTables, []any{w.In, string(w.Kind), behind, limit, epoch}
	}
	caller := resolveArgs(catalog.Lookup{Principal: w.GrantedTo.Principal})
	privileges := make([]string, len(w.GrantedTo.Privileges))
	for i, p := range w.GrantedTo.Privileges {
		privileges[i] = string(p)
	}
	return sqlListGranted, []any{pgx.NamedArgs{
		"principal": caller["principal"], "all_roles": caller["all_roles"], "roles": caller["roles"], "brought_roles": caller["brought_roles"],
		"namespace": w.In, "kind": string(w.Kind), "privileges": privileges, "owner": ownerArg(w.GrantedTo.Principal), "after": behind, "limit": limit, "epoch": epoch,
	}}
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

// readNames reads a piece: of an epoch, unless 0, or nothing but the epoch of that moment.
func readNames(ctx context.Context, q querier, w catalog.NamesWanted, behind string, limit int, mustBe int64) (namePiece, error) {
	statement, args := namesQuery(w, behind, limit, mustBe)
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
}

// list gives the page of one moment, or false and nothing when that moment has another epoch than the list must have.
func (s *Store) list(ctx context.Context, l nameList) (same bool, err error) {
	limit := namesOfPieceMax
	if l.wanted.Page.Limit > 0 {
		limit = min(limit, l.wanted.Page.Limit)
	}
	var first namePiece
	err = s.read(ctx, func(q querier) error {
		first, err = readNames(ctx, q, l.wanted, l.wanted.Page.After, limit, l.epoch)
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
			piece, err := readNames(ctx, q, l.wanted, behind, limit, l.epoch)
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

// ResolveNames answers what a request names and what its caller may do there, and lists names after that. What is kept of
// an earlier answer decides which; it holds if the list was read at the epoch that it was read with, else nothing of that
// list is given away and all is asked anew.
func (s *Store) ResolveNames(
	ctx context.Context, l catalog.Lookup, names func(catalog.Resolution) (catalog.NamesWanted, bool), each func(names []string) bool,
) (catalog.Resolution, error) {
	key := decisionKey(l)
	kept, ok := s.decisions.find(key)
	if !ok {
		return s.resolveThenList(ctx, l, key, names, each)
	}
	res := kept.copied()
	wanted, list := names(res)
	if !list {
		res, err := s.Resolve(ctx, l)
		if err != nil {
			return res, err
		}
		return s.listAfter(ctx, res, names, each)
	}
	same, err := s.list(ctx, nameList{wanted: wanted, each: each, epoch: kept.epoch})
	if same || err != nil {
		return res, err
	}
	return s.resolveThenList(ctx, l, key, names, each)
}

// resolveThenList asks for everything, and then for the names, which are of a moment soon after.
func (s *Store) resolveThenList(
	ctx context.Context, l catalog.Lookup, key string, names func(catalog.Resolution) (catalog.NamesWanted, bool), each func(names []string) bool,
) (catalog.Resolution, error) {
	res, err := s.resolveWhole(ctx, l, key)
	if err != nil {
		return res, err
	}
	return s.listAfter(ctx, res, names, each)
}

func (s *Store) listAfter(
	ctx context.Context, res catalog.Resolution, names func(catalog.Resolution) (catalog.NamesWanted, bool), each func(names []string) bool,
) (catalog.Resolution, error) {
	wanted, list := names(res)
	if !list {
		return res, nil
	}
	return res, s.ListNames(ctx, wanted, each)
}
