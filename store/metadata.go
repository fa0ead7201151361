package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/deflate"
)

// A change that moved no pointer, and so has no event, leaves everything as it is.
const sqlForgetMetadata = `
DELETE FROM table_metadata WHERE table_id = @id AND EXISTS (SELECT 1 FROM events WHERE id = @event)`

// packedArgs are the parameters of what is kept of a metadata file.
func packedArgs(args pgx.NamedArgs, p deflate.Packed) {
	blocks := p.Blocks
	if len(blocks) > catalog.PackedBytesMax {
		blocks = nil
	}
	args["bytes"], args["checksum"], args["digest"], args["packed"] = p.Bytes, int64(p.Checksum), p.Digest[:], blocks
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
