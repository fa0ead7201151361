package catalog

import (
	"context"
	"hash/maphash"
	"slices"
)

// turnStripes is how many tables of one server can commit at the same time without ever waiting for each other.
const turnStripes = 256

// turns lets commits to one table go one after the other inside this process. It is a courtesy, not a lock that
// correctness rests on (the pointer's compare-and-swap is): without it, commits that would lose their race anyway
// write metadata files for nothing.
type turns struct {
	seed    maphash.Seed
	stripes [turnStripes]chan struct{}
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.stripes {
		t.stripes[i] = make(chan struct{}, 1)
	}
	return t
}

// turnOf is the key of a table's turns.
func turnOf(warehouse string, id Identifier) string { return warehouse + "\x00" + id.String() }

// take waits for the key's turn and gives the function that passes it on.
func (t *turns) take(ctx context.Context, key string) (func(), error) {
	return t.takeAll(ctx, []string{key})
}

// takeAll waits for the turns of all keys. Everybody takes them in one order, so nobody waits for one who waits for him:
// who waits for a stripe holds lower ones alone.
func (t *turns) takeAll(ctx context.Context, keys []string) (func(), error) {
	wanted := make([]uint64, len(keys))
	for i, key := range keys {
		wanted[i] = maphash.String(t.seed, key) % turnStripes
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	pass := func(taken []uint64) {
		for _, n := range taken {
			<-t.stripes[n]
		}
	}
	for i, n := range wanted {
		select {
		case t.stripes[n] <- struct{}{}:
		case <-ctx.Done():
			pass(wanted[:i])
			return nil, ctx.Err()
		}
	}
	return func() { pass(wanted) }, nil
}
