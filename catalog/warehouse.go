package catalog

import (
	"context"
	"fmt"
	"regexp"
	"strings"

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

// LoadConfig finds a warehouse by name for any caller who is signed in. Without a name it answers the only one the
// caller may see.
func (s *Service) LoadConfig(ctx context.Context, c Caller, warehouse string) (WarehouseConfig, error) {
	if warehouse == "" {
		name, err := s.onlyWarehouse(ctx, c)
		if err != nil {
			return WarehouseConfig{}, err
		}
		warehouse = name
	}
	if strings.Contains(warehouse, "://") || strings.HasPrefix(warehouse, "arn:") {
		return WarehouseConfig{}, fault.New(fault.NoSuchWarehouse,
			"Warehouse does not exist: %s (warehouses have names here, not locations or ARNs)", warehouse)
	}
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse})
	if err != nil {
		return WarehouseConfig{}, err
	}
	w := *res.Warehouse
	defaults, overrides := w.clientConfig()
	return WarehouseConfig{
		Warehouse: w, Prefix: w.Prefix(), Vends: s.vends(w), Defaults: defaults, Overrides: overrides,
	}, nil
}

func (s *Service) onlyWarehouse(ctx context.Context, c Caller) (string, error) {
	all, err := s.Store.ListWarehouses(ctx)
	if err != nil {
		return "", fmt.Errorf("list warehouses: %w", err)
	}
	var seen []string
	for _, w := range all {
		res, err := s.resolve(ctx, c, Lookup{Warehouse: w.Name})
		if err != nil {
			return "", err
		}
		if allowed(res, res.Path(), authz.CatalogReadProperties) || hasGrantOn(res, res.Path()) {
			seen = append(seen, w.Name)
		}
		if len(seen) > 1 {
			break
		}
	}
	if len(seen) != 1 {
		return "", fault.New(fault.BadRequest, "the query parameter 'warehouse' is missing: name the warehouse to use")
	}
	return seen[0], nil
}

// hasGrantOn tells whether any grant at all was made on the last securable of the path.
func hasGrantOn(res Resolution, path []authz.Securable) bool {
	last := path[len(path)-1]
	for _, g := range res.Grants {
		if g.Kind == last.Kind && g.SecurableID == last.ID {
			return true
		}
	}
	return false
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
