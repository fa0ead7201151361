// Package iceio reaches tables' files: metadata documents for the catalog, data files for maintenance. Every access
// is made for one table, with credentials narrowed to that table, and every path is held against the table's
// location before it is used: a file that hostile metadata names elsewhere is refused here, and by the store again.
package iceio

import (
	"context"
	"net/http"
	"time"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// Config is what New needs.
type Config struct {
	Providers map[string]vending.Provider // by storage type, as in vending.Profile
}

// Store gives access to tables' files. It is safe for concurrent use and shares one pool of connections.
type Store struct {
	providers     map[string]vending.Provider
	http          *http.Client
	retryDelayMax time.Duration
}

// New makes a Store.
func New(c Config) *Store {
	return &Store{providers: c.Providers, http: vending.GuardedClient(), retryDelayMax: retryDelayMax}
}

// Close lets go of idle connections.
func (s *Store) Close() { s.http.CloseIdleConnections() }

// open gives the tree of a scope's files.
func (s *Store) open(profile vending.Profile, scope vending.Scope) (tree, error) {
	provider, ok := s.providers[profile.StorageType]
	if !ok {
		return nil, fault.New(fault.Internal, "storage type %q is not served here", profile.StorageType)
	}
	location, err := vending.Canonical(scope.Location)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the table's location %q is not fit for use", scope.Location)
	}
	if folder, ok := vending.FilePath(location); ok {
		if profile.StorageType != "FILE" {
			return nil, fault.New(fault.Internal, "location %q is not one of storage type %s", location, profile.StorageType)
		}
		return newFolderTree(profile.AllowedLocations, location, folder, scope.Location), nil
	}
	return s.bucketTree(provider, profile, scope)
}

// place opens a file's tree and gives the file's name in it.
func (s *Store) place(at vending.FilePlace) (tree, string, error) {
	t, err := s.open(at.Profile, at.Scope)
	if err != nil {
		return nil, "", err
	}
	name, err := within(at.Scope.Location, at.Path)
	return t, name, err
}

// within gives the part of path below the location.
func within(location, path string) (string, error) {
	name, ok := vending.Relative(location, path)
	if !ok || name == "" || name[len(name)-1] == '/' {
		return "", fault.New(fault.Forbidden, "file %q is refused: it lies outside the table's location %s", path, location)
	}
	return name, nil
}

// missing is the error for a file that is not there. The text is the reference implementation's: clients show it.
func missing(path string, cause error) error {
	return fault.Wrap(fault.FileNotFound, cause, "Failed to open input stream for file: %s", path)
}

// tree is where one table's files are. Names are relative to the table's location and have been checked.
type tree interface {
	// write creates a file, never over an existing one.
	write(ctx context.Context, name string, body []byte) error
	// read gives a file of at most limit bytes. An error is fs.ErrNotExist when there is none.
	read(ctx context.Context, name string, limit int64) ([]byte, error)
	stat(ctx context.Context, name string) (info, error)
	// remove deletes files; one that is not there counts as removed. It gives those that are gone.
	remove(ctx context.Context, names []string) ([]string, error)
	open(ctx context.Context, name string) (reader, error)
	create(ctx context.Context, name string) (Writer, error)
	// walk calls visit for each file below the folder ("" is the whole tree), in no order that one may count on.
	walk(ctx context.Context, folder string, visit func(name string, i info) error) error
	// prepare makes folders where the storage has any.
	prepare(ctx context.Context, folders ...string) error
}
