package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/deflate"
)

// The row stands behind the pointer's own lock, which the same transaction holds. A change that touched no pointer must
// leave nothing here either: its transaction is rolled back.
const sqlKeepMetadata = `
INSERT INTO table_metadata (table_id, metadata_location, bytes, checksum, digest, packed)
SELECT tables.id, tables.metadata_location, @bytes, @checksum, @digest, @packed
FROM tables WHERE tables.id = @id AND tables.metadata_location = @metadata
ON CONFLICT (table_id) DO UPDATE
SET metadata_location = EXCLUDED.metadata_location, bytes = EXCLUDED.bytes, checksum = EXCLUDED.checksum,
    digest = EXCLUDED.digest, packed = EXCLUDED.packed`

const sqlForgetMetadata = `DELETE FROM table_metadata WHERE table_id = @id`

// queueMetadata keeps the copy of the metadata that a pointer names from now on, or drops that of the one before.
func queueMetadata(batch *pgx.Batch, c catalog.PointerChange) {
	switch {
	case c.Packed.Bytes > 0:
		blocks := c.Packed.Blocks
		if len(blocks) > catalog.PackedBytesMax {
			blocks = nil
		}
		batch.Queue(sqlKeepMetadata, pgx.NamedArgs{
			"id": c.Record.ID, "metadata": c.Record.MetadataLocation, "bytes": c.Packed.Bytes,
			"checksum": int64(c.Packed.Checksum), "digest": c.Packed.Digest[:], "packed": blocks,
		})
	case c.Old != "":
		batch.Queue(sqlForgetMetadata, pgx.NamedArgs{"id": c.Record.ID})
	}
}

const sqlFindMetadata = `
SELECT bytes, checksum, digest, packed FROM table_metadata WHERE table_id = @id AND metadata_location = @metadata`

// FindMetadata gives what is kept of a table's or a view's current metadata file.
func (s *Store) FindMetadata(ctx context.Context, id uuid.UUID, metadataLocation string) (deflate.Packed, bool, error) {
	var p deflate.Packed
	found := false
	err := s.read(ctx, func(q querier) error {
		var checksum int64
		var digest []byte
		err := q.QueryRow(ctx, sqlFindMetadata, pgx.NamedArgs{"id": id, "metadata": lookup(metadataLocation)}).
			Scan(&p.Bytes, &checksum, &digest, &p.Blocks)
		p.Checksum, found = uint32(checksum), err == nil
		copy(p.Digest[:], digest)
		if noRows(err) {
			return nil
		}
		return err
	})
	return p, found, err
}
