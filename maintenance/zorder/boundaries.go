package zorder

import (
	"encoding/json"
	"slices"
	"strconv"

	"catalogd/internal/fault"
)

// Boundaries say how the rows of a table become keys: the columns in order, each with its bins, and the curve. Their
// JSON form is a layout version. Later runs must use the same one, or ranges of the curve of different runs don't compare.
type Boundaries struct {
	Curve   Curve
	Columns []*Column
}

// KeyBits gives the number of low bits of a key that can be set.
func (b *Boundaries) KeyBits() int { return KeyBits(b.Curve, len(b.Columns)) }

// Keys computes keys from ranks; see Keys.
func (b *Boundaries) Keys(dst []uint64, ranks [][]uint32) { Keys(dst, b.Curve, ranks) }

// Fits tells whether the boundaries can rank a table whose clustering columns now have these field ids and types: the same
// columns in the same order, with types that are unchanged or promoted without a change of order.
func (b *Boundaries) Fits(curve Curve, fieldIDs []int, types []Type) bool {
	if b.Curve != curve || len(b.Columns) != len(fieldIDs) {
		return false
	}
	for i, c := range b.Columns {
		if c.FieldID != fieldIDs[i] || !c.Type.SameOrder(types[i]) {
			return false
		}
	}
	return true
}

type boundariesJSON struct {
	Version int          `json:"version"`
	Curve   Curve        `json:"curve"`
	Columns []columnJSON `json:"columns"`
}

type columnJSON struct {
	FieldID  int      `json:"field-id"`
	Type     string   `json:"type"`
	NullRank uint32   `json:"null-rank"`
	Words    []string `json:"words,omitempty"`  // decimal: JSON numbers lose bits above 2^53
	Values   [][]byte `json:"values,omitempty"` // base64
	Ranks    []uint32 `json:"ranks"`
}

const boundariesVersion = 1

// MarshalJSON writes the layout version.
func (b *Boundaries) MarshalJSON() ([]byte, error) {
	out := boundariesJSON{Version: boundariesVersion, Curve: b.Curve, Columns: []columnJSON{}}
	for _, c := range b.Columns {
		column := columnJSON{FieldID: c.FieldID, Type: c.Type.String(), NullRank: c.nullRank, Values: c.lowerValues,
			Ranks: append([]uint32{}, c.ranks...)}
		for _, word := range c.lowerWords {
			column.Words = append(column.Words, strconv.FormatUint(word, 10))
		}
		out.Columns = append(out.Columns, column)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads a layout version and checks everything that ranking relies on.
func (b *Boundaries) UnmarshalJSON(text []byte) error {
	var in boundariesJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return fault.Wrap(fault.Validation, err, "layout version is not readable")
	}
	if in.Version != boundariesVersion {
		return fault.New(fault.Unsupported, "layout version of format %d; this release knows %d", in.Version, boundariesVersion)
	}
	if in.Curve != Hilbert && in.Curve != ZOrder && in.Curve != Linear {
		return fault.New(fault.Validation, "layout version has the unknown curve %q", in.Curve)
	}
	if len(in.Columns) < 1 || len(in.Columns) > ColumnsMax {
		return fault.New(fault.Validation, "layout version has %d columns; 1 to %d are possible", len(in.Columns), ColumnsMax)
	}
	out := Boundaries{Curve: in.Curve}
	for _, column := range in.Columns {
		c, err := column.decode()
		if err != nil {
			return err
		}
		out.Columns = append(out.Columns, c)
	}
	*b = out
	return nil
}

func (in columnJSON) decode() (*Column, error) {
	refuse := func(what string) error {
		return fault.New(fault.Validation, "layout version, field %d: %s", in.FieldID, what)
	}
	t, ok := ParseType(in.Type)
	if !ok {
		return nil, refuse("type " + in.Type + " has no total order")
	}
	c := &Column{FieldID: in.FieldID, Type: t, ranks: in.Ranks, nullRank: in.NullRank, lowerValues: in.Values}
	for _, text := range in.Words {
		word, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, refuse("a bound is not a number")
		}
		c.lowerWords = append(c.lowerWords, word)
	}
	if t.Words() && len(in.Values) > 0 || !t.Words() && len(in.Words) > 0 ||
		len(c.lowerWords)+len(c.lowerValues) != len(c.ranks) || len(c.ranks) > 2*BinsMax+2 {
		return nil, refuse("bounds and ranks don't match")
	}
	if !slices.IsSorted(c.ranks) || !slices.IsSorted(c.lowerWords) ||
		!slices.IsSortedFunc(c.lowerValues, slices.Compare) {
		return nil, refuse("bounds are not in order")
	}
	if t.Words() {
		c.index()
	}
	return c, nil
}
