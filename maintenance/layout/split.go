package layout

import (
	"context"

	"catalogd/maintenance/zorder"
)

// A bucket that came out larger than a unit may be is dealt out again among smaller ones.
const (
	splitDepthMax   = 6
	splitSampleRows = 200_000
)

// unitBytesMax is what the values of a unit may take: what is wanted and half as much again.
func (r *run) unitBytesMax() int64 {
	share := r.probe.rowBytes / r.unitRowBytes() // of values in a unit's memory
	return int64(1.5 * share * float64(r.memory) / float64(unitShare*r.workers))
}

// splitLarge replaces buckets that are too large for memory.
func (r *run) splitLarge(ctx context.Context) error {
	var out []unit
	for _, u := range r.buckets {
		parts, err := r.split(ctx, u, 0)
		if err != nil {
			return err
		}
		out = append(out, parts...)
	}
	r.buckets = out
	r.result.SpilledBytes = r.spill.written.Load()
	return nil
}

func (r *run) split(ctx context.Context, u unit, depth int) ([]unit, error) {
	if u.bytes <= r.unitBytesMax() || depth == splitDepthMax {
		return []unit{u}, nil
	}
	keys, err := r.sampleKeys(ctx, u)
	if err != nil {
		return nil, err
	}
	parts := int((u.bytes*2 + r.unitBytesMax() - 1) / r.unitBytesMax())
	borders := chooseBorders(keys, parts)
	if len(borders) == 0 {
		return r.splitRun(u), nil
	}
	units, err := r.deal(ctx, u, borders)
	if err != nil {
		return nil, err
	}
	var out []unit
	for _, part := range units {
		deeper, err := r.split(ctx, part, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, deeper...)
	}
	return out, nil
}

// splitRun handles a bucket of one key: its rows are alike in the clustering columns as far as the curve can tell, so any
// piece of it is as good as another. The linear curve promises exact order and is left whole.
func (r *run) splitRun(u unit) []unit {
	if r.curve == zorder.Linear {
		return []unit{u}
	}
	var out []unit
	open := unit{}
	for _, list := range u.lists {
		for _, seg := range r.spill.segments[list] {
			if open.rows > 0 && open.bytes+seg.bytes > r.unitBytesMax()/2 {
				out, open = append(out, open), unit{}
			}
			if open.rows == 0 {
				open.lists = []int{r.spill.newList()}
			}
			own := open.lists[0]
			r.spill.segments[own] = append(r.spill.segments[own], seg)
			open.rows += int64(seg.rows)
			open.bytes += seg.bytes
		}
		r.spill.segments[list] = nil
	}
	return append(out, open)
}

// sampleKeys reads keys of a bucket back.
func (r *run) sampleKeys(ctx context.Context, u unit) ([]uint64, error) {
	picker := newPicker(uint64(u.rows), gapFor(u.rows, splitSampleRows))
	var keys []uint64
	var scratch []byte
	for _, list := range u.lists {
		for _, seg := range r.spill.segments[list] {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			key, err := r.spill.keys(seg, &scratch)
			if err != nil {
				return nil, err
			}
			for _, i := range picker.pick(key.n) {
				if key.class == class8 {
					keys = append(keys, key.w8[i])
				} else {
					keys = append(keys, uint64(key.w4[i]))
				}
			}
		}
	}
	return keys, nil
}

// deal spreads a bucket's rows over smaller buckets, keeping their order inside each.
func (r *run) deal(ctx context.Context, u unit, borders []uint64) ([]unit, error) {
	lists := make([]int, len(borders)+1)
	for i := range lists {
		lists[i] = r.spill.newList()
	}
	w := &routeWorker{router: &router{p: r.p, bounds: r.bounds, borders: borders, spill: r.spill, workers: 1,
		index:   newBucketIndex(borders, r.bounds.KeyBits()),
		flushAt: max(r.memory/buffersShare/int64(len(lists)), flushBytesMin)}, number: lists[0], buffers: make([]*bucketBuffer, len(lists))}
	var scratch []byte
	for _, list := range u.lists {
		for _, seg := range r.spill.segments[list] {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			vecs, err := r.spill.load(seg, &scratch)
			if err != nil {
				return nil, err
			}
			w.keys = w.keys[:0]
			w.keys = append(w.keys, vecs[0].w8...)
			for _, k := range vecs[0].w4 {
				w.keys = append(w.keys, uint64(k))
			}
			if err := w.dealOut(&batch{rows: seg.rows, columns: vecs[1:]}); err != nil {
				return nil, err
			}
			releaseVecs(vecs)
		}
		r.spill.segments[list] = nil
	}
	if err := w.flushAll(); err != nil {
		return nil, err
	}
	units := make([]unit, len(lists))
	for i, list := range lists {
		units[i] = r.spill.unitOf(list)
	}
	return units, nil
}
