package catalog

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// plainName matches warehouse names that clients may put into paths as they are.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// reservedPrefixes would collide with the first path segment after /v1/.
var reservedPrefixes = map[string]bool{
	"config": true, "oauth": true, "namespaces": true, "tables": true, "views": true, "transactions": true, "aws": true,
}

// Prefix is the path segment that clients put before a warehouse's routes: its name where that is safe, else its id.
func (w Warehouse) Prefix() string {
	if plainName.MatchString(w.Name) && !reservedPrefixes[w.Name] && w.Name != "." && w.Name != ".." {
		return w.Name
	}
	return w.ID.String()
}

// WarehouseConfig is what a client needs to start.
type WarehouseConfig struct {
	Warehouse Warehouse
	Prefix    string
	Vends     bool // credentials are vended on request
	// Defaults and Overrides are what the warehouse's properties say to its clients; the server's own come on top.
	Defaults, Overrides map[string]string
}

// LoadConfig finds a warehouse by name for any caller who is signed in. Without a name it answers the only one that
// the caller may see.
func (s *Service) LoadConfig(ctx context.Context, c Caller, warehouse string) (WarehouseConfig, error) {
	w, err := s.warehouseToStart(ctx, c, warehouse)
	if err != nil {
		return WarehouseConfig{}, err
	}
	defaults, overrides := w.clientConfig()
	return WarehouseConfig{
		Warehouse: w, Prefix: w.Prefix(), Vends: s.vends(w), Defaults: defaults, Overrides: overrides,
	}, nil
}

func (s *Service) warehouseToStart(ctx context.Context, c Caller, name string) (Warehouse, error) {
	if name == "" {
		return s.onlyWarehouse(ctx, c)
	}
	if strings.Contains(name, "://") || strings.HasPrefix(name, "arn:") {
		return Warehouse{}, fault.New(fault.NoSuchWarehouse,
			"Warehouse does not exist: %s (warehouses have names here, not locations or ARNs)", name)
	}
	res, err := s.resolve(ctx, c, Lookup{Warehouse: name})
	if err != nil {
		return Warehouse{}, err
	}
	return *res.Warehouse, nil
}

// onlyWarehouse gives the one warehouse that the caller may see: by a right on the service, or because it holds any
// grant in it.
func (s *Service) onlyWarehouse(ctx context.Context, c Caller) (Warehouse, error) {
	found, err := s.Store.ResolveWarehouses(ctx, c.Principal)
	if err != nil {
		return Warehouse{}, fmt.Errorf("find the only warehouse: %w", err)
	}
	system := c.Principal.Kind == auth.System
	if err := s.admitCaller(c, found.Caller, found.RootGrants); err != nil {
		return Warehouse{}, err
	}
	if err := s.admitActor(ctx, c, found.RootGrants); err != nil {
		return Warehouse{}, err
	}
	seen := found.Granted
	if root := (Resolution{}).Path(); system || authz.Decide(found.RootGrants, root, authz.CatalogReadProperties).Allowed {
		seen = found.All
	}
	if len(seen) != 1 {
		return Warehouse{}, fault.New(fault.BadRequest, "the query parameter 'warehouse' is missing: name the warehouse to use")
	}
	return seen[0], nil
}

// provider gives the storage's provider. A warehouse was refused at creation when there is none.
func (s *Service) provider(w Warehouse) (vending.Provider, error) {
	p, ok := s.Providers[w.Storage.StorageType]
	if !ok {
		return nil, fault.New(fault.Internal, "warehouse %s has storage type %q, which this server does not serve",
			w.Name, w.Storage.StorageType)
	}
	return p, nil
}

func (s *Service) vends(w Warehouse) bool {
	p, err := s.provider(w)
	return err == nil && p.CanVend(w.Storage)
}

// isFile tells that the storage has folders and that a missing file can be noticed cheaply.
func (w Warehouse) isFile() bool { return strings.EqualFold(w.Storage.StorageType, "FILE") }

// verifiesMetadata says whether a load looks at the metadata file before it answers.
func (w Warehouse) verifiesMetadata() bool {
	return w.isFile() || strings.EqualFold(w.Properties[propertyVerifyMetadata], "true")
}
