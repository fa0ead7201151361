package catalog

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// ServiceGrant names a principal role and a privilege on the service that it holds or is to hold.
type ServiceGrant struct {
	Role      string
	Privilege authz.Privilege
}

func (g ServiceGrant) subject() string {
	return fmt.Sprintf("%s on the service to %s", g.Privilege, g.Role)
}

// GrantOnService gives a principal role a privilege on the service. It is idempotent, and takes SERVICE_MANAGE_ACCESS: who could give
// one that he does not hold would give it to himself. Administering the service as a whole is service_admin's and given with that role.
func (s *Service) GrantOnService(ctx context.Context, c Caller, g ServiceGrant) error {
	n := need{"grant-on-service", g.subject(), authz.ServiceManageAccess}
	role, on, err := s.serviceGrant(ctx, c, g, n)
	if err != nil {
		return err
	}
	if err := s.Admin.AddGrant(ctx, role, on, s.fact(c, n.operation, n.subject, uuid.Nil, role.ID)); err != nil {
		return fmt.Errorf("grant %s: %w", n.subject, err)
	}
	return nil
}

// RevokeOnService takes a privilege on the service back from a principal role. It is idempotent.
func (s *Service) RevokeOnService(ctx context.Context, c Caller, g ServiceGrant) error {
	n := need{"revoke-on-service", g.subject(), authz.ServiceManageAccess}
	role, on, err := s.serviceGrant(ctx, c, g, n)
	if err != nil {
		return err
	}
	if err := s.Admin.RevokeGrant(ctx, role, on, s.fact(c, n.operation, n.subject, uuid.Nil, role.ID)); err != nil {
		return fmt.Errorf("revoke %s: %w", n.subject, err)
	}
	return nil
}

// GrantsOnService gives the privileges on the service that a principal role itself holds, by name.
func (s *Service) GrantsOnService(ctx context.Context, c Caller, name string) ([]authz.Privilege, error) {
	if err := s.requireOnRoot(ctx, c, need{"list-grants-on-service", name, authz.PrincipalRoleListGrants}); err != nil {
		return nil, err
	}
	role, err := s.roleNamed(ctx, uuid.Nil, name)
	if err != nil {
		return nil, err
	}
	grants, err := s.Admin.ListGrants(ctx, role, GrantKey{}, 0)
	if err != nil {
		return nil, fmt.Errorf("list the grants of %s on the service: %w", name, err)
	}
	var held []authz.Privilege
	for _, g := range grants {
		if g.Kind == authz.Root {
			held = append(held, g.Privilege)
		}
	}
	return held, nil
}

func (s *Service) serviceGrant(ctx context.Context, c Caller, g ServiceGrant, n need) (RoleRecord, RoleGrant, error) {
	if err := s.requireOnRoot(ctx, c, n); err != nil {
		return RoleRecord{}, RoleGrant{}, err
	}
	switch {
	case !authz.Grantable(g.Privilege, authz.Root):
		return RoleRecord{}, RoleGrant{}, fault.New(fault.BadRequest, "privilege %s cannot be granted on the service; it can be on %s", g.Privilege, grantableOn(g.Privilege))
	case g.Privilege == authz.ServiceManageAccess:
		return RoleRecord{}, RoleGrant{}, fault.New(fault.BadRequest, "%s is what the role %s holds: assign that role", g.Privilege, ServiceAdminRole)
	}
	role, err := s.roleNamed(ctx, uuid.Nil, g.Role)
	return role, RoleGrant{Privilege: g.Privilege, Kind: authz.Root, ID: authz.RootID}, err
}
