package catalog

import (
	"context"
	"hash/maphash"
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

// take waits for the key's turn and gives the function that passes it on.
func (t *turns) take(ctx context.Context, key string) (func(), error) {
	stripe := t.stripes[maphash.String(t.seed, key)%turnStripes]
	select {
	case stripe <- struct{}{}:
		return func() { <-stripe }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
