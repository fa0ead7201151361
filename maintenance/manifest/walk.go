package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// errShort tells that a record goes on behind its block.
var errShort = errors.New("a record is longer than its block")

// walker goes over the records of a block and counts what they would be made of.
type walker struct {
	block []byte
	items int64 // items of arrays and maps that may still come
	spent int64 // items that came
}

// record goes over one record and gives its length.
func (w *walker) record(n *node) (int, error) {
	before := len(w.block)
	w.items = recordItemsMax
	err := w.value(n)
	return before - len(w.block), err
}

func (w *walker) value(n *node) error {
	switch n.shape {
	case shapeNull:
		return nil
	case shapeBool:
		return w.skip(1)
	case shapeFloat:
		return w.skip(4)
	case shapeDouble:
		return w.skip(8)
	case shapeFixed:
		return w.skip(n.size)
	case shapeVarint:
		_, err := w.varint()
		return err
	case shapeBytes:
		return w.bytes(n)
	case shapeEnum:
		_, err := w.choice(n.size)
		return err
	case shapeUnion:
		i, err := w.choice(int64(len(n.parts)))
		if err != nil {
			return err
		}
		return w.value(n.parts[i])
	case shapeRecord:
		for _, f := range n.parts {
			if err := w.value(f); err != nil {
				return err
			}
		}
		return nil
	}
	return w.list(n)
}

func (w *walker) bytes(n *node) error {
	size, err := w.varint()
	if err != nil {
		return err
	}
	if n.decimal && size > decimalBytesMax {
		return fmt.Errorf("a decimal has %d bytes", size)
	}
	return w.skip(size)
}

// list goes over an array or a map: runs of items, each with its count, up to an empty one.
func (w *walker) list(n *node) error {
	for {
		count, err := w.varint()
		if err != nil || count == 0 {
			return err
		}
		if count < 0 {
			if count == math.MinInt64 {
				return fmt.Errorf("a list has %d items", count)
			}
			count = -count
			if _, err := w.varint(); err != nil { // the run's bytes
				return err
			}
		}
		if count > w.items {
			return fmt.Errorf("a record has more than %d items in its lists", recordItemsMax)
		}
		w.items -= count
		w.spent += count
		for range count {
			if n.shape == shapeMap {
				if err := w.bytes(n); err != nil {
					return err
				}
			}
			if err := w.value(n.parts[0]); err != nil {
				return err
			}
		}
	}
}

func (w *walker) skip(n int64) error {
	if n < 0 {
		return fmt.Errorf("a value has the length %d", n)
	}
	if n > int64(len(w.block)) {
		return errShort
	}
	w.block = w.block[n:]
	return nil
}

func (w *walker) varint() (int64, error) {
	v, n := binary.Varint(w.block)
	if n == 0 {
		return 0, errShort
	}
	if n < 0 {
		return 0, errors.New("a number has more than 64 bits")
	}
	w.block = w.block[n:]
	return v, nil
}

func (w *walker) choice(of int64) (int64, error) {
	i, err := w.varint()
	if err == nil && (i < 0 || i >= of) {
		err = fmt.Errorf("a value is of branch %d of %d", i, of)
	}
	return i, err
}
