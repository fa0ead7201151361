package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
)

// heldRoles are all roles of a principal: its principal roles, the federated ones that its token brings among them, and
// with each the catalog roles that it has.
const heldRoles = `holding AS (
    SELECT principal_roles.id, principal_roles.name
    FROM principal_role_members
    JOIN principal_roles ON principal_roles.id = principal_role_members.principal_role_id
    WHERE principal_role_members.principal_id = @subject::uuid
    UNION
    SELECT principal_roles.id, principal_roles.name
    FROM principal_roles
    WHERE principal_roles.federated AND principal_roles.name = ANY (@subject_brought::text[])
), held_roles AS (
    SELECT holding.id AS role_id, holding.name AS principal_role, '' AS catalog_role, NULL::uuid AS warehouse_id
    FROM holding
    UNION ALL
    SELECT catalog_roles.id, holding.name, catalog_roles.name, catalog_roles.warehouse_id
    FROM holding
    JOIN catalog_role_members ON catalog_role_members.principal_role_id = holding.id
    JOIN catalog_roles ON catalog_roles.id = catalog_role_members.catalog_role_id
)`

// One row a grant, and one without a grant for each role, so that roles that hold nothing here are named too.
const sqlHoldings = `
WITH ` + heldRoles + `, path AS (
    SELECT kind, id, depth FROM unnest(@kinds::text[], @ids::text[]::uuid[]) WITH ORDINALITY AS path (kind, id, depth)
), acting AS (
    SELECT role_id, principal_role, catalog_role FROM held_roles
    WHERE warehouse_id IS NULL OR warehouse_id = @warehouse::uuid
)
SELECT principal_role, catalog_role, NULL AS privilege, NULL AS kind, NULL::uuid AS id, 0::bigint AS depth
FROM acting
UNION ALL
SELECT acting.principal_role, acting.catalog_role, grants.privilege COLLATE "C", path.kind, path.id, path.depth
FROM acting
JOIN grants ON grants.role_id = acting.role_id
JOIN path ON path.id = grants.securable_id AND path.kind = grants.securable_kind
UNION ALL
SELECT '', '', 'OWNERSHIP', path.kind, path.id, path.depth
FROM path
JOIN ` + ownedThings + ` ON owned.id = path.id AND owned.kind = path.kind
WHERE owned.owner_id = @subject::uuid
ORDER BY depth, principal_role, catalog_role, privilege`

// Holdings gives what a principal holds on the securables of a path, with all its roles.
func (s *Store) Holdings(ctx context.Context, of catalog.Holder, warehouseID uuid.UUID, path []authz.Securable) (catalog.Holdings, error) {
	kinds, ids := kindsAndIDs(path)
	var held catalog.Holdings
	err := s.read(ctx, func(q querier) error {
		held = catalog.Holdings{}
		rows, err := q.Query(ctx, sqlHoldings, pgx.NamedArgs{
			"subject": of.ID, "subject_brought": lookupAll(of.Brought), "warehouse": warehouseID, "kinds": kinds, "ids": ids,
		})
		if err != nil {
			return err
		}
		var principalRole, catalogRole string
		var privilege, kind *string
		var id *uuid.UUID
		var depth int64
		_, err = pgx.ForEachRow(rows, []any{&principalRole, &catalogRole, &privilege, &kind, &id, &depth}, func() error {
			if privilege == nil {
				held.Roles = append(held.Roles, catalog.HeldRole{PrincipalRole: principalRole, CatalogRole: catalogRole})
			} else {
				held.Grants = append(held.Grants, heldGrant(principalRole, catalogRole, *privilege, *kind, *id))
			}
			return nil
		})
		return err
	})
	return held, err
}

// kindsAndIDs gives the ids as idTexts does.
func kindsAndIDs(path []authz.Securable) (kinds, ids []string) {
	for _, on := range path {
		kinds, ids = append(kinds, string(on.Kind)), append(ids, on.ID.String())
	}
	return kinds, ids
}

func heldGrant(principalRole, catalogRole, privilege, kind string, id uuid.UUID) catalog.HeldGrant {
	role := catalogRole
	if role == "" {
		role = principalRole
	}
	return catalog.HeldGrant{
		Grant: authz.Grant{
			Privilege: authz.Privilege(privilege), Kind: authz.SecurableKind(kind), SecurableID: id, Role: role,
		},
		PrincipalRole: principalRole, CatalogRole: catalogRole,
	}
}

// Whoever holds, for each wish, a grant of one of its privileges on an element of its path. The grants are the start:
// the securables of a path are few, and grants on one are found by index.
const sqlWhoCan = `
WITH wished AS (
    SELECT DISTINCT path.wish, path.kind, path.id, path.depth, privileges.privilege
    FROM unnest(@path_wishes::bigint[], @kinds::text[], @ids::text[]::uuid[], @depths::bigint[]) AS path (wish, kind, id, depth)
    JOIN unnest(@privilege_wishes::bigint[], @privileges::text[]) AS privileges (wish, privilege) ON privileges.wish = path.wish
), granted AS (
    SELECT wished.wish, wished.kind, wished.id, wished.depth, grants.privilege COLLATE "C" AS privilege, grants.role_id
    FROM wished
    JOIN grants ON grants.securable_id = wished.id AND grants.securable_kind = wished.kind AND grants.privilege = wished.privilege
), chains AS (
    SELECT granted.wish, granted.kind, granted.id, granted.depth, granted.privilege,
           principal_roles.id AS principal_role_id, principal_roles.name AS principal_role, '' AS catalog_role
    FROM granted
    JOIN principal_roles ON principal_roles.id = granted.role_id
    UNION ALL
    SELECT granted.wish, granted.kind, granted.id, granted.depth, granted.privilege,
           principal_roles.id, principal_roles.name, catalog_roles.name
    FROM granted
    JOIN catalog_roles ON catalog_roles.id = granted.role_id AND catalog_roles.warehouse_id = @warehouse::uuid
    JOIN catalog_role_members ON catalog_role_members.catalog_role_id = catalog_roles.id
    JOIN principal_roles ON principal_roles.id = catalog_role_members.principal_role_id
), held AS (
    SELECT principal_role_members.principal_id, chains.wish, chains.depth, chains.principal_role, chains.catalog_role,
           chains.privilege, chains.kind, chains.id
    FROM chains
    JOIN principal_role_members ON principal_role_members.principal_role_id = chains.principal_role_id
    UNION ALL
    SELECT owned.owner_id, wished.wish, wished.depth, '', '', wished.privilege COLLATE "C", wished.kind, wished.id
    FROM wished
    JOIN ` + ownedThings + ` ON owned.id = wished.id AND owned.kind = wished.kind
    WHERE wished.privilege = 'OWNERSHIP'
), able AS (
    SELECT held.principal_id
    FROM held
    GROUP BY held.principal_id
    HAVING count(DISTINCT held.wish) = @wishes::bigint
), page AS (
    SELECT principals.id, principals.name
    FROM able
    JOIN principals ON principals.id = able.principal_id
    WHERE principals.name > @after
    ORDER BY principals.name
    LIMIT @limit::bigint
)
SELECT name, principal_role, catalog_role, privilege, kind, id
FROM (
    SELECT name, depth, principal_role, catalog_role, privilege, kind, id,
           row_number() OVER (PARTITION BY name ORDER BY depth, principal_role, catalog_role, privilege) AS number
    FROM (
        SELECT DISTINCT page.name, held.depth, held.principal_role, held.catalog_role, held.privilege, held.kind, held.id
        FROM page
        JOIN held ON held.principal_id = page.id
    ) AS ways
) AS numbered
WHERE number <= @chains
ORDER BY name, number`

// WhoCan gives the principals that hold what is wished for, by name.
func (s *Store) WhoCan(ctx context.Context, query catalog.AccessQuery, p catalog.Page) ([]catalog.Access, error) {
	args := wishArgs(query)
	args["after"], args["limit"], args["chains"] = after(p.After), limit(p), catalog.ChainsMax
	var who []catalog.Access
	err := s.read(ctx, func(q querier) error {
		who = nil
		rows, err := q.Query(ctx, sqlWhoCan, args)
		if err != nil {
			return err
		}
		var name, principalRole, catalogRole, privilege, kind string
		var id uuid.UUID
		_, err = pgx.ForEachRow(rows, []any{&name, &principalRole, &catalogRole, &privilege, &kind, &id}, func() error {
			if len(who) == 0 || who[len(who)-1].Principal != name {
				who = append(who, catalog.Access{Principal: name})
			}
			last := &who[len(who)-1]
			last.By = append(last.By, heldGrant(principalRole, catalogRole, privilege, kind, id))
			return nil
		})
		return err
	})
	return who, err
}

func wishArgs(query catalog.AccessQuery) pgx.NamedArgs {
	var pathWishes, depths, privilegeWishes []int64
	var kinds, ids, privileges []string
	for i, w := range query.Wishes {
		for depth := range w.Path {
			pathWishes, depths = append(pathWishes, int64(i)), append(depths, int64(depth))
		}
		k, id := kindsAndIDs(w.Path)
		kinds, ids = append(kinds, k...), append(ids, id...)
		for _, p := range w.Privileges {
			privilegeWishes, privileges = append(privilegeWishes, int64(i)), append(privileges, string(p))
		}
	}
	return pgx.NamedArgs{
		"warehouse": query.WarehouseID, "wishes": len(query.Wishes), "path_wishes": pathWishes, "kinds": kinds, "ids": ids,
		"depths": depths, "privilege_wishes": privilegeWishes, "privileges": privileges,
	}
}

// Grants of catalog roles count in their own warehouse alone, as everywhere.
const sqlReach = `
WITH ` + heldRoles + `, ` + actingRoles + `, visible AS (
    SELECT grants.securable_id AS id
    FROM acting
    JOIN grants ON grants.role_id = acting.id
    WHERE grants.securable_kind = 'catalog' AND grants.privilege = ANY (@viewer_privileges::text[])
), held AS (
    SELECT held_roles.principal_role, held_roles.catalog_role, grants.privilege COLLATE "C" AS privilege,
           grants.securable_kind COLLATE "C" AS kind, grants.securable_id AS id,
           coalesce(warehouses.name, '') AS warehouse, coalesce(namespaces.levels, '{}') AS levels, coalesce(tables.name, '') AS name
    FROM held_roles
    JOIN grants ON grants.role_id = held_roles.role_id
    LEFT JOIN tables ON tables.id = grants.securable_id AND tables.kind = grants.securable_kind
    LEFT JOIN namespaces ON namespaces.id = CASE WHEN grants.securable_kind = 'namespace' THEN grants.securable_id ELSE tables.namespace_id END
    LEFT JOIN warehouses ON warehouses.id = CASE WHEN grants.securable_kind = 'catalog' THEN grants.securable_id ELSE namespaces.warehouse_id END
    WHERE (grants.securable_kind = 'root' AND @warehouse::uuid IS NULL
           OR warehouses.id = coalesce(@warehouse::uuid, warehouses.id)
              AND (held_roles.warehouse_id IS NULL OR held_roles.warehouse_id = warehouses.id)
              AND (@sees_all::boolean OR warehouses.id IN (SELECT visible.id FROM visible)))
    UNION ALL
    SELECT '', '', 'OWNERSHIP'::text COLLATE "C", owned.kind COLLATE "C", owned.id,
           warehouses.name, coalesce(namespaces.levels, '{}'), coalesce(tables.name, '')
    FROM ` + ownedThings + `
    LEFT JOIN tables ON tables.id = owned.id AND tables.kind = owned.kind
    LEFT JOIN namespaces ON namespaces.id = CASE WHEN owned.kind = 'namespace' THEN owned.id ELSE tables.namespace_id END
    JOIN warehouses ON warehouses.id = CASE WHEN owned.kind = 'catalog' THEN owned.id ELSE namespaces.warehouse_id END
    WHERE owned.owner_id = @subject::uuid AND warehouses.id = coalesce(@warehouse::uuid, warehouses.id)
      AND (@sees_all::boolean OR warehouses.id IN (SELECT visible.id FROM visible))
)
SELECT warehouse, levels, name, kind, id,
       array_agg(principal_role ORDER BY principal_role, catalog_role, privilege) AS principal_roles,
       array_agg(catalog_role ORDER BY principal_role, catalog_role, privilege) AS catalog_roles,
       array_agg(privilege ORDER BY principal_role, catalog_role, privilege) AS privileges
FROM held
WHERE (warehouse, levels, name, kind) > (@after_warehouse::text, @after_levels::text[], @after_name::text, @after_kind::text)
GROUP BY warehouse, levels, name, kind, id
ORDER BY warehouse, levels, name, kind
LIMIT @limit::bigint`

// Reach gives the securables that a principal's roles hold grants on.
func (s *Store) Reach(ctx context.Context, query catalog.ReachQuery) ([]catalog.Reached, error) {
	var viewer auth.Principal
	if query.Viewer != nil {
		viewer = *query.Viewer
	}
	args := resolveArgs(catalog.Lookup{Principal: viewer})
	privileges := make([]string, len(query.ViewerPrivileges))
	for i, p := range query.ViewerPrivileges {
		privileges[i] = string(p)
	}
	return collect(ctx, s, sqlReach, pgx.NamedArgs{
		"subject": query.Of.ID, "subject_brought": lookupAll(query.Of.Brought), "warehouse": nullable(query.WarehouseID), "sees_all": query.Viewer == nil,
		"principal": args["principal"], "all_roles": args["all_roles"], "roles": args["roles"], "brought_roles": args["brought_roles"], "viewer_privileges": privileges,
		"after_warehouse": after(query.After.Warehouse), "after_levels": texts(query.After.Namespace, after), "after_name": after(query.After.Name),
		"after_kind": after(string(query.After.Kind)), "limit": limit(catalog.Page{Limit: query.Limit}),
	}, scanReached)
}

func scanReached(row pgx.CollectableRow) (catalog.Reached, error) {
	var r catalog.Reached
	var levels, principalRoles, catalogRoles, privileges []string
	var kind string
	var id uuid.UUID
	err := row.Scan(&r.Key.Warehouse, &levels, &r.Key.Name, &kind, &id, &principalRoles, &catalogRoles, &privileges)
	r.Key.Kind = authz.SecurableKind(kind)
	if len(levels) > 0 {
		r.Key.Namespace = levels
	}
	for i := range privileges {
		r.By = append(r.By, heldGrant(principalRoles[i], catalogRoles[i], privileges[i], kind, id))
	}
	return r, err
}

// limit makes an argument of a page's limit: NULL is everything.
func limit(p catalog.Page) any {
	if p.Limit <= 0 {
		return nil
	}
	return p.Limit
}
