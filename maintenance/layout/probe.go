package layout

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/parquet/file"
)

// task is one row group to read.
type task struct {
	source   *source
	rowGroup int
}

func tasksOf(sources []*source) (tasks []task, rows int64) {
	for _, s := range sources {
		for rg := range s.rowGroups {
			tasks = append(tasks, task{s, rg})
		}
		rows += s.rows
	}
	return tasks, rows
}

// probe is what a look at a few batches says about the columns.
type probe struct {
	coded    []bool  // the column starts with a dictionary
	unique   []bool  // most values are met once: a dictionary in the file would be in vain
	rowBytes float64 // of a row as vecs
}

const probeTasks = 3

var errProbed = errors.New("enough seen")

// probeRows decodes the first batch of a few row groups.
func probeRows(ctx context.Context, p *plan, tasks []task) (probe, error) {
	out := probe{coded: make([]bool, len(p.columns)), unique: make([]bool, len(p.columns))}
	seen := make([]probed, len(p.columns))
	var rows, bytes, batches int64
	for i := range min(probeTasks, len(tasks)) {
		t := tasks[i*len(tasks)/min(probeTasks, len(tasks))]
		err := t.source.with(ctx, func(r *file.Reader) error {
			err := t.source.read(ctx, r, p, readRequest{rowGroup: t.rowGroup, codes: p.textColumns()}, func(b *batch) error {
				for c, v := range b.columns {
					bytes += seen[c].look(v)
				}
				rows += int64(b.rows)
				batches++
				return errProbed
			})
			if errors.Is(err, errProbed) {
				return nil
			}
			return err
		})
		if err != nil {
			return out, err
		}
	}
	var total int64
	for _, t := range tasks {
		total += t.source.rowGroups[t.rowGroup].rows
	}
	for c := range out.coded {
		codable := p.columns[c].itype != nil // ids and sequence numbers of lineage are mostly distinct or written well as they are
		out.coded[c] = codable && seen[c].few(rows, total)
		out.unique[c] = seen[c].unique(rows)
	}
	if rows > 0 {
		out.rowBytes = float64(bytes) / float64(rows)
	}
	return out, nil
}

// probed follows one column over the probed batches.
type probed struct {
	words  map[uint64]struct{}
	growth int // values that the last batch brought in addition
	n      int64
	never  bool
}

// Above this many expected values a column isn't coded.
const codedValuesMax = dictionaryEntriesMax / 4

func (s *probed) look(v *vec) int64 {
	if s.words == nil {
		s.words = map[uint64]struct{}{}
	}
	before := len(s.words)
	bytes := v.memory()
	switch v.class {
	case class8:
		for _, w := range v.w8 {
			s.words[w] = struct{}{}
		}
	case class4:
		for _, w := range v.w4 {
			s.words[uint64(w)] = struct{}{}
		}
	case classDictionary:
		values := v.dictionary.Dictionary()
		for i := range values.Len() {
			s.words[hashBytes(binaryAt(values, i))] = struct{}{}
		}
		bytes = int64(v.n) * 2
		if 2*values.Len() > v.n {
			s.never = true
			bytes = int64(v.n) * int64(4+len(binaryAt(values, 0)))
		}
	case classBytes:
		bytes = int64(v.offs[v.n]-v.offs[0]) + int64(v.n)*4
		for i := range v.n {
			s.words[hashBytes(v.bytesAt(i))] = struct{}{}
		}
	default:
		s.never = true
	}
	s.growth = len(s.words) - before
	s.n++
	return bytes
}

func (s *probed) unique(rows int64) bool {
	return rows > 0 && (s.never && len(s.words) > 0 || int64(len(s.words))*2 > rows)
}

// few tells whether the column will have few values over all rows, by what the last batch still brought.
func (s *probed) few(rows, total int64) bool {
	if s.never || s.n == 0 || len(s.words)*2 > int(rows) {
		return false
	}
	growth := float64(s.growth)
	if s.n == 1 && total > rows {
		growth /= 2 // nothing to compare with
	}
	perBatch := float64(rows) / float64(s.n)
	expected := float64(len(s.words)) + growth*float64(total-rows)/perBatch
	if total == rows {
		expected = float64(len(s.words))
	}
	return expected <= codedValuesMax
}
