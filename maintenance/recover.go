package maintenance

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"catalogd/maintenance/manifest"
)

// recover settles what an earlier claim of the job left behind. By now nothing of it can land any more: this claim has
// a higher epoch, and a commit's transaction checks the epoch. So a snapshot with the job's id means done, and its
// absence means that the recorded files belong to nobody and are removed.
func (c *compaction) recover(ctx context.Context) (Finish, bool, error) {
	recorded, err := c.env.store.ListFiles(ctx, c.job.ID)
	if err != nil {
		return Finish{}, false, fmt.Errorf("list the files of job %s: %w", c.job.ID, err)
	}
	if c.job.Epoch <= 1 && len(recorded) == 0 {
		return Finish{}, false, nil
	}
	if err := c.show(ctx, phaseRecovering, 0); err != nil {
		return Finish{}, false, err
	}
	// The load came after the claim, so it saw every commit that an earlier epoch could make.
	snapshot := c.view.jobSnapshot(c.job.ID.String())
	used, err := c.reachable(ctx, recorded)
	if err != nil {
		return Finish{}, false, err
	}
	var garbage []string
	for _, p := range recorded {
		if !used[p] {
			garbage = append(garbage, p)
		}
	}
	if len(garbage) > 0 && snapshot == nil {
		newer, err := c.livesElsewhere()
		if err != nil {
			return Finish{}, false, err
		}
		if newer != "" {
			return Finish{State: Refused, Outcome: c.job.Outcome, LookAfter: refusedLookDelay, Reason: Reason{CodeNewerMetadata, fmt.Sprintf(
				"an attempt before wrote files that the table does not name, but its place has metadata that this server does not know and that may name "+
					"them: %s. Perhaps the database was restored from a backup. No file was removed. Register the newest metadata file with overwrite", newer)}}, true, nil
		}
	}
	removed := c.removeFiles(ctx, garbage)
	if len(removed) > 0 {
		if err := c.env.store.ForgetFiles(ctx, c.lease, removed); err != nil {
			return Finish{}, false, fmt.Errorf("forget removed files: %w", err)
		}
	}
	if snapshot == nil && len(used) == 0 {
		return Finish{}, false, nil
	}
	end, done, err := c.finishFound(ctx, snapshot)
	end.Kept = slices.Sorted(maps.Keys(used))
	return end, done, err
}

// finishFound ends a job whose commit landed though its worker did not live to say so.
func (c *compaction) finishFound(ctx context.Context, snapshot *table.Snapshot) (Finish, bool, error) {
	facts, err := c.view.facts(ctx, c.settings, c.env.now())
	if err != nil {
		return Finish{}, false, err
	}
	end := Finish{State: Succeeded, Outcome: c.job.Outcome, Reason: Reason{CodeDone,
		"the commit had landed when the job's worker stopped; the job was ended by the next one"}}
	target, err := ResolveTarget(c.settings, c.view.shape())
	if err != nil || snapshot == nil || snapshot.Summary == nil ||
		snapshot.Summary.Properties[snapshotLayoutKey] != target.Fingerprint() {
		return end, true, nil // the settings have changed since: the layout is not the wanted one
	}
	layout := c.record.With(c.job.ID, target, snapshot.SnapshotID, func(yield func(string) bool) {
		for _, f := range facts.Files {
			if !yield(f.Path) {
				return
			}
		}
	})
	end.Layout = &layout
	return end, true, nil
}

// reachable tells which of the paths a snapshot of the table names: as manifest list, manifest or file. Recorded
// names are never used twice, so one hit proves that the commit landed even if its snapshot has expired since.
func (c *compaction) reachable(ctx context.Context, paths []string) (map[string]bool, error) {
	wanted, used := map[string]bool{}, map[string]bool{}
	for _, p := range paths {
		wanted[p] = true
	}
	note := func(p string) {
		if wanted[p] {
			used[p] = true
		}
	}
	if len(wanted) == 0 {
		return used, nil
	}
	seen := map[string]bool{}
	for _, s := range c.view.meta.Snapshots() {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		note(s.ManifestList)
		if !c.mayName(s) {
			continue
		}
		manifests, err := manifest.List(ctx, c.view.files, &s)
		if err != nil {
			return nil, fmt.Errorf("read the manifest list of snapshot %d: %w", s.SnapshotID, err)
		}
		for _, m := range manifests {
			note(m.FilePath())
			if seen[m.FilePath()] || m.ManifestContent() != iceberg.ManifestContentData {
				continue
			}
			seen[m.FilePath()] = true
			for e, err := range manifest.Entries(ctx, c.view.files, m, nil) {
				if err != nil {
					return nil, fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
				}
				note(e.DataFile().FilePath())
			}
		}
	}
	return used, nil
}

// mayName tells whether a snapshot can name files of the job: it is the job's own or the head of a ref, or younger than
// the job, as far as clocks can tell. Older ones were there before the job's first file.
func (c *compaction) mayName(s table.Snapshot) bool {
	if s.Summary != nil && s.Summary.Properties[snapshotJobKey] == c.job.ID.String() {
		return true
	}
	for _, ref := range c.view.meta.Refs() {
		if ref.SnapshotID == s.SnapshotID {
			return true
		}
	}
	return s.TimestampMs >= c.job.CreatedAt.Add(-clockMargin).UnixMilli()
}
