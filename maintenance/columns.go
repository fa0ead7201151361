package maintenance

import (
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"catalogd/internal/fault"
)

// Column is a column to cluster by, found in the table's schema.
type Column struct {
	Path    string // dotted, in the schema's spelling
	FieldID int
	Type    iceberg.PrimitiveType
}

// Shape is what of a table decides about its layout.
type Shape struct {
	Schema *iceberg.Schema
	Spec   iceberg.PartitionSpec // the default spec
	Order  table.SortOrder       // the default order
}

// Target is the layout that a table is to have: settings resolved against its shape.
type Target struct {
	Columns      []Column // empty: rows are packed, not moved
	Curve        Curve
	RowGroupRows int64
	TargetBytes  int64
	// Dropped are columns that were asked for but are constant within every partition.
	Dropped []string
	// FromOrder tells that the columns are those of the table's sort order.
	FromOrder bool
}

// ResolveTarget turns settings into a layout, or says why that cannot be (fault.Validation).
func ResolveTarget(s Settings, shape Shape) (Target, error) {
	t := Target{RowGroupRows: s.RowGroupRows, TargetBytes: s.TargetBytes}
	if s.Strategy == BinPack {
		return t, nil
	}
	names := s.Columns
	if names == nil {
		names, t.FromOrder = orderColumns(shape), true
	}
	asked := len(names)
	for _, name := range names {
		c, err := resolveColumn(shape.Schema, name)
		if err != nil {
			return Target{}, err
		}
		if slices.ContainsFunc(t.Columns, func(o Column) bool { return o.FieldID == c.FieldID }) {
			return Target{}, fault.New(fault.Validation, "cannot cluster by %q twice", c.Path)
		}
		if constantInPartition(shape.Spec, c.FieldID) {
			t.Dropped = append(t.Dropped, c.Path)
			continue
		}
		t.Columns = append(t.Columns, c)
	}
	t.Curve = chooseCurve(s, len(t.Columns))
	if len(t.Columns) > 0 || (s.Strategy == Auto && t.FromOrder) {
		return t, nil
	}
	if asked > 0 {
		return Target{}, fault.New(fault.Validation, "cannot cluster by %s: constant within a partition, since the table is partitioned by it",
			quoteAll(t.Dropped))
	}
	if s.Strategy == Auto {
		return t, nil
	}
	return Target{}, fault.New(fault.Validation,
		"maintenance strategy %s needs columns: set cluster-columns, or give the table a sort order (ALTER TABLE ... WRITE ORDERED BY ...)", s.Strategy)
}

// chooseCurve: one column needs no curve, and sort means the columns' own order.
func chooseCurve(s Settings, columns int) Curve {
	switch {
	case columns == 0:
		return NoCurve
	case columns == 1 || s.Strategy == Sort:
		return Linear
	default:
		return s.Curve
	}
}

// orderColumns gives the sort order's fields that are plain columns; direction and nulls do not matter to a curve.
// Fields by a transform, and columns of types without order, are left out: nobody asked for clustering by them.
func orderColumns(shape Shape) []string {
	var names []string
	for _, f := range shape.Order.Fields() {
		if _, plain := f.Transform.(iceberg.IdentityTransform); !plain || len(f.SourceIDs) != 1 || len(names) == clusterColumnsMax {
			continue
		}
		name, ok := shape.Schema.FindColumnName(f.SourceIDs[0])
		if !ok || slices.Contains(names, name) {
			continue
		}
		if _, err := resolveColumn(shape.Schema, name); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// constantInPartition tells whether every file of the spec holds one value of the column.
func constantInPartition(spec iceberg.PartitionSpec, fieldID int) bool {
	for _, f := range spec.FieldsBySourceID(fieldID) {
		if _, ok := f.Transform.(iceberg.IdentityTransform); ok {
			return true
		}
	}
	return false
}

// candidate is a place in the schema that a dotted path can name.
type candidate struct {
	path     string
	field    iceberg.NestedField
	repeated bool // below a list or a map: many values a row
}

// resolveColumn finds a column by its dotted path: in the schema's own case first, then in any case if that is clear.
func resolveColumn(schema *iceberg.Schema, name string) (Column, error) {
	var exact, folded []candidate
	for _, c := range candidates(nil, "", false, schema.Fields()) {
		if c.path == name {
			exact = append(exact, c)
		} else if strings.EqualFold(c.path, name) {
			folded = append(folded, c)
		}
	}
	found := exact
	if len(found) == 0 {
		found = folded
	}
	switch {
	case len(found) == 0:
		return Column{}, fault.New(fault.Validation, "cannot cluster by %q: the table has no such column", name)
	case len(found) > 1:
		return Column{}, fault.New(fault.Validation, "cannot cluster by %q: the name fits %d columns; write it as in the schema", name, len(found))
	case found[0].repeated:
		return Column{}, fault.New(fault.Validation, "cannot cluster by %q: it is inside a list or a map and has many values a row", name)
	}
	primitive, ok := found[0].field.Type.(iceberg.PrimitiveType)
	if !ok || !hasOrder(primitive) {
		return Column{}, fault.New(fault.Validation, "cannot cluster by %q: type %s has no total order", name, found[0].field.Type)
	}
	return Column{Path: found[0].path, FieldID: found[0].field.ID, Type: primitive}, nil
}

// candidates walks the schema. Paths join with dots what a struct nests; list and map parts get Iceberg's names.
func candidates(into []candidate, prefix string, repeated bool, fields []iceberg.NestedField) []candidate {
	for _, f := range fields {
		path := prefix + f.Name
		into = append(into, candidate{path: path, field: f, repeated: repeated})
		switch t := f.Type.(type) {
		case *iceberg.StructType:
			into = candidates(into, path+".", repeated, t.FieldList)
		case *iceberg.ListType:
			into = candidates(into, path+".", true, []iceberg.NestedField{t.ElementField()})
		case *iceberg.MapType:
			into = candidates(into, path+".", true, []iceberg.NestedField{t.KeyField(), t.ValueField()})
		}
	}
	return into
}

// hasOrder tells whether values of the type can be put in one order that every reader agrees on.
func hasOrder(t iceberg.PrimitiveType) bool {
	switch t.(type) {
	case iceberg.BooleanType, iceberg.Int32Type, iceberg.Int64Type, iceberg.Float32Type, iceberg.Float64Type,
		iceberg.DateType, iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType,
		iceberg.TimestampTzNsType, iceberg.StringType, iceberg.UUIDType, iceberg.BinaryType, iceberg.FixedType,
		iceberg.DecimalType:
		return true
	}
	return false
}

func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = `"` + n + `"`
	}
	return strings.Join(quoted, ", ")
}
