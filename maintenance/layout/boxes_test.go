package layout

import (
	"fmt"
	"testing"

	"catalogd/maintenance/zorder"
)

func boxOfInts(rows int64, bounds ...int32) Box {
	b := Box{Rows: rows}
	for i := 0; i < len(bounds); i += 2 {
		b.Lo = append(b.Lo, zorder.AppendInt(zorder.AppendPresent(nil), bounds[i]))
		b.Hi = append(b.Hi, zorder.AppendInt(zorder.AppendPresent(nil), bounds[i+1]))
	}
	return b
}

func TestDepth(t *testing.T) {
	var tiles, stripes, all []Box
	for i := range int32(16) {
		tiles = append(tiles, boxOfInts(10, i/4*10, i/4*10+9, i%4*10, i%4*10+9))
		stripes = append(stripes, boxOfInts(10, i, i, 0, 100))
		all = append(all, boxOfInts(10, 0, 100, 0, 100))
	}
	for _, c := range []struct {
		name  string
		boxes []Box
		want  float64
	}{{"tiles", tiles, 1}, {"stripes", stripes, 1}, {"all alike", all, 16}, {"one", all[:1], 1}, {"none", nil, 0},
		{"two that share a bound", []Box{boxOfInts(10, 0, 9), boxOfInts(10, 9, 30)}, 1},
		{"two that share a half", []Box{boxOfInts(10, 0, 10), boxOfInts(10, 5, 15)}, 1.5}} {
		if got := Depth(c.boxes); got < c.want*0.98 || got > c.want*1.02 {
			t.Errorf("%s: depth %v, want %v", c.name, got, c.want)
		}
	}
	if a, b := Depth(tiles), Depth(tiles); a != b {
		t.Errorf("depth %v, then %v", a, b)
	}
	if got := Depth([]Box{{Rows: 1, Lo: [][]byte{nil}, Hi: [][]byte{nil}}, boxOfInts(1, 1, 2)}); got < 1 || got > 2 {
		t.Errorf("a box without bounds: %v", got)
	}
}

func TestShare(t *testing.T) {
	boxes := []Box{boxOfInts(1, 0, 9), boxOfInts(1, 10, 19), boxOfInts(1, 20, 29), {Rows: 1, Lo: [][]byte{nil}, Hi: [][]byte{nil}}}
	at := func(lo, hi int32) Predicate {
		b := boxOfInts(1, lo, hi)
		return Predicate{{Lo: b.Lo[0], Hi: b.Hi[0]}}
	}
	for _, c := range []struct {
		p    Predicate
		want float64
	}{{at(5, 5), 0.5}, {at(9, 10), 0.75}, {at(100, 100), 0.25}, {nil, 1}, {Predicate{{}}, 1}} {
		if got := Share(boxes, []Predicate{c.p}); got != c.want {
			t.Errorf("%v: %v, want %v", c.p, got, c.want)
		}
	}
	if Share(nil, []Predicate{nil}) != 0 {
		t.Error("no boxes")
	}
}

// Nulls stand below all values; a row group of nulls alone is not touched by a comparison.
func TestBoxSide_Nulls(t *testing.T) {
	zt := zorder.Type{Kind: zorder.Int}
	lo, hi := boxSide(zt, chunkFacts{values: 3, nulls: 3})
	box := Box{Lo: [][]byte{lo}, Hi: [][]byte{hi}}
	if box.Touches(Predicate{{Lo: zorder.AppendInt(zorder.AppendPresent(nil), -1<<31)}}) {
		t.Error("nulls are touched by a comparison")
	}
	lo, hi = boxSide(zt, chunkFacts{values: 3, nulls: 1, hasBounds: true, lo: []byte{1, 0, 0, 0}, hi: []byte{2, 0, 0, 0}})
	box = Box{Lo: [][]byte{lo}, Hi: [][]byte{hi}}
	null := zorder.AppendNull(nil, zorder.NullsFirst)
	if !box.Touches(Predicate{{Lo: null, Hi: null}}) {
		t.Error("IS NULL doesn't touch a row group with nulls")
	}
}

func TestBoxes_ReadsFooters(t *testing.T) {
	in := newStore()
	putReadings(t, in, 2, 700, constant("x"))
	p, err := newPlan(readings, []int{1, 2}, false)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := openSources(t.Context(), p, in.inputs())
	boxes := boxesOf(sources)
	if err != nil || len(boxes) != 4 || boxes[0].Rows != 350 {
		t.Fatalf("%d boxes, %v", len(boxes), err)
	}
	if got := fmt.Sprintf("%q", boxes[0].Lo[0]); got != `"\x01sensor-000"` {
		t.Errorf("lower bound %s", got)
	}
	if got := Depth(boxes); got != 1 {
		t.Errorf("depth in order of time: %v", got)
	}
}
