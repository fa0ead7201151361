package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	icebergio "github.com/apache/iceberg-go/io"

	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/crash"
	"catalogd/internal/fault"
	"catalogd/maintenance/layout"
)

// Limits of the commit loop. A rewrite may have taken an hour: it is rebased for long before it is given up.
const (
	commitDelayMin  = 10 * time.Millisecond
	commitDelayMax  = 250 * time.Millisecond // while writers are busy each try has the same chance: waiting gains nothing
	commitDelayBusy = time.Second            // while the database or the store does not answer
	commitTriesFor  = 30 * time.Minute
	commitCallMax   = 90 * time.Second // of one try, detached from the worker's end
	cleanUpMax      = 60 * time.Second
	conflictReasons = "other commits replaced or deleted from the files of every group while they were rewritten; the next run plans anew"
)

// errUnknown tells that nobody knows yet whether the commit landed. Nothing may be removed then.
var errUnknown = errors.New("the outcome of the commit is not known yet")

// errAllDropped ends a claim of which every group was given up: its commit was never sent, or refused.
var errAllDropped = errors.New("every group was given up")

// commit makes the new files visible: it rebases onto the newest head until a commit lands, every group is given up,
// or the time is over. A database that is away for a while does not make the work of an hour void.
func (c *compaction) commit(ctx context.Context) (Finish, error) {
	deadline := c.env.now().Add(commitTriesFor)
	delay := commitDelayMin
	for {
		landed, err := c.attempt(ctx)
		switch {
		case err == nil && landed:
			return c.finish(ctx), nil
		case err == nil:
			c.outcome.Conflicts++
			delay = min(2*delay, commitDelayMax)
		case errors.Is(err, errUnknown) || errors.Is(err, errAllDropped) || !fault.Is(err, fault.Busy):
			return Finish{}, err
		default:
			delay = commitDelayBusy
		}
		if c.env.now().After(deadline) {
			return Finish{}, errors.Join(fault.New(fault.Busy, "%s went by without a moment for the commit", commitTriesFor), err)
		}
		if err := pause(ctx, delay); err != nil {
			return Finish{}, err
		}
	}
}

// attempt rebases and sends one commit. Not landed and no error: the table had moved, and the next attempt may do.
func (c *compaction) attempt(ctx context.Context) (landed bool, err error) {
	if landed, err = c.rebase(ctx); err != nil || landed {
		return landed, err
	}
	p, err := c.prepare(ctx)
	if err != nil {
		return false, err
	}
	c.last = p
	if err := c.saveDraft(ctx, p); err != nil {
		return false, err
	}
	return c.try(ctx, p)
}

// saveDraft saves the figures as they are if the draft lands, so that whoever finds the commit after a crash has them.
func (c *compaction) saveDraft(ctx context.Context, p *pending) error {
	if c.draft.saved {
		return nil
	}
	c.note(p)
	if err := c.show(ctx, phaseCommitting, 1); err != nil {
		return err
	}
	c.draft.saved = true
	return nil
}

// rebase reads the table anew and gives up what does not hold any more. Should an earlier try have landed in spite of
// its answer, that is found here, before its own doing looks like somebody else's.
func (c *compaction) rebase(ctx context.Context) (landed bool, err error) {
	if err := c.reader().refresh(ctx, c.caller(), c.view); err != nil {
		return false, err
	}
	if c.view.head == nil {
		return false, errAllDropped
	}
	if c.draft != nil && c.view.meta.SnapshotByID(c.draft.snapshotID) != nil {
		return true, nil
	}
	if err := c.revalidate(ctx); err != nil {
		return false, err
	}
	for _, r := range c.replacements {
		if !r.dropped {
			return false, nil
		}
	}
	return false, errAllDropped
}

// try sends one commit. Not landed and no error: it was certainly refused, because the table had moved.
func (c *compaction) try(ctx context.Context, p *pending) (landed bool, err error) {
	body, err := c.change(p)
	if err != nil {
		return false, err
	}
	change, err := commit.DecodeRequest(body)
	if err != nil {
		return false, fmt.Errorf("make the commit: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return false, context.Cause(ctx)
	}
	crash.Point("compact-before-commit")
	// From here on the worker's end must not cut the answer off: an unknown outcome is worse than a late end.
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitCallMax)
	defer cancel()
	_, err = c.env.tables.CommitTable(call, c.caller(), catalog.CommitTableRequest{
		Warehouse: c.ref.Warehouse, Ident: c.ref.Ident, Change: change, Fence: c.lease.Fence(),
	})
	if err == nil {
		crash.Point("compact-after-commit")
		return true, nil
	}
	switch fault.KindOf(err) {
	case fault.CommitConflict, fault.CommitRace:
		return false, nil
	case fault.Busy:
		return false, err
	case fault.VersionConflict:
		return false, ErrLeaseLost
	case fault.CommitUnknown, fault.Internal:
		return c.ask(call, p, err)
	}
	return false, c.moved(call, err)
}

// ask looks for our snapshot after an answer that says nothing for sure. Only its presence proves anything: a commit
// that is not there may still be on its way.
func (c *compaction) ask(ctx context.Context, p *pending, cause error) (landed bool, err error) {
	if err := c.reader().refresh(ctx, c.caller(), c.view); err != nil {
		return false, errors.Join(errUnknown, cause, err)
	}
	if c.view.meta.SnapshotByID(p.snapshot.SnapshotID) != nil {
		return true, nil
	}
	return false, errors.Join(errUnknown, cause)
}

// moved gives nil when a refusal is explained by the table having moved since the rebase: another branch took our
// sequence number, for one. Else the refusal is what the job ends with.
func (c *compaction) moved(ctx context.Context, cause error) error {
	head, sequence := c.view.head.SnapshotID, c.view.meta.LastSequenceNumber()
	if err := c.reader().refresh(ctx, c.caller(), c.view); err != nil {
		return errors.Join(cause, err)
	}
	if c.view.head == nil || c.view.head.SnapshotID != head || c.view.meta.LastSequenceNumber() != sequence {
		return nil
	}
	return fmt.Errorf("commit to %s: %w", c.ref.Ident, cause)
}

// note computes the figures as they are if this try lands.
func (c *compaction) note(p *pending) {
	o := outcomeOf(c.facts, c.plan)
	o.Conflicts, o.SnapshotID, o.FilesSkipped = c.outcome.Conflicts, p.snapshot.SnapshotID, c.plan.Skipped
	var before, after, overlapAfter mean
	for _, r := range c.replacements {
		if r.dropped {
			o.GroupsDropped++
			continue
		}
		o.FilesReplaced += int64(len(r.old))
		o.FilesWritten += int64(len(r.added))
		o.RowsRewritten += r.rows
		o.FilesAfter += int64(len(r.added) - len(r.old))
		o.BytesAfter += r.result.BytesOut - r.group.Bytes
		planned := int64(0)
		for _, d := range r.old {
			planned += max(1, int64(d.splits))
		}
		o.RowGroupsBefore += int64(r.result.RowGroupsIn) - planned // the footers know better than the manifests
		o.RowGroupsAfter += int64(r.result.RowGroupsOut) - planned
		before.add(r.rows, r.result.DepthBefore)
		after.add(r.rows, r.result.DepthAfter)
		overlapAfter.add(r.rows, overlap(boxesWritten(r.result.Files)))
	}
	o.ClusteringBefore, o.ClusteringAfter, o.OverlapAfter = before.value(), after.value(), overlapAfter.value()
	c.outcome = o
}

// boxesWritten gives the boxes of the row groups written; a column without bounds covers everything.
func boxesWritten(files []layout.OutputFile) []Box {
	var out []Box
	for _, f := range files {
		for _, b := range f.Boxes {
			box := Box{Rows: b.Rows}
			for i := range b.Lo {
				lower, upper := string(b.Lo[i]), string(b.Hi[i])
				if b.Hi[i] == nil {
					lower, upper = "", unboundedAbove
				}
				box.Lower, box.Upper = append(box.Lower, lower), append(box.Upper, upper)
			}
			out = append(out, box)
		}
	}
	return out
}

// finish describes the end after a commit that landed, and removes what it did not need: files of groups that were
// given up, and manifests of refused tries.
func (c *compaction) finish(ctx context.Context) Finish {
	keep := map[string]bool{c.last.list: true}
	for _, m := range c.last.listed {
		keep[m.FilePath()] = true
	}
	for _, r := range c.replacements {
		for _, d := range r.added {
			if !r.dropped {
				keep[d.FilePath()] = true
			}
		}
	}
	if s := c.view.meta.SnapshotByID(c.draft.snapshotID); s != nil && s.ManifestList != c.last.list {
		// An earlier try than the last one landed in spite of its answer. Which files it names is not known here, so
		// all stay; those that it does not name remain recorded.
		keep = map[string]bool{}
	} else {
		c.removeOwn(ctx, keep)
	}
	reason := Reason{CodeDone, fmt.Sprintf("%d files became %d%s", c.outcome.FilesReplaced, c.outcome.FilesWritten, c.plan.skippedText())}
	if n := c.outcome.GroupsDropped; n > 0 {
		reason.Message += fmt.Sprintf("; %d of %d groups were given up to other commits", n, len(c.replacements))
	}
	record := c.record.With(c.job.ID, c.plan.Target, c.draft.snapshotID, func(yield func(string) bool) {
		for _, f := range c.facts.Files {
			if !yield(f.Path) {
				return
			}
		}
	})
	return Finish{State: Succeeded, Reason: reason, Outcome: c.outcome, Layout: &record, Kept: slices.Sorted(maps.Keys(keep))}
}

// removeOwn removes the files of this claim that are not kept. It may be called only when it is certain that no commit
// names them. What cannot be removed stays recorded.
func (c *compaction) removeOwn(ctx context.Context, keep map[string]bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpMax)
	defer cancel()
	removed := c.removeFiles(ctx, c.ledger.without(keep))
	if len(removed) == 0 {
		return
	}
	if err := c.env.store.ForgetFiles(ctx, c.lease, removed); err != nil && !errors.Is(err, ErrLeaseLost) {
		c.log.WarnContext(ctx, "removed files stay recorded", "job", c.job.ID, "error", err)
	}
}

// removeFiles removes files and gives those that are gone for sure. It opens the files anew: those of the claim end
// with the claim's context, and this may come after it.
func (c *compaction) removeFiles(ctx context.Context, paths []string) []string {
	if len(paths) == 0 {
		return nil
	}
	files, err := c.reader().openFiles(ctx, c.view)
	if err != nil {
		c.log.WarnContext(ctx, "files of a job that was given up stay", "job", c.job.ID, "files", len(paths), "error", err)
		return nil
	}
	if bulk, ok := files.(icebergio.BulkRemovableIO); ok {
		removed, err := bulk.DeleteFiles(ctx, paths)
		if err != nil {
			c.log.WarnContext(ctx, "files of a job that was given up stay", "job", c.job.ID, "files", len(paths)-len(removed), "error", err)
		}
		return removed
	}
	var removed []string
	for _, p := range paths {
		if err := files.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.log.WarnContext(ctx, "a file of a job that was given up stays", "job", c.job.ID, "path", p, "error", err)
			continue
		}
		removed = append(removed, p)
	}
	return removed
}

// pause waits for about d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
