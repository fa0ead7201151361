package commit

import (
	"strconv"
	"strings"
	"time"

	"catalogd/internal/fault"
)

// CreateRequest is a CreateTableRequest. The ids in schema, partition spec and sort order are the client's
// placeholders; Create gives the table's own.
type CreateRequest struct {
	Creation
	Stage bool

	schema []byte
	spec   []byte // nil: unpartitioned
	order  []byte // nil: unsorted
}

// CreateStamp is what a create needs from outside.
type CreateStamp struct {
	Now      time.Time
	UUID     string
	Location string // used by ApplyCreate when the request sets none
	Presets  Presets
}

// Properties that a create looks at.
const (
	formatVersionProperty = "format-version"
	codecProperty         = "write.parquet.compression-codec"
	codecDefault          = "zstd"
	createdAtProperty     = "created-at"
	encryptionPrefix      = "encryption."
	columnMetricsPrefix   = "write.metadata.metrics.column."
)

// DecodeCreate reads the body of a createTable call. What is malformed is a fault.BadRequest.
func DecodeCreate(body []byte) (CreateRequest, error) { return decodeBody(body, decodeCreate) }

func decodeCreate(o object) (r CreateRequest, err error) {
	if r.Creation, err = decodeCreation(o); err != nil {
		return r, err
	}
	if o.get("stage-create") != nil {
		if r.Stage, err = o.boolean("stage-create"); err != nil {
			return r, err
		}
	}
	if r.schema, err = o.need("schema"); err != nil {
		return r, err
	}
	if _, err = parseSchema(r.schema); err != nil {
		return r, err
	}
	if r.spec = o.get("partition-spec"); r.spec != nil {
		if _, err = parseSpec(r.spec); err != nil {
			return r, err
		}
	}
	if r.order = o.get("write-order"); r.order != nil {
		if _, err = parseOrder(r.order); err != nil {
			return r, err
		}
	}
	return r, nil
}

// newDraft starts a draft of a table that does not exist.
func newDraft(version int, s CreateStamp) *draft {
	return &draft{
		now: s.Now.UnixMilli(), version: version, uuid: s.UUID, location: stripSlashes(s.Location),
		lastPartition:   partitionIDBeforeFirst,
		schemas:         list{selected: noneAdded, added: noneAdded},
		specs:           list{selected: noneAdded, added: noneAdded},
		orders:          list{selected: noneAdded, added: noneAdded},
		statistics:      keyed[int64]{name: keyStatistics, keyOf: snapshotKey},
		partitionStats:  keyed[int64]{name: keyPartitionStats, keyOf: snapshotKey},
		encryptionKeys:  keyed[string]{name: keyEncryptionKeys, keyOf: encryptionKey},
		ignoresReserved: true,
	}
}

// Create makes the first metadata of a table, or of a staged one. Column ids are given anew from 1, partition field
// ids from 1000, as Java's server does, so they may differ from the request's.
func Create(r CreateRequest, s CreateStamp) (*Document, error) {
	r.properties, r.Properties = s.Presets.over(r.properties), s.Presets.values(r.Properties)
	version, err := formatVersionOf(r.Properties)
	if err != nil {
		return nil, err
	}
	s.Location = r.locationOr(s.Location)
	d := newDraft(version, s)
	steps := []change{r.properties, setLocation(s.Location)}
	if _, given := r.Properties[codecProperty]; !given {
		steps = append(steps, setProperties{{name: codecProperty, value: codecDefault}})
	}
	if _, given := r.Properties[createdAtProperty]; !given && r.Stage {
		steps = append(steps, setProperties{{name: createdAtProperty, value: s.Now.UTC().Format(time.RFC3339Nano)}})
	}
	parts, err := freshParts(r)
	if err != nil {
		return nil, err
	}
	for _, c := range append(steps, parts...) {
		if err := c.apply(d); err != nil {
			return nil, err
		}
	}
	if err := checkCreateProperties(r.Properties, d); err != nil {
		return nil, err
	}
	return d.finish("")
}

// freshParts gives the updates that declare schema, spec and order with fresh ids.
func freshParts(r CreateRequest) ([]change, error) {
	next, fresh := 0, map[int]int{}
	text, err := reassignSchema(r.schema, func(id int) int {
		next++
		fresh[id] = next
		return next
	})
	if err != nil {
		return nil, malformed(err)
	}
	given, err := parseSchema(r.schema)
	if err != nil {
		return nil, malformed(err)
	}
	if len(fresh) != next {
		return nil, given.checkIDsAndNames()
	}
	if len(given.identifiers) > 0 {
		if text, err = remapIdentifiers(text, given.identifiers, fresh); err != nil {
			return nil, err
		}
	}
	s, err := parseSchema(text)
	if err != nil {
		return nil, malformed(err)
	}
	spec, err := freshSpec(r.spec, fresh)
	if err != nil {
		return nil, err
	}
	order, err := freshOrder(r.order, fresh)
	if err != nil {
		return nil, err
	}
	return []change{
		addSchema{s, text}, setCurrentSchema(noneAdded),
		addSpec{spec}, setDefaultSpec(noneAdded), addOrder{order}, setDefaultOrder(noneAdded),
	}, nil
}

func remapIdentifiers(text []byte, ids []int, fresh map[int]int) ([]byte, error) {
	o, err := parseObject(text, "schema", nil)
	if err != nil {
		return nil, malformed(err)
	}
	texts := make([][]byte, len(ids))
	for i, id := range ids {
		if fresh[id] == 0 {
			return nil, fault.New(fault.IllegalArgument, "Cannot add field %d as an identifier field: field does not exist", id)
		}
		texts[i] = number(int64(fresh[id]))
	}
	return rewrite(o, edit{"identifier-field-ids", joinArray(texts)}), nil
}

func freshSpec(text []byte, fresh map[int]int) (partitionSpec, error) {
	if text == nil {
		return partitionSpec{}, nil
	}
	spec, err := parseSpec(text)
	if err != nil {
		return spec, malformed(err)
	}
	for i := range spec.fields {
		f := &spec.fields[i]
		f.id = partitionIDBeforeFirst + 1 + i
		if f.sources, err = freshSources(f.sources, fresh); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

func freshOrder(text []byte, fresh map[int]int) (sortOrder, error) {
	if text == nil {
		return sortOrder{}, nil
	}
	order, err := parseOrder(text)
	if err != nil {
		return order, malformed(err)
	}
	for i := range order.fields {
		f := &order.fields[i]
		if f.sources, err = freshSources(f.sources, fresh); err != nil {
			return order, err
		}
	}
	return order, nil
}

func freshSources(sources []int, fresh map[int]int) ([]int, error) {
	mapped := make([]int, len(sources))
	for i, id := range sources {
		if mapped[i] = fresh[id]; mapped[i] == 0 {
			return nil, fault.New(fault.IllegalArgument, "Cannot find source column %d in the schema", id)
		}
	}
	return mapped, nil
}

// formatVersionOf reads the property that picks the version at creation; it is never stored.
func formatVersionOf(properties map[string]string) (int, error) {
	text, given := properties[formatVersionProperty]
	if !given {
		return formatVersionDefault, nil
	}
	version, err := strconv.Atoi(text)
	if err != nil || version < formatVersionMin || version > formatVersionMax {
		return 0, fault.New(fault.IllegalArgument, "Unsupported format version: %s (supported: v%d to v%d)",
			excerpt([]byte(text)), formatVersionMin, formatVersionMax)
	}
	return version, nil
}

func checkCreateProperties(properties map[string]string, d *draft) error {
	s, err := d.currentSchema()
	if err != nil {
		return err
	}
	var names map[string]struct{}
	for name := range properties {
		if strings.HasPrefix(name, encryptionPrefix) && d.version < formatVersionRows {
			return fault.New(fault.IllegalArgument, "Invalid properties for v%d: %s is not supported until v%d", d.version, name, formatVersionRows)
		}
		column, is := strings.CutPrefix(name, columnMetricsPrefix)
		if !is {
			continue
		}
		if names == nil {
			names = s.columnNames()
		}
		if _, known := names[column]; !known {
			return fault.New(fault.Validation, "Invalid metrics config, could not find column %s from table prop %s in schema", column, name)
		}
	}
	return nil
}

// ApplyCreate makes the first metadata of a table from the commit of a staged create. Ids start at 0 (sort orders
// at 1), as in the staged answer: data files already carry them. uuid and location are the request's when it sets them.
func ApplyCreate(r Request, s CreateStamp) (*Document, error) {
	if assigned := r.AssignedUUID(); assigned != "" {
		s.UUID = assigned
	}
	if location, set := r.NewLocation(); set {
		s.Location = location
	}
	version, err := createVersion(r, s.Presets)
	if err != nil {
		return nil, err
	}
	d := newDraft(version, s)
	steps := []change{listed(s.Presets.Defaults)}
	for _, u := range r.Updates {
		steps = append(steps, u.change)
	}
	for _, c := range append(steps, listed(s.Presets.Overrides)) {
		if err := c.apply(d); err != nil {
			return nil, err
		}
	}
	if err := d.complete(); err != nil {
		return nil, err
	}
	return d.finish("")
}

// createVersion gives the version to start with: that of the first upgrade-format-version, else of the property.
func createVersion(r Request, p Presets) (int, error) {
	for _, u := range r.Updates {
		if version, is := u.change.(upgrade); is {
			return formatVersionOf(map[string]string{formatVersionProperty: strconv.Itoa(int(version))})
		}
	}
	return formatVersionOf(p.values(r.NewProperties()))
}

// complete fills in what a client may leave out: no spec means unpartitioned, no order unsorted, and what was added
// without being chosen is chosen.
func (d *draft) complete() error {
	var missing []change
	if len(d.specs.parts) == 0 {
		missing = append(missing, addSpec{}, setDefaultSpec(noneAdded))
	} else if d.specs.selected == noneAdded {
		missing = append(missing, setDefaultSpec(d.specs.parts[0].id))
	}
	if len(d.orders.parts) == 0 {
		missing = append(missing, addOrder{}, setDefaultOrder(noneAdded))
	} else if d.orders.selected == noneAdded {
		missing = append(missing, setDefaultOrder(d.orders.parts[0].id))
	}
	for _, c := range missing {
		if err := c.apply(d); err != nil {
			return err
		}
	}
	if d.location == "" {
		return fault.New(fault.IllegalArgument, "Cannot create a table without a location")
	}
	_, err := d.currentSchema()
	return err
}
