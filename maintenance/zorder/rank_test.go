package zorder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func draws(t *rapid.T, name string) []uint64 {
	return rapid.SliceOfN(rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 20), rapid.SampledFrom([]uint64{0, 1, 1 << 63, ^uint64(0)})), 0, 300).Draw(t, name)
}

func TestColumn_RanksKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sample := draws(t, "sample")
		bins := rapid.IntRange(1, 50).Draw(t, "bins")
		c := BuildWords(1, Type{Kind: Long}, bins, slices.Clone(sample), rapid.IntRange(0, 100).Draw(t, "nulls"))
		probes := append(draws(t, "probes"), sample...)
		slices.Sort(probes)
		last := uint32(0)
		ranks := make([]uint32, len(probes))
		c.RankWords(ranks, probes)
		for i, w := range probes {
			rank := c.RankWord(w)
			if rank != ranks[i] {
				t.Fatalf("rank of %d: %d alone, %d among others", w, rank, ranks[i])
			}
			if rank < last {
				t.Fatalf("rank of %d is below that of a smaller value", w)
			}
			if len(sample) > 0 && rank < c.NullRank() {
				t.Fatalf("rank of %d is below null's", w)
			}
			last = rank
		}
	})
}

func TestColumn_ByteRanksKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 4)
		sample := rapid.SliceOfN(value, 0, 200).Draw(t, "sample")
		c := BuildValues(1, Type{Kind: String}, rapid.IntRange(1, 30).Draw(t, "bins"), slices.Clone(sample), 3)
		a, b := value.Draw(t, "a"), value.Draw(t, "b")
		if bytes.Compare(a, b) <= 0 && c.RankValue(a) > c.RankValue(b) {
			t.Fatalf("%s ranks above %s", a, b)
		}
	})
}

// Few distinct values spread over the whole axis: exactly what raw bits don't do.
func TestColumn_FewValuesSpread(t *testing.T) {
	var sample []uint64
	for i := range 100_000 {
		sample = append(sample, OrderLong(int64(i%100)))
	}
	c := BuildWords(1, Type{Kind: Int}, BinsDefault, sample, 0)
	if c.Bins() != 100 {
		t.Fatalf("%d bins for 100 values", c.Bins())
	}
	for i := range 100 {
		rank := float64(c.RankWord(OrderLong(int64(i)))) / (1 << 32)
		if want := (float64(i) + 0.5) / 100; rank < want-0.001 || rank > want+0.001 {
			t.Errorf("value %d ranks at %.3f, want %.3f", i, rank, want)
		}
	}
}

// A value that owns a share of the rows owns that share of the axis, and its rare neighbours are not in its bin.
func TestColumn_HeavyHitterOwnsItsInterval(t *testing.T) {
	var sample []uint64
	for i := range 10_000 {
		if i%2 == 0 {
			sample = append(sample, 5000)
		} else {
			sample = append(sample, uint64(i))
		}
	}
	c := BuildWords(1, Type{Kind: Long}, 64, sample, 0)
	heavy := c.RankWord(5000)
	if share := float64(heavy) / (1 << 32); share < 0.48 || share > 0.52 {
		t.Errorf("the heavy value's middle is at %.3f", share)
	}
	if c.RankWord(4999) == heavy || c.RankWord(5001+64*10) == heavy {
		t.Error("neighbours share the heavy value's bin")
	}
	if below, above := c.RankWord(4999), c.RankWord(5999); below > 1<<30+1<<26 || above < 3<<30-1<<29 {
		t.Errorf("neighbours rank at %d and %d", below, above)
	}
}

func TestColumn_NullsOwnTheirInterval(t *testing.T) {
	c := BuildWords(1, Type{Kind: Long}, 64, []uint64{1, 2, 3, 4}, 12)
	if share := float64(c.NullRank()) / (1 << 32); share != 0.375 {
		t.Errorf("null ranks at %.3f, want the middle of three quarters", share)
	}
	if share := float64(c.RankWord(1)) / (1 << 32); share < 0.75 {
		t.Errorf("the smallest value ranks at %.3f, inside the nulls", share)
	}
}

// Two outliers spoil a scale from minimum to maximum, not ranks.
func TestColumn_OutliersDontMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sample := []uint64{0, ^uint64(0)}
	for range 20_000 {
		sample = append(sample, 1<<40+random.Uint64N(1<<20))
	}
	c := BuildWords(1, Type{Kind: Timestamp}, 1024, sample, 0)
	middle := float64(c.RankWord(1<<40+1<<19)) / (1 << 32)
	if middle < 0.47 || middle > 0.53 {
		t.Errorf("the middle value ranks at %.3f", middle)
	}
}

func TestBoundaries_JSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &Boundaries{Curve: rapid.SampledFrom([]Curve{Hilbert, ZOrder, Linear}).Draw(t, "curve"), Columns: []*Column{
			BuildWords(3, Type{Kind: TimestampTz}, 40, draws(t, "words"), 2),
			BuildValues(7, Type{Kind: String}, 40, rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 100).Draw(t, "values"), 0),
		}}
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		var back Boundaries
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, w := range draws(t, "probes") {
			if b.Columns[0].RankWord(w) != back.Columns[0].RankWord(w) {
				t.Fatalf("rank of %d changed", w)
			}
			if v := []byte(fmt.Sprint(w)); b.Columns[1].RankValue(v) != back.Columns[1].RankValue(v) {
				t.Fatalf("rank of %s changed", v)
			}
		}
		again, _ := json.Marshal(&back)
		if !bytes.Equal(text, again) {
			t.Fatalf("%s\n%s", text, again)
		}
		if !back.Fits(b.Curve, []int{3, 7}, []Type{{Kind: TimestampTz}, {Kind: String}}) || back.Fits(b.Curve, []int{7, 3}, []Type{{Kind: String}, {Kind: TimestampTz}}) {
			t.Fatal("fit")
		}
	})
}

func TestBoundaries_RefusesBrokenJSON(t *testing.T) {
	good := `{"version":1,"curve":"hilbert","columns":[{"field-id":1,"type":"int","null-rank":0,"words":["1","5"],"ranks":[3,9]}]}`
	var b Boundaries
	if err := json.Unmarshal([]byte(good), &b); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{`"version":1`, `"version":2`}, {"hilbert", "snake"}, {`"int"`, `"variant"`}, {`["1","5"]`, `["5","1"]`},
		{`[3,9]`, `[9,3]`}, {`[3,9]`, `[3]`}, {`"5"`, `"-5"`}, {`"words":["1","5"]`, `"values":["YQ==","Yg=="]`}, {good[44:], `]}`}} {
		if err := json.Unmarshal([]byte(strings.Replace(good, c[0], c[1], 1)), &b); err == nil {
			t.Errorf("%s instead of %s was taken", c[1], c[0])
		}
	}
	if err := json.Unmarshal([]byte(`{"version":1,"curve":"hilbert","columns":[]}`), &b); err == nil {
		t.Error("no columns were taken")
	}
}
