package lru

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestCache_IsAsItsModel holds the cache against a slice of its entries, the most recently used one first.
func TestCache_IsAsItsModel(t *testing.T) {
	type row struct{ key, value, bytes int }
	rapid.Check(t, func(t *rapid.T) {
		const bytesMax = 50
		c := New[int, int](bytesMax)
		var model []row
		at := func(key int) int { return slices.IndexFunc(model, func(r row) bool { return r.key == key }) }
		shrink := func() {
			for sum := func() (n int) {
				for _, r := range model {
					n += r.bytes
				}
				return n
			}; sum() > bytesMax; {
				model = model[:len(model)-1]
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			key, bytes := rapid.IntRange(0, 9).Draw(t, "key"), rapid.IntRange(0, 60).Draw(t, "bytes")
			i := at(key)
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				value, ok := c.Find(key)
				if ok != (i >= 0) || ok && value != model[i].value {
					t.Fatalf("%d: %d, %t; the model has %v", key, value, ok, model)
				}
				if ok {
					r := model[i]
					model = slices.Insert(slices.Delete(model, i, i+1), 0, r)
				}
			case 1:
				if i >= 0 {
					model = slices.Delete(model, i, i+1)
				}
				c.Put(key, bytes*3, bytes)
				if bytes <= bytesMax {
					model = slices.Insert(model, 0, row{key, bytes * 3, bytes})
				}
			case 2:
				c.Grow(key, bytes)
				if i >= 0 {
					model[i].bytes += bytes
				}
			}
			shrink()
			if c.Len() != len(model) || c.Bytes() > bytesMax {
				t.Fatalf("%d entries of %d bytes; the model has %v", c.Len(), c.Bytes(), model)
			}
		}
	})
}
