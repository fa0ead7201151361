package commit

import (
	"bytes"
	"slices"
)

// snapshotEntry is what the index knows of a snapshot; the rest stays text.
type snapshotEntry struct {
	id, parent, sequence int64
	hasParent            bool
	start, end           int // in the document's text
}

// snapshotBytesTypical is the usual size of a snapshot's text; it only sizes the first allocation.
const snapshotBytesTypical = 700

// Bits for the fields of a snapshot that were seen.
const (
	sawID = 1 << iota
	sawParent
	sawSequence
	sawTimestamp
	sawManifests
)

// snapshots reads the array of snapshots, on whose first byte the scanner stands.
func (s *scanner) snapshots(d *Document) error {
	if room := (len(s.text) - s.at) / snapshotBytesTypical; room > 0 {
		d.snapshots = make([]snapshotEntry, 0, room)
	}
	more, err := s.open('[', ']')
	for more && err == nil {
		e := snapshotEntry{start: s.at}
		if err = s.snapshot(&e); err != nil {
			break
		}
		e.end = s.at
		d.snapshots = append(d.snapshots, e)
		more, err = s.next(']')
	}
	return err
}

// snapshot reads one snapshot's own fields and skips the rest.
func (s *scanner) snapshot(e *snapshotEntry) error {
	saw := 0
	more, err := s.open('{', '}')
	for more && err == nil {
		var name []byte
		if name, err = s.key(); err != nil {
			break
		}
		bit := 0
		switch string(name) {
		case "snapshot-id":
			bit = sawID
			e.id, err = s.long("snapshot-id")
		case "parent-snapshot-id":
			bit = sawParent
			if s.peek() == 'n' {
				err = s.skipValue()
				break
			}
			e.hasParent = true
			e.parent, err = s.long("parent-snapshot-id")
		case "sequence-number":
			bit = sawSequence
			e.sequence, err = s.long("sequence-number")
		case "timestamp-ms":
			bit = sawTimestamp
			_, err = s.long("timestamp-ms")
		case "manifest-list", "manifests":
			saw |= sawManifests
			err = s.skipValue()
		default:
			err = s.skipValue()
		}
		if err != nil {
			break
		}
		if saw&bit != 0 {
			return shapef("%s: a snapshot has the field %q twice", keySnapshots, name)
		}
		saw |= bit
		more, err = s.next('}')
	}
	if err != nil {
		return shapef("%s: %v", keySnapshots, err)
	}
	for _, must := range []struct {
		bit  int
		name string
	}{{sawID, "snapshot-id"}, {sawTimestamp, "timestamp-ms"}, {sawManifests, "manifest-list"}} {
		if saw&must.bit == 0 {
			return shapef("%s: missing field %q", keySnapshots, must.name)
		}
	}
	return nil
}

func (s *scanner) long(name string) (int64, error) {
	value, err := s.value()
	if err != nil {
		return 0, err
	}
	return longOf(value, name)
}

// newSnapshot is a snapshot that a request adds.
type newSnapshot struct {
	id, parent, sequence, timestamp int64
	hasParent                       bool
	firstRow, addedRows             int64
	hasFirstRow, hasAddedRows       bool
	manifestList                    string   // "" when it lists its manifests, as v1 may
	manifests                       []string // v1 only
	operation                       string
	text                            []byte
}

// noSnapshotID is how some writers, ClickHouse among them, say that there is no snapshot.
const noSnapshotID = -1

// parseNewSnapshot reads a snapshot of a request. Its text is kept but for fields that are null: Java's reader
// refuses a null parent-snapshot-id or schema-id. A parent of -1 is none and left out too.
func parseNewSnapshot(text []byte) (n newSnapshot, err error) {
	var buf [16]member
	o, err := parseObject(text, "snapshot", buf[:0])
	if err != nil {
		return n, err
	}
	if n.id, err = o.long("snapshot-id"); err != nil {
		return n, err
	}
	if n.timestamp, err = o.long("timestamp-ms"); err != nil {
		return n, err
	}
	if n.parent, n.hasParent, err = o.longOr("parent-snapshot-id", 0); err != nil {
		return n, err
	}
	if n.sequence, _, err = o.longOr("sequence-number", 0); err != nil {
		return n, err
	}
	if n.firstRow, n.hasFirstRow, err = o.longOr("first-row-id", 0); err != nil {
		return n, err
	}
	if n.addedRows, n.hasAddedRows, err = o.longOr("added-rows", 0); err != nil {
		return n, err
	}
	if _, _, err = o.integerOr("schema-id", 0); err != nil {
		return n, err
	}
	if n.manifestList, err = o.strOr("manifest-list", ""); err != nil {
		return n, err
	}
	if o.get("manifests") != nil {
		if n.manifests, err = stringList(o, "manifests"); err != nil {
			return n, err
		}
	}
	if n.manifestList == "" && o.get("manifests") == nil {
		return n, shapef("snapshot: missing field %q", "manifest-list")
	}
	if summary := o.get("summary"); summary != nil {
		values, err := stringMap(summary, "summary")
		if err != nil {
			return n, err
		}
		n.operation = values["operation"]
	}
	n.text = text
	first := n.hasParent && n.parent == noSnapshotID
	if first {
		n.parent, n.hasParent = 0, false
	}
	if first || bytes.Contains(text, []byte("null")) {
		kept := o.withoutNulls(snapshotFields...)
		n.text = rewrite(slices.DeleteFunc(kept, func(m member) bool { return first && string(m.name) == "parent-snapshot-id" }))
	}
	return n, nil
}

var snapshotFields = []string{
	"snapshot-id", "parent-snapshot-id", "sequence-number", "timestamp-ms", "summary", "manifest-list", "manifests",
	"schema-id", "first-row-id", "added-rows", "key-id",
}

func stringList(o object, name string) ([]string, error) {
	elements, err := o.list(name)
	if err != nil {
		return nil, err
	}
	values := make([]string, len(elements))
	for i, e := range elements {
		if values[i], err = stringOf(e, name); err != nil {
			return nil, err
		}
	}
	return values, nil
}
