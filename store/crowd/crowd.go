// Package crowd fills a database with many warehouses, principals, roles and grants, for tests and benchmarks that ask
// what others' grants cost somebody. It writes rows alone: nothing of a crowd can be loaded.
package crowd

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Size is how large a crowd is. The zero value is none.
type Size struct {
	Warehouses int // beside those that are there already, which get namespaces, tables and roles as well
	Namespaces int // in each warehouse
	Tables     int // in each of these namespaces
	Roles      int // catalog roles in each warehouse
	Grants     int // to each of these roles: one on the warehouse, four on namespaces, the others on tables
	Principals int // each has two principal roles, which share all catalog roles among them
}

// Million are some 1,000,000 grants beside a namespace or two of a thousand tables.
var Million = Size{Warehouses: 20, Namespaces: 100, Tables: 20, Roles: 421, Grants: 99, Principals: 5_000}

// triggered are the tables that are filled whose rows move the epoch, one by one. It is moved once instead.
var triggered = []string{
	"warehouses", "namespaces", "principals", "principal_roles", "principal_role_members", "catalog_roles", "catalog_role_members", "grants",
}

const sqlWarehouses = `
INSERT INTO catalogd.warehouses (id, name, location, storage, created_at, updated_at)
SELECT gen_random_uuid(), 'crowd_' || n, 's3://crowd/' || n, '{"storageType":"S3"}', now(), now() FROM generate_series(1, $1::int) AS n`

const sqlNamespaces = `
INSERT INTO catalogd.namespaces (id, warehouse_id, levels, created_at, updated_at)
SELECT gen_random_uuid(), warehouses.id, ARRAY['crowd_' || n], now(), now()
FROM catalogd.warehouses CROSS JOIN generate_series(1, $1::int) AS n`

const sqlTables = `
INSERT INTO catalogd.tables (id, warehouse_id, namespace_id, name, table_uuid, location, metadata_location, format_version, created_at, updated_at)
SELECT gen_random_uuid(), namespaces.warehouse_id, namespaces.id, 'table_' || lpad(n::text, 6, '0'), gen_random_uuid(), '', '', 2, now(), now()
FROM catalogd.namespaces CROSS JOIN generate_series(1, $1::int) AS n
WHERE namespaces.levels[1] LIKE 'crowd\_%'`

const sqlRoles = `
INSERT INTO catalogd.catalog_roles (id, warehouse_id, name, created_at, updated_at)
SELECT gen_random_uuid(), warehouses.id, 'crowd_' || n, now(), now() FROM catalogd.warehouses CROSS JOIN generate_series(1, $1::int) AS n`

const sqlPrincipals = `
INSERT INTO catalogd.principals (id, name, client_id, kind, created_at, updated_at)
SELECT gen_random_uuid(), 'crowd_' || n, 'crowd_' || n, 'service', now(), now() FROM generate_series(1, $1::int) AS n`

// Five principals share two roles.
const sqlPrincipalRoles = `
INSERT INTO catalogd.principal_roles (id, name, created_at, updated_at)
SELECT gen_random_uuid(), 'crowd_' || n, now(), now() FROM generate_series(0, $1::int * 2 / 5) AS n`

const sqlPrincipalRoleMembers = `
INSERT INTO catalogd.principal_role_members (principal_role_id, principal_id)
SELECT principal_roles.id, principals.id
FROM generate_series(1, $1::int) AS n
CROSS JOIN generate_series(0, 1) AS second
JOIN catalogd.principals ON principals.name = 'crowd_' || n
JOIN catalogd.principal_roles ON principal_roles.name = 'crowd_' || (n * 2 / 5 + second) % ($1::int * 2 / 5 + 1)
ON CONFLICT DO NOTHING`

const sqlCatalogRoleMembers = `
INSERT INTO catalogd.catalog_role_members (catalog_role_id, principal_role_id)
SELECT roles.id, principal_roles.id
FROM (SELECT id, row_number() OVER (ORDER BY name, id) AS n FROM catalogd.catalog_roles WHERE name LIKE 'crowd\_%') AS roles
JOIN catalogd.principal_roles ON principal_roles.name = 'crowd_' || roles.n % ($1::int * 2 / 5 + 1)`

// The crowd's own namespaces and tables by number within their warehouse, from 0 on.
const sqlNumberPlaces = `
CREATE TEMPORARY TABLE crowd_places AS
SELECT warehouse_id, 'namespace' AS kind, id, NULL::uuid AS namespace_id, row_number() OVER (PARTITION BY warehouse_id ORDER BY levels) - 1 AS n
FROM catalogd.namespaces WHERE levels[1] LIKE 'crowd\_%'
UNION ALL
SELECT tables.warehouse_id, tables.kind, tables.id, tables.namespace_id,
       row_number() OVER (PARTITION BY tables.warehouse_id ORDER BY levels, name) - 1
FROM catalogd.tables JOIN catalogd.namespaces ON namespaces.id = tables.namespace_id AND levels[1] LIKE 'crowd\_%'`

// A role's tables lie beside each other, those of the next role elsewhere. What the triggers would fill in is named.
const sqlGrants = `
INSERT INTO catalogd.grants (role_id, warehouse_id, securable_kind, securable_id, namespace_id, privilege, created_at)
SELECT roles.id, roles.warehouse_id, 'catalog', roles.warehouse_id, NULL::uuid, 'CATALOG_READ_PROPERTIES', now()
FROM catalogd.catalog_roles AS roles WHERE name LIKE 'crowd\_%'
UNION ALL
SELECT roles.id, roles.warehouse_id, places.kind, places.id, places.namespace_id,
       CASE WHEN places.kind = 'namespace' THEN 'NAMESPACE_READ_PROPERTIES'
            ELSE (ARRAY['TABLE_READ_DATA', 'TABLE_READ_PROPERTIES', 'TABLE_WRITE_DATA'])[1 + g % 3] END, now()
FROM (SELECT id, warehouse_id, substr(name, 7)::bigint AS n FROM catalogd.catalog_roles WHERE name LIKE 'crowd\_%') AS roles
CROSS JOIN generate_series(0, $1::int - 2) AS g
JOIN crowd_places AS places ON places.warehouse_id = roles.warehouse_id
 AND places.kind = CASE WHEN g < 4 THEN 'namespace' ELSE 'table' END
 AND places.n = (roles.n * 7919 + g) % CASE WHEN g < 4 THEN $2::int ELSE $2::int * $3::int END`

// Every tenth role may read all that others have made in its warehouse: a table has grants of many roles.
const sqlGrantsOnOthers = `
INSERT INTO catalogd.grants (role_id, warehouse_id, securable_kind, securable_id, namespace_id, privilege, created_at)
SELECT roles.id, roles.warehouse_id, tables.kind, tables.id, tables.namespace_id, 'TABLE_READ_DATA', now()
FROM catalogd.tables
JOIN catalogd.namespaces ON namespaces.id = tables.namespace_id AND NOT levels[1] LIKE 'crowd\_%'
JOIN catalogd.catalog_roles AS roles ON roles.warehouse_id = tables.warehouse_id AND roles.name LIKE 'crowd\_%0'`

const sqlMoveEpoch = `UPDATE catalogd.access_epoch SET value = value + 1`

// Fill makes a crowd. The connection is that of the tables' owner.
func Fill(ctx context.Context, connection *pgx.Conn, s Size) error {
	if err := triggers(ctx, connection, "DISABLE"); err != nil {
		return err
	}
	for _, step := range []struct {
		statement string
		args      []any
	}{
		{sqlWarehouses, []any{s.Warehouses}},
		{sqlNamespaces, []any{s.Namespaces}},
		{sqlTables, []any{s.Tables}},
		{sqlRoles, []any{s.Roles}},
		{sqlPrincipals, []any{s.Principals}},
		{sqlPrincipalRoles, []any{s.Principals}},
		{sqlPrincipalRoleMembers, []any{s.Principals}},
		{sqlCatalogRoleMembers, []any{s.Principals}},
		{sqlNumberPlaces, nil},
		{`ANALYZE`, nil},
		{sqlGrants, []any{s.Grants, s.Namespaces, s.Tables}},
		{sqlGrantsOnOthers, nil},
		{sqlMoveEpoch, nil},
		{`VACUUM ANALYZE`, nil},
	} {
		if _, err := connection.Exec(ctx, step.statement, step.args...); err != nil {
			return fmt.Errorf("fill the database: %w\n%s", err, step.statement)
		}
	}
	return triggers(ctx, connection, "ENABLE")
}

func triggers(ctx context.Context, connection *pgx.Conn, verb string) error {
	for _, table := range triggered {
		if _, err := connection.Exec(ctx, "ALTER TABLE catalogd."+table+" "+verb+" TRIGGER USER"); err != nil {
			return fmt.Errorf("%s the triggers of %s: %w", verb, table, err)
		}
	}
	return nil
}
