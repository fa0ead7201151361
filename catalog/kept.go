package catalog

import (
	"context"

	"github.com/google/uuid"

	"catalogd/internal/deflate"
)

// PackedBytesMax is the size, compressed, up to which a metadata document is kept in the database: some ten megabytes of
// text. The commits of larger tables write their file alone, and a server's first load of one reads that file.
const PackedBytesMax = 1 << 20

// MetadataStore keeps the digests, and copies, of the metadata files that pointers name now, so that a load needs no
// object store and believes no file that somebody else wrote. A commit brings both with its pointer
// (PointerChange.Packed), in one transaction.
type MetadataStore interface {
	// FindMetadata gives what is kept of exactly this metadata file of the table or view with the row's id: without Blocks
	// when the text is too large to be kept; false when it is not the current file any more, or a server wrote it that
	// kept nothing yet.
	FindMetadata(ctx context.Context, id uuid.UUID, metadataLocation string) (packed deflate.Packed, found bool, err error)
}
