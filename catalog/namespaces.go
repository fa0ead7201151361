package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// ListNamespaces gives the last levels of the direct children of parent (empty: the warehouse), by name, all of one
// moment.
func (s *Service) ListNamespaces(ctx context.Context, c Caller, warehouse string, parent Namespace, p Page, each EachNames) error {
	n := need{"list-namespaces", subjectOf(warehouse, parent.String()), authz.NamespaceList}
	res, listed, err := s.resolveNames(ctx, c, Lookup{Warehouse: warehouse, Namespace: parent}, func(res Resolution) (NamesWanted, bool) {
		w := NamesWanted{WarehouseID: res.Warehouse.ID, Kind: KindNamespace, Page: p}
		if res.Namespace != nil {
			w.In = res.Namespace.ID
		}
		return w, (res.Namespace != nil || len(parent) == 0) && allowed(res, res.Path(), n.wanted)
	}, each)
	switch {
	case listed || err != nil:
		return err
	case len(parent) == 0:
		return s.require(ctx, c, res, res.Path(), n)
	}
	return s.namespaceIn(ctx, c, res, parent, n)
}

// CreateNamespace makes a namespace whose parent exists and answers its properties, location included.
func (s *Service) CreateNamespace(
	ctx context.Context, c Caller, warehouse string, ns Namespace, properties map[string]string,
) (map[string]string, error) {
	if err := ns.Validate(); err != nil {
		return nil, err
	}
	return once(ctx, s, c, func() (map[string]string, *Outcome, error) {
		stored, err := s.createNamespace(ctx, c, warehouse, ns, properties)
		return stored, nil, err
	}, func(o Outcome) (map[string]string, error) {
		return s.replayNamespace(ctx, c, warehouse, ns, properties, o)
	})
}

// resolveNewNamespace finds where a namespace is to be made and checks the right to make it there.
func (s *Service) resolveNewNamespace(ctx context.Context, c Caller, warehouse string, ns Namespace) (Resolution, error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse, Namespace: ns})
	if err != nil {
		return res, err
	}
	path := res.Path()
	if res.Namespace != nil {
		path = parentPath(path)
	}
	return res, s.require(ctx, c, res, path, need{"create-namespace", ns.String(), authz.NamespaceCreate})
}

func (s *Service) createNamespace(
	ctx context.Context, c Caller, warehouse string, ns Namespace, properties map[string]string,
) (map[string]string, error) {
	res, err := s.resolveNewNamespace(ctx, c, warehouse, ns)
	if err != nil {
		return nil, err
	}
	if err := res.Warehouse.validNamespace(ns); err != nil {
		return nil, err
	}
	if res.Namespace != nil {
		return nil, fault.New(fault.AlreadyExists, "Namespace already exists: %s", ns)
	}
	if len(res.Ancestors) != len(ns)-1 {
		return nil, fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", ns[:len(res.Ancestors)+1])
	}
	record, err := newNamespace(res, newID(), ns, properties)
	if err != nil {
		return nil, err
	}
	err = s.Store.CreateNamespace(ctx, NamespaceCreate{
		Record: ownedBy(record, c), WarehouseID: res.Warehouse.ID, Location: record.Properties["location"],
		Fact: remember(s.fact(c, "create-namespace", ns.String(), res.Warehouse.ID, record.ID), namespaceOutcome(record.ID)),
	})
	if err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", ns, err)
	}
	return shownProperties(*res.Warehouse, record), nil
}

// newNamespace is a namespace about to be made. A location that the client chose must be one of the warehouse's; the
// folder that another namespace has by itself comes from a copy of that one's properties, and is no choice.
func newNamespace(res Resolution, id uuid.UUID, ns Namespace, properties map[string]string) (NamespaceRecord, error) {
	record := NamespaceRecord{ID: id, Levels: ns, Properties: map[string]string{}, Version: 1}
	maps.Copy(record.Properties, properties)
	if location := record.Properties["location"]; location == "" || isNamespaceFolder(*res.Warehouse, location) {
		delete(record.Properties, "location")
		return record, nil
	}
	var err error
	record.Properties["location"], err = res.acceptNamespaceLocation(record.Properties["location"])
	return record, err
}

func ownedBy(record NamespaceRecord, c Caller) NamespaceRecord {
	record.OwnerID = c.owner()
	return record
}

// shownProperties are a namespace's properties with the location that it always has.
func shownProperties(w Warehouse, n NamespaceRecord) map[string]string {
	out := make(map[string]string, len(n.Properties)+1)
	for k, v := range n.Properties {
		out[k] = v
	}
	out["location"] = namespaceLocation(w, n)
	return out
}

// LoadNamespace answers a namespace's properties.
func (s *Service) LoadNamespace(ctx context.Context, c Caller, warehouse string, ns Namespace) (map[string]string, error) {
	res, err := s.resolveNamespace(ctx, c, warehouse, ns, need{"load-namespace", ns.String(), authz.NamespaceReadProperties})
	if err != nil {
		return nil, err
	}
	return shownProperties(*res.Warehouse, *res.Namespace), nil
}

// NamespaceExists is nil when the namespace is there and the caller may list it.
func (s *Service) NamespaceExists(ctx context.Context, c Caller, warehouse string, ns Namespace) error {
	_, err := s.resolveNamespace(ctx, c, warehouse, ns, need{"namespace-exists", ns.String(), authz.NamespaceList})
	return err
}

// PropertyChanges says what an update of properties did. The lists are never nil.
type PropertyChanges struct {
	Updated []string `json:"updated"`
	Removed []string `json:"removed"`
	Missing []string `json:"missing"`
}

// UpdateNamespaceProperties sets and removes properties. A key in both lists changes nothing and is refused.
func (s *Service) UpdateNamespaceProperties(
	ctx context.Context, c Caller, warehouse string, ns Namespace, removals []string, updates map[string]string,
) (PropertyChanges, error) {
	for _, key := range removals {
		if _, both := updates[key]; both {
			return PropertyChanges{}, fault.New(fault.Unprocessable, "property %q is both removed and updated", key)
		}
	}
	n := need{"update-namespace", ns.String(), authz.NamespaceWriteProperties}
	return once(ctx, s, c, func() (PropertyChanges, *Outcome, error) {
		changes, err := s.updateNamespace(ctx, c, warehouse, ns, removals, maps.Clone(updates))
		return changes, nil, err
	}, func(o Outcome) (PropertyChanges, error) {
		_, err := s.resolveNamespace(ctx, c, warehouse, ns, n)
		if o.Properties == nil || err != nil && !fault.Is(err, fault.NoSuchNamespace) {
			return PropertyChanges{}, err
		}
		return *o.Properties, nil
	})
}

func (s *Service) updateNamespace(
	ctx context.Context, c Caller, warehouse string, ns Namespace, removals []string, updates map[string]string,
) (PropertyChanges, error) {
	res, err := s.resolveNamespace(ctx, c, warehouse, ns,
		need{"update-namespace", ns.String(), authz.NamespaceWriteProperties})
	if err != nil {
		return PropertyChanges{}, err
	}
	if location, ok := updates["location"]; ok && location != namespaceLocation(*res.Warehouse, *res.Namespace) {
		if updates["location"], err = res.acceptNamespaceLocation(location); err != nil {
			return PropertyChanges{}, err
		}
	} else if ok && res.Namespace.Properties["location"] == "" {
		delete(updates, "location") // the answer of an earlier load, sent back: it stays the default
	}
	before, err := s.Store.UpdateNamespace(ctx, NamespaceUpdate{
		ID: res.Namespace.ID, WarehouseID: res.Warehouse.ID, Set: updates, Remove: removals,
		Fact: remember(s.fact(c, "update-namespace", ns.String(), res.Warehouse.ID, res.Namespace.ID), Outcome{}),
	})
	if err != nil {
		return PropertyChanges{}, fmt.Errorf("update namespace %s: %w", ns, err)
	}
	return propertyChanges(before, removals, updates), nil
}

func propertyChanges(before map[string]string, removals []string, updates map[string]string) PropertyChanges {
	ch := PropertyChanges{Updated: []string{}, Removed: []string{}, Missing: []string{}}
	for key := range updates {
		ch.Updated = append(ch.Updated, key)
	}
	sort.Strings(ch.Updated)
	removals = slices.Compact(slices.Sorted(slices.Values(removals)))
	for _, key := range removals {
		if _, ok := before[key]; ok {
			ch.Removed = append(ch.Removed, key)
		} else {
			ch.Missing = append(ch.Missing, key)
		}
	}
	return ch
}

// DropNamespace removes an empty namespace.
func (s *Service) DropNamespace(ctx context.Context, c Caller, warehouse string, ns Namespace) error {
	return s.onceSilent(ctx, c, warehouse, func() (*Outcome, error) { return nil, s.dropNamespace(ctx, c, warehouse, ns) })
}

func (s *Service) dropNamespace(ctx context.Context, c Caller, warehouse string, ns Namespace) error {
	res, err := s.resolveNamespace(ctx, c, warehouse, ns, need{"drop-namespace", ns.String(), authz.NamespaceDrop})
	if err != nil {
		return err
	}
	f := remember(s.fact(c, "drop-namespace", ns.String(), res.Warehouse.ID, res.Namespace.ID), Outcome{})
	if err := s.Store.DropNamespace(ctx, res.Namespace.ID, f); err != nil {
		return fmt.Errorf("drop namespace %s: %w", ns, err)
	}
	return nil
}

func subjectOf(warehouse, name string) string {
	if name == "" {
		return warehouse
	}
	return name
}
