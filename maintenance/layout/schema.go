package layout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"

	"catalogd/internal/fault"
	"catalogd/maintenance/zorder"
)

// Field ids of the row lineage columns.
const (
	fieldRowID       = 2147483540
	fieldLastUpdated = 2147483539
)

// column is one top-level column of the output.
type column struct {
	id       int
	name     string
	required bool
	itype    iceberg.Type // nil for lineage columns
	// initialDefault: files from before the column don't mean null by leaving it out.
	initialDefault bool
	// inPartition: files don't mean null by leaving it out either, the partition has its value.
	inPartition bool
	class       class // of plain values
	width       int
	field       arrow.Field // with its field id
	leaves      []leaf
}

// leaf is one physical column of a top-level column, in the order of the Parquet schema.
type leaf struct {
	id    int
	name  string // dotted, as the schema spells it
	itype iceberg.PrimitiveType
	depth int // of repetition
}

// clusterColumn is a column to cluster by: a top-level one, or a field inside structs.
type clusterColumn struct {
	id   int
	top  int   // index of the top-level column
	path []int // of child indexes below it; empty: the column itself
	t    zorder.Type
	name string
}

// plan is what a job's schema comes to.
type plan struct {
	columns []column
	cluster []clusterColumn
	schema  *arrow.Schema
	json    string // of the schema, for the Parquet footer
}

func newPlan(schema *iceberg.Schema, cluster []int, lineage bool) (*plan, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	p := &plan{json: string(text)}
	for _, field := range schema.Fields() {
		c, err := newColumn(field)
		if err != nil {
			return nil, err
		}
		p.columns = append(p.columns, c)
	}
	if lineage {
		p.columns = append(p.columns, lineageColumns()...)
	}
	p.schema = p.arrowSchema()
	if len(cluster) > zorder.ColumnsMax {
		return nil, fault.New(fault.Validation, "cannot cluster by %d columns; at most %d", len(cluster), zorder.ColumnsMax)
	}
	for _, id := range cluster {
		c, err := findCluster(schema, id)
		if err != nil {
			return nil, err
		}
		p.cluster = append(p.cluster, c)
	}
	return p, nil
}

// markInPartition marks the columns that are, or hold, one of the fields.
func (p *plan) markInPartition(fields []int) {
	for i := range p.columns {
		c := &p.columns[i]
		c.inPartition = slices.Contains(fields, c.id) ||
			slices.ContainsFunc(c.leaves, func(l leaf) bool { return slices.Contains(fields, l.id) })
	}
}

func (p *plan) arrowSchema() *arrow.Schema {
	var fields []arrow.Field
	for _, c := range p.columns {
		fields = append(fields, c.field)
	}
	return arrow.NewSchema(fields, nil)
}

func lineageColumns() []column {
	make := func(id int, name string) column {
		return column{id: id, name: name, class: class8, field: arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64,
			Nullable: true, Metadata: fieldID(id)}, leaves: []leaf{{id: id, name: name, itype: iceberg.PrimitiveTypes.Int64}}}
	}
	return []column{make(fieldRowID, "_row_id"), make(fieldLastUpdated, "_last_updated_sequence_number")}
}

func fieldID(id int) arrow.Metadata {
	return arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{strconv.Itoa(id)})
}

func newColumn(field iceberg.NestedField) (column, error) {
	c := column{id: field.ID, name: field.Name, required: field.Required, itype: field.Type,
		initialDefault: field.InitialDefault != nil}
	var err error
	c.field, err = arrowField(field, field.Name)
	if err != nil {
		return c, err
	}
	c.leaves = appendLeaves(nil, field.ID, field.Name, field.Type, 0)
	if _, primitive := field.Type.(iceberg.PrimitiveType); primitive {
		c.class, c.width = classOf(c.field.Type)
	} else {
		c.class = classNested
	}
	return c, nil
}

func appendLeaves(leaves []leaf, id int, name string, t iceberg.Type, depth int) []leaf {
	switch t := t.(type) {
	case *iceberg.StructType:
		for _, f := range t.FieldList {
			leaves = appendLeaves(leaves, f.ID, name+"."+f.Name, f.Type, depth)
		}
	case *iceberg.ListType:
		leaves = appendLeaves(leaves, t.ElementID, name+".element", t.Element, depth+1)
	case *iceberg.MapType:
		leaves = appendLeaves(leaves, t.KeyID, name+".key", t.KeyType, depth+1)
		leaves = appendLeaves(leaves, t.ValueID, name+".value", t.ValueType, depth+1)
	case iceberg.PrimitiveType:
		leaves = append(leaves, leaf{id: id, name: name, itype: t, depth: depth})
	}
	return leaves
}

// arrowField gives the Arrow form of a field, names and ids included. path is for refusals.
func arrowField(field iceberg.NestedField, path string) (arrow.Field, error) {
	t, err := arrowType(field.Type, path)
	return arrow.Field{Name: field.Name, Type: t, Nullable: !field.Required, Metadata: fieldID(field.ID)}, err
}

func arrowType(t iceberg.Type, path string) (arrow.DataType, error) {
	switch t := t.(type) {
	case *iceberg.StructType:
		fields := make([]arrow.Field, 0, len(t.FieldList))
		for _, f := range t.FieldList {
			child, err := arrowField(f, path+"."+f.Name)
			if err != nil {
				return nil, err
			}
			fields = append(fields, child)
		}
		if len(fields) == 0 {
			return nil, fault.New(fault.Unsupported, "column %q: a struct without fields can't be written to Parquet", path)
		}
		return arrow.StructOf(fields...), nil
	case *iceberg.ListType:
		element, err := arrowField(t.ElementField(), path+".element")
		if err != nil {
			return nil, err
		}
		return arrow.ListOfField(element), nil
	case *iceberg.MapType:
		key, err := arrowField(t.KeyField(), path+".key")
		if err != nil {
			return nil, err
		}
		value, err := arrowField(t.ValueField(), path+".value")
		if err != nil {
			return nil, err
		}
		return arrow.MapOfFields(key, value), nil
	}
	if primitive := primitiveArrowType(t); primitive != nil {
		return primitive, nil
	}
	return nil, fault.New(fault.Unsupported, "column %q: rewriting values of type %s is not supported yet", path, t)
}

func primitiveArrowType(t iceberg.Type) arrow.DataType {
	switch t := t.(type) {
	case iceberg.BooleanType:
		return arrow.FixedWidthTypes.Boolean
	case iceberg.Int32Type:
		return arrow.PrimitiveTypes.Int32
	case iceberg.Int64Type:
		return arrow.PrimitiveTypes.Int64
	case iceberg.Float32Type:
		return arrow.PrimitiveTypes.Float32
	case iceberg.Float64Type:
		return arrow.PrimitiveTypes.Float64
	case iceberg.DateType:
		return arrow.FixedWidthTypes.Date32
	case iceberg.TimeType:
		return arrow.FixedWidthTypes.Time64us
	case iceberg.TimestampType:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case iceberg.TimestampTzType:
		return arrow.FixedWidthTypes.Timestamp_us
	case iceberg.TimestampNsType:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}
	case iceberg.TimestampTzNsType:
		return arrow.FixedWidthTypes.Timestamp_ns
	case iceberg.StringType:
		return arrow.BinaryTypes.String
	case iceberg.BinaryType:
		return arrow.BinaryTypes.Binary
	case iceberg.UUIDType:
		return extensions.NewUUIDType()
	case iceberg.FixedType:
		return &arrow.FixedSizeBinaryType{ByteWidth: t.Len()}
	case iceberg.DecimalType:
		return &arrow.Decimal128Type{Precision: int32(t.Precision()), Scale: int32(t.Scale())}
	}
	return nil
}

// classOf gives the memory form of a primitive Arrow type.
func classOf(t arrow.DataType) (class, int) {
	switch t := t.(type) {
	case *arrow.BooleanType:
		return classBit, 0
	case *arrow.StringType, *arrow.BinaryType:
		return classBytes, 0
	case *extensions.UUIDType:
		return classFixed, 16
	case *arrow.FixedSizeBinaryType:
		return classFixed, t.ByteWidth
	case *arrow.Decimal128Type:
		return classFixed, 16
	case arrow.FixedWidthDataType:
		if t.BitWidth() == 64 {
			return class8, 8
		}
		return class4, 4
	}
	return classNested, 0
}

// findCluster finds a clustering column by field id. Fields of lists and maps have many values a row and no order.
func findCluster(schema *iceberg.Schema, id int) (clusterColumn, error) {
	name, ok := schema.FindColumnName(id)
	if !ok {
		return clusterColumn{}, fault.New(fault.Validation, "cannot cluster by field %d: the current schema has no such field", id)
	}
	field, _ := schema.FindFieldByID(id)
	for top, f := range schema.Fields() {
		if path, found := pathTo(f, id, nil); found {
			t, err := zorder.TypeOf(name, field.Type.String())
			return clusterColumn{id: id, top: top, path: path, t: t, name: name}, err
		}
	}
	return clusterColumn{}, fault.New(fault.Validation, "cannot cluster by %q: it is inside a list or a map", name)
}

func pathTo(field iceberg.NestedField, id int, path []int) ([]int, bool) {
	if field.ID == id {
		return path, true
	}
	if s, ok := field.Type.(*iceberg.StructType); ok {
		for i, f := range s.FieldList {
			if found, ok := pathTo(f, id, append(path[:len(path):len(path)], i)); ok {
				return found, true
			}
		}
	}
	return nil, false
}
