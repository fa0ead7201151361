package layout

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// slots are the places of a nested column on the way down to a leaf: each has its levels and, when a value is there, its
// index in the array of the current depth.
type slots struct {
	def, rep []int16
	index    []int32 // -1: nothing here
}

// depth counts what has been passed on the way down.
type depth struct {
	def, rep int16
	// repeated is the definition level just below the innermost list or map: a slot with less is not a value of it.
	repeated int16
}

// writeNested writes the leaves of a nested column.
func (f *fileWriter) writeNested(rg file.SerialRowGroupWriter, column *column, v *vec) error {
	a, err := v.nestedArray(column.field.Type)
	if err != nil {
		return err
	}
	defer a.Release()
	s := slots{def: make([]int16, a.Len()), rep: make([]int16, a.Len()), index: make([]int32, a.Len())}
	for i := range s.index {
		s.index[i] = int32(i)
	}
	return f.descend(rg, column.field, a, s, depth{})
}

func (f *fileWriter) descend(rg file.SerialRowGroupWriter, field arrow.Field, a arrow.Array, s slots, d depth) error {
	if field.Nullable {
		s = s.checkNulls(a, d.def)
		d.def++
	}
	switch a := a.(type) {
	case *array.Struct:
		t := field.Type.(*arrow.StructType)
		for i := range t.NumFields() {
			if err := f.descend(rg, t.Field(i), a.Field(i), s, d); err != nil {
				return err
			}
		}
		return nil
	case *array.Map:
		inner, below := s.repeat(a, d)
		t := field.Type.(*arrow.MapType)
		if err := f.descend(rg, t.KeyField(), a.Keys(), inner, below); err != nil {
			return err
		}
		return f.descend(rg, t.ItemField(), a.Items(), inner, below)
	case *array.List:
		inner, below := s.repeat(a, d)
		return f.descend(rg, field.Type.(*arrow.ListType).ElemField(), a.ListValues(), inner, below)
	}
	return f.writeLeaf(rg, field, a, s, d)
}

// checkNulls raises the definition level of slots whose value is there, and empties the others.
func (s slots) checkNulls(a arrow.Array, def int16) slots {
	out := slots{def: append([]int16(nil), s.def...), rep: s.rep, index: append([]int32(nil), s.index...)}
	for i, at := range out.index {
		switch {
		case at < 0:
		case a.IsNull(int(at)):
			out.index[i] = -1
		default:
			out.def[i] = def + 1
		}
	}
	return out
}

// repeat opens lists: a slot for each element, one for an empty or absent list.
func (s slots) repeat(a array.ListLike, d depth) (slots, depth) {
	below := depth{def: d.def + 1, rep: d.rep + 1, repeated: d.def + 1}
	var out slots
	add := func(def, rep int16, index int32) {
		out.def, out.rep, out.index = append(out.def, def), append(out.rep, rep), append(out.index, index)
	}
	for i, at := range s.index {
		if at < 0 {
			add(s.def[i], s.rep[i], -1)
			continue
		}
		start, end := a.ValueOffsets(int(at))
		if start == end {
			add(s.def[i], s.rep[i], -1)
			continue
		}
		for j := start; j < end; j++ {
			rep := below.rep
			if j == start {
				rep = s.rep[i]
			}
			add(below.def, rep, int32(j))
		}
	}
	return out, below
}

// writeLeaf gathers a leaf's values, one for each slot inside the innermost list, and writes them with their levels.
func (f *fileWriter) writeLeaf(rg file.SerialRowGroupWriter, field arrow.Field, a arrow.Array, s slots, d depth) error {
	cw, err := rg.NextColumn()
	if err != nil {
		return err
	}
	var sel []uint32
	var valid []byte
	nulls := 0
	for i, at := range s.index {
		if s.def[i] < d.repeated {
			continue
		}
		valid = growBits(valid, len(sel)+1)
		if at < 0 {
			nulls++
			at = 0
		} else {
			valid[len(sel)>>3] |= 1 << (len(sel) & 7)
		}
		sel = append(sel, uint32(at))
	}
	values, err := takeNullable(a, sel, valid, nulls)
	if err != nil {
		return err
	}
	defer values.Release()
	def, rep := s.def, s.rep
	if cw.Descr().MaxDefinitionLevel() == 0 {
		def = nil
	}
	if cw.Descr().MaxRepetitionLevel() == 0 {
		rep = nil
	}
	if cw.Descr().MaxDefinitionLevel() != d.def || cw.Descr().MaxRepetitionLevel() != d.rep {
		return fmt.Errorf("levels of leaf %s don't match its schema", cw.Descr().Path())
	}
	return pqarrow.WriteArrowToColumn(f.arrow, cw, values, def, rep, field.Nullable)
}

func takeNullable(a arrow.Array, sel []uint32, valid []byte, nulls int) (arrow.Array, error) {
	if len(sel) == nulls { // nothing to gather from, maybe not even an element
		return array.MakeArrayOfNull(memory.DefaultAllocator, a.DataType(), len(sel)), nil
	}
	return takeIndices(a, sel, valid, nulls)
}
