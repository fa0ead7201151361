package catalog

import (
	"context"
	"sync"
	"time"

	"catalogd/internal/deflate"
	"catalogd/internal/fault"
	"catalogd/internal/lru"
)

// metadataCache keeps parsed metadata by metadata location. A metadata file never changes once written, so an entry is
// never stale; what is bounded is the bytes held. What is not there is read once, however many ask for it at a time.
type metadataCache struct {
	mu    sync.Mutex
	kept  *lru.Cache[string, *metadataEntry]
	reads map[string]*metadataRead
}

// metadataEntry is one metadata file: its text once, as part of the parsed document; the text packed; and the other
// texts that loads answer from it, made when they are first asked for.
type metadataEntry struct {
	location string
	document metadataText
	packed   deflate.Packed // of the text; the zero value when that is too short to be worth it

	mu      sync.Mutex
	answers map[SnapshotsMode]answer
}

// answer is metadata as it goes to a client.
type answer struct {
	text   []byte
	packed deflate.Packed // the zero value: not there
}

// metadataRead is a read under way.
type metadataRead struct {
	done  chan struct{}
	entry *metadataEntry
	err   error
}

const (
	// entryOverheadBytes stands for what an entry needs in the cache's own lists.
	entryOverheadBytes = 512
	// packedTextMin is the size of a text from which its packed form is kept: answers below some 4 KB go out plain.
	packedTextMin = 3 << 10
	// metadataReadMax bounds one read that others may wait for.
	metadataReadMax = 60 * time.Second
)

func newMetadataCache(bytesMax int) *metadataCache {
	return &metadataCache{kept: lru.New[string, *metadataEntry](bytesMax), reads: map[string]*metadataRead{}}
}

func newMetadataEntry(location string, d metadataText, packed deflate.Packed) *metadataEntry {
	if packed.Bytes < packedTextMin {
		packed = deflate.Packed{}
	}
	return &metadataEntry{location: location, document: d, packed: packed}
}

// bytes is what an entry holds when it is new.
func (e *metadataEntry) bytes() int {
	return entryOverheadBytes + 2*len(e.location) + cap(e.document.JSON()) + cap(e.packed.Blocks) + indexBytes(e.document)
}

// indexBytes is what a document holds beside its text; half of that for one that does not tell.
func indexBytes(d metadataText) int {
	if sized, ok := d.(interface{ IndexBytes() int }); ok {
		return sized.IndexBytes()
	}
	return len(d.JSON()) / 2
}

// find gives the entry of a metadata file, from memory or by read, which runs once for all who ask meanwhile and does
// not end when the request that started it does.
func (c *metadataCache) find(
	ctx context.Context, location string, read func(ctx context.Context) (*metadataEntry, error),
) (*metadataEntry, error) {
	c.mu.Lock()
	if e, ok := c.kept.Find(location); ok {
		c.mu.Unlock()
		return e, nil
	}
	r, underWay := c.reads[location]
	if !underWay {
		r = &metadataRead{done: make(chan struct{}), err: fault.New(fault.Internal, "the metadata was not read")}
		c.reads[location] = r
	}
	c.mu.Unlock()
	if !underWay {
		c.read(ctx, location, r, read)
		return r.entry, r.err
	}
	select {
	case <-r.done:
		return r.entry, r.err
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Busy, ctx.Err(), "the request ended while the table's metadata was being read")
	}
}

// read runs on the goroutine of who came first, so that a panic is that request's; the others get an error then.
func (c *metadataCache) read(
	ctx context.Context, location string, r *metadataRead, read func(ctx context.Context) (*metadataEntry, error),
) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), metadataReadMax)
	defer cancel()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.reads, location)
		if r.err == nil {
			c.kept.Put(location, r.entry, r.entry.bytes())
		}
		close(r.done)
	}()
	r.entry, r.err = read(ctx)
}

// put keeps what was just written.
func (c *metadataCache) put(e *metadataEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Put(e.location, e, e.bytes())
}

// answerOf gives the text that a load in a mode answers, and keeps it with the entry when it is not the file's own.
func (c *metadataCache) answerOf(e *metadataEntry, mode SnapshotsMode, make func() []byte) answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a, ok := e.answers[mode]; ok {
		return a
	}
	a := answer{text: make()}
	if own := e.document.JSON(); len(a.text) == len(own) && (len(own) == 0 || &a.text[0] == &own[0]) {
		a.packed = e.packed
		return a
	}
	if len(a.text) >= packedTextMin {
		a.packed = deflate.Pack(a.text)
	}
	if e.answers == nil {
		e.answers = map[SnapshotsMode]answer{}
	}
	e.answers[mode] = a
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, _ := c.kept.Find(e.location); kept == e {
		c.kept.Grow(e.location, cap(a.text)+cap(a.packed.Blocks))
	}
	return a
}
