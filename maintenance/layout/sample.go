package layout

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/parquet/file"
	"golang.org/x/sync/errgroup"

	"catalogd/maintenance/zorder"
)

// sample is some rows' values of the clustering columns, drawn evenly from all rows.
type sample struct {
	rows  int
	words [][]uint64 // by clustering column; nil for columns ranked by bytes
	texts [][][]byte
	nulls [][]bool
}

func newSample(d int) *sample {
	return &sample{words: make([][]uint64, d), texts: make([][][]byte, d), nulls: make([][]bool, d)}
}

// Sampled strings keep this many bytes; the order of longer ones with equal starts is lost, which only blurs boundaries.
const sampleTextBytes = 64

// sampleRows reads the clustering columns of all inputs and keeps a row of each gap. Gaps between kept rows are random (and
// the same each time): rows of many tables come in a rhythm that even steps would fall in with.
func sampleRows(ctx context.Context, p *plan, tasks []task, workers, gap int, done func(rows int64)) (*sample, error) {
	columns := p.clusterTops()
	parts := make([]*sample, len(tasks))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	var progress sync.Mutex
	report := func(rows int64) {
		progress.Lock()
		defer progress.Unlock() // a panic in done must not leave the others waiting for the lock
		done(rows)
	}
	for t := range tasks {
		group.Go(guarded(func() error {
			part := newSample(len(p.cluster))
			parts[t] = part
			picker := newPicker(uint64(t), gap)
			request := readRequest{rowGroup: tasks[t].rowGroup, columns: columns, codes: p.textColumns()}
			return tasks[t].source.with(ctx, func(r *file.Reader) error {
				return tasks[t].source.read(ctx, r, p, request, func(b *batch) error {
					err := part.keep(p, b, picker.pick(b.rows))
					report(int64(b.rows))
					return err
				})
			})
		}))
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := newSample(len(p.cluster))
	for _, part := range parts {
		all.rows += part.rows
		for c := range p.cluster {
			all.words[c] = append(all.words[c], part.words[c]...)
			all.texts[c] = append(all.texts[c], part.texts[c]...)
			all.nulls[c] = append(all.nulls[c], part.nulls[c]...)
		}
	}
	return all, nil
}

// clusterTops gives the top-level columns that hold the clustering columns.
func (p *plan) clusterTops() []int {
	var tops []int
	for _, c := range p.cluster {
		tops = append(tops, c.top)
	}
	slices.Sort(tops)
	return slices.Compact(tops)
}

// textColumns marks columns that are read as dictionary codes where a file has them.
func (p *plan) textColumns() []bool {
	codes := make([]bool, len(p.columns))
	for i, c := range p.columns {
		codes[i] = c.class == classBytes
	}
	return codes
}

// gapFor is the mean gap between rows of which about so many are wanted.
func gapFor(total, wanted int64) int { return int(max(total/max(wanted, 1), 1)) }

// picker chooses rows with random gaps of a mean.
type picker struct {
	random *rand.Rand
	gap    int
	next   int // rows to pass over before the next pick
	picked []uint32
}

func newPicker(seed uint64, gap int) *picker {
	p := &picker{random: rand.New(rand.NewPCG(seed, mixA)), gap: gap}
	p.next = p.random.IntN(p.gap)
	return p
}

func (p *picker) pick(rows int) []uint32 {
	p.picked = p.picked[:0]
	at := p.next
	for ; at < rows; at += p.step() {
		p.picked = append(p.picked, uint32(at))
	}
	p.next = at - rows
	return p.picked
}

// step gives a gap from 1 to twice the mean.
func (p *picker) step() int {
	if p.gap == 1 {
		return 1
	}
	return 1 + p.random.IntN(2*p.gap-1)
}

// keep adds the picked rows of a batch.
func (s *sample) keep(p *plan, b *batch, picked []uint32) error {
	for i := range p.cluster {
		c := &p.cluster[i]
		v, err := p.clusterVec(c, b.columns)
		if err != nil {
			return err
		}
		if v.class == classDictionary {
			v = takePlain(v, picked)
		} else if v.class != classNested {
			taken := newVec(v.class, v.width)
			taken.appendTake(v, picked)
			v = taken
		}
		for row := range v.n {
			s.nulls[i] = append(s.nulls[i], v.isNull(row))
		}
		if c.t.Words() {
			s.words[i] = append(s.words[i], c.words(nil, v)...)
			continue
		}
		for row := range v.n {
			value := c.valueAt(v, row, nil)
			s.texts[i] = append(s.texts[i], bytes.Clone(value[:min(len(value), sampleTextBytes)]))
		}
	}
	s.rows += len(picked)
	return nil
}

// boundaries builds the boundaries of a new layout version from the sample.
func (s *sample) boundaries(p *plan, curve zorder.Curve, bins int) *zorder.Boundaries {
	b := &zorder.Boundaries{Curve: curve}
	for i := range p.cluster {
		c := &p.cluster[i]
		nulls := 0
		if c.t.Words() {
			var present []uint64
			for row, w := range s.words[i] {
				if s.nulls[i][row] {
					nulls++
				} else {
					present = append(present, w)
				}
			}
			b.Columns = append(b.Columns, zorder.BuildWords(c.id, c.t, bins, present, nulls))
			continue
		}
		var present [][]byte
		for row, text := range s.texts[i] {
			if s.nulls[i][row] {
				nulls++
			} else {
				present = append(present, text)
			}
		}
		b.Columns = append(b.Columns, zorder.BuildValues(c.id, c.t, bins, present, nulls))
	}
	return b
}

// keys gives the sampled rows' keys.
func (s *sample) keys(p *plan, b *zorder.Boundaries) []uint64 {
	ranks := make([][]uint32, len(p.cluster))
	for i := range p.cluster {
		ranks[i] = make([]uint32, s.rows)
		for row := range ranks[i] {
			switch {
			case s.nulls[i][row]:
				ranks[i][row] = b.Columns[i].NullRank()
			case p.cluster[i].t.Words():
				ranks[i][row] = b.Columns[i].RankWord(s.words[i][row])
			default:
				ranks[i][row] = b.Columns[i].RankValue(s.texts[i][row])
			}
		}
	}
	keys := make([]uint64, s.rows)
	b.Keys(keys, ranks)
	return keys
}

// distinct estimates how many values each clustering column has, as far as the sample shows.
func (s *sample) distinct() []int {
	counts := make([]int, len(s.words))
	for i := range counts {
		if len(s.words[i]) > 0 {
			words := slices.Clone(s.words[i])
			slices.Sort(words)
			counts[i] = len(slices.Compact(words))
			continue
		}
		seen := map[string]struct{}{}
		for _, text := range s.texts[i] {
			seen[string(text)] = struct{}{}
		}
		counts[i] = len(seen)
	}
	return counts
}

// takePlain gives selected rows of a file's dictionary codes as bare byte strings.
func takePlain(v *vec, sel []uint32) *vec {
	a := v.dictionary
	out := newVec(classBytes, 0)
	values, indices := a.Dictionary(), dictionaryIndices(a)
	for _, row := range sel {
		null := a.IsNull(int(row))
		if !null {
			out.raw = append(out.raw, binaryAt(values, int(indices[row]))...)
		}
		out.offs = append(out.offs, int32(len(out.raw)))
		if null && out.nulls == 0 {
			out.valid = allOnes(out.valid[:0], out.n)
		}
		if out.nulls > 0 || null {
			out.valid = growBits(out.valid, out.n+1)
			if null {
				out.nulls++
				out.valid[out.n>>3] &^= 1 << (out.n & 7)
			} else {
				out.valid[out.n>>3] |= 1 << (out.n & 7)
			}
		}
		out.n++
	}
	return out
}

// edgeShare gives the largest share of sampled rows that fell into the lowest or highest bin of a column.
func (s *sample) edgeShare(p *plan, b *zorder.Boundaries) float64 {
	worst := 0.0
	for i := range p.cluster {
		lowest, highest := b.Columns[i].Edges()
		low, high := 0, 0
		for row := range s.rows {
			if s.nulls[i][row] {
				continue
			}
			var rank uint32
			if p.cluster[i].t.Words() {
				rank = b.Columns[i].RankWord(s.words[i][row])
			} else {
				rank = b.Columns[i].RankValue(s.texts[i][row])
			}
			if rank == lowest {
				low++
			}
			if rank == highest {
				high++
			}
		}
		worst = max(worst, float64(max(low, high))/float64(max(s.rows, 1)))
	}
	return worst
}
