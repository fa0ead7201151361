package catalog

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// Who makes a warehouse, a namespace, a table or a view owns it, and holds OWNERSHIP on it and on all below. That is the
// principal's own and comes through no role; so a token that is narrowed to some roles leaves it out, as it leaves out
// all else that these roles do not give. It ends with its principal, and can be handed on.

// owner is who will own what the caller makes: nobody owns what the server makes for itself.
func (c Caller) owner() uuid.UUID {
	if c.Principal.Kind == auth.System {
		return uuid.Nil
	}
	return c.Principal.ID
}

// owned gives what the caller holds on a resolution's path because it owns it.
func (r Resolution) owned(p auth.Principal) (grants []authz.Grant) {
	if p.Kind == auth.System || p.ID == uuid.Nil || !p.Roles.All {
		return nil
	}
	own := func(owner uuid.UUID, kind authz.SecurableKind, id uuid.UUID) {
		if owner == p.ID {
			grants = append(grants, authz.Grant{Privilege: authz.Ownership, Kind: kind, SecurableID: id})
		}
	}
	if r.Warehouse != nil {
		own(r.Warehouse.OwnerID, authz.Catalog, r.Warehouse.ID)
	}
	for _, n := range r.Ancestors {
		own(n.OwnerID, authz.Namespace, n.ID)
	}
	if r.Namespace != nil {
		own(r.Namespace.OwnerID, authz.Namespace, r.Namespace.ID)
	}
	if r.Table != nil {
		own(r.Table.OwnerID, authz.Table, r.Table.ID)
	}
	if r.View != nil {
		own(r.View.OwnerID, authz.View, r.View.ID)
	}
	return grants
}

// ownerOf gives who owns an element of the resolution's path; uuid.Nil for nobody.
func (r Resolution) ownerOf(on authz.Securable) uuid.UUID {
	switch on.Kind {
	case authz.Catalog:
		return r.Warehouse.OwnerID
	case authz.Table:
		return r.Table.OwnerID
	case authz.View:
		return r.View.OwnerID
	case authz.Namespace:
		if r.Namespace != nil && r.Namespace.ID == on.ID {
			return r.Namespace.OwnerID
		}
		for _, n := range r.Ancestors {
			if n.ID == on.ID {
				return n.OwnerID
			}
		}
	}
	return uuid.Nil
}

// OwnerChange gives something another owner.
type OwnerChange struct {
	On    authz.Securable // a warehouse, a namespace, a table or a view
	Owner uuid.UUID       // uuid.Nil leaves it without one
	Fact  Fact
}

// OwnerStore keeps who owns what.
type OwnerStore interface {
	// SetOwner: fault.NotFound when the securable or the owner is gone.
	SetOwner(ctx context.Context, c OwnerChange) error
	// FindPrincipalName gives the name of a principal: fault.NotFound.
	FindPrincipalName(ctx context.Context, id uuid.UUID) (string, error)
}

// Owner tells who owns something: "" for nobody. Who owns it may ask, and who may list the grants on it.
func (s *Service) Owner(ctx context.Context, c Caller, on SecurableName) (string, error) {
	n := need{"load-owner", on.String(), grantsSeen[on.Kind()]}
	res, at, err := s.ownable(ctx, c, on, n)
	if err != nil {
		return "", err
	}
	owner := res.ownerOf(at)
	if owner == uuid.Nil {
		return "", nil
	}
	name, err := s.Admin.FindPrincipalName(ctx, owner)
	if fault.Is(err, fault.NotFound) {
		return "", nil // it was dropped, and what it owned is nobody's
	}
	if err != nil {
		return "", fmt.Errorf("find the owner of %s: %w", on, err)
	}
	return name, nil
}

// SetOwner hands something to another principal, or to nobody with "". Its owner may, and who may manage the grants on it;
// another principal than himself only who may list principals, for else it would be told who exists.
func (s *Service) SetOwner(ctx context.Context, c Caller, on SecurableName, owner string) error {
	n := need{"set-owner", on.String(), grantsRight[on.Kind()]}
	_, at, err := s.ownable(ctx, c, on, n)
	if err != nil {
		return err
	}
	change := OwnerChange{On: at}
	switch owner {
	case "":
	case c.Principal.Name:
		change.Owner = c.owner()
	default:
		if err := s.requireOnRoot(ctx, c, need{n.operation, n.subject, authz.PrincipalList}); err != nil {
			return err
		}
		p, err := s.Admin.FindPrincipal(ctx, owner)
		if err != nil {
			return fmt.Errorf("find principal %s: %w", owner, err)
		}
		change.Owner = p.ID
	}
	w, err := s.Store.FindWarehouse(ctx, on.Warehouse)
	if err != nil {
		return fmt.Errorf("find warehouse %s: %w", on.Warehouse, err)
	}
	subject := on.String() + " to " + owner
	if owner == "" {
		subject = on.String() + " to nobody"
	}
	change.Fact = s.fact(c, n.operation, subject, w.ID, at.ID)
	if err := s.Admin.SetOwner(ctx, change); err != nil {
		return fmt.Errorf("hand over %s: %w", on, err)
	}
	return nil
}

// ownable finds what has an owner, for callers who hold what n wants.
func (s *Service) ownable(ctx context.Context, c Caller, on SecurableName, n need) (Resolution, authz.Securable, error) {
	if err := on.validate(); err != nil {
		return Resolution{}, authz.Securable{}, err
	}
	res, err := s.resolve(ctx, c, on.lookup())
	if err != nil {
		return res, authz.Securable{}, err
	}
	path := res.Path()
	if err := s.require(ctx, c, res, path, n); err != nil {
		return res, authz.Securable{}, err
	}
	return res, path[len(path)-1], on.missing(res)
}
