package commit

import (
	"time"

	"catalogd/internal/fault"
)

// Stamp is what a commit needs from outside.
type Stamp struct {
	Now              time.Time // the server's clock
	MetadataLocation string    // of the base, for metadata-log; "" when the base was never written
}

// Apply makes the request's updates on base, without checking its requirements (Check does). changed is false, and
// next is base, when nothing had to change: then no file is to be written. Errors are fault.Validation and
// fault.IllegalArgument for what the table cannot take, fault.CommitConflict for a snapshot that must be renumbered.
// Request and base stay as they are, so a lost race can be tried again on a newer base.
func Apply(base *Document, r Request, s Stamp) (next *Document, changed bool, err error) {
	d := draftOf(base, s.Now.UnixMilli())
	for _, u := range r.Updates {
		if err := u.change.apply(d); err != nil {
			return nil, false, err
		}
	}
	if !d.changed {
		return base, false, nil
	}
	next, err = d.finish(s.MetadataLocation)
	return next, err == nil, err
}

// finish checks the draft as a whole and writes it.
func (d *draft) finish(previous string) (*Document, error) {
	if d.version > 1 && d.uuid == "" {
		return nil, fault.New(fault.Validation, "UUID is required in format v%d", d.version)
	}
	if err := d.checkDefaults(); err != nil {
		return nil, err
	}
	edits, err := d.edits(previous)
	if err != nil {
		return nil, err
	}
	w := writer{draft: d}
	text := w.document(edits)
	next, err := index(text, w.placed())
	if err != nil {
		return nil, fault.New(fault.Validation, "Cannot commit: the new metadata would be invalid: %v", err)
	}
	return next, nil
}

// checkDefaults refuses a current schema that lacks what the default spec and order need. Older specs and orders may
// speak of columns that are gone: they are never bound again.
func (d *draft) checkDefaults() error {
	if !d.schemaMoved && !d.specMoved && !d.orderMoved {
		return nil
	}
	s, err := d.currentSchema()
	if err != nil {
		return err
	}
	if d.schemaMoved || d.specMoved {
		spec, err := parseSpec(find(d.specs.parts, d.specs.selected))
		if err != nil {
			return fault.New(fault.Validation, "table metadata: %v", err)
		}
		if err := spec.checkFits(s); err != nil {
			return err
		}
	}
	if d.schemaMoved || d.orderMoved {
		order, err := parseOrder(find(d.orders.parts, d.orders.selected))
		if err != nil {
			return fault.New(fault.Validation, "table metadata: %v", err)
		}
		return order.checkFits(s)
	}
	return nil
}
