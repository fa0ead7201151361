package layout

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Nested columns are carried as Arrow arrays: gathered, joined and relabelled, never looked into, but for a struct's
// field that is clustered by.

// takeNested gives the selected rows of an array.
func takeNested(a arrow.Array, sel []uint32) (arrow.Array, error) { return takeIndices(a, sel, nil, 0) }

// takeIndices gives the selected values of an array, null where the index itself is null.
func takeIndices(a arrow.Array, sel []uint32, valid []byte, nulls int) (arrow.Array, error) {
	var bitmap *memory.Buffer
	if nulls > 0 {
		bitmap = memory.NewBufferBytes(valid)
	}
	data := array.NewData(arrow.PrimitiveTypes.Uint32, len(sel), []*memory.Buffer{bitmap, memory.NewBufferBytes(bytesOf(sel))}, nil, nulls, 0)
	defer data.Release()
	indices := array.NewUint32Data(data)
	defer indices.Release()
	taken, err := compute.TakeArrayOpts(context.Background(), a, indices, compute.TakeOptions{BoundsCheck: false})
	if err != nil {
		return nil, fmt.Errorf("gather values of a column of type %s: %w", a.DataType(), err)
	}
	return taken, nil
}

// nestedArray joins v's arrays into one.
func (v *vec) nestedArray(t arrow.DataType) (arrow.Array, error) {
	switch len(v.arrs) {
	case 0:
		return array.MakeArrayOfNull(memory.DefaultAllocator, t, 0), nil
	case 1:
		v.arrs[0].Retain()
		return v.arrs[0], nil
	}
	joined, err := array.Concatenate(v.arrs, memory.DefaultAllocator)
	if err != nil {
		return nil, fmt.Errorf("join parts of a column of type %s: %w", t, err)
	}
	return joined, nil
}

// relabel gives an array the type of the current schema: names and ids may differ, the physical shape may not.
func relabel(a arrow.Array, t arrow.DataType) arrow.Array {
	data := relabelData(a.Data(), t)
	defer data.Release()
	return array.MakeFromData(data)
}

func relabelData(d arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	var children []arrow.ArrayData
	for i, child := range d.Children() {
		children = append(children, relabelData(child, childType(t, i)))
	}
	relabelled := array.NewData(t, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	for _, child := range children {
		child.Release()
	}
	return relabelled
}

// nullsFit tells whether an array has no nulls in nested fields that the type requires. Nulls that come from a null
// around them count too: such a file would have to be looked at row by row.
func nullsFit(a arrow.Array, t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.StructType:
		s := a.(*array.Struct)
		for i := range t.NumFields() {
			if !t.Field(i).Nullable && s.Field(i).NullN() > s.NullN() || !nullsFit(s.Field(i), t.Field(i).Type) {
				return false
			}
		}
	case *arrow.MapType:
		m := a.(*array.Map)
		return m.Keys().NullN() == 0 && (t.ItemField().Nullable || m.Items().NullN() == 0) && nullsFit(m.Items(), t.ItemType())
	case *arrow.ListType:
		values := a.(*array.List).ListValues()
		return (t.ElemField().Nullable || values.NullN() == 0) && nullsFit(values, t.Elem())
	}
	return true
}

func childType(t arrow.DataType, i int) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StructType:
		return t.Field(i).Type
	case *arrow.MapType:
		return t.Elem()
	case *arrow.ListType:
		return t.Elem()
	}
	return t
}

// structField gives the values of a field inside structs: null where the field or any struct around it is null.
func structField(a arrow.Array, path []int, c class, width int) (*vec, error) {
	valid := make([]byte, 0)
	n := a.Len()
	valid = allOnes(valid, n)
	for _, step := range path {
		s, ok := a.(*array.Struct)
		if !ok {
			return nil, fmt.Errorf("clustering column: %s is not a struct", a.DataType())
		}
		andValidity(valid, a)
		a = s.Field(step)
	}
	andValidity(valid, a)
	v, err := fromArrow(c, width, a)
	if err != nil {
		return nil, err
	}
	v.valid, v.nulls = valid, countNulls(valid, n)
	if v.nulls > 0 {
		v.zeroNulls()
	}
	return v, nil
}

func andValidity(valid []byte, a arrow.Array) {
	if a.NullN() == 0 {
		return
	}
	for i := range a.Len() {
		if a.IsNull(i) {
			valid[i>>3] &^= 1 << (i & 7)
		}
	}
}
