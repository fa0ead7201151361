package maintenance

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/apache/iceberg-go"

	"catalogd/internal/crash"
	"catalogd/maintenance/layout"
)

// ledger knows which files a claim has announced to the database, and so may exist. Two outputs may be open at once.
type ledger struct {
	mu        sync.Mutex
	announced map[string]bool
	dataFiles int
}

func newLedger() *ledger { return &ledger{announced: map[string]bool{}} }

// nextData counts data files from 1.
func (l *ledger) nextData() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dataFiles++
	return l.dataFiles
}

func (l *ledger) add(paths []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range paths {
		l.announced[p] = true
	}
}

// without gives the announced files that are not kept, in order.
func (l *ledger) without(keep map[string]bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for p := range l.announced {
		if !keep[p] {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// intend records files before they are written.
func (c *compaction) intend(ctx context.Context, paths ...string) error {
	if err := c.env.store.RecordFiles(ctx, c.lease, paths); err != nil {
		return fmt.Errorf("record files to be written: %w", err)
	}
	c.ledger.add(paths)
	return nil
}

// createFile records the next data file's name and then begins to write it.
func (c *compaction) createFile(ctx context.Context, r *replacement) (layout.Output, error) {
	p := c.dataFolder(r) + "/" + DataFileName(c.lease, c.ledger.nextData())
	if err := c.intend(ctx, p); err != nil {
		return nil, err
	}
	crash.Point("compact-intent")
	w, err := c.view.files.Create(p)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", p, err)
	}
	return &output{path: p, w: w, files: c.view.files}, nil
}

// writeFile records a file's name and writes it whole.
func (c *compaction) writeFile(ctx context.Context, p string, body []byte) error {
	if err := c.intend(ctx, p); err != nil {
		return err
	}
	if err := c.view.files.WriteFile(p, body); err != nil {
		return fmt.Errorf("write %s: %w", p, err)
	}
	return nil
}

// dataFolder is where a group's files go: beside those that engines write for the partition.
func (c *compaction) dataFolder(r *replacement) string {
	base := strings.TrimRight(c.facts.Properties["write.data.path"], "/")
	if base == "" {
		base = c.facts.Location + "/data"
	}
	if c.facts.Spec.NumFields() == 0 {
		return base
	}
	return base + "/" + c.facts.Spec.PartitionToPath(tupleOf(r.old[0].partition, c.facts.Spec), c.facts.Schema)
}

// manifestFolder is where manifests and manifest lists go.
func (c *compaction) manifestFolder() string {
	if p := strings.TrimRight(c.facts.Properties["write.metadata.path"], "/"); p != "" {
		return p
	}
	return c.facts.Location + "/metadata"
}

// tuple is a partition tuple by the spec's positions: what partition paths are made of.
type tuple []any

func tupleOf(values map[int]any, spec iceberg.PartitionSpec) tuple {
	t := make(tuple, spec.NumFields())
	for i := range spec.NumFields() {
		t[i] = values[spec.Field(i).FieldID]
	}
	return t
}

func (t tuple) Size() int        { return len(t) }
func (t tuple) Get(i int) any    { return t[i] }
func (t tuple) Set(i int, v any) { t[i] = v }

// output is a data file being written.
type output struct {
	path  string
	w     io.WriteCloser
	files Files
	begun bool
}

func (o *output) Path() string { return o.path }

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	crash.Point("compact-data-bytes")
	return n, err
}

func (o *output) Close() error {
	if err := o.w.Close(); err != nil {
		return fmt.Errorf("write %s: %w", o.path, err)
	}
	crash.Point("compact-data-file")
	return nil
}

// Abort leaves nothing; what it leaves after all is recorded and removed later.
func (o *output) Abort() {
	if a, ok := o.w.(aborter); ok {
		a.Abort()
		return
	}
	_ = o.w.Close()
	_ = o.files.Remove(o.path)
}
