package maintenance

import (
	"context"
	"time"
)

// Limits of housekeeping.
const (
	housekeepingEvery = time.Minute
	outdatedPerRound  = 100
	// sweepsMax bounds how often old records are removed in one round: each removes a bounded number.
	sweepsMax = 50
)

// keepHouse removes what nobody needs any more, once in a while. What fails is tried again in the next round.
func (w *Worker) keepHouse(ctx context.Context) {
	now := w.env.now()
	w.mu.Lock()
	due := now.Sub(w.housed) >= housekeepingEvery
	if due {
		w.housed = now
	}
	w.mu.Unlock()
	if !due {
		return
	}
	w.sweepRecords(ctx)
	for {
		n, err := w.env.tables.RemoveOutdated(ctx, systemCaller("housekeeping"), outdatedPerRound)
		if err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "outdated metadata files could not be removed", "error", err)
		}
		if err != nil || n < outdatedPerRound {
			return
		}
	}
}

// sweepRecords removes old records, a bounded number of them.
func (w *Worker) sweepRecords(ctx context.Context) {
	for range sweepsMax {
		n, err := w.env.tables.SweepRecords(ctx, systemCaller("housekeeping"), w.config.Keep)
		if err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "old records could not be removed", "error", err)
		}
		if err != nil || n == 0 {
			return
		}
	}
}
