package catalog

import (
	"context"
	"fmt"
	"slices"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// Lists and renames are the same for tables and for views.

// EachNames takes names of what is below a namespace, which is spelled as it was made. It gives false when it wants no
// more.
type EachNames func(below Namespace, names []string) bool

// listKind gives the tables or the views of a namespace by name, all of one moment: all of them to who may list them
// there, else those that the caller has rights on, one by one. Who may see nothing at all in the namespace is refused.
func (s *Service) listKind(ctx context.Context, c Caller, kind Kind, in Lookup, p Page, each EachNames) error {
	n := need{"list-" + string(kind) + "s", in.Namespace.String(), rightsOf[kind].list}
	wanted := func(res Resolution) NamesWanted {
		w := NamesWanted{WarehouseID: res.Warehouse.ID, In: res.Namespace.ID, Kind: kind, Page: p}
		if !allowed(res, res.Path(), n.wanted) {
			w.GrantedTo = &GrantedTo{Principal: c.Principal, Privileges: authz.Implying(n.wanted)}
		}
		return w
	}
	res, listed, err := s.resolveNames(ctx, c, in, func(res Resolution) (NamesWanted, bool) {
		if res.Namespace == nil || !seesNames(res, n.wanted) {
			return NamesWanted{}, false
		}
		return wanted(res), true
	}, each)
	if listed || err != nil {
		return err
	}
	sees := seesNames(res, n.wanted)
	if !sees {
		if sees, err = s.seesGranted(ctx, c, res); err != nil {
			return err
		}
	}
	switch {
	case !sees:
		return s.refuse(ctx, c, res, n, authz.Decide(res.Grants, res.Path(), n.wanted))
	case res.Namespace == nil:
		return fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", in.Namespace)
	}
	err = s.Store.ListNames(ctx, wanted(res), func(names []string) bool { return each(res.Namespace.Levels, names) })
	if err != nil {
		return fmt.Errorf("list %ss of %s: %w", kind, in.Namespace, err)
	}
	return nil
}

// resolveNames is resolve together with a list of what want says after what was found; want decides purely. listed
// tells whether there was one.
func (s *Service) resolveNames(
	ctx context.Context, c Caller, l Lookup, want func(Resolution) (NamesWanted, bool), each EachNames,
) (res Resolution, listed bool, err error) {
	if err := s.admitActor(ctx, c, nil); err != nil {
		return Resolution{}, false, err
	}
	l.Principal = c.Principal
	var below Namespace
	res, err = s.Store.ResolveNames(ctx, l, func(res Resolution) (w NamesWanted, ok bool) {
		below, listed = nil, false
		if res, err := s.admit(c, l, res); err == nil {
			if w, listed = want(res); res.Namespace != nil {
				below = res.Namespace.Levels
			}
		}
		return w, listed
	}, func(names []string) bool { return each(below, names) })
	if err != nil {
		return Resolution{}, listed, fmt.Errorf("list %s.%s: %w", l.Warehouse, l.Namespace, err)
	}
	res, err = s.admit(c, l, res)
	return res, listed, err
}

// insideRights are what lets its holder see something in a namespace.
var insideRights = []authz.Privilege{authz.NamespaceList, authz.TableList, authz.ViewList}

// seesNames tells whether the caller may see something in the namespace that was asked about, or would if it were
// there, without regard to grants on single things in it.
func seesNames(res Resolution, wanted authz.Privilege) bool {
	path := res.Path()
	return allowed(res, path, wanted) ||
		slices.ContainsFunc(insideRights, func(p authz.Privilege) bool { return allowed(res, path, p) })
}

// seesInside tells whether the caller may see anything in the namespace that was asked about, or would if it were
// there: then what it may not see there is as good as missing, and saying "missing" tells nothing.
func (s *Service) seesInside(ctx context.Context, c Caller, res Resolution) (bool, error) {
	if seesNames(res, authz.NamespaceList) {
		return true, nil
	}
	return s.seesGranted(ctx, c, res)
}

// seesGranted tells whether there is a grant for the caller on anything in the namespace.
func (s *Service) seesGranted(ctx context.Context, c Caller, res Resolution) (sees bool, err error) {
	if res.Namespace == nil {
		return false, nil
	}
	err = s.Store.ListNames(ctx, NamesWanted{
		WarehouseID: res.Warehouse.ID, In: res.Namespace.ID, Page: Page{Limit: 1}, GrantedTo: &GrantedTo{
			Principal: c.Principal, Privileges: append(authz.Implying(authz.TableList), authz.Implying(authz.ViewList)...),
		},
	}, func(names []string) bool {
		sees = len(names) > 0
		return false
	})
	if err != nil {
		return false, fmt.Errorf("look for what %s may see in %s: %w", c.Principal.Name, res.Namespace.Levels, err)
	}
	return sees, nil
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
