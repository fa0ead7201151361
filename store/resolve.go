package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
)

// Arguments are subqueries in the statements that decide about access. So the database has one plan for all callers: it
// took some milliseconds to make one for each, and that is more than the statement takes. For the same reason it is told
// the way where its guesses would lead it astray: a subquery with a LIMIT, or with OFFSET 0, is looked up row by row by
// its index, however many grants there are.

// activeRoles are the principal roles that the caller has and that its token makes active: those that it was given here,
// and the federated ones that an identity provider's token brings.
const activeRoles = `active AS (
    SELECT principal_roles.id, principal_roles.name
    FROM principal_role_members
    JOIN principal_roles ON principal_roles.id = principal_role_members.principal_role_id
    WHERE principal_role_members.principal_id = (SELECT @principal::uuid)
      AND ((SELECT @all_roles::boolean) OR principal_roles.name = ANY ((SELECT @roles::text[])::text[]))
    UNION
    SELECT principal_roles.id, principal_roles.name
    FROM principal_roles
    WHERE principal_roles.federated AND principal_roles.name = ANY ((SELECT @brought_roles::text[])::text[])
      AND EXISTS (SELECT 1 FROM principals WHERE principals.id = (SELECT @principal::uuid))
)`

// actingRoles adds what the active ones bring with them: the roles of every warehouse, by their ids alone.
const actingRoles = activeRoles + `, acting AS (
    SELECT active.id FROM active
    UNION
    SELECT catalog_role_members.catalog_role_id
    FROM active
    JOIN catalog_role_members ON catalog_role_members.principal_role_id = active.id
)`

// One statement, so that what is there and what the caller may do belong to one moment. A name wins over an id that
// reads the same. Levels are matched prefix by prefix. What is compared is the *_key where there is
// one, which is in warehouses that fold names. Grants are found by role and securable: neither what the caller holds
// elsewhere nor what others hold here is read.
const sqlResolve = `
WITH w AS (
    SELECT id, name, location, properties, storage, folds_names, version, created_at, updated_at, owner_id
    FROM warehouses
    WHERE name = (SELECT @warehouse::text) OR id = (SELECT @warehouse_id::uuid)
    ORDER BY name = (SELECT @warehouse::text) DESC
    LIMIT 1
), n AS (
    SELECT level.id, level.levels, level.properties, level.version, level.owner_id, depth
    FROM w
    CROSS JOIN generate_series(1, cardinality((SELECT @levels::text[]))) AS depth
    CROSS JOIN LATERAL (
        SELECT namespaces.id, namespaces.levels, namespaces.properties, namespaces.version, namespaces.owner_id
        FROM namespaces
        WHERE namespaces.warehouse_id = w.id
          AND coalesce(namespaces.levels_key, namespaces.levels)
              = (CASE WHEN w.folds_names THEN (SELECT @levels_key::text[]) ELSE (SELECT @levels::text[]) END)[1:depth]
        LIMIT 1
    ) AS level
), t AS (
    SELECT named.id, named.namespace_id, named.name, named.kind, named.table_uuid, named.location,
           named.metadata_location, named.format_version, named.version, named.owner_id
    FROM w
    CROSS JOIN n
    CROSS JOIN LATERAL (
        SELECT tables.id, tables.namespace_id, tables.name, tables.kind, tables.table_uuid, tables.location,
               tables.metadata_location, tables.format_version, tables.version, tables.owner_id
        FROM tables
        WHERE tables.namespace_id = n.id
          AND coalesce(tables.name_key, tables.name) = CASE WHEN w.folds_names THEN (SELECT @table_key::text) ELSE (SELECT @table::text) END
        LIMIT 1
    ) AS named
    WHERE n.depth = cardinality((SELECT @levels::text[]))
), ` + activeRoles + `, acting AS (
    SELECT active.id, active.name FROM active
    UNION
    SELECT catalog_roles.id, catalog_roles.name
    FROM active
    JOIN catalog_role_members ON catalog_role_members.principal_role_id = active.id
    JOIN catalog_roles ON catalog_roles.id = catalog_role_members.catalog_role_id
    JOIN w ON w.id = catalog_roles.warehouse_id
), securables AS (
    SELECT 'root' AS kind, @root::uuid AS id
    UNION ALL SELECT 'catalog', w.id FROM w
    UNION ALL SELECT 'namespace', n.id FROM n
    UNION ALL SELECT t.kind, t.id FROM t
)
SELECT ` + callerState + `(SELECT @principal::uuid)) AS caller,
       w.id, w.name, w.location, w.properties, w.storage, w.folds_names, w.version, w.created_at, w.updated_at, w.owner_id,
       (SELECT json_agg(json_build_object('ID', n.id, 'Levels', n.levels, 'Properties', n.properties, 'Version', n.version,
                                          'OwnerID', n.owner_id)
                        ORDER BY n.depth) FROM n) AS namespaces,
       t.id, t.namespace_id, t.name, t.kind, t.table_uuid, t.location, t.metadata_location, t.format_version, t.version, t.owner_id,
       (SELECT json_agg(json_build_object('Privilege', held.privilege, 'Kind', securables.kind,
                                          'SecurableID', securables.id, 'Role', acting.name))
        FROM acting
        CROSS JOIN securables
        CROSS JOIN LATERAL (
            SELECT grants.privilege FROM grants
            WHERE grants.role_id = acting.id AND grants.securable_id = securables.id AND grants.securable_kind = securables.kind
            OFFSET 0
        ) AS held) AS grants,
       (SELECT access_epoch.value FROM access_epoch) AS epoch,
       (SELECT json_object_agg(acting.id, acting.name) FROM acting
        WHERE (SELECT true FROM grants
               WHERE grants.role_id = acting.id AND grants.securable_kind IN ('table', 'view') LIMIT 1)) AS table_roles
FROM (SELECT 1) AS always
LEFT JOIN w ON true
LEFT JOIN t ON true`

// resolved is sqlResolve's row. What is missing is NULL, and then a nil pointer.
type resolved struct {
	caller               []byte
	warehouseID          *uuid.UUID
	warehouseName        *string
	warehouseLocation    *string
	properties, storage  []byte
	foldsNames           *bool
	warehouseVersion     *int64
	createdAt, updatedAt pgtype.Timestamptz
	warehouseOwner       *uuid.UUID
	namespaces           []byte
	tableID, namespaceID *uuid.UUID
	name, kind           *string
	tableUUID            *uuid.UUID
	location, metadata   *string
	formatVersion        *int
	version              *int64
	owner                *uuid.UUID
	grants               []byte
	epoch                *int64
	tableRoles           []byte
}

// Resolve answers what a request names and what its caller may do there: from what is kept of an earlier answer and a
// small statement that many requests share, else by a statement of its own. Of those who find nothing that holds at the
// same time one asks, and the others look again.
func (s *Store) Resolve(ctx context.Context, l catalog.Lookup) (catalog.Resolution, error) {
	key := decisionKey(l)
	if res, holds, err := s.resolveKept(ctx, l, key); holds || err != nil {
		return res, err
	}
	done, err := s.decisions.turn(ctx, key)
	switch {
	case err != nil:
		return catalog.Resolution{}, err
	case done != nil:
		defer done()
	default:
		if res, holds, err := s.resolveKept(ctx, l, key); holds || err != nil {
			return res, err
		}
	}
	return s.resolveWhole(ctx, l, key)
}

// resolveKept answers from what is kept; holds tells whether it is of the epoch that is read here.
func (s *Store) resolveKept(ctx context.Context, l catalog.Lookup, key string) (res catalog.Resolution, holds bool, err error) {
	kept, ok := s.decisions.find(key)
	if !ok {
		return res, false, nil
	}
	found, err := s.lookups.find(ctx, kept.wants(l))
	switch {
	case err == nil && found.epoch == kept.epoch:
		return kept.with(found), true, nil
	case ctx.Err() != nil:
		return res, false, translate(ctx.Err())
	}
	return res, false, nil
}

// resolveWhole asks for everything, and keeps what the next lookup can use.
func (s *Store) resolveWhole(ctx context.Context, l catalog.Lookup, key string) (catalog.Resolution, error) {
	var row resolved
	err := s.read(ctx, func(q querier) error {
		row = resolved{}
		return q.QueryRow(ctx, sqlResolve, resolveArgs(l)).Scan(&row.caller,
			&row.warehouseID, &row.warehouseName, &row.warehouseLocation, &row.properties, &row.storage, &row.foldsNames,
			&row.warehouseVersion, &row.createdAt, &row.updatedAt, &row.warehouseOwner, &row.namespaces,
			&row.tableID, &row.namespaceID, &row.name, &row.kind, &row.tableUUID, &row.location, &row.metadata,
			&row.formatVersion, &row.version, &row.owner, &row.grants, &row.epoch, &row.tableRoles)
	})
	if err != nil {
		return catalog.Resolution{}, err
	}
	res, err := row.resolution(l)
	if err != nil {
		return res, err
	}
	if row.epoch == nil {
		return res, nil // somebody emptied the database by hand
	}
	read := decision{epoch: *row.epoch}
	read.split(res)
	if row.tableRoles != nil {
		if err := json.Unmarshal(row.tableRoles, &read.tableRoles); err != nil {
			return res, fmt.Errorf("decode roles: %w", err)
		}
		if read.tableRoleIDs = everyRole; len(read.tableRoles) <= lookupRolesMax {
			read.tableRoleIDs = idArray(maps.Keys(read.tableRoles))
		}
	}
	s.decisions.keep(key, read, len(read.tableRoleIDs)+3*(len(row.caller)+len(row.properties)+len(row.storage)+len(row.namespaces)+len(row.grants)+len(row.tableRoles)))
	return res, nil
}

// idArray spells ids as an array of SQL.
func idArray(ids iter.Seq[uuid.UUID]) string {
	text := []byte{'{'}
	for id := range ids {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, id.String()...)
	}
	return string(append(text, '}'))
}

// orNil gives uuid.Nil for NULL.
func orNil(id *uuid.UUID) uuid.UUID {
	if id == nil {
		return uuid.Nil
	}
	return *id
}

func resolveArgs(l catalog.Lookup) pgx.NamedArgs {
	args := pgx.NamedArgs{
		"warehouse": lookup(l.Warehouse), "warehouse_id": nil, "levels": lookupAll(l.Namespace), "table": lookup(l.Table),
		"levels_key": foldAll(l.Namespace), "table_key": fold(l.Table),
		"principal": nil, "all_roles": l.Principal.Roles.All, "roles": lookupAll(l.Principal.Roles.Names),
		"brought_roles": lookupAll(l.Principal.Roles.ActiveBrought()),
		"root":          authz.RootID,
	}
	// Only the canonical spelling is an id: uuid.Parse would take others for the same thing.
	if id, err := uuid.Parse(l.Warehouse); err == nil && id.String() == l.Warehouse {
		args["warehouse_id"] = id
	}
	if l.Principal.Kind != auth.System {
		args["principal"] = l.Principal.ID
	}
	return args
}

func (r resolved) resolution(l catalog.Lookup) (catalog.Resolution, error) {
	var res catalog.Resolution
	var err error
	if res.Caller, err = decodeCaller(r.caller); err != nil {
		return res, err
	}
	if r.grants != nil {
		if err := json.Unmarshal(r.grants, &res.Grants); err != nil {
			return res, fmt.Errorf("decode grants: %w", err)
		}
	}
	if r.warehouseID == nil {
		return res, nil
	}
	res.Warehouse = &catalog.Warehouse{
		ID: *r.warehouseID, Name: *r.warehouseName, Location: *r.warehouseLocation,
		FoldsNames: *r.foldsNames, Version: *r.warehouseVersion, OwnerID: orNil(r.warehouseOwner),
		CreatedAt: r.createdAt.Time.UTC(), UpdatedAt: r.updatedAt.Time.UTC(),
	}
	if err := decodeWarehouse(res.Warehouse, r.properties, r.storage); err != nil {
		return res, err
	}
	if r.namespaces != nil {
		if err := json.Unmarshal(r.namespaces, &res.Ancestors); err != nil {
			return res, fmt.Errorf("decode namespaces: %w", err)
		}
	}
	if last := len(res.Ancestors) - 1; last >= 0 && len(res.Ancestors[last].Levels) == len(l.Namespace) {
		res.Namespace = &res.Ancestors[last]
		res.Ancestors = res.Ancestors[:last:last]
	}
	if r.tableID == nil {
		return res, nil
	}
	found := &catalog.TableRecord{
		ID: *r.tableID, Kind: catalog.Kind(*r.kind), NamespaceID: *r.namespaceID, UUID: *r.tableUUID,
		Ident:    catalog.Identifier{Namespace: res.Namespace.Levels, Name: *r.name},
		Location: *r.location, MetadataLocation: *r.metadata, FormatVersion: *r.formatVersion, Version: *r.version, OwnerID: orNil(r.owner),
	}
	if found.Kind == catalog.KindView {
		res.View = found
	} else {
		res.Table = found
	}
	return res, nil
}

// rootGrants is what the active roles hold on the root.
const rootGrants = `(
        SELECT json_agg(json_build_object('Privilege', held.privilege, 'Kind', 'root', 'SecurableID', @root::uuid, 'Role', active.name))
        FROM active
        CROSS JOIN LATERAL (
            SELECT grants.privilege FROM grants
            WHERE grants.role_id = active.id AND grants.securable_id = @root::uuid AND grants.securable_kind = 'root'
            OFFSET 0
        ) AS held)`

const sqlResolveRootGrants = `
WITH ` + activeRoles + `
SELECT ` + callerState + `(SELECT @principal::uuid)) AS caller,
       ` + rootGrants + ` AS grants`

// ResolveGrants gives the caller's grants on the root, and its state.
func (s *Store) ResolveGrants(ctx context.Context, l catalog.Lookup) (grants []authz.Grant, state *auth.CallerState, err error) {
	args := resolveArgs(l)
	var caller, raw []byte
	err = s.read(ctx, func(q querier) error {
		return q.QueryRow(ctx, sqlResolveRootGrants, pgx.NamedArgs{
			"principal": args["principal"], "all_roles": args["all_roles"], "roles": args["roles"], "brought_roles": args["brought_roles"], "root": args["root"],
		}).Scan(&caller, &raw)
	})
	if err != nil {
		return nil, nil, err
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &grants); err != nil {
			return nil, nil, fmt.Errorf("decode grants: %w", err)
		}
	}
	state, err = decodeCaller(caller)
	return grants, state, err
}
