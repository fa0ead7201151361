package commit

import (
	"catalogd/internal/fault"
)

// keyed is a list of the document whose elements have a key: statistics by snapshot, encryption keys by id. It is
// read when it is first needed; most commits never do.
type keyed[K comparable] struct {
	name    string
	text    []byte // of the base's array; nil when absent
	keyOf   func(object) (K, error)
	loaded  bool
	changed bool
	entries []keyedEntry[K]
}

type keyedEntry[K comparable] struct {
	key  K
	text []byte
}

func snapshotKey(o object) (int64, error)    { return o.long("snapshot-id") }
func encryptionKey(o object) (string, error) { return o.str("key-id") }

func (l *keyed[K]) load() error {
	if l.loaded || l.text == nil {
		l.loaded = true
		return nil
	}
	l.loaded = true
	err := eachElement(l.text, l.name, func(text []byte) error {
		o, err := parseObject(text, l.name, nil)
		if err != nil {
			return err
		}
		key, err := l.keyOf(o)
		l.entries = append(l.entries, keyedEntry[K]{key, text})
		return err
	})
	if err != nil {
		return fault.New(fault.Validation, "table metadata: %s: %v", l.name, err)
	}
	return nil
}

func (l *keyed[K]) find(key K) int {
	for i := range l.entries {
		if l.entries[i].key == key {
			return i
		}
	}
	return -1
}

// set replaces the element with the key or adds one.
func (l *keyed[K]) set(key K, text []byte) {
	at := l.find(key)
	switch {
	case at < 0:
		l.entries = append(l.entries, keyedEntry[K]{key, text})
	case string(l.entries[at].text) == string(text):
		return
	default:
		l.entries[at].text = text
	}
	l.changed = true
}

// drop removes the elements whose key is gone.
func (l *keyed[K]) drop(gone func(K) bool) bool {
	kept := l.entries[:0]
	for _, e := range l.entries {
		if !gone(e.key) {
			kept = append(kept, e)
		}
	}
	dropped := len(kept) < len(l.entries)
	l.entries = kept
	l.changed = l.changed || dropped
	return dropped
}

// array writes the list.
func (l *keyed[K]) array() []byte {
	texts := make([][]byte, len(l.entries))
	for i := range l.entries {
		texts[i] = l.entries[i].text
	}
	return joinArray(texts)
}
