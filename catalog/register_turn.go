package catalog

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"catalogd/internal/fault"
)

// Limits of registering. The file is a client's, and a small one may unpack to very much, so what is in memory at a
// time must not depend on how many clients ask at once.
const (
	// registersMax is how many files are read at a time.
	registersMax = 32
	// registerBytesFree is the size, packed or unpacked, up to which a file passes; of larger ones one is read at a time.
	registerBytesFree = 4 << 20
	// registerWaitMax bounds how long a request waits for others to end.
	registerWaitMax = 10 * time.Second
)

// registers are the turns of one server.
type registers struct{ all, large *semaphore.Weighted }

func newRegisters() *registers {
	return &registers{all: semaphore.NewWeighted(registersMax), large: semaphore.NewWeighted(1)}
}

// registerTurn is the place of one request, from before its file is read until it has ended.
type registerTurn struct {
	*registers
	held []*semaphore.Weighted
}

// begin waits for a place; who waits too long gets fault.Busy, and nothing was touched.
func (t *registerTurn) begin(ctx context.Context) error { return t.wait(ctx, t.all) }

// larger waits for the place of a large file. What the one before left in memory is taken away first: the collector
// would else let it lie until there is as much again as was alive when it last ran, and that was such a text. Four files
// of 220 MiB one after the other took a server to 809 MB; with this call it is 365 MB, however many come. Their buffers
// cannot be used again instead: the text goes out with the answer, when the turn has ended.
func (t *registerTurn) larger(ctx context.Context) error {
	if err := t.wait(ctx, t.large); err != nil {
		return err
	}
	runtime.GC()
	return nil
}

func (t *registerTurn) wait(ctx context.Context, places *semaphore.Weighted) error {
	ctx, cancel := context.WithTimeout(ctx, registerWaitMax)
	defer cancel()
	if err := places.Acquire(ctx, 1); err != nil {
		return fault.Wrap(fault.Busy, err, "the server is busy with other metadata files that are to be registered; nothing was changed, try again")
	}
	t.held = append(t.held, places)
	return nil
}

func (t *registerTurn) end() {
	for _, places := range t.held {
		places.Release(1)
	}
	t.held = nil
}
