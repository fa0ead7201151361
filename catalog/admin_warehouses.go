package catalog

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// WarehouseDraft is a warehouse about to be made.
type WarehouseDraft struct {
	Name       string
	Location   string            // base of new tables
	Properties map[string]string // those that mean something are in options.go
	Storage    vending.Profile   // without allowed locations: the base alone
}

// CreateWarehouse makes a warehouse on a storage that this server serves.
func (s *Service) CreateWarehouse(ctx context.Context, c Caller, d WarehouseDraft) (Warehouse, error) {
	if err := s.requireOnRoot(ctx, c, need{"create-warehouse", d.Name, authz.CatalogCreate}); err != nil {
		return Warehouse{}, err
	}
	return s.createWarehouse(ctx, c, d)
}

func (s *Service) createWarehouse(ctx context.Context, c Caller, d WarehouseDraft) (Warehouse, error) {
	if err := checkWarehouseName(d.Name); err != nil {
		return Warehouse{}, err
	}
	location, err := vending.CanonicalBase(d.Location)
	if err != nil {
		return Warehouse{}, fmt.Errorf("default-base-location: %w", err)
	}
	if err := checkOptions(d.Properties); err != nil {
		return Warehouse{}, err
	}
	properties := maps.Clone(d.Properties)
	folds, _ := takeFoldsNames(properties)
	storage, err := s.checkStorage(location, d.Storage)
	if err != nil {
		return Warehouse{}, err
	}
	// Asked first for the message alone: who repeats a create is told of the name, not of the place, which is its own.
	// The database has the last word on both.
	if _, err := s.Store.FindWarehouse(ctx, d.Name); err == nil {
		return Warehouse{}, fault.New(fault.AlreadyExists, "Warehouse already exists: %s", d.Name)
	} else if !fault.Is(err, fault.NoSuchWarehouse) {
		return Warehouse{}, fmt.Errorf("create warehouse %s: %w", d.Name, err)
	}
	f := s.fact(c, "create-warehouse", d.Name, uuid.Nil, newID())
	f.Warehouse = f.Securable
	w := Warehouse{
		ID: f.Securable, Name: d.Name, Location: location, Properties: properties, Storage: storage, FoldsNames: folds,
		OwnerID: c.owner(),
		Version: 1, CreatedAt: f.At, UpdatedAt: f.At,
	}
	if err := s.Store.CreateWarehouse(ctx, w, f); err != nil {
		return Warehouse{}, fmt.Errorf("create warehouse %s: %w", d.Name, err)
	}
	return w, nil
}

// EnsureWarehouse makes a warehouse that is not there yet without asking anybody's leave; for a server that sets
// itself up. An existing one is given as it is.
func (s *Service) EnsureWarehouse(ctx context.Context, d WarehouseDraft) (w Warehouse, created bool, err error) {
	w, err = s.Store.FindWarehouse(ctx, d.Name)
	if !fault.Is(err, fault.NoSuchWarehouse) {
		return w, false, err
	}
	if w, err = s.createWarehouse(ctx, bootstrapCaller(), d); fault.Is(err, fault.AlreadyExists) {
		w, err = s.Store.FindWarehouse(ctx, d.Name)
		return w, false, err
	}
	return w, err == nil, err
}

// checkWarehouseName refuses names that could be taken for another warehouse's id or for what clients of other
// catalogs put there.
func checkWarehouseName(name string) error {
	if err := checkAdminName("warehouse name", name); err != nil {
		return err
	}
	if _, err := uuid.Parse(name); err == nil {
		return fault.New(fault.BadRequest, "warehouse name %q is refused: it reads like the id of a warehouse", name)
	}
	if strings.Contains(name, "://") || strings.HasPrefix(name, "arn:") {
		return fault.New(fault.BadRequest, "warehouse name %q is refused: it reads like a location; that goes to default-base-location", name)
	}
	return nil
}

// checkStorage refuses what the storage's provider cannot work with, and gives the profile with its locations in
// canonical spelling. The base must lie in one of them.
func (s *Service) checkStorage(base string, p vending.Profile) (vending.Profile, error) {
	provider, ok := s.Providers[p.StorageType]
	if !ok {
		remedy := ""
		if p.StorageType == "FILE" {
			remedy = "; folders are served with storage.allow_file"
		}
		return p, fault.New(fault.BadRequest, "storageType %q is refused: this server serves %s%s",
			p.StorageType, strings.Join(s.storageTypes(), " and "), remedy)
	}
	if len(p.AllowedLocations) == 0 {
		p.AllowedLocations = []string{base}
	}
	allowed := make([]string, len(p.AllowedLocations))
	inside := false
	for i, location := range p.AllowedLocations {
		canonical, err := vending.CanonicalBase(location)
		if err != nil {
			return p, fmt.Errorf("allowedLocations: %w", err)
		}
		allowed[i] = canonical
		inside = inside || vending.Within(canonical, base)
	}
	if !inside {
		return p, fault.New(fault.BadRequest, "default-base-location %s lies outside allowedLocations", base)
	}
	p.AllowedLocations = allowed
	return p, provider.Validate(p)
}

func (s *Service) storageTypes() []string {
	var types []string
	for _, name := range []string{"S3", "GCS", "AZURE", "FILE"} {
		if _, ok := s.Providers[name]; ok {
			types = append(types, name)
		}
	}
	return types
}

// ListWarehouses gives warehouses by name.
func (s *Service) ListWarehouses(ctx context.Context, c Caller, q ListQuery) ([]Warehouse, error) {
	if err := s.requireOnRoot(ctx, c, need{"list-warehouses", "all warehouses", authz.CatalogList}); err != nil {
		return nil, err
	}
	all, err := s.Store.ListWarehouses(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list warehouses: %w", err)
	}
	return all, nil
}

// FindWarehouse gives one warehouse.
func (s *Service) FindWarehouse(ctx context.Context, c Caller, name string) (Warehouse, error) {
	return s.requireOnWarehouse(ctx, c, name, need{"load-warehouse", name, authz.CatalogReadProperties})
}

// WarehouseChange is what of a warehouse can be replaced. Location may repeat the base, for clients that send back
// what they read.
type WarehouseChange struct {
	Update
	Location string           // "" or the base
	Storage  *vending.Profile // nil leaves it
}

// UpdateWarehouse replaces properties and storage. What says whose files a warehouse holds stays as it was made: its
// base, its kind of storage, and the role and external id that lead to it.
func (s *Service) UpdateWarehouse(ctx context.Context, c Caller, name string, change WarehouseChange) (Warehouse, error) {
	w, err := s.requireOnWarehouse(ctx, c, name, need{"update-warehouse", name, authz.CatalogWriteProperties})
	if err != nil {
		return Warehouse{}, err
	}
	if err := checkUpdate("warehouse", name, change.Update, w.Version); err != nil {
		return Warehouse{}, err
	}
	if change.Location != "" {
		if base, err := vending.CanonicalBase(change.Location); err != nil || base != w.Location {
			return Warehouse{}, fault.New(fault.BadRequest, "default-base-location of a warehouse cannot be changed (it is %s)", w.Location)
		}
	}
	if change.Properties != nil {
		if w.Properties, err = checkNewOptions(w, change.Properties); err != nil {
			return Warehouse{}, err
		}
	}
	if change.Storage != nil {
		if err := checkStorageChange(w.Storage, *change.Storage); err != nil {
			return Warehouse{}, err
		}
		if w.Storage, err = s.checkStorage(w.Location, *change.Storage); err != nil {
			return Warehouse{}, err
		}
	}
	f := s.fact(c, "update-warehouse", w.Name, w.ID, w.ID)
	if err := s.Store.UpdateWarehouse(ctx, w, f); err != nil {
		return Warehouse{}, fmt.Errorf("update warehouse %s: %w", w.Name, err)
	}
	w.Version, w.UpdatedAt = w.Version+1, f.At
	return w, nil
}

// checkNewOptions gives the properties as they are kept. Whether names are folded may be said again, for clients that
// send back what they read.
func checkNewOptions(w Warehouse, properties map[string]string) (map[string]string, error) {
	if err := checkOptions(properties); err != nil {
		return nil, err
	}
	kept := maps.Clone(properties)
	if folds, said := takeFoldsNames(kept); said && folds != w.FoldsNames {
		return nil, fault.New(fault.BadRequest, "%s of a warehouse cannot be changed (it is %t): names that differ in case alone "+
			"would become one, or be told apart by nobody who relied on it; make another warehouse", propertyFoldsNames, w.FoldsNames)
	}
	return kept, nil
}

func checkStorageChange(from, to vending.Profile) error {
	for _, field := range []struct{ name, from, to string }{
		{"storageType", from.StorageType, to.StorageType},
		{"roleArn", from.RoleARN, to.RoleARN},
		{"externalId", from.ExternalID, to.ExternalID},
	} {
		if field.from != "" && field.from != field.to {
			return fault.New(fault.BadRequest, "%s of a warehouse cannot be changed (it is %q): make another warehouse", field.name, field.from)
		}
	}
	return nil
}

// DropWarehouse removes an empty warehouse with its roles; its files stay.
func (s *Service) DropWarehouse(ctx context.Context, c Caller, name string) error {
	w, err := s.requireOnWarehouse(ctx, c, name, need{"drop-warehouse", name, authz.CatalogDrop})
	if err != nil {
		return err
	}
	if err := s.Store.DropWarehouse(ctx, w.ID, s.fact(c, "drop-warehouse", w.Name, w.ID, w.ID)); err != nil {
		return fmt.Errorf("drop warehouse %s: %w", w.Name, err)
	}
	return nil
}
