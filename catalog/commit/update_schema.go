package commit

import (
	"bytes"

	"catalogd/internal/fault"
)

type addSchema struct {
	schema schema
	text   []byte
}

func decodeAddSchema(o object) (change, error) {
	text, err := o.need("schema")
	if err != nil {
		return nil, err
	}
	c := addSchema{text: text}
	if c.schema, err = parseSchema(text); err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte("null")) {
		c.text, err = reassignSchema(text, func(id int) int { return id })
	}
	return c, err
}

// apply adds the schema unless the table has an equal one. Ids are the table's: the request's schema-id is ignored.
func (c addSchema) apply(d *draft) error {
	s := c.schema
	if err := s.check(d.version); err != nil {
		return err
	}
	if highest := s.highestID(); highest > d.lastColumn {
		d.lastColumn, d.changed = highest, true
	}
	added, err := d.schemas.addSchema(c)
	if err != nil || !added {
		return err
	}
	if d.schemas.selected == noneAdded { // of a table that is being created
		d.schemas.selected = d.schemas.added
	}
	d.changed = true
	return nil
}

// addSchema adds a schema unless an equal one is there already; added tells which.
func (l *list) addSchema(c addSchema) (added bool, err error) {
	for _, p := range l.parts {
		known, err := readPart(l, p, parseSchema)
		if err == nil && known.same(&c.schema) {
			l.added = p.id
			return false, nil
		}
	}
	id := l.nextID(0)
	o, err := parseObject(c.text, "schema", nil)
	if err != nil {
		return false, fault.New(fault.BadRequest, "%v", err)
	}
	l.add(part{id, rewrite(o, edit{"schema-id", number(int64(id))})})
	return true, nil
}

type setCurrentSchema int

func decodeSetCurrentSchema(o object) (change, error) {
	id, err := o.integer("schema-id")
	return setCurrentSchema(id), err
}

func (c setCurrentSchema) apply(d *draft) error {
	id, err := d.schemas.resolve(int(c), "current schema", "schema")
	if err == nil && d.schemas.selected != id {
		d.schemas.selected, d.schemaMoved, d.changed = id, true, true
	}
	return err
}

type removeSchemas []int

func decodeRemoveSchemas(o object) (change, error) {
	ids, err := o.integers("schema-ids")
	return removeSchemas(ids), err
}

func (c removeSchemas) apply(d *draft) error {
	err := d.schemas.remove(c, "Cannot remove the current schema")
	d.changed = d.changed || d.schemas.changed
	return err
}

type addSpec struct{ spec partitionSpec }

func decodeAddSpec(o object) (change, error) {
	text, err := o.need("spec")
	if err != nil {
		return nil, err
	}
	spec, err := parseSpec(text)
	return addSpec{spec}, err
}

// apply binds the spec to the current schema and adds it unless the table has an equal one.
func (c addSpec) apply(d *draft) error {
	known := make([]partitionSpec, 0, len(d.specs.parts))
	for _, p := range d.specs.parts {
		spec, err := readPart(&d.specs, p, parseSpec)
		if err != nil {
			return fault.New(fault.Validation, "table metadata: %v", err)
		}
		if spec.same(c.spec) {
			d.specs.added = p.id
			return nil
		}
		known = append(known, spec)
	}
	spec := partitionSpec{o: c.spec.o, fields: append([]specField(nil), c.spec.fields...)}
	if err := d.checkSpec(spec); err != nil {
		return err
	}
	if err := d.assignFieldIDs(spec, known); err != nil {
		return err
	}
	for _, f := range spec.fields {
		d.lastPartition = max(d.lastPartition, f.id)
	}
	id := d.specs.nextID(0)
	d.specs.add(part{id, spec.text(id)})
	d.changed = true
	return nil
}

func (d *draft) checkSpec(spec partitionSpec) error {
	s, err := d.currentSchema()
	if err != nil {
		return err
	}
	if err := spec.checkFits(s); err != nil {
		return err
	}
	for _, f := range spec.fields {
		if d.version < formatVersionRows && len(f.sources) > 1 {
			return fault.New(fault.IllegalArgument, "Partition field %s has several sources, which is not supported until v%d",
				f.name, formatVersionRows)
		}
	}
	return spec.checkNames(s)
}

// assignFieldIDs gives ids to fields that came without: one that partitions like a field of an older spec takes its
// id, as the specification asks, others get fresh ones. v1 knows ids only by position.
func (d *draft) assignFieldIDs(spec partitionSpec, known []partitionSpec) error {
	missing := 0
	for _, f := range spec.fields {
		if f.id == 0 {
			missing++
		}
	}
	if missing > 0 && missing < len(spec.fields) {
		return fault.New(fault.IllegalArgument, "Cannot add a partition spec with some field ids missing: give all of them or none")
	}
	used := map[int]struct{}{}
	next := d.lastPartition
	for i := range spec.fields {
		f := &spec.fields[i]
		switch {
		case d.version == 1:
			want := partitionIDBeforeFirst + 1 + i
			if f.id != 0 && f.id != want {
				return fault.New(fault.Validation, "Spec does not use sequential IDs that are required in v1: %s", f)
			}
			f.id = want
		case f.id == 0:
			if f.id = idOfEqual(*f, known, used); f.id == 0 {
				next++
				f.id = next
			}
			used[f.id] = struct{}{}
		}
	}
	return nil
}

func idOfEqual(f specField, known []partitionSpec, used map[int]struct{}) int {
	if f.transform.isVoid() {
		return 0
	}
	for _, spec := range known {
		for _, old := range spec.fields {
			if _, taken := used[old.id]; !taken && old.name == f.name && old.means(f) {
				return old.id
			}
		}
	}
	return 0
}

type setDefaultSpec int

func decodeSetDefaultSpec(o object) (change, error) {
	id, err := o.integer("spec-id")
	return setDefaultSpec(id), err
}

func (c setDefaultSpec) apply(d *draft) error {
	id, err := d.specs.resolve(int(c), "default partition spec", "spec")
	if err == nil && d.specs.selected != id {
		d.specs.selected, d.specMoved, d.changed = id, true, true
	}
	return err
}

type removeSpecs []int

func decodeRemoveSpecs(o object) (change, error) {
	ids, err := o.integers("spec-ids")
	return removeSpecs(ids), err
}

func (c removeSpecs) apply(d *draft) error {
	err := d.specs.remove(c, "Cannot remove the default partition spec")
	d.changed = d.changed || d.specs.changed
	return err
}

type addOrder struct{ order sortOrder }

func decodeAddOrder(o object) (change, error) {
	text, err := o.need("sort-order")
	if err != nil {
		return nil, err
	}
	order, err := parseOrder(text)
	return addOrder{order}, err
}

// apply binds the order to the current schema and adds it unless the table has an equal one. 0 is always unsorted.
func (c addOrder) apply(d *draft) error {
	if len(c.order.fields) == 0 {
		if find(d.orders.parts, 0) != nil {
			d.orders.added = 0
			return nil
		}
		d.orders.add(part{0, unsorted})
		d.changed = true
		return nil
	}
	for _, p := range d.orders.parts {
		known, err := readPart(&d.orders, p, parseOrder)
		if err != nil {
			return fault.New(fault.Validation, "table metadata: %v", err)
		}
		if known.same(c.order) {
			d.orders.added = p.id
			return nil
		}
	}
	s, err := d.currentSchema()
	if err != nil {
		return err
	}
	if err := c.order.checkFits(s); err != nil {
		return err
	}
	for _, f := range c.order.fields {
		if d.version < formatVersionRows && len(f.sources) > 1 {
			return fault.New(fault.IllegalArgument, "A sort field has several sources, which is not supported until v%d", formatVersionRows)
		}
	}
	id := d.orders.nextID(1)
	d.orders.add(part{id, c.order.text(id)})
	d.changed = true
	return nil
}

type setDefaultOrder int

func decodeSetDefaultOrder(o object) (change, error) {
	id, err := o.integer("sort-order-id")
	return setDefaultOrder(id), err
}

func (c setDefaultOrder) apply(d *draft) error {
	id, err := d.orders.resolve(int(c), "default sort order", "sort order")
	if err == nil && d.orders.selected != id {
		d.orders.selected, d.orderMoved, d.changed = id, true, true
	}
	return err
}
