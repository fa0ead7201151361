package crowd

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Somebody is a principal whose requests are looked at, and where it has grants. All of it is there already.
type Somebody struct {
	Principal string
	Warehouse string
	Listed    string // a top-level namespace in it, all of whose tables it may list
	Picked    string // another one, in which it may see some tables
	Holding   string // one more, and the table in it that it may load
	Table     string
}

// OwnGrants is how many grants somebody has without a crowd.
const OwnGrants = 10

// pickedTables are granted one by one: what is left of OwnGrants.
const pickedTables = OwnGrants - 3

const sqlOwnRole = `
WITH role AS (
    INSERT INTO catalogd.principal_roles (id, name, created_at, updated_at) VALUES (gen_random_uuid(), $1::text, now(), now())
    RETURNING id
), inside AS (
    INSERT INTO catalogd.catalog_roles (id, warehouse_id, name, created_at, updated_at)
    SELECT gen_random_uuid(), id, $1::text, now(), now() FROM catalogd.warehouses WHERE name = $2
    RETURNING id
), belongs AS (
    INSERT INTO catalogd.principal_role_members (principal_role_id, principal_id)
    SELECT role.id, principals.id FROM role CROSS JOIN catalogd.principals WHERE principals.name = $1::text
)
INSERT INTO catalogd.catalog_role_members (catalog_role_id, principal_role_id) SELECT inside.id, role.id FROM inside CROSS JOIN role`

const sqlOwnGrants = `
WITH places AS (
    SELECT namespaces.id, levels[1] AS name, namespaces.warehouse_id
    FROM catalogd.namespaces
    JOIN catalogd.warehouses ON warehouses.id = namespaces.warehouse_id AND warehouses.name = @warehouse
    WHERE levels IN (ARRAY[@listed::text], ARRAY[@picked::text], ARRAY[@holding::text])
)
INSERT INTO catalogd.grants (role_id, warehouse_id, securable_kind, securable_id, privilege, created_at)
SELECT roles.id, roles.warehouse_id, granted.kind, granted.id, granted.privilege, now()
FROM catalogd.catalog_roles AS roles
JOIN (
    SELECT warehouses.id AS warehouse_id, 'catalog' AS kind, warehouses.id, 'NAMESPACE_READ_PROPERTIES' AS privilege
    FROM catalogd.warehouses WHERE warehouses.name = @warehouse
    UNION ALL
    SELECT warehouse_id, 'namespace', id, 'TABLE_LIST' FROM places WHERE name = @listed
    UNION ALL
    SELECT places.warehouse_id, tables.kind, tables.id, 'TABLE_READ_PROPERTIES'
    FROM places JOIN catalogd.tables ON tables.namespace_id = places.id
    WHERE places.name = @holding AND tables.name = @table
    UNION ALL
    (SELECT places.warehouse_id, tables.kind, tables.id, 'TABLE_READ_PROPERTIES'
     FROM places JOIN catalogd.tables ON tables.namespace_id = places.id
     WHERE places.name = @picked ORDER BY tables.name LIMIT @picks::int)
) AS granted ON granted.warehouse_id = roles.warehouse_id
WHERE roles.name = @principal`

// Introduce gives somebody its own grants, OwnGrants of them: through one principal role and one catalog role, on the
// warehouse, a namespace and tables.
func Introduce(ctx context.Context, connection *pgx.Conn, who Somebody) error {
	if _, err := connection.Exec(ctx, sqlOwnRole, who.Principal, who.Warehouse); err != nil {
		return fmt.Errorf("make the roles of %s: %w", who.Principal, err)
	}
	tag, err := connection.Exec(ctx, sqlOwnGrants, pgx.NamedArgs{
		"principal": who.Principal, "warehouse": who.Warehouse, "listed": who.Listed, "picked": who.Picked,
		"holding": who.Holding, "table": who.Table, "picks": pickedTables,
	})
	if err == nil && tag.RowsAffected() != OwnGrants {
		err = fmt.Errorf("%d were made, not %d", tag.RowsAffected(), OwnGrants)
	}
	if err != nil {
		return fmt.Errorf("make the grants of %s: %w", who.Principal, err)
	}
	return nil
}

// Roles whose grants are on what others made are left out: somebody would see more than its own grants say.
const sqlJoin = `
INSERT INTO catalogd.catalog_role_members (catalog_role_id, principal_role_id)
SELECT roles.id, principal_roles.id
FROM (
    SELECT catalog_roles.id,
           row_number() OVER (PARTITION BY warehouses.name = $2 ORDER BY substr(catalog_roles.name, 7)::int, catalog_roles.id) AS n,
           warehouses.name = $2 AS near
    FROM catalogd.catalog_roles
    JOIN catalogd.warehouses ON warehouses.id = catalog_roles.warehouse_id
    WHERE catalog_roles.name LIKE 'crowd\_%' AND NOT catalog_roles.name LIKE '%0'
) AS roles
JOIN catalogd.principal_roles ON principal_roles.name = $1
WHERE roles.n <= CASE WHEN near THEN $3::int ELSE $4::int END`

// Join gives somebody's principal role catalog roles of the crowd: so many of its warehouse, and so many of all others.
func Join(ctx context.Context, connection *pgx.Conn, who Somebody, near, far int) error {
	tag, err := connection.Exec(ctx, sqlJoin, who.Principal, who.Warehouse, near, far)
	if err == nil && tag.RowsAffected() != int64(near+far) {
		err = fmt.Errorf("there are %d, not %d", tag.RowsAffected(), near+far)
	}
	if err != nil {
		return fmt.Errorf("join the roles of the crowd: %w", err)
	}
	return nil
}

const sqlCount = `
SELECT (SELECT count(*) FROM catalogd.grants),
       (SELECT count(*)
        FROM catalogd.principals
        JOIN catalogd.principal_role_members ON principal_role_members.principal_id = principals.id
        JOIN catalogd.catalog_role_members ON catalog_role_members.principal_role_id = principal_role_members.principal_role_id
        JOIN catalogd.grants ON grants.role_id = catalog_role_members.catalog_role_id
        WHERE principals.name = $1)`

// Count tells how many grants there are, and how many of them somebody holds.
func Count(ctx context.Context, connection *pgx.Conn, who Somebody) (all, held int, err error) {
	err = connection.QueryRow(ctx, sqlCount, who.Principal).Scan(&all, &held)
	return all, held, err
}
