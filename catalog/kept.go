package catalog

import (
	"context"

	"github.com/google/uuid"

	"catalogd/internal/deflate"
)

// PackedBytesMax is the size, compressed, up to which a metadata document is kept in the database: some ten megabytes of
// text. The commits of larger tables write their file alone, and a server's first load of one reads that file.
const PackedBytesMax = 1 << 20

// MetadataStore keeps copies of the metadata files that pointers name now, so that a load needs no object store. A commit
// brings the copy with its pointer (PointerChange.Packed), in one transaction.
type MetadataStore interface {
	// FindMetadata gives the kept copy of exactly this metadata file of the table or view with the row's id; false when
	// there is none, because the file is too large, or is not the current one any more.
	FindMetadata(ctx context.Context, id uuid.UUID, metadataLocation string) (packed deflate.Packed, found bool, err error)
}
