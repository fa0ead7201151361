package commit

import (
	"strings"

	"catalogd/internal/fault"
)

const assertCreate = "assert-create"

// requirements is the table of requirement types: how each is read. The texts of failures are those that clients
// and the compatibility kit look for.
var requirements = map[string]func(object) (func(*Document) error, error){
	assertCreate:             requireAbsence,
	"assert-table-uuid":      requireUUID,
	"assert-ref-snapshot-id": requireRef,
	"assert-last-assigned-field-id": requireNumber("last-assigned-field-id", "last assigned field id changed",
		func(d *Document) int { return d.lastColumn }),
	"assert-current-schema-id": requireNumber("current-schema-id", "current schema changed",
		func(d *Document) int { return d.currentSchema }),
	"assert-last-assigned-partition-id": requireNumber("last-assigned-partition-id", "last assigned partition id changed",
		func(d *Document) int { return d.lastPartition }),
	"assert-default-spec-id": requireNumber("default-spec-id", "default partition spec changed",
		func(d *Document) int { return d.defaultSpec }),
	"assert-default-sort-order-id": requireNumber("default-sort-order-id", "default sort order changed",
		func(d *Document) int { return d.defaultOrder }),
}

const assertViewUUID = "assert-view-uuid"

func parseRequirement(text []byte) (Requirement, error) {
	var buf [4]member
	o, err := parseObject(text, "a requirement", buf[:0])
	if err != nil {
		return Requirement{}, err
	}
	typ, err := o.str("type")
	if err != nil {
		return Requirement{}, err
	}
	q := Requirement{Type: strings.ToLower(typ)}
	if q.Type == assertViewUUID {
		return Requirement{}, shapef("%s cannot be checked against a table", assertViewUUID)
	}
	decode, known := requirements[q.Type]
	if !known {
		return Requirement{}, shapef("unknown requirement type %q", typ)
	}
	if q.check, err = decode(o); err != nil {
		return Requirement{}, shapef("%s: %v", q.Type, err)
	}
	return q, nil
}

// Check tests all requirements against the table as it is, nil when there is none. A failure is a
// fault.CommitConflict: the client must load the table again.
func Check(base *Document, r Request) error {
	for _, q := range r.Requirements {
		if base == nil && q.Type != assertCreate {
			return failed("table does not exist")
		}
		if err := q.check(base); err != nil {
			return err
		}
	}
	return nil
}

func failed(format string, args ...any) error {
	return fault.New(fault.CommitConflict, "Requirement failed: "+format, args...)
}

func requireAbsence(object) (func(*Document) error, error) {
	return func(d *Document) error {
		if d != nil {
			return failed("table already exists")
		}
		return nil
	}, nil
}

func requireUUID(o object) (func(*Document) error, error) {
	uuid, err := o.str("uuid")
	return func(d *Document) error {
		if !strings.EqualFold(uuid, d.uuid) {
			return failed("UUID does not match: expected %s != %s", d.uuid, uuid)
		}
		return nil
	}, err
}

func requireRef(o object) (func(*Document) error, error) {
	name, err := o.str("ref")
	if err != nil {
		return nil, err
	}
	// PyIceberg leaves a null snapshot-id out; both mean that the ref must not exist.
	id, wanted, err := o.longOr("snapshot-id", 0)
	return func(d *Document) error {
		ref := d.ref(name)
		switch {
		case ref == nil && wanted:
			return failed("branch or tag %s is missing, expected %d", name, id)
		case ref != nil && !wanted:
			return failed("%s %s was created concurrently", ref.Type, name)
		case ref != nil && ref.SnapshotID != id:
			return failed("%s %s has changed: expected id %d != %d", ref.Type, name, id, ref.SnapshotID)
		}
		return nil
	}, err
}

func requireNumber(field, text string, have func(*Document) int) func(object) (func(*Document) error, error) {
	return func(o object) (func(*Document) error, error) {
		want, err := o.integer(field)
		return func(d *Document) error {
			if have(d) != want {
				return failed("%s: expected id %d != %d", text, want, have(d))
			}
			return nil
		}, err
	}
}
