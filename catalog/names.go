package catalog

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// Lists and renames are the same for tables and for views.

// Listing is what a namespace holds: its own name as it was made, and names of tables or of views. The namespace is said
// once, because there may be very many names.
type Listing struct {
	Namespace Namespace
	Names     []string
}

// listKind gives the tables or the views of a namespace by name: all of them to who may list them there, else those
// that the caller has rights on, one by one. Who may see nothing at all in the namespace is refused.
func (s *Service) listKind(ctx context.Context, c Caller, kind Kind, warehouse string, ns Namespace, p Page) (Listing, error) {
	n := need{"list-" + string(kind) + "s", ns.String(), rightsOf[kind].list}
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse, Namespace: ns})
	if err != nil {
		return Listing{}, err
	}
	list := s.Store.ListTables
	if !allowed(res, res.Path(), n.wanted) {
		sees, err := s.seesInside(ctx, c, res)
		if err != nil {
			return Listing{}, err
		}
		if !sees {
			return Listing{}, s.refuse(ctx, c, n, authz.Decide(res.Grants, res.Path(), n.wanted))
		}
		list = s.grantedTo(c)
	}
	if res.Namespace == nil {
		return Listing{}, fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", ns)
	}
	names, err := list(ctx, res.Namespace.ID, kind, p)
	if err != nil {
		return Listing{}, fmt.Errorf("list %ss of %s: %w", kind, ns, err)
	}
	return Listing{Namespace: res.Namespace.Levels, Names: names}, nil
}

// grantedTo lists what the caller has rights on by grants on the very tables and views.
func (s *Service) grantedTo(c Caller) func(context.Context, uuid.UUID, Kind, Page) ([]string, error) {
	return func(ctx context.Context, namespaceID uuid.UUID, kind Kind, p Page) ([]string, error) {
		return s.Store.ListGranted(ctx, GrantedNames{
			Principal: c.Principal, NamespaceID: namespaceID, Kind: kind, Privileges: authz.Implying(rightsOf[kind].list),
		}, p)
	}
}

// insideRights are what lets its holder see something in a namespace.
var insideRights = []authz.Privilege{authz.NamespaceList, authz.TableList, authz.ViewList}

// seesInside tells whether the caller may see anything in the namespace that was asked about, or would if it were
// there: then what it may not see there is as good as missing, and saying "missing" tells nothing.
func (s *Service) seesInside(ctx context.Context, c Caller, res Resolution) (bool, error) {
	for _, p := range insideRights {
		if allowed(res, res.Path(), p) {
			return true, nil
		}
	}
	if res.Namespace == nil {
		return false, nil
	}
	names, err := s.Store.ListGranted(ctx, GrantedNames{
		Principal: c.Principal, NamespaceID: res.Namespace.ID,
		Privileges: append(authz.Implying(authz.TableList), authz.Implying(authz.ViewList)...),
	}, Page{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("look for what %s may see in %s: %w", c.Principal.Name, res.Namespace.Levels, err)
	}
	return len(names) > 0, nil
}

// renameKind gives a table or a view another name. A name that is taken by either kind is refused.
func (s *Service) renameKind(ctx context.Context, c Caller, kind Kind, r RenameTableRequest) error {
	if err := r.To.Validate(); err != nil {
		return err
	}
	return s.onceSilent(ctx, c, r.Warehouse, func() (*Outcome, error) {
		return nil, s.retryRaces(ctx, func() error { return s.renameOnce(ctx, c, kind, r) })
	})
}

func (s *Service) renameOnce(ctx context.Context, c Caller, kind Kind, r RenameTableRequest) error {
	operation := "rename-" + string(kind)
	source, err := s.resolveKind(ctx, c, kind, r.Warehouse, r.From, need{operation, r.From.String(), rightsOf[kind].drop})
	if err != nil {
		return err
	}
	target, err := s.resolveNamespace(ctx, c, r.Warehouse, r.To.Namespace, need{operation, r.To.String(), rightsOf[kind].create})
	if err != nil {
		return err
	}
	if err := target.Warehouse.validName(r.To); err != nil {
		return err
	}
	renamed := kind.of(source)
	f := remember(s.fact(c, operation, r.From.String(), source.Warehouse.ID, renamed.ID), Outcome{})
	f.Details = map[string]any{"to": r.To.String()}
	err = s.Store.RenameTable(ctx, TableRename{
		ID: renamed.ID, Kind: kind, From: renamed.place(), TargetNamespaceID: target.Namespace.ID, Source: r.From, Target: r.To, Fact: f,
	})
	if err != nil {
		return fmt.Errorf("rename %s %s: %w", kind, r.From, err)
	}
	return nil
}
