package catalog

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"catalogd/catalog/commit"
	"catalogd/internal/deflate"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// metadataTextMax bounds the text of a kept copy, as the limit of files does theirs.
const metadataTextMax = 256 << 20

// document gives a table's metadata.
func (s *Service) document(ctx context.Context, w Warehouse, record TableRecord) (*commit.Document, error) {
	return current(ctx, s, w, record, record.parseTable)
}

// parseTable is commit.Parse for the table's own file. A registered v1 table may have no uuid in it; the row has one.
func (r TableRecord) parseTable(text []byte) (*commit.Document, error) {
	d, err := commit.Parse(text)
	if err != nil {
		return nil, err
	}
	return d.WithUUID(r.UUID.String())
}

// current gives the metadata of a table or a view: from memory, else from the copy beside its pointer, else from the
// file. parse reads its text.
func current[D metadataText](ctx context.Context, s *Service, w Warehouse, record TableRecord, parse func([]byte) (D, error)) (D, error) {
	d, _, err := currentEntry(ctx, s, w, record, parse)
	return d, err
}

func currentEntry[D metadataText](
	ctx context.Context, s *Service, w Warehouse, record TableRecord, parse func([]byte) (D, error),
) (D, *metadataEntry, error) {
	var none D
	e, err := s.cache.find(ctx, record.MetadataLocation, func(ctx context.Context) (*metadataEntry, error) {
		text, packed, known, err := s.readMetadata(ctx, w, record)
		if err != nil {
			return nil, fmt.Errorf("read metadata of %s: %w", record.Ident, err)
		}
		d, err := parse(text)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "the metadata file of %s %s cannot be read: %s",
				record.Kind, record.Ident, fault.Message(err))
		}
		if !bytes.Equal(d.JSON(), text) { // a reader may put right what clients could not read
			packed = deflate.Pack(d.JSON())
		}
		if known != (deflate.Digest{}) && deflate.DigestOf(d.JSON()) != known {
			return nil, changedOutside(record)
		}
		return newMetadataEntry(record.MetadataLocation, d, packed), matchesRecord(d, record)
	})
	if err != nil {
		return none, nil, err
	}
	d, ok := e.document.(D)
	if !ok {
		return none, nil, fault.New(fault.Validation, "the metadata file of %s %s is not that of a %s", record.Kind, record.Ident, record.Kind)
	}
	return d, e, nil
}

// readMetadata gives the text of the file that the record names, from the copy in the database where there is one, and
// the digest that it must have; the zero digest where none is kept. A copy that is damaged is not used.
func (s *Service) readMetadata(
	ctx context.Context, w Warehouse, record TableRecord,
) (text []byte, packed deflate.Packed, known deflate.Digest, err error) {
	packed, found, err := s.Store.FindMetadata(ctx, record.ID, record.MetadataLocation)
	if err != nil {
		return nil, packed, known, err
	}
	if found {
		known = packed.Digest
	}
	if found && packed.Blocks != nil {
		text, err := packed.Unpack(metadataTextMax)
		if err == nil {
			return text, packed, known, nil
		}
		s.Log.Error("the copy of a table's metadata in the database is damaged; the file is read instead",
			"table", record.Ident.String(), "metadata", record.MetadataLocation, "cause", err)
	}
	text, err = s.Metadata.ReadMetadata(ctx, serverPlace(w, record, record.MetadataLocation))
	if err != nil {
		return nil, packed, known, err
	}
	return text, deflate.Pack(text), known, nil
}

// matchesRecord refuses a metadata file that says something else than the catalog: whoever may write a table's files
// could else replace it and send the table's readers elsewhere. It is all that protects files of which no digest is
// kept.
func matchesRecord(d metadataText, record TableRecord) error {
	if strings.EqualFold(d.UUID(), record.UUID.String()) && samePlace(d.Location(), record.Location) &&
		checkSteering(d.Properties()) == nil && checkPaths(d) == nil {
		return nil
	}
	return changedOutside(record)
}

func changedOutside(record TableRecord) error {
	return fault.New(fault.Validation, "the metadata file of %s %s was changed outside the catalog: it is not what was committed; restore %s",
		record.Kind, record.Ident, record.MetadataLocation)
}

// serverPlace is a file of a table as the server itself reaches it: with a scope of that table, nothing wider.
func serverPlace(w Warehouse, record TableRecord, path string) vending.FilePlace {
	return vending.FilePlace{
		Profile: w.Storage,
		Scope: vending.Scope{
			Warehouse: w.ID.String(), Named: w.Name, Table: record.ID.String(), Principal: "system:catalog",
			Location: record.Location, Access: vending.ReadWrite,
		},
		Path: path,
	}
}
