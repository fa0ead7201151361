package maintenance

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/crash"
	"catalogd/internal/fault"
	"catalogd/maintenance/manifest"
	"catalogd/vending"
)

// phaseRemoving is a purge's only phase.
const phaseRemoving = "removing"

// Reason codes of purges.
const (
	CodeGCDisabled = "gc-disabled" // the table's property gc.enabled is false
	CodeTableBack  = "table-back"  // the table, or another one, has the place
	CodeOverlap    = "overlap"     // the location lies in another table's
	CodeUnreadable = "unreadable"  // the metadata does not say for sure which files are the table's
)

// Limits of purges.
const (
	purgeBatchFiles = 1000    // what an object store removes in one request
	purgeSeenMax    = 1 << 20 // manifests that are remembered; beyond, some are asked for twice
)

// Reasons why a file of a purged table stays.
const (
	skipOutside   = "outside"   // not below the table's own location
	skipNeighbour = "neighbour" // below another table's location
)

// purge is one claim of a purge at work. It removes what a dropped table's metadata names, from the leaves up: data and
// delete files before the manifest that lists them, manifests before their list, the table's metadata file last. So
// what is still there says what is left to do, and a claim after a crash goes on where the last one ended.
type purge struct {
	job     Job
	lease   Lease
	env     environment
	log     *slog.Logger
	outcome Outcome

	dropped    catalog.DroppedTable
	files      Files
	neighbours []string // keys of other owners' locations in or around the table's
	seen       map[[16]byte]struct{}
	tiers      [purgeTiers][]string // waiting to be removed, in this order
	waiting    int
	unsettled  int64 // files that wait, or are gone, and that something names which does not wait yet
	shown      time.Time
}

// The tiers of files: those of one are removed when those before it are gone.
const (
	tierLeaves = iota
	tierManifests
	tierLists
	purgeTiers
)

func (w *Worker) purge(claim *Claim) *purge {
	p := &purge{
		job: claim.Job, lease: claim.Job.Lease(), env: w.env, log: w.log, outcome: claim.Job.Outcome,
		seen: map[[16]byte]struct{}{},
	}
	// What the attempt before had removed, and this one comes upon again, is counted once. What it left out as well.
	p.outcome.FilesRemoved -= p.outcome.FilesUnsettled
	p.outcome.FilesUnsettled = 0
	p.outcome.FilesSkipped = nil
	return p
}

func (p *purge) figures() Outcome { return p.outcome }

// removeOwn: a purge writes no files.
func (p *purge) removeOwn(context.Context, map[string]bool) {}

// giveUp ends a purge whose workers died too often. What is left stays, and the place stays reserved.
func (p *purge) giveUp(context.Context) (Finish, error) {
	reason := attemptsOver(p.job)
	reason.Message += purgeRemains(p.job, p.job.Outcome)
	return Finish{State: Failed, Outcome: p.job.Outcome, Reason: reason}, nil
}

// purgeRemains says how far a failed purge came, and what to do.
func purgeRemains(j Job, o Outcome) string {
	return fmt.Sprintf("; %d files were removed before that, the others stay and so does the reserved place: when the cause is mended, "+
		"`catalogd maintenance retry %s` removes them", o.FilesRemoved, j.ID)
}

// run works until the job has an end.
func (p *purge) run(ctx context.Context) (Finish, error) {
	crash.Point("purge-claimed")
	begun, err := p.env.store.BeginPurge(ctx, p.lease)
	if err != nil {
		return Finish{}, err
	}
	if !begun {
		return p.tableBack(), nil
	}
	document, end, err := p.load(ctx)
	if err != nil || document == nil {
		return end, err
	}
	references, err := document.References()
	if err != nil {
		return p.refused(CodeUnreadable, fault.Message(err)), nil
	}
	if references.Inline > 0 {
		return p.refused(CodeUnreadable, fmt.Sprintf("%d snapshots list their manifests in the metadata file, as old tables do; "+
			"this server does not follow them: no file was removed", references.Inline)), nil
	}
	logged, err := document.MetadataLog()
	if err != nil {
		return p.refused(CodeUnreadable, fault.Message(err)), nil
	}
	p.files, err = p.env.open(ctx, p.dropped.Warehouse.Storage, vending.Scope{
		Warehouse: p.dropped.Warehouse.ID.String(), Named: p.dropped.Warehouse.Name, Table: p.dropped.Record.ID.String(), Principal: auth.MaintenancePrincipal().Name,
		Location: p.dropped.Record.Location, Access: vending.ReadWrite,
	})
	if err != nil {
		return Finish{}, fmt.Errorf("open the files of dropped table %s: %w", p.job.Subject, err)
	}
	if err = p.refuseSuccessor(document, logged); err == nil {
		err = p.removeAll(ctx, references, logged)
	}
	if err == nil {
		p.outcome.FilesUnsettled = 0
	}
	var no refusal
	switch {
	case errors.Is(err, errTableBack):
		return p.tableBack(), nil
	case errors.As(err, &no):
		return p.refused(no.reason.Code, no.reason.Message), nil
	}
	if err != nil {
		return Finish{}, err
	}
	return p.done(), nil
}

// load reads the dropped table's metadata. Without a document the purge has its end.
func (p *purge) load(ctx context.Context) (*commit.Document, Finish, error) {
	dropped, document, err := p.env.tables.LoadDropped(ctx, systemCaller(p.job.ID.String()), p.job.TableID)
	p.dropped = dropped
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, p.tableBack(), nil
	case fault.Is(err, fault.FileNotFound) && (p.outcome.FilesRemoved > 0 || p.job.Epoch > 1):
		p.outcome = p.job.Outcome
		p.outcome.FilesUnsettled = 0
		return nil, p.done(), nil // the last file of a purge that was cut off right before its end
	case fault.Is(err, fault.FileNotFound):
		return nil, Finish{State: Succeeded, Outcome: p.outcome, Dropped: DroppedForgotten, Reason: Reason{CodeDone,
			"the table's metadata file is gone: what else there was is not known"}}, nil
	case fault.Is(err, fault.Validation):
		return nil, p.refused(CodeUnreadable, fault.Message(err)), nil
	case err != nil:
		return nil, Finish{}, err
	}
	if value, set := document.Property("gc.enabled"); set && strings.EqualFold(strings.TrimSpace(value), "false") {
		return nil, Finish{State: NothingToDo, Outcome: p.outcome, Dropped: DroppedKept, Reason: Reason{CodeGCDisabled,
			"the purge was skipped: the table has gc.enabled=false, so its files may be shared; no file was removed. Register " +
				dropped.Record.MetadataLocation + " to have the table back"}}, nil
	}
	return document, Finish{}, nil
}

// versioned are files whose store may keep what is removed.
type versioned interface {
	// KeepsVersions tells whether something that was removed stays as an old version.
	KeepsVersions() bool
}

func (p *purge) refused(code, message string) Finish {
	return Finish{State: Refused, Outcome: p.outcome, Dropped: DroppedKept, Reason: Reason{code, message}}
}

func (p *purge) tableBack() Finish {
	return Finish{State: NothingToDo, Outcome: p.outcome, Reason: Reason{CodeTableBack,
		"the dropped table is not known any more: it was registered again, another table took its place, or its warehouse was " +
			"dropped. What is there stays"}}
}

func (p *purge) done() Finish {
	message := fmt.Sprintf("%d files were removed", p.outcome.FilesRemoved)
	if n := p.outcome.FilesSkipped[skipOutside]; n > 0 {
		message += fmt.Sprintf("; %d that lie outside the table's location stay", n)
	}
	if n := p.outcome.FilesSkipped[skipNeighbour]; n > 0 {
		message += fmt.Sprintf("; %d that lie in another table's location stay", n)
	}
	if files, ok := p.files.(versioned); ok && files.KeepsVersions() {
		message += "; the store keeps old versions of them, which stay until its lifecycle rules remove them"
	}
	return Finish{State: Succeeded, Outcome: p.outcome, Dropped: DroppedForgotten, Reason: Reason{CodeDone, message}}
}

// removeAll removes every file that the table's metadata reaches.
func (p *purge) removeAll(ctx context.Context, references commit.References, logged []string) error {
	if err := p.confirm(ctx); err != nil {
		return err
	}
	for _, n := range p.neighbours {
		if strings.HasPrefix(vending.Key(p.dropped.Record.Location), n) {
			return refusal{Reason{CodeOverlap, fmt.Sprintf(
				"the dropped table's location %s lies in another table's, %s: no file was removed", p.dropped.Record.Location, n)}}
		}
	}
	for i, list := range references.ManifestLists {
		if err := p.removeSnapshot(ctx, list); err != nil {
			return err
		}
		if err := p.show(ctx, float64(i)/float64(len(references.ManifestLists))); err != nil {
			return err
		}
	}
	for _, names := range [][]string{references.Statistics, logged} {
		for _, name := range names {
			if name == p.dropped.Record.MetadataLocation {
				continue
			}
			if err := p.remove(ctx, tierLeaves, name); err != nil {
				return err
			}
		}
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	if err := p.save(ctx, 1); err != nil { // for who finds the metadata file gone, the figures are all there is
		return err
	}
	crash.Point("purge-before-metadata")
	if !p.isOwn(p.dropped.Record.MetadataLocation) {
		return nil
	}
	if err := p.remove(ctx, tierLists, p.dropped.Record.MetadataLocation); err != nil {
		return err
	}
	err := p.flush(ctx)
	crash.Point("purge-after-metadata")
	return err
}

// removeSnapshot removes a manifest list and all below it. A list that is gone was removed with all below it.
func (p *purge) removeSnapshot(ctx context.Context, list string) error {
	if !p.isOwn(list) {
		return nil
	}
	manifests, err := manifest.ReadList(ctx, p.files, list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read manifest list %s: %w", list, err)
	}
	for _, m := range manifests {
		if err := p.removeManifest(ctx, m); err != nil {
			return err
		}
	}
	return p.remove(ctx, tierLists, list)
}

// removeManifest removes a manifest and the files that it lists as live. One that is gone was removed with them.
func (p *purge) removeManifest(ctx context.Context, m iceberg.ManifestFile) error {
	if p.wasSeen(m.FilePath()) || !p.isOwn(m.FilePath()) {
		return nil
	}
	for entry, err := range manifest.Entries(ctx, p.files, m, nil) {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
		}
		if err := p.remove(ctx, tierLeaves, entry.DataFile().FilePath()); err != nil {
			return err
		}
	}
	p.unsettled = 0
	return p.remove(ctx, tierManifests, m.FilePath())
}

// wasSeen tells whether a manifest was removed already, as far as that is remembered.
func (p *purge) wasSeen(name string) bool {
	sum := sha256.Sum256([]byte(name))
	key := [16]byte(sum[:16])
	if _, ok := p.seen[key]; ok {
		return true
	}
	if len(p.seen) >= purgeSeenMax {
		clear(p.seen)
	}
	p.seen[key] = struct{}{}
	return false
}

// isOwn tells whether a file lies below the table's own location and in no other table's, and counts those that do not.
func (p *purge) isOwn(name string) bool {
	reason := ""
	if below, ok := vending.Relative(p.dropped.Record.Location, name); !ok || below == "" {
		reason = skipOutside
	}
	for _, n := range p.neighbours {
		if strings.HasPrefix(vending.Key(name), n) {
			reason = skipNeighbour
		}
	}
	if reason == "" {
		return true
	}
	if p.outcome.FilesSkipped == nil {
		p.outcome.FilesSkipped = map[string]int64{}
	}
	p.outcome.FilesSkipped[reason]++
	return false
}

// remove puts a file among those that wait. It is removed after all that were put before it into an earlier tier.
func (p *purge) remove(ctx context.Context, tier int, name string) error {
	if tier == tierLeaves {
		if !p.isOwn(name) {
			return nil
		}
		p.unsettled++
	}
	p.tiers[tier] = append(p.tiers[tier], name)
	if p.waiting++; p.waiting < purgeBatchFiles {
		return nil
	}
	return p.flush(ctx)
}

// flush removes what waits, when the place is still the dropped table's.
func (p *purge) flush(ctx context.Context) error {
	if p.waiting == 0 {
		return nil
	}
	if err := p.confirm(ctx); err != nil {
		return err
	}
	for tier, names := range p.tiers {
		if len(names) == 0 {
			continue
		}
		gone, err := p.removeFiles(ctx, names)
		p.outcome.FilesRemoved += gone
		if tier == tierLeaves {
			p.outcome.FilesUnsettled += gone
		}
		if err != nil {
			return fmt.Errorf("remove files of dropped table %s: %w", p.job.Subject, err)
		}
		if tier == tierManifests {
			p.outcome.FilesUnsettled = p.unsettled
		}
		p.tiers[tier] = p.tiers[tier][:0]
		crash.Point("purge-removed")
	}
	p.waiting = 0
	return nil
}

// removeFiles tells how many of the files are gone.
func (p *purge) removeFiles(ctx context.Context, names []string) (gone int64, err error) {
	if bulk, ok := p.files.(icebergio.BulkRemovableIO); ok {
		removed, err := bulk.DeleteFiles(ctx, names)
		return int64(len(removed)), err
	}
	for _, name := range names {
		if err := p.files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return gone, err
		}
		gone++
	}
	return gone, nil
}

// errTableBack ends a purge whose table came back meanwhile.
var errTableBack = errors.New("the place is not the dropped table's any more")

// confirm asks whether the place is still the dropped table's and who its neighbours are. A neighbour that has come
// since the files were chosen is none: locations do not overlap, and this one is taken. But a mistake would cost files.
func (p *purge) confirm(ctx context.Context) error {
	neighbours, held, err := p.env.store.ConfirmPurge(ctx, p.lease, p.dropped.Record.Location)
	if err != nil {
		return err
	}
	if !held {
		return errTableBack
	}
	p.neighbours = neighbours
	return nil
}

// show keeps progress and figures, not too often.
func (p *purge) show(ctx context.Context, fraction float64) error {
	if p.env.now().Sub(p.shown) < progressEvery {
		return nil
	}
	return p.save(ctx, fraction)
}

func (p *purge) save(ctx context.Context, fraction float64) error {
	p.shown = p.env.now()
	err := p.env.store.SaveProgress(ctx, p.lease, Progress{Phase: phaseRemoving, Fraction: fraction, Outcome: p.outcome})
	if err != nil {
		return fmt.Errorf("save progress: %w", err)
	}
	return nil
}
