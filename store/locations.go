package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// Every location has one owner, and no owner's location lies inside another's, since vended credentials reach
// everything below a location. The exceptions:
//   - tables and further namespaces of a warehouse may lie below the location of one of its namespaces;
//   - what a table was dropped from, or a create was staged for and never came, may be taken again under the same
//     name: an engine that drops and creates `ns.t LOCATION x` means the same place. A namespace that was dropped and
//     made anew is another one: it may be another owner's. A staged create passes only to
//     its own principal, who has its credentials already, until it has lapsed;
//   - a dropped table that is registered again takes its own location back, under any name of its namespace, and
//     anywhere when it was unregistered; when its namespace is gone, for who may do everything in the warehouse. Once its purge has begun there is nothing to take back.
//
// What a table had owned before it moved still holds its files, which no purge removes: when it is dropped such a place
// passes to its own name at most, and stays reserved when nothing is known of the table any more.

// Owners of locations.
const (
	ownerTable     = "table"
	ownerStaged    = "staged"
	ownerNamespace = "namespace"
	ownerDropped   = "dropped"
	ownerFormer    = "former" // of a dropped table that had moved before; there may be no row of the table any more
)

// stagedGrace is how long a staged create holds its location after it has expired: credentials that were vended in
// its last moment end by then.
const stagedGrace = 12 * time.Hour

// placeGrace is how long the location of an unregistered table is for nobody but that table, and that of a purged one
// for its name alone: credentials that were vended for them end by then.
const placeGrace = 12 * time.Hour

// overlapMessage does not say whose location it is: that would tell a stranger where other people's data lies.
const overlapMessage = "the location overlaps another table's or namespace's: choose another one, or none"

// reservation is a location about to get an owner.
type reservation struct {
	warehouse uuid.UUID
	location  string
	kind      string
	owner     uuid.UUID
	ident     catalog.Identifier // of a table or staged create
	tableUUID uuid.UUID          // of a table or staged create
	principal uuid.UUID          // who asks
	staged    uuid.UUID          // the staged create whose location passes to the owner; uuid.Nil: none
	registers bool               // the table was there before, under tableUUID
	restores  bool               // what is asked for may be a dropped table's whose namespace is gone
}

const sqlWarehouseBase = `SELECT location FROM warehouses WHERE id = @id`

// Locations that the server made never overlap each other, so those who reserve one may do so at once; whoever
// brings a location of his own waits until he is alone, so that what he has checked stays true until he commits.
const sqlShareLocations = `SELECT pg_advisory_xact_lock_shared(hashtextextended('catalogd locations', 0))`

const sqlLockLocations = `SELECT pg_advisory_xact_lock(hashtextextended('catalogd locations', 0))`

// reserve gives the locations their owners. It takes its lock before it looks, so it must come first in a transaction.
func reserve(ctx context.Context, tx pgx.Tx, wanted []reservation) error {
	if len(wanted) == 0 {
		return nil
	}
	bases := map[uuid.UUID]string{}
	statement := sqlShareLocations
	for _, r := range wanted {
		if _, ok := bases[r.warehouse]; !ok {
			var base string
			err := tx.QueryRow(ctx, sqlWarehouseBase, pgx.NamedArgs{"id": r.warehouse}).Scan(&base)
			if noRows(err) {
				return fault.New(fault.NoSuchWarehouse, "Warehouse does not exist")
			}
			if err != nil {
				return err
			}
			bases[r.warehouse] = base
		}
		if !r.generated(bases[r.warehouse]) {
			statement = sqlLockLocations
		}
	}
	if _, err := tx.Exec(ctx, statement); err != nil {
		return err
	}
	for _, r := range wanted {
		if r.staged != uuid.Nil {
			if err := passStaged(ctx, tx, r.staged, r.owner); err != nil {
				return fmt.Errorf("take over the staged create of %s: %w", r.ident, err)
			}
		}
		if !vending.Within(bases[r.warehouse], r.location) {
			if err := checkForeignBases(ctx, tx, r); err != nil {
				return err
			}
		}
		if err := reserveOne(ctx, tx, r); err != nil {
			return err
		}
	}
	return nil
}

// generated tells that the location is the one that the server makes for the table: its uuid, right below the base.
// Two of them are equal or apart, never nested, and equal ones meet at the primary key.
func (r reservation) generated(base string) bool {
	return r.kind != ownerNamespace && vending.Key(r.location) == vending.Key(base+"/"+r.tableUUID.String())
}

const sqlOtherBases = `SELECT location FROM warehouses WHERE id <> @id`

// checkForeignBases refuses a location that its warehouse allows but that lies in, or around, what another warehouse
// gives to its own tables.
func checkForeignBases(ctx context.Context, tx pgx.Tx, r reservation) error {
	others, err := collectFrom(ctx, tx, sqlOtherBases, pgx.NamedArgs{"id": r.warehouse}, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, other := range others {
		if keysOverlap(vending.Key(other), vending.Key(r.location)) {
			return fault.New(fault.BadRequest, "%s", overlapMessage)
		}
	}
	return nil
}

func keysOverlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// Of the rows above, at and below the key, those that stand in the way, and the one at the key itself. yields tells
// that the row may pass to who asks: refusals come first.
const sqlOverlapping = `
SELECT found.owner_id, found.yields OR found.lapsed AS yields
FROM (
    SELECT locations.owner_id, locations.owner_kind, locations.location, locations.warehouse_id,
           locations.location = @key AND (
               origin.same AND NOT (@registers AND dropped_tables.purge_started_at IS NOT NULL)
               AND (dropped_tables.name = @name OR dropped_tables.ident_key = @ident_key)
               OR @registers AND dropped_tables.table_uuid = @uuid AND dropped_tables.purge_started_at IS NULL
               AND (dropped_tables.unregistered_until IS NOT NULL OR origin.same
                    OR @restores AND origin.id IS NULL AND dropped_tables.warehouse_id = @warehouse)
               OR @restores AND NOT @registers AND origin.id IS NULL AND dropped_tables.warehouse_id = @warehouse
               AND (dropped_tables.namespace = @namespace AND dropped_tables.name = @name OR dropped_tables.ident_key = @ident_key)
               OR staged_tables.warehouse_id = @warehouse AND staged_tables.principal_id = @principal
               AND (staged_tables.namespace = @namespace AND staged_tables.name = @name OR staged_tables.ident_key = @ident_key)
           ) IS TRUE AS yields,
           (staged_tables.expires_at < now() - make_interval(secs => @grace_seconds)
            OR locations.owner_kind = 'dropped'
               AND coalesce(dropped_tables.purged_until, dropped_tables.unregistered_until) < now()
           ) IS TRUE AS lapsed
    FROM locations
    LEFT JOIN staged_tables ON locations.owner_kind = 'staged' AND staged_tables.table_uuid = locations.owner_id
    LEFT JOIN dropped_tables ON locations.owner_kind IN ('dropped', 'former') AND dropped_tables.id = locations.owner_id
    LEFT JOIN LATERAL (
        SELECT namespaces.id, namespaces.warehouse_id = @warehouse AND (namespaces.levels = @namespace
                   OR namespaces.levels_key = trim_array(@ident_key::text[], 1)) AS same
        FROM namespaces WHERE namespaces.id = dropped_tables.namespace_id
    ) AS origin ON true
    WHERE locations.owner_id <> @owner
      AND (locations.location = ANY (@above::text[]) OR locations.location >= @key AND locations.location < @past)
) AS found
WHERE NOT found.lapsed AND NOT (
        found.warehouse_id = @warehouse AND (
            found.owner_kind = 'namespace' AND @kind = 'namespace' AND found.location <> @key
            OR found.owner_kind = 'namespace' AND @kind <> 'namespace' AND length(found.location) < length(@key)
            OR found.owner_kind <> 'namespace' AND @kind = 'namespace' AND length(found.location) > length(@key)))
   OR found.location = @key
ORDER BY found.yields OR found.lapsed
LIMIT 2`

const sqlReserve = `
INSERT INTO locations (location, warehouse_id, owner_kind, owner_id)
VALUES (@key, @warehouse, @kind, @owner)
ON CONFLICT (location) DO UPDATE
SET warehouse_id = EXCLUDED.warehouse_id, owner_kind = EXCLUDED.owner_kind, owner_id = EXCLUDED.owner_id
WHERE locations.owner_id = @owner OR locations.owner_id = @previous`

const sqlForgetStaged = `DELETE FROM staged_tables WHERE table_uuid = @id`

// What is written to a dropped table's place makes it useless, so neither a purge nor an undrop may find it.
const sqlForgetDropped = `DELETE FROM dropped_tables WHERE id = @id`

// A purge that begins in this moment holds the row: then there is none to delete when it has. Who registers another
// table comes after the end of the grace.
const sqlTakeDroppedBack = `
DELETE FROM dropped_tables WHERE id = @id AND (purge_started_at IS NULL OR purged_until < now())
RETURNING table_uuid = @uuid AND purged_until IS NULL`

func reserveOne(ctx context.Context, tx pgx.Tx, r reservation) error {
	key := vending.Key(r.location)
	args := pgx.NamedArgs{
		"key": key, "above": prefixesOf(key), "past": key[:len(key)-1] + "0", // '0' is what follows '/'
		"warehouse": r.warehouse, "kind": r.kind, "owner": r.owner, "namespace": []string(r.ident.Namespace),
		"name": r.ident.Name, "ident_key": foldIdent(r.ident), "principal": r.principal, "grace_seconds": stagedGrace.Seconds(),
		"previous": uuid.Nil, "registers": r.registers, "restores": r.restores, "uuid": r.tableUUID,
	}
	type overlap struct {
		Owner  uuid.UUID
		Yields bool
	}
	overlaps, err := collectFrom(ctx, tx, sqlOverlapping, args, pgx.RowToStructByPos[overlap])
	if err != nil {
		return err
	}
	for _, o := range overlaps {
		if !o.Yields {
			return fault.New(fault.BadRequest, "%s", overlapMessage)
		}
		args["previous"] = o.Owner
	}
	tag, err := tx.Exec(ctx, sqlReserve, args)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 { // somebody took the very same place after we had looked
		return fault.New(fault.BadRequest, "%s", overlapMessage)
	}
	if len(overlaps) == 0 {
		return nil
	}
	return forgetOwner(ctx, tx, r, overlaps[len(overlaps)-1].Owner)
}

// A table that had moved owned its former places too.
const sqlPassLocations = `
UPDATE locations SET owner_kind = 'table', owner_id = @owner
WHERE owner_id = @previous AND owner_kind IN ('dropped', 'former')`

const sqlLeaveFormer = `UPDATE locations SET owner_kind = 'former' WHERE owner_id = @id AND owner_kind = 'dropped'`

const sqlPurgeBegan = `SELECT EXISTS (SELECT 1 FROM dropped_tables WHERE id = @id)`

// forgetOwner takes away what is known of the dropped table or staged create that a location was taken from.
func forgetOwner(ctx context.Context, tx pgx.Tx, r reservation, owner uuid.UUID) error {
	args := pgx.NamedArgs{"id": owner}
	if _, err := tx.Exec(ctx, sqlForgetStaged, args); err != nil {
		return err
	}
	if !r.registers {
		if _, err := tx.Exec(ctx, sqlForgetDropped, args); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sqlLeaveFormer, args)
		return err
	}
	back := false
	err := tx.QueryRow(ctx, sqlTakeDroppedBack, pgx.NamedArgs{"id": owner, "uuid": r.tableUUID}).Scan(&back)
	switch {
	case noRows(err):
		return refusePurging(ctx, tx, args)
	case err != nil:
		return err
	case back:
		_, err = tx.Exec(ctx, sqlPassLocations, pgx.NamedArgs{"previous": owner, "owner": r.owner})
	default:
		_, err = tx.Exec(ctx, sqlLeaveFormer, args)
	}
	return err
}

// refusePurging refuses what a purge began with after the place was looked at.
func refusePurging(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	var purging bool
	if err := tx.QueryRow(ctx, sqlPurgeBegan, args).Scan(&purging); err != nil {
		return err
	}
	if purging {
		return fault.New(fault.BadRequest, "the table was dropped with purge and its files are being removed")
	}
	return nil
}

// prefixesOf gives what lies above a key, from the root down, without the key itself.
func prefixesOf(key string) []string {
	var out []string
	for i := range len(key) - 1 {
		if key[i] == '/' {
			out = append(out, key[:i+1])
		}
	}
	return out
}

const sqlReleaseLocations = `DELETE FROM locations WHERE owner_id = @owner`

func releaseLocations(ctx context.Context, tx pgx.Tx, owner uuid.UUID) error {
	_, err := tx.Exec(ctx, sqlReleaseLocations, pgx.NamedArgs{"owner": owner})
	return err
}

const sqlReleaseOtherLocations = `DELETE FROM locations WHERE owner_id = @owner AND location <> @key`

// keepOneLocation releases what a namespace had reserved before; "" releases everything. A namespace's location
// holds no files of its own, so nothing is left behind there that would need protection.
func keepOneLocation(ctx context.Context, tx pgx.Tx, owner uuid.UUID, location string) error {
	if location == "" {
		return releaseLocations(ctx, tx, owner)
	}
	_, err := tx.Exec(ctx, sqlReleaseOtherLocations, pgx.NamedArgs{"owner": owner, "key": vending.Key(location)})
	return err
}
