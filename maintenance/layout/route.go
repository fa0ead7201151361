package layout

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet/file"
	"golang.org/x/sync/errgroup"

	"catalogd/maintenance/zorder"
)

// router is the first pass: it reads the inputs and deals their rows out to buckets.
type router struct {
	p       *plan
	bounds  *zorder.Boundaries // nil: no clustering columns; all rows go to buckets by their number
	dicts   []*dictionary      // by column; nil: carried as bare values from the start
	borders []uint64           // bucket b holds keys from borders[b-1] to below borders[b]
	index   bucketIndex
	spill   *spill
	workers int
	flushAt int64 // bytes of a worker's rows of one bucket

	rows     atomic.Int64
	progress func(rows int64)
}

// bucketIndex finds a key's bucket: a table by the key's top bits says where to begin to look.
type bucketIndex struct {
	starts []uint16
	shift  int
}

func newBucketIndex(borders []uint64, keyBits int) bucketIndex {
	const slotBits = 12
	x := bucketIndex{shift: max(keyBits-slotBits, 0)}
	slots := 1 << min(slotBits, keyBits)
	x.starts = make([]uint16, slots)
	b := 0
	for slot := range slots {
		low := uint64(slot) << x.shift
		for b < len(borders) && borders[b] <= low {
			b++
		}
		x.starts[slot] = uint16(b)
	}
	return x
}

func (x *bucketIndex) find(borders []uint64, key uint64) uint16 {
	b := x.starts[key>>x.shift]
	for int(b) < len(borders) && borders[b] <= key {
		b++
	}
	return b
}

// chooseBorders cuts the key space so that buckets hold about equally many rows, at large cells of the curve where that
// costs little.
func chooseBorders(keys []uint64, buckets int) []uint64 {
	if buckets < 2 || len(keys) == 0 {
		return nil
	}
	keys = slices.Clone(keys)
	slices.Sort(keys)
	var borders []uint64
	last := keys[0] // a border at the lowest key divides nothing
	for _, c := range cutKeys(keys, buckets) {
		if last < c.key {
			borders = append(borders, c.key)
			last = c.key
		}
	}
	return borders
}

// routed is what the first pass leaves behind.
type routed struct {
	rows     int64
	checksum Checksum
	edges    []float64 // by clustering column: larger share of rows in the lowest or highest bin
}

// run reads all tasks. Each worker takes a contiguous part of them, so that rows of one bucket keep the inputs' order but
// for the seams between workers.
func (r *router) run(ctx context.Context, tasks []task) (routed, error) {
	parts := splitTasks(tasks, r.workers)
	workers := make([]*routeWorker, len(parts))
	group, ctx := errgroup.WithContext(ctx)
	for i, part := range parts {
		w := newRouteWorker(r, i)
		workers[i] = w
		group.Go(guarded(func() error { return w.run(ctx, part) }))
	}
	if err := group.Wait(); err != nil {
		return routed{}, err
	}
	var out routed
	for _, w := range workers {
		out.rows += w.rows
		out.checksum.add(w.checksum)
	}
	return out, nil
}

// splitTasks cuts the list of tasks into contiguous parts of about equally many rows.
func splitTasks(tasks []task, parts int) [][]task {
	_, total := int64(0), int64(0)
	for _, t := range tasks {
		total += t.source.rowGroups[t.rowGroup].rows
	}
	var out [][]task
	start, rows := 0, int64(0)
	for i, t := range tasks {
		rows += t.source.rowGroups[t.rowGroup].rows
		if rows*int64(parts) >= total*int64(len(out)+1) {
			out = append(out, tasks[start:i+1])
			start = i + 1
		}
	}
	if start < len(tasks) {
		out = append(out, tasks[start:])
	}
	return out
}

// routeWorker is one worker of the first pass.
type routeWorker struct {
	*router
	number  int
	coders  []*coder
	codes   []*vec // scratch, by column
	rankers []*ranker
	ranks   [][]uint32
	keys    []uint64
	bucket  []uint16
	starts  []int
	sel     []uint32
	buffers []*bucketBuffer
	scratch []byte

	hasher   rowHasher
	rows     int64
	checksum Checksum
}

// bucketBuffer gathers one worker's rows of one bucket until they are worth a segment. vecs[0] is the key.
type bucketBuffer struct {
	vecs  []*vec
	bytes int64
}

func newRouteWorker(r *router, number int) *routeWorker {
	w := &routeWorker{router: r, number: number, coders: make([]*coder, len(r.p.columns)), codes: make([]*vec, len(r.p.columns))}
	for c, d := range r.dicts {
		if d != nil {
			w.coders[c], w.codes[c] = newCoder(d), newVec(class2, 0)
		}
	}
	for i := range r.p.cluster {
		cc := &r.p.cluster[i]
		k := &ranker{c: cc, bounds: r.bounds.Columns[i]}
		if len(cc.path) == 0 {
			k.d = r.dicts[cc.top]
		}
		w.rankers = append(w.rankers, k)
	}
	w.ranks = make([][]uint32, len(w.rankers))
	w.buffers = make([]*bucketBuffer, len(r.borders)+1)
	return w
}

func (w *routeWorker) run(ctx context.Context, tasks []task) error {
	for _, t := range tasks {
		err := t.source.with(ctx, func(reader *file.Reader) error {
			request := readRequest{rowGroup: t.rowGroup, codes: wantCodes(w.dicts)}
			return t.source.read(ctx, reader, w.p, request, w.route)
		})
		if err != nil {
			return err
		}
	}
	return w.flushAll()
}

func (w *routeWorker) flushAll() error {
	for b := range w.buffers {
		if err := w.flush(b); err != nil {
			return err
		}
	}
	return nil
}

func wantCodes(dicts []*dictionary) []bool {
	codes := make([]bool, len(dicts))
	for c, d := range dicts {
		codes[c] = d != nil && !d.full.Load()
	}
	return codes
}

// route deals out one batch.
func (w *routeWorker) route(b *batch) error {
	w.hasher.start(b.rows)
	for c, v := range b.columns {
		w.hasher.column(w.p.columns[c].id, v)
	}
	w.hasher.finish(&w.checksum)
	w.rows += int64(b.rows)
	if w.progress != nil {
		w.progress(w.router.rows.Add(int64(b.rows)))
	}
	for c := range b.columns {
		codeColumn(b, c, w.coders[c], w.codes[c])
	}
	if err := w.keyRows(b); err != nil {
		return err
	}
	return w.dealOut(b)
}

// dealOut puts the rows of a batch, whose keys are known, into the buckets' buffers.
func (w *routeWorker) dealOut(b *batch) error {
	w.deal()
	for bucket := range w.buffers {
		if sel := w.sel[w.starts[bucket]:w.starts[bucket+1]]; len(sel) > 0 {
			if err := w.put(bucket, b, sel); err != nil {
				return err
			}
		}
	}
	return nil
}

// codeColumn replaces a column's values by codes, or file's codes by values when the column has too many.
func codeColumn(b *batch, c int, k *coder, scratch *vec) {
	v := b.columns[c]
	if k != nil && !k.d.full.Load() && k.encode(scratch, v) {
		b.columns[c] = scratch
		return
	}
	if v.class == classDictionary {
		b.columns[c] = plain(v)
	}
}

func (w *routeWorker) keyRows(b *batch) error {
	w.keys = grow(w.keys[:0], b.rows)
	if len(w.rankers) == 0 {
		clear(w.keys)
		return nil
	}
	for i, k := range w.rankers {
		v, err := w.p.clusterVec(k.c, b.columns)
		if err != nil {
			return err
		}
		w.ranks[i] = k.rank(w.ranks[i], v)
	}
	w.bounds.Keys(w.keys, w.ranks)
	return nil
}

// deal sorts the batch's rows by bucket, keeping their order inside a bucket.
func (w *routeWorker) deal() {
	n := len(w.buffers)
	w.starts = grow(w.starts[:0], n+1)
	clear(w.starts)
	w.bucket = grow(w.bucket[:0], len(w.keys))
	for i, key := range w.keys {
		b := w.index.find(w.borders, key)
		w.bucket[i] = b
		w.starts[b+1]++
	}
	for b := 1; b <= n; b++ {
		w.starts[b] += w.starts[b-1]
	}
	w.sel = grow(w.sel[:0], len(w.keys))
	next := append([]int(nil), w.starts[:n]...)
	for i, b := range w.bucket {
		w.sel[next[b]] = uint32(i)
		next[b]++
	}
}

// put adds rows of the batch to a bucket's buffer.
func (w *routeWorker) put(bucket int, b *batch, sel []uint32) error {
	buffer := w.buffers[bucket]
	if buffer != nil && !sameClasses(buffer.vecs[1:], b.columns) { // a dictionary has run full since
		if err := w.flush(bucket); err != nil {
			return err
		}
		buffer, w.buffers[bucket] = nil, nil
	}
	if buffer == nil {
		buffer = w.newBuffer(b)
		w.buffers[bucket] = buffer
	}
	key := buffer.vecs[0]
	if key.class == class8 {
		key.w8 = appendTake(key.w8, w.keys, sel)
	} else {
		for _, i := range sel {
			key.w4 = append(key.w4, uint32(w.keys[i]))
		}
	}
	key.n += len(sel)
	for c, v := range b.columns {
		if err := appendRows(buffer.vecs[c+1], v, sel); err != nil {
			return err
		}
	}
	buffer.bytes = 0
	for _, v := range buffer.vecs {
		buffer.bytes += v.memory()
	}
	if buffer.bytes >= w.flushAt {
		return w.flush(bucket)
	}
	return nil
}

func (w *routeWorker) newBuffer(b *batch) *bucketBuffer {
	keyClass := class8
	if w.bounds == nil || w.bounds.KeyBits() <= 32 {
		keyClass = class4
	}
	buffer := &bucketBuffer{vecs: []*vec{newVec(keyClass, 0)}}
	for _, v := range b.columns {
		buffer.vecs = append(buffer.vecs, newVec(v.class, v.width))
	}
	return buffer
}

// flush turns a bucket's buffer into a segment.
func (w *routeWorker) flush(bucket int) error {
	buffer := w.buffers[bucket]
	if buffer == nil || buffer.vecs[0].n == 0 {
		return nil
	}
	if err := joinNested(buffer.vecs); err != nil {
		return err
	}
	list := bucket*w.workers + w.number
	kept, err := w.spill.add(list, buffer.vecs[0].n, buffer.vecs, &w.scratch)
	if err != nil {
		return err
	}
	if kept {
		w.buffers[bucket] = nil
		return nil
	}
	for _, v := range buffer.vecs {
		v.reset()
	}
	return nil
}

// joinNested makes one array of the many that gathering left.
func joinNested(vecs []*vec) error {
	for _, v := range vecs {
		if v.class != classNested || len(v.arrs) < 2 {
			continue
		}
		joined, err := v.nestedArray(v.arrs[0].DataType())
		if err != nil {
			return err
		}
		releaseVecs([]*vec{v})
		v.arrs = []arrow.Array{joined}
	}
	return nil
}
