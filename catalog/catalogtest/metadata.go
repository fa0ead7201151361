package catalogtest

import (
	"context"
	"slices"
	"sync"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// Metadata is a catalog.MetadataIO in memory. It is safe for concurrent use.
type Metadata struct {
	mu       sync.Mutex
	files    map[string][]byte
	prepared []string
	failures Failures
	calls    int
}

// NewMetadata makes an empty file system.
func NewMetadata() *Metadata { return &Metadata{files: map[string][]byte{}} }

// Inject sets what happens to calls from now on, and counts them from 1 again. nil lets everything succeed.
func (m *Metadata) Inject(f Failures) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures, m.calls = f, 0
}

// Calls tells how many calls there were since the last Inject.
func (m *Metadata) Calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// call runs fn unless the test wants the call to fail.
func (m *Metadata) call(ctx context.Context, method string, fn func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Busy, err, "the request ended before the storage had answered")
	}
	var failure Failure
	if m.failures != nil {
		failure = m.failures(method, m.calls)
	}
	if failure.Err != nil && !failure.Applied {
		return failure.Err
	}
	if err := fn(); err != nil {
		return err
	}
	return failure.Err
}

// outside refuses a place that the scope's credentials would not reach.
func outside(at vending.FilePlace) error {
	if vending.Within(at.Scope.Location, at.Path) {
		return nil
	}
	return fault.New(fault.Internal, "file %s lies outside the scope %s", at.Path, at.Scope.Location)
}

// WriteMetadata creates the file, never over an existing one.
func (m *Metadata) WriteMetadata(ctx context.Context, at vending.FilePlace, body []byte) error {
	return m.call(ctx, "WriteMetadata", func() error {
		if err := outside(at); err != nil {
			return err
		}
		if _, taken := m.files[at.Path]; taken {
			return fault.New(fault.Internal, "file %s exists already", at.Path)
		}
		m.files[at.Path] = slices.Clone(body)
		return nil
	})
}

// ReadMetadata gives the file's bytes.
func (m *Metadata) ReadMetadata(ctx context.Context, at vending.FilePlace) ([]byte, error) {
	var body []byte
	err := m.call(ctx, "ReadMetadata", func() error {
		found, ok := m.files[at.Path]
		if !ok {
			return fileGone(at)
		}
		body = slices.Clone(found)
		return outside(at)
	})
	return body, err
}

// ReadForeign is ReadMetadata, with a turn for files of more than free bytes. Nothing is packed here.
func (m *Metadata) ReadForeign(
	ctx context.Context, at vending.FilePlace, free int64, larger func(context.Context) error,
) ([]byte, error) {
	body, err := m.ReadMetadata(ctx, at)
	if err == nil && int64(len(body)) > free {
		err = larger(ctx)
	}
	return body, err
}

func fileGone(at vending.FilePlace) error {
	return fault.New(fault.FileNotFound, "Failed to open input stream for file: %s", at.Path)
}

// StatMetadata tells whether the file is there.
func (m *Metadata) StatMetadata(ctx context.Context, at vending.FilePlace) error {
	return m.call(ctx, "StatMetadata", func() error {
		if _, ok := m.files[at.Path]; !ok {
			return fileGone(at)
		}
		return outside(at)
	})
}

// RemoveMetadata deletes one file.
func (m *Metadata) RemoveMetadata(ctx context.Context, at vending.FilePlace) {
	_ = m.call(ctx, "RemoveMetadata", func() error {
		delete(m.files, at.Path)
		return nil
	}) // best effort, as the port says
}

// PrepareTable remembers that the table's folders were made.
func (m *Metadata) PrepareTable(ctx context.Context, at vending.FilePlace) error {
	return m.call(ctx, "PrepareTable", func() error {
		m.prepared = append(m.prepared, at.Path)
		return nil
	})
}

// Files gives the paths of all files in order.
func (m *Metadata) Files() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var paths []string
	for path := range m.files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Lose removes a file behind the catalog's back.
func (m *Metadata) Lose(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, path)
}

// The fakes are what they stand for.
var (
	_ catalog.Store      = (*Store)(nil)
	_ catalog.AdminStore = (*Store)(nil)
	_ catalog.MetadataIO = (*Metadata)(nil)
	_ Backdoor           = (*Store)(nil)
)

// Forge replaces a file's bytes, as somebody with keys for the table could.
func (m *Metadata) Forge(path string, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[path] = body
}
