package store

import (
	"context"
	"regexp"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"catalogd/catalog"
)

// A pointer and all that goes with it is one statement: each part of a statement costs less than a statement of its own.
// The parts behind the pointer's take their row from it, so that they write nothing when it has not moved.

// A table that was renamed since the commit was planned is not the one that was meant: who asked for that name again may
// have been told that there is none, and what he was told must stay true. The warehouse is compared in a way that no index
// serves: while the database knows nothing of how many tables a warehouse has, it would else look through them all.
const sqlSwapPointer = `
UPDATE tables
SET table_uuid = @uuid, location = @location, metadata_location = @metadata, format_version = @format,
    version = version + 1, updated_at = @at
WHERE id = @id AND warehouse_id IS NOT DISTINCT FROM @warehouse AND kind = @kind AND metadata_location = @old AND ` + stillThere + `
RETURNING id`

// The warehouse comes from the namespace, so that a table can never be in two warehouses at once.
const sqlInsertTable = `
INSERT INTO tables (id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, metadata_location, format_version,
                    version, created_at, updated_at, owner_id)
VALUES (@id, @warehouse, @namespace, @kind, @name,
        (SELECT @name_key::text FROM warehouses WHERE id = @warehouse AND folds_names), @uuid, @location, @metadata, @format,
        1, @at, @at, @owner::uuid)
ON CONFLICT DO NOTHING
RETURNING id`

// besidePointer is the rest of the statement. dirty_since stays the oldest moment that no look has seen.
const besidePointer = `,
marked AS (
    INSERT INTO table_maintenance (table_id, enabled, dirty_since, updated_at)
    SELECT moved.id, @enabled, now(), @at FROM moved WHERE @kind = 'table'
    ON CONFLICT (table_id) DO UPDATE
    SET enabled = EXCLUDED.enabled, dirty_since = coalesce(table_maintenance.dirty_since, EXCLUDED.dirty_since),
        updated_at = EXCLUDED.updated_at
), kept AS (
    INSERT INTO table_metadata (table_id, metadata_location, bytes, checksum, digest, packed)
    SELECT moved.id, @metadata, @bytes::bigint, @checksum::bigint, @digest::bytea, @packed::bytea FROM moved WHERE @bytes::bigint > 0
    ON CONFLICT (table_id) DO UPDATE
    SET metadata_location = EXCLUDED.metadata_location, bytes = EXCLUDED.bytes, checksum = EXCLUDED.checksum,
        digest = EXCLUDED.digest, packed = EXCLUDED.packed
), told AS (` + sqlInsertEvent + ` FROM moved
), audited AS (` + sqlInsertAudit + ` FROM moved
)
SELECT count(*) FROM moved`

const sqlMovePointer = `WITH moved AS (` + sqlSwapPointer + `)` + besidePointer

const sqlMakePointer = `WITH moved AS (` + sqlInsertTable + `)` + besidePointer

// What runs with each commit is read once.
var movePointer, makePointer = numbered(sqlMovePointer), numbered(sqlMakePointer)

// statement is a statement with its parameters' numbers, and their names in that order.
type statement struct {
	text  string
	names []string
}

var parameterName = regexp.MustCompile(`@(\w+)`)

// numbered gives numbers to a statement's named parameters.
func numbered(text string) statement {
	named := pgx.NamedArgs{}
	for _, found := range parameterName.FindAllStringSubmatch(text, -1) {
		named[found[1]] = found[1]
	}
	text, values, err := named.RewriteQuery(context.Background(), nil, text, nil)
	if err != nil { // of constants: cannot happen
		panic(err)
	}
	s := statement{text: text}
	for _, name := range values {
		s.names = append(s.names, name.(string))
	}
	return s
}

// queue adds the statement to a batch.
func (s statement) queue(batch *pgx.Batch, named pgx.NamedArgs) *pgx.QueuedQuery {
	values := make([]any, len(s.names))
	for i, name := range s.names {
		values[i] = named[name]
		if id, ok := values[i].(uuid.UUID); ok {
			values[i] = pgtype.UUID{Bytes: id, Valid: true} // which goes as it is; the other as text
		}
	}
	return batch.Queue(s.text, values...)
}

// queuePointer adds one change to a batch: what is written when its pointer moves, and nothing else. It tells in moved,
// when the batch is closed, whether it did.
func queuePointer(batch *pgx.Batch, c catalog.PointerChange, moved *bool) error {
	args, err := factArgs(c.Fact)
	if err != nil {
		return err
	}
	r := c.Record
	args["id"], args["kind"], args["metadata"], args["uuid"] = r.ID, string(r.Kind), r.MetadataLocation, r.UUID
	args["location"], args["format"], args["enabled"] = r.Location, r.FormatVersion, c.Maintenance != nil && *c.Maintenance
	packedArgs(args, c.Packed)
	part := makePointer
	if c.Old != "" {
		part, args["old"] = movePointer, c.Old
		args["from"], args["from_name"] = nullable(c.From.NamespaceID), storable(c.From.Name)
	} else {
		args["namespace"], args["name"], args["name_key"] = r.NamespaceID, r.Ident.Name, fold(r.Ident.Name)
		args["owner"] = nullable(r.OwnerID)
	}
	args["warehouse"] = c.WarehouseID
	part.queue(batch, args).QueryRow(func(row pgx.Row) error {
		var rows int
		err := row.Scan(&rows)
		*moved = rows == 1
		return err
	})
	if c.Packed.Bytes == 0 && c.Old != "" {
		batch.Queue(sqlForgetMetadata, pgx.NamedArgs{"id": r.ID, "event": c.Fact.ID})
	}
	queueOutdated(batch, c)
	return queueOutcome(batch, c.Fact)
}
