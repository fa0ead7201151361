package catalog

import (
	"container/list"
	"sync"
)

// metadataCache keeps tables' and views' parsed metadata by metadata location. A metadata file never changes once written,
// so an entry is never stale; what is bounded is the bytes held.
type metadataCache struct {
	mu       sync.Mutex
	bytesMax int
	bytes    int
	order    *list.List // front is the most recently used
	entries  map[string]*list.Element
}

type cacheEntry struct {
	location string
	document metadataText
}

// entryOverheadBytes stands for the index and the parsed header of a document.
const entryOverheadBytes = 4096

func newMetadataCache(bytesMax int) *metadataCache {
	return &metadataCache{bytesMax: bytesMax, order: list.New(), entries: map[string]*list.Element{}}
}

func (c *metadataCache) find(location string) (metadataText, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[location]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cacheEntry).document, true
}

func (c *metadataCache) put(location string, d metadataText) {
	size := len(d.JSON()) + entryOverheadBytes
	if size > c.bytesMax {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.entries[location]; ok {
		return
	}
	c.entries[location] = c.order.PushFront(&cacheEntry{location, d})
	c.bytes += size
	for c.bytes > c.bytesMax {
		last := c.order.Back()
		old := last.Value.(*cacheEntry)
		c.order.Remove(last)
		delete(c.entries, old.location)
		c.bytes -= len(old.document.JSON()) + entryOverheadBytes
	}
}
