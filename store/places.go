package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/vending"
)

// No owner lies in another's place but below a namespace, so there is one table at most.
const sqlFindTableByFile = `
SELECT found.id, found.levels, found.name, found.table_uuid, found.location, found.metadata_location
FROM locations
JOIN (
    SELECT tables.id, namespaces.levels, tables.name, tables.table_uuid, tables.location, tables.metadata_location
    FROM tables JOIN namespaces ON namespaces.id = tables.namespace_id
    WHERE tables.kind = 'table'
    UNION ALL
    SELECT id, namespace, name, table_uuid, location, metadata_location FROM dropped_tables
    WHERE kind = 'table' AND purged_until IS NULL
) AS found ON found.id = locations.owner_id
WHERE locations.location = ANY (@above::text[]) AND locations.warehouse_id = @warehouse
LIMIT 1`

// FindTableByFile gives the table that owns the place of a file.
func (s *Store) FindTableByFile(ctx context.Context, warehouseID uuid.UUID, file string) (*catalog.TableRecord, error) {
	found, err := collect(ctx, s, sqlFindTableByFile, pgx.NamedArgs{
		"warehouse": warehouseID, "above": lookupAll(prefixesOf(vending.Key(file))),
	}, func(row pgx.CollectableRow) (catalog.TableRecord, error) {
		r := catalog.TableRecord{Kind: catalog.KindTable}
		var levels []string
		err := row.Scan(&r.ID, &levels, &r.Ident.Name, &r.UUID, &r.Location, &r.MetadataLocation)
		r.Ident.Namespace = levels
		return r, err
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}
