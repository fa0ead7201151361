package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog/commit"
	"catalogd/internal/crash"
	"catalogd/internal/deflate"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// metadataText is a table's or a view's metadata, as far as writing it and moving a pointer to it is concerned.
type metadataText interface {
	JSON() []byte
	UUID() string
	Location() string
	Property(name string) (value string, ok bool)
	Properties() map[string]string
}

// plan is what a commit came to for one table or view: work to do, or, with work nil, an answer that stands already.
type plan[D metadataText] struct {
	warehouse Warehouse
	record    TableRecord // with work: as it was; nothing for a creation
	document  D           // as the table or view is after the commit
	work      *pending
}

// pending is one table's or view's new metadata on its way: first the file, then the pointer.
type pending struct {
	ident    Identifier
	change   PointerChange
	document metadataText
	previous string // metadata location before; "" for a creation
}

// CommitTable applies changes to one table, or creates it from a staged create. Lost races are tried again here;
// failed requirements go to the client. After the pointer has moved, nothing can fail the answer.
func (s *Service) CommitTable(ctx context.Context, c Caller, r CommitTableRequest) (LoadedTable, error) {
	return once(ctx, s, c,
		func() (LoadedTable, *Outcome, error) { return s.commitTable(ctx, c, r) },
		func(o Outcome) (LoadedTable, error) { return s.replayCommit(ctx, c, r, o) })
}

func (s *Service) commitTable(ctx context.Context, c Caller, r CommitTableRequest) (LoadedTable, *Outcome, error) {
	// A worker's commit names the head that it was built on. It waits for nobody: while it stood behind writers whose
	// commits will be refused, the head would move, and on a busy table it would never land.
	if r.Fence.JobID == uuid.Nil {
		pass, err := s.turn(ctx, r.Warehouse, r.Ident)
		if err != nil {
			return LoadedTable{}, nil, err
		}
		defer pass()
	}
	p, err := carryOut(ctx, s, r.Fence, func() (plan[*commit.Document], error) {
		return s.planCommit(ctx, c, r.Warehouse, r.Ident, r.Change)
	})
	if err != nil {
		return LoadedTable{}, nil, err
	}
	return s.committed(ctx, c, r.Ident, p), p.left(), nil
}

// committed answers a commit that has landed; nothing may fail it.
func (s *Service) committed(ctx context.Context, c Caller, id Identifier, p plan[*commit.Document]) LoadedTable {
	config, _, err := s.clientConfig(ctx, c, p.warehouse, vendTarget{ident: id}, vending.None)
	if err != nil {
		config = map[string]string{}
	}
	return LoadedTable{
		MetadataLocation: p.record.MetadataLocation, Metadata: p.document.Answer(), Document: p.document, Config: config,
		ETag: s.etag(c, p.warehouse, p.record.MetadataLocation, tagParts{snapshots: SnapshotsAll}),
	}
}

// turn waits until the commits that came earlier for the same name are through, and gives the function that lets the
// next one go.
func (s *Service) turn(ctx context.Context, warehouse string, id Identifier) (func(), error) {
	pass, err := s.turns.take(ctx, turnOf(warehouse, id))
	if err != nil {
		return nil, fault.Wrap(fault.CommitConflict, err, "the request ended while another commit was ahead of it")
	}
	return pass, nil
}

// carryOut plans a commit, writes it and moves its pointer, again and again while another commit is faster. What it
// gives has the record as it is then.
func carryOut[D metadataText](ctx context.Context, s *Service, fence Fence, planned func() (plan[D], error)) (plan[D], error) {
	var p plan[D]
	err := s.retryRaces(ctx, func() error {
		var err error
		if p, err = planned(); err != nil || p.work == nil {
			return err
		}
		work := []pending{*p.work}
		if err := s.writeAndMove(ctx, p.warehouse, work, fence); err != nil {
			return s.unlessMadeMeanwhile(ctx, p.warehouse, work, err)
		}
		p.record = work[0].change.Record
		return nil
	})
	return p, err
}

// left is what is to be kept of a commit whose answer stood already: there is no fact that carries it.
func (p plan[D]) left() *Outcome {
	if p.work != nil {
		return nil
	}
	o := tableOutcome(p.record)
	return &o
}

// retryRaces runs fn again while it loses the race for a pointer, a bounded number of times.
func (s *Service) retryRaces(ctx context.Context, fn func() error) error {
	delay := commitRetryDelayMin
	for try := 0; ; try++ {
		err := fn()
		if !fault.Is(err, fault.CommitRace) {
			return err
		}
		if try == commitRetriesMax {
			return fault.Wrap(fault.CommitConflict, err, "it changed %d times while this commit was tried: refresh and try again", try+1)
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(fault.CommitConflict, ctx.Err(), "the request ended while another commit was ahead of it")
		case <-time.After(delay/2 + rand.N(delay)):
		}
		delay = min(2*delay, commitRetryDelayMax)
	}
}

// planCommit authorises, checks and applies a change to the table as it is now. It writes nothing.
func (s *Service) planCommit(ctx context.Context, c Caller, warehouse string, id Identifier, r commit.Request) (plan[*commit.Document], error) {
	if r.Creates() {
		return s.planCreate(ctx, c, warehouse, id, r)
	}
	n := need{"commit-table", id.String(), authz.TableReadProperties}
	res, err := s.resolveTable(ctx, c, warehouse, id, n)
	if err == nil {
		err = s.authorizeUpdates(ctx, c, res, id, r)
	}
	if err != nil {
		return plan[*commit.Document]{}, s.unlessHeld(ctx, res, r, err)
	}
	if err := checkProperties(r.NewProperties()); err != nil {
		return plan[*commit.Document]{}, err
	}
	w, record := *res.Warehouse, *res.Table
	base, err := s.document(ctx, w, record)
	if err != nil {
		return plan[*commit.Document]{}, err
	}
	stands := plan[*commit.Document]{warehouse: w, record: record, document: base}
	if commit.Held(base, r) {
		return stands, s.repeated(base, r)
	}
	if err := commit.Check(base, r); err != nil {
		return plan[*commit.Document]{}, s.unlessElsewhere(ctx, res, r, err)
	}
	next, changed, err := commit.Apply(base, r, commit.Stamp{Now: s.Now(), MetadataLocation: record.MetadataLocation})
	if err != nil {
		return plan[*commit.Document]{}, err
	}
	if !changed {
		return stands, nil
	}
	if err := res.checkNextTable(base, next); err != nil {
		return plan[*commit.Document]{}, err
	}
	if err := checkReferences(r, next.Location(), record.Location); err != nil {
		return plan[*commit.Document]{}, err
	}
	stands.work = s.swap(c, "commit-table", w, record, next)
	stands.work.change.Maintenance, stands.work.change.Restores = maintenanceFlag(next), restores(res)
	stands.work.change.Record.FormatVersion = next.FormatVersion()
	stands.work.change.Outdated = outdated(base, next)
	stands.document = next
	return stands, nil
}

// swap is the work of moving a table's or a view's pointer to its next metadata.
func (s *Service) swap(c Caller, operation string, w Warehouse, record TableRecord, next metadataText) *pending {
	p := &pending{ident: record.Ident, document: next, previous: record.MetadataLocation}
	p.change = PointerChange{
		WarehouseID: w.ID, Old: record.MetadataLocation, From: record.place(),
		Fact: s.fact(c, operation, record.Ident.String(), w.ID, record.ID),
	}
	if !samePlace(next.Location(), record.Location) {
		p.change.OldLocation = record.Location
	}
	record.Location, record.UUID = next.Location(), uuid.MustParse(next.UUID())
	record.Version++
	p.change.Record = record
	return p
}

// updatePrivileges says which right each kind of update needs; whatever is not named needs TABLE_WRITE_PROPERTIES.
var updatePrivileges = map[string]authz.Privilege{
	"assign-uuid":                 authz.TableAssignUUID,
	"upgrade-format-version":      authz.TableUpgradeFormatVersion,
	"add-schema":                  authz.TableAddSchema,
	"set-current-schema":          authz.TableSetCurrentSchema,
	"add-spec":                    authz.TableAddPartitionSpec,
	"set-default-spec":            authz.TableAddPartitionSpec,
	"add-sort-order":              authz.TableAddSortOrder,
	"set-default-sort-order":      authz.TableSetDefaultSortOrder,
	"add-snapshot":                authz.TableAddSnapshot,
	"set-snapshot-ref":            authz.TableSetSnapshotRef,
	"remove-snapshots":            authz.TableRemoveSnapshots,
	"remove-snapshot-ref":         authz.TableRemoveSnapshotRef,
	"set-location":                authz.TableSetLocation,
	"set-properties":              authz.TableSetProperties,
	"remove-properties":           authz.TableRemoveProperties,
	"set-statistics":              authz.TableSetStatistics,
	"remove-statistics":           authz.TableRemoveStatistics,
	"set-partition-statistics":    authz.TableSetStatistics,
	"remove-partition-statistics": authz.TableRemoveStatistics,
	"remove-partition-specs":      authz.TableRemovePartitionSpecs,
}

func (s *Service) authorizeUpdates(ctx context.Context, c Caller, res Resolution, id Identifier, r commit.Request) error {
	path := res.Path()
	actions := r.Actions()
	asked := map[authz.Privilege]bool{} // a request may hold 100,000 updates of one kind
	for _, action := range actions {
		wanted, ok := updatePrivileges[action]
		if !ok {
			wanted = authz.TableWriteProperties
		}
		if asked[wanted] {
			continue
		}
		asked[wanted] = true
		if err := s.require(ctx, c, res, path, need{"commit-table", id.String(), wanted}); err != nil {
			return err
		}
	}
	if len(actions) == 0 {
		return s.require(ctx, c, res, path, need{"commit-table", id.String(), authz.TableWriteProperties})
	}
	return nil
}

// writeAndMove writes each table's or view's metadata file, then moves all pointers in one transaction. Once a file is being
// written the client's disconnect no longer matters; the work has a deadline of its own. Files are removed again
// only when it is certain that no pointer will ever name them. The records in work get their metadata locations.
func (s *Service) writeAndMove(ctx context.Context, w Warehouse, work []pending, fence Fence) error {
	if err := ctx.Err(); err != nil { // computing the change took too long: the client has given up, it must not land now
		return fault.Wrap(fault.Busy, err, "the request's time was over before anything was written; nothing was changed")
	}
	if err := s.checkPlaces(ctx, w, work); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitAfterWriteMax)
	defer cancel()
	if err := s.writeFiles(ctx, w, work); err != nil {
		return err
	}
	changes := make([]PointerChange, len(work))
	for i, p := range work {
		changes[i] = p.change
	}
	// One fact of the transaction carries the outcome. A transaction of several tables answers nothing, so it does
	// not matter whose it is.
	changes[0].Fact = remember(changes[0].Fact, tableOutcome(changes[0].Record))
	if err := s.movePointers(ctx, changes, fence); err != nil {
		if !fault.Is(err, fault.CommitUnknown) {
			s.removeFiles(ctx, w, work)
		}
		return err
	}
	for _, p := range work {
		s.cache.put(newMetadataEntry(p.change.Record.MetadataLocation, p.document, p.change.Packed))
	}
	return nil
}

// writeFiles writes the metadata files of all tables, a few at a time, or leaves none.
func (s *Service) writeFiles(ctx context.Context, w Warehouse, work []pending) error {
	errs := inParallel(len(work), s.parallelTables, func(i int) error { return s.writeFile(ctx, w, &work[i]) })
	for _, err := range errs {
		if err == nil {
			continue
		}
		for i, e := range errs {
			if e == nil {
				s.removeFiles(ctx, w, work[i:i+1])
			}
		}
		return err
	}
	return nil
}

// writeFile writes one table's or view's metadata file and puts its place into the record.
func (s *Service) writeFile(ctx context.Context, w Warehouse, p *pending) error {
	if p.previous == "" && p.change.Record.Kind == KindTable {
		if err := s.Metadata.PrepareTable(ctx, serverPlace(w, p.change.Record, p.document.Location())); err != nil {
			return fmt.Errorf("prepare location of %s: %w", p.ident, err)
		}
	}
	p.change.Record.MetadataLocation = commit.MetadataFolder(p.document) + "/" +
		commit.FileName(p.previous, uuid.NewString(), commit.Compressed(p.document))
	crash.Point("commit-before-metadata")
	at := serverPlace(w, p.change.Record, p.change.Record.MetadataLocation)
	if err := s.Metadata.WriteMetadata(ctx, at, p.document.JSON()); err != nil {
		kind := fault.Internal
		if fault.Is(err, fault.Busy) { // the store does not answer: no fault of the server's, and a later try may work
			kind = fault.Busy
		}
		return fault.Wrap(kind, err, "the metadata file of %s %s in warehouse %s could not be written, nothing changed: %s",
			p.change.Record.Kind, p.ident, w.Name, fault.Message(err))
	}
	crash.Point("commit-after-metadata")
	p.change.Packed = deflate.Pack(p.document.JSON())
	return nil
}

// movePointers commits changes whose files are there. Only fault.CommitUnknown leaves it open whether they landed.
func (s *Service) movePointers(ctx context.Context, changes []PointerChange, fence Fence) error {
	err := s.Store.CommitPointers(ctx, changes, fence)
	if fault.Is(err, fault.CommitUnknown) {
		err = s.settle(ctx, changes[0].Fact.ID, err)
	}
	crash.Point("commit-after-pointer")
	return err
}

// checkPlaces refuses locations that overlap somebody else's before anything is written there; the transaction holds
// them against all others again. Only locations that a client chose can overlap: the server's own hold a fresh uuid.
func (s *Service) checkPlaces(ctx context.Context, w Warehouse, work []pending) error {
	var asked []PointerChange
	chosen := false
	for _, p := range work {
		own := vending.Key(p.change.Record.Location) == vending.Key(defaultTableLocation(w, p.change.Record.UUID))
		chosen = chosen || p.change.OldLocation != "" || p.previous == "" && !own
		asked = append(asked, p.change)
	}
	if !chosen {
		return nil
	}
	return s.Store.CheckPlaces(ctx, asked)
}

func (s *Service) removeFiles(ctx context.Context, w Warehouse, work []pending) {
	for _, p := range work {
		s.Metadata.RemoveMetadata(ctx, serverPlace(w, p.change.Record, p.change.Record.MetadataLocation))
	}
}

// settle asks the database what became of a commit whose answer was lost. Nil: it landed. fault.CommitRace: it did
// not and never will, so it may be tried again. fault.CommitUnknown: nobody could tell before the deadline.
func (s *Service) settle(ctx context.Context, commitID uuid.UUID, unknown error) error {
	ctx, cancel := settleTime(ctx)
	defer cancel()
	delay := commitRetryDelayMin
	for {
		landed, err := s.Store.CommitLanded(ctx, commitID)
		if err == nil && landed {
			return nil
		}
		if err == nil {
			return fault.Wrap(fault.CommitRace, unknown, "the commit did not land")
		}
		select {
		case <-ctx.Done():
			return fault.Wrap(fault.CommitUnknown, errors.Join(unknown, err),
				"the outcome of the commit is unknown: load the table to see whether it landed; nothing was deleted")
		case <-time.After(delay/2 + rand.N(delay)):
		}
		delay = min(2*delay, commitRetryDelayMax)
	}
}

// settleTime gives the question for an outcome some time of its own, also when the commit's is over: it may have stood behind
// somebody's lock until then, and then it can still be called off.
func settleTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(settleMin)
	if given, ok := ctx.Deadline(); ok && given.After(deadline) {
		deadline = given
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline)
}
