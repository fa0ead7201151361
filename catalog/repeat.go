package catalog

import (
	"context"
	"strings"

	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// A commit may come again after it has landed, because its answer was lost. A clean refusal would make its client delete
// files that are the table's by now.

// unlessHeld is the refusal of a commit for want of rights, but for the repeat of one that landed while they were there: a
// clean refusal would make its client delete files of the table. Who knows the snapshot's files has brought them.
func (s *Service) unlessHeld(ctx context.Context, res Resolution, r commit.Request, refused error) error {
	if !fault.Is(refused, fault.Forbidden) || res.Table == nil || !r.AddsSnapshots() {
		return s.unlessElsewhere(ctx, res, r, refused)
	}
	base, err := s.document(ctx, *res.Warehouse, *res.Table)
	if err != nil || !commit.Held(base, r) {
		return s.unlessElsewhere(ctx, res, r, refused)
	}
	return landedBefore(refused)
}

// unlessElsewhere is the refusal of a commit by what has the table's name now, but for the repeat of one that landed before
// its table got another name, or was dropped.
func (s *Service) unlessElsewhere(ctx context.Context, res Resolution, r commit.Request, refused error) error {
	if !s.heldElsewhere(ctx, res, r) {
		return refused
	}
	return fault.Wrap(fault.CommitUnknown, refused, "the commit landed before, and its table has another name now, or was dropped: "+
		"nothing was changed or deleted; %s", fault.Message(refused))
}

// unlessMadeMeanwhile is the refusal of a commit, but for that of a creation whose table is there by now: the same request
// was under way on another server. fault.CommitRace then: planned anew it is the repeat that it is.
func (s *Service) unlessMadeMeanwhile(ctx context.Context, w Warehouse, work []pending, refused error) error {
	if !fault.Is(refused, fault.AlreadyExists) && !fault.Is(refused, fault.BadRequest) {
		return refused
	}
	for _, p := range work {
		r := p.change.Record
		if p.previous != "" || r.Kind != KindTable {
			continue
		}
		made, err := s.Store.FindTableByFile(ctx, w.ID, strings.TrimRight(r.Location, "/")+"/metadata")
		if err == nil && made != nil && made.UUID == r.UUID && isCalled(w, made.Ident, p.ident) {
			return fault.Wrap(fault.CommitRace, refused, "table %s was made by another request", p.ident)
		}
	}
	return refused
}

// isCalled tells whether a table's name is the one that was asked for, as the warehouse compares names.
func isCalled(w Warehouse, name, asked Identifier) bool {
	if w.FoldsNames {
		return strings.EqualFold(name.String(), asked.String())
	}
	return name.String() == asked.String()
}

// heldElsewhere tells whether a snapshot that the request adds is that of a table which has not the name that was asked
// for. Its files lie in that table's place.
func (s *Service) heldElsewhere(ctx context.Context, res Resolution, r commit.Request) bool {
	if res.Warehouse == nil || !r.AddsSnapshots() {
		return false
	}
	paths := r.ReferencedPaths()
	if len(paths) == 0 || len(paths[0]) > metadataLocationBytesMax || res.Table != nil && vending.Within(res.Table.Location, paths[0]) {
		return false
	}
	record, err := s.Store.FindTableByFile(ctx, res.Warehouse.ID, paths[0])
	if err != nil || record == nil {
		return false
	}
	base, err := s.document(ctx, *res.Warehouse, *record)
	return err == nil && commit.Held(base, r)
}

// landedBefore is a refusal that must not read as one.
func landedBefore(refused error) error {
	return fault.Wrap(fault.CommitUnknown, refused, "the commit landed before, and now you may not see what it made: nothing was changed or deleted; %s",
		fault.Message(refused))
}

// repeated judges a commit whose snapshots are all in the table. Nil: it has landed whole, and its repeat is answered as
// the table stands. Else nobody can tell a repeat whose other changes were changed again from a request that is new:
// the answer is "unknown", which neither acknowledges what is not there nor makes the client delete live files.
func (s *Service) repeated(base *commit.Document, r commit.Request) error {
	rest := r.Rest()
	if err := commit.Check(base, rest); err != nil {
		return err
	}
	if commit.Landed(base, r) || !r.AddsSnapshots() {
		_, changed, err := commit.Apply(base, rest, commit.Stamp{Now: s.Now()})
		if err == nil && !changed {
			return nil
		}
	}
	return fault.New(fault.CommitUnknown, "the snapshots of this commit are in the table already, but the rest of it is not, "+
		"or has been changed since: load the table to see; nothing was changed or deleted")
}
