// Package lru keeps values by key within a bound of bytes; what was not used for the longest time goes first.
package lru

import "container/list"

// Cache is a bounded map. It is not safe for concurrent use: its owners hold a lock over more than one step.
type Cache[K comparable, V any] struct {
	bytesMax, bytes int
	order           *list.List // front is the most recently used
	entries         map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

// New makes an empty cache that holds values of so many bytes together.
func New[K comparable, V any](bytesMax int) *Cache[K, V] {
	return &Cache[K, V]{bytesMax: bytesMax, order: list.New(), entries: map[K]*list.Element{}}
}

// Find gives a key's value and counts as a use of it.
func (c *Cache[K, V]) Find(key K) (V, bool) {
	e, ok := c.entries[key]
	if !ok {
		var none V
		return none, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry[K, V]).value, true
}

// Put keeps a value of so many bytes in the place of the key's one before, if any. A value that is larger than the
// whole cache is not kept.
func (c *Cache[K, V]) Put(key K, value V, bytes int) {
	if e, ok := c.entries[key]; ok {
		c.remove(e)
	}
	if bytes > c.bytesMax {
		return
	}
	c.entries[key] = c.order.PushFront(&entry[K, V]{key, value, bytes})
	c.bytes += bytes
	c.shrink()
}

// Grow counts bytes that a key's value holds since it was put; a key that is gone has none.
func (c *Cache[K, V]) Grow(key K, bytes int) {
	if e, ok := c.entries[key]; ok {
		e.Value.(*entry[K, V]).bytes += bytes
		c.bytes += bytes
		c.shrink()
	}
}

// Len tells how many values there are.
func (c *Cache[K, V]) Len() int { return len(c.entries) }

// Bytes tells how large the values are together.
func (c *Cache[K, V]) Bytes() int { return c.bytes }

func (c *Cache[K, V]) shrink() {
	for c.bytes > c.bytesMax {
		c.remove(c.order.Back())
	}
}

func (c *Cache[K, V]) remove(e *list.Element) {
	old := c.order.Remove(e).(*entry[K, V])
	delete(c.entries, old.key)
	c.bytes -= old.bytes
}
