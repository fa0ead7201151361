package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"catalogd/authz"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

// Limits of transactions.
const (
	transactionTablesMax = 256
	// transactionBytesMax bounds the metadata that one transaction holds in memory until it has been written.
	transactionBytesMax = 256 << 20
	// transactionParallelMax is how many tables of one transaction are resolved, read or written at a time.
	transactionParallelMax = 8
)

// CommitTransaction applies changes to several tables, all or none.
func (s *Service) CommitTransaction(ctx context.Context, c Caller, warehouse string, changes []TableChange) error {
	if err := checkTransaction(changes); err != nil {
		return err
	}
	return s.onceSilent(ctx, c, warehouse, func() (*Outcome, error) { return s.commitTransaction(ctx, c, warehouse, changes) })
}

func (s *Service) commitTransaction(ctx context.Context, c Caller, warehouse string, changes []TableChange) (*Outcome, error) {
	keys := make([]string, len(changes))
	for i, ch := range changes {
		keys[i] = turnOf(warehouse, ch.Ident)
	}
	pass, err := s.turns.takeAll(ctx, keys)
	if err != nil {
		return nil, fault.Wrap(fault.CommitConflict, err, "the request ended while another commit was ahead of it")
	}
	defer pass()
	var left *Outcome
	err = s.retryRaces(ctx, func() error {
		w, work, err := s.planTransaction(ctx, c, warehouse, changes)
		if err != nil {
			return err
		}
		if len(work) == 0 {
			left = &Outcome{}
			return nil
		}
		if err := s.writeAndMove(ctx, w, work, Fence{}); err != nil {
			return s.unlessMadeMeanwhile(ctx, w, work, err)
		}
		return nil
	})
	return left, err
}

// planTransaction plans every table's part as planCommit does. It writes nothing; the first refusal, in the order of the
// request, is the answer.
func (s *Service) planTransaction(ctx context.Context, c Caller, warehouse string, changes []TableChange) (Warehouse, []pending, error) {
	plans := make([]plan[*commit.Document], len(changes))
	var held atomic.Int64
	errs := inParallel(len(changes), s.parallelTables, func(i int) error {
		var err error
		plans[i], err = s.planCommit(ctx, c, warehouse, changes[i].Ident, changes[i].Change)
		if err != nil || plans[i].work == nil {
			plans[i].document = nil // it is not needed any more
			return err
		}
		if held.Add(int64(len(plans[i].work.document.JSON()))) > s.transactionBytes {
			return fault.New(fault.TooLarge, "the metadata of the transaction's tables is longer than %d bytes together: "+
				"commit fewer tables at a time, or expire snapshots", s.transactionBytes)
		}
		return nil
	})
	for _, err := range errs {
		if err != nil {
			return Warehouse{}, nil, s.unlessRepeated(ctx, c, warehouse, changes, err)
		}
	}
	var work []pending
	landed := false // a part's snapshots are in its table already
	for i, p := range plans {
		if p.work == nil {
			landed = landed || changes[i].Change.AddsSnapshots()
			continue
		}
		if slices.ContainsFunc(work, p.work.sameRow) { // spelled otherwise, where names are folded
			return Warehouse{}, nil, namedTwice(changes[i].Ident)
		}
		work = append(work, *p.work)
	}
	if landed && len(work) > 0 { // all of it landed together, so what is missing now was changed again since
		return Warehouse{}, nil, errPartlyThere
	}
	return plans[0].warehouse, work, nil
}

// errPartlyThere neither acknowledges what is not there nor makes the client delete live files.
var errPartlyThere = fault.New(fault.CommitUnknown, "snapshots of this transaction are in their tables already, but the rest of it is not, "+
	"or has been changed since: load the tables to see; nothing was changed or deleted")

// unlessRepeated is the refusal of a part of a transaction, but for the repeat of one that landed: its own changes, or
// what came after them, may be what the refused requirement fails on, and a clean refusal would make its client delete
// files of the tables that took them. Nil: all of the transaction is there.
func (s *Service) unlessRepeated(ctx context.Context, c Caller, warehouse string, changes []TableChange, refused error) error {
	if !finalRefusals[fault.KindOf(refused)] && !fault.Is(refused, fault.Forbidden) {
		return refused
	}
	if !slices.ContainsFunc(changes, func(ch TableChange) bool { return s.heldNow(ctx, c, warehouse, ch) }) {
		return refused
	}
	for _, ch := range changes {
		if err := s.landedPart(ctx, c, warehouse, ch); err != nil {
			return fault.Wrap(fault.CommitUnknown, errors.Join(refused, err), "%s", errPartlyThere.Message)
		}
	}
	return nil
}

// heldNow tells whether a part's snapshots are in its table already.
func (s *Service) heldNow(ctx context.Context, c Caller, warehouse string, ch TableChange) bool {
	if !ch.Change.AddsSnapshots() {
		return false
	}
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse, Namespace: ch.Ident.Namespace, Table: ch.Ident.Name})
	if err != nil {
		return false
	}
	if res.Table != nil {
		if base, err := s.document(ctx, *res.Warehouse, *res.Table); err == nil && commit.Held(base, ch.Change) {
			return true
		}
	}
	return s.heldElsewhere(ctx, res, ch.Change)
}

// landedPart is nil when a part of a transaction that came again has nothing left to do.
func (s *Service) landedPart(ctx context.Context, c Caller, warehouse string, ch TableChange) error {
	res, err := s.resolveTable(ctx, c, warehouse, ch.Ident, need{"commit-table", ch.Ident.String(), authz.TableReadProperties})
	if err != nil {
		return err
	}
	if ch.Change.Creates() && !strings.EqualFold(ch.Change.AssignedUUID(), res.Table.UUID.String()) {
		return errPartlyThere
	}
	base, err := s.document(ctx, *res.Warehouse, *res.Table)
	if err != nil {
		return err
	}
	return s.repeated(base, ch.Change)
}

func checkTransaction(changes []TableChange) error {
	if len(changes) == 0 {
		return fault.New(fault.BadRequest, "table-changes is empty")
	}
	if len(changes) > transactionTablesMax {
		return fault.New(fault.TooLarge, "a transaction names %d tables; at most %d are allowed", len(changes), transactionTablesMax)
	}
	seen := map[string]bool{}
	for _, ch := range changes {
		key := fmt.Sprintf("%q", ch.Ident)
		if seen[key] {
			return namedTwice(ch.Ident)
		}
		seen[key] = true
	}
	return nil
}

// inParallel runs fn for 0 to n-1, limit at a time, and gives the errors by number. After an error
// nothing new is begun; what has not been begun has errNotBegun. What is begun is begun in order, so the first error
// that is there is the one that running one after the other would have met.
func inParallel(n, limit int, fn func(i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = fn(0)
		return errs
	}
	var next atomic.Int64
	var failed atomic.Bool
	var panicked atomic.Value // raised again where the request can be answered
	var group sync.WaitGroup
	for range min(n, limit) {
		group.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					failed.Store(true)
					panicked.Store(fmt.Sprintf("%v\n%s", v, debug.Stack()))
				}
			}()
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if errs[i] = fn(i); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	if v := panicked.Load(); v != nil {
		panic(v)
	}
	for i := int(next.Load()); i < n; i++ {
		errs[i] = errNotBegun
	}
	return errs
}

var errNotBegun = fault.New(fault.Internal, "not begun: another table of the transaction had failed")

func namedTwice(id Identifier) error {
	return fault.New(fault.BadRequest, "table %s is named twice in one transaction", id)
}

// sameRow tells whether both changes are one table's.
func (p pending) sameRow(other pending) bool { return p.change.Record.ID == other.change.Record.ID }
