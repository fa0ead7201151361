package commit

import "strings"

// The types of refs.
const (
	refBranch = "branch"
	refTag    = "tag"
)

// Names of a ref's fields.
const (
	refSnapshot       = "snapshot-id"
	refType           = "type"
	refMinSnapshots   = "min-snapshots-to-keep"
	refMaxSnapshotAge = "max-snapshot-age-ms"
	refMaxRefAge      = "max-ref-age-ms"
)

func parseRef(name string, text []byte) (r namedRef, err error) {
	var buf [8]member
	o, err := parseObject(text, keyRefs, buf[:0])
	if err != nil {
		return r, err
	}
	r.name, r.text = name, text
	r.Ref, err = refOf(o)
	return r, err
}

// refOf reads a ref's fields from its object or from an update that carries them.
func refOf(o object) (r Ref, err error) {
	if r.SnapshotID, err = o.long(refSnapshot); err != nil {
		return r, err
	}
	if r.Type, err = o.str(refType); err != nil {
		return r, err
	}
	if r.Type = strings.ToLower(r.Type); r.Type != refBranch && r.Type != refTag {
		return r, shapef("the type of a ref must be %s or %s, not %q", refBranch, refTag, r.Type)
	}
	limits := []struct {
		name string
		into *int64
	}{{refMinSnapshots, new(int64)}, {refMaxSnapshotAge, &r.MaxSnapshotAgeMs}, {refMaxRefAge, &r.MaxRefAgeMs}}
	for _, l := range limits {
		n, found, err := o.longOr(l.name, 0)
		if err != nil {
			return r, err
		}
		if found && n <= 0 {
			return r, shapef("%s must be greater than 0, not %d", l.name, n)
		}
		*l.into = n
	}
	r.MinSnapshotsToKeep = int(*limits[0].into)
	return r, nil
}

// refsText writes the refs object; a ref that has no text of its own is written from its fields.
func refsText(refs []namedRef) []byte {
	dst := []byte{'{'}
	for _, r := range refs {
		text := r.text
		if text == nil {
			text = r.Ref.appendTo(nil, nil)
		}
		dst = appendMember(dst, r.name, text)
	}
	return append(dst, '}')
}

// appendTo writes a ref with the given further members.
func (r Ref) appendTo(dst []byte, further object) []byte {
	dst = append(dst, '{')
	dst = appendMember(dst, refSnapshot, number(r.SnapshotID))
	dst = appendMember(dst, refType, quoted(r.Type))
	for _, limit := range []struct {
		name string
		n    int64
	}{{refMinSnapshots, int64(r.MinSnapshotsToKeep)}, {refMaxSnapshotAge, r.MaxSnapshotAgeMs}, {refMaxRefAge, r.MaxRefAgeMs}} {
		if limit.n > 0 {
			dst = appendMember(dst, limit.name, number(limit.n))
		}
	}
	for _, m := range further {
		dst = appendMember(dst, string(m.name), m.value)
	}
	return append(dst, '}')
}
