package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
)

// Two rows of each kind at most, and one row without a warehouse where there is none. A role's grants are in its own
// warehouse, so one of them is enough to know.
const sqlResolveWarehouses = `
WITH ` + actingRoles + `, named AS (
    (SELECT true AS granted, id, name, location, properties, storage, folds_names, version, created_at, updated_at
     FROM warehouses
     WHERE EXISTS (SELECT 1 FROM acting
                   JOIN catalog_roles ON catalog_roles.id = acting.id
                   WHERE catalog_roles.warehouse_id = warehouses.id
                     AND (SELECT true FROM grants WHERE grants.role_id = catalog_roles.id LIMIT 1))
        OR owner_id = (SELECT @owner::uuid)
        OR EXISTS (SELECT 1 FROM namespaces WHERE namespaces.owner_id = (SELECT @owner::uuid) AND namespaces.warehouse_id = warehouses.id)
        OR EXISTS (SELECT 1 FROM tables WHERE tables.owner_id = (SELECT @owner::uuid) AND tables.warehouse_id = warehouses.id)
     ORDER BY name LIMIT 2)
    UNION ALL
    (SELECT false, id, name, location, properties, storage, folds_names, version, created_at, updated_at
     FROM warehouses ORDER BY name LIMIT 2)
)
SELECT ` + callerState + `(SELECT @principal::uuid)) AS caller,
       ` + rootGrants + ` AS root_grants,
       named.granted, named.id, named.name, named.location, named.properties, named.storage, named.folds_names,
       named.version, named.created_at, named.updated_at
FROM (SELECT 1) AS always LEFT JOIN named ON true
ORDER BY named.name`

// ResolveWarehouses gives what a caller may mean who names no warehouse.
func (s *Store) ResolveWarehouses(ctx context.Context, p auth.Principal) (catalog.NamedByNobody, error) {
	lookup := catalog.Lookup{Principal: p}
	args := resolveArgs(lookup)
	var found catalog.NamedByNobody
	err := s.read(ctx, func(q querier) error {
		found = catalog.NamedByNobody{}
		rows, err := q.Query(ctx, sqlResolveWarehouses, pgx.NamedArgs{
			"principal": args["principal"], "all_roles": args["all_roles"], "roles": args["roles"], "brought_roles": args["brought_roles"], "root": authz.RootID,
			"owner": ownerArg(p),
		})
		if err != nil {
			return err
		}
		var granted *bool
		var row resolved
		_, err = pgx.ForEachRow(rows, []any{&row.caller, &row.grants, &granted, &row.warehouseID, &row.warehouseName,
			&row.warehouseLocation, &row.properties, &row.storage, &row.foldsNames, &row.warehouseVersion,
			&row.createdAt, &row.updatedAt}, func() error {
			res, err := row.resolution(lookup)
			found.Caller, found.RootGrants = res.Caller, res.Grants
			switch {
			case err != nil || res.Warehouse == nil:
				return err
			case *granted:
				found.Granted = append(found.Granted, *res.Warehouse)
			default:
				found.All = append(found.All, *res.Warehouse)
			}
			return nil
		})
		return err
	})
	return found, err
}
