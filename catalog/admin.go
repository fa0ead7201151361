package catalog

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// What every installation has. None of it can be dropped: without it nobody could administer the service.
const (
	RootPrincipal    = "root"
	ServiceAdminRole = "service_admin"
	CatalogAdminRole = "catalog_admin"
)

// Limits and reserved words of the names of warehouses, principals and roles.
const (
	adminNameBytesMax = 256
	clientIDBytesMax  = 128
	// reservedNamePrefix is Polaris' for its own; systemNamePrefix is ours.
	reservedNamePrefix = "SYSTEM$"
	systemNamePrefix   = "system:"
	// allRolesWord means every role in a token's scope, so no role can be called so.
	allRolesWord = "ALL"
)

// checkAdminName refuses names that clients could not address or that mean something else.
func checkAdminName(what, name string) error {
	if err := validateName(what, name, adminNameBytesMax); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(strings.ToUpper(name), reservedNamePrefix), strings.HasPrefix(strings.ToLower(name), systemNamePrefix):
		return fault.New(fault.BadRequest, "%s %q is reserved for the system", what, name)
	case strings.TrimFunc(name, unicode.IsSpace) != name:
		return fault.New(fault.BadRequest, "%s %q begins or ends with a blank", what, name)
	}
	return nil
}

// resolveRoot reads what the caller may do on the service itself.
func (s *Service) resolveRoot(ctx context.Context, c Caller) (Resolution, error) {
	grants, state, err := s.Store.ResolveGrants(ctx, Lookup{Principal: c.Principal})
	if err != nil {
		return Resolution{}, fmt.Errorf("resolve the grants of %s: %w", c.Principal.Name, err)
	}
	if err := s.admitCaller(c, state, grants); err != nil {
		return Resolution{}, err
	}
	return Resolution{Caller: state, Grants: grants}, s.admitActor(ctx, c, grants)
}

// requireOnRoot is for operations on principals, principal roles and warehouses as such.
func (s *Service) requireOnRoot(ctx context.Context, c Caller, n need) error {
	res, err := s.resolveRoot(ctx, c)
	if err != nil {
		return err
	}
	return s.require(ctx, c, res, res.Path(), n)
}

// requireOnWarehouse is for operations on a warehouse, its roles and their grants.
func (s *Service) requireOnWarehouse(ctx context.Context, c Caller, warehouse string, n need) (Warehouse, error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse})
	if err != nil {
		return Warehouse{}, err
	}
	return *res.Warehouse, s.require(ctx, c, res, res.Path(), n)
}

// Update says what a change of an entity's properties must start from.
type Update struct {
	// Version is the entity's version that the caller has seen.
	Version    int64
	Properties map[string]string // nil leaves them
}

// checkUpdate refuses an update of a version that is not current any more.
func checkUpdate(what, name string, u Update, current int64) error {
	if u.Version != current {
		return fault.New(fault.VersionConflict, "%s %s has changed meanwhile: currentEntityVersion is %d, not %d",
			what, name, current, u.Version)
	}
	return nil
}

// bootstrapCaller is who makes what must be there before anybody can be asked.
func bootstrapCaller() Caller {
	return Caller{Principal: auth.Principal{Name: systemNamePrefix + "bootstrap", Kind: auth.System}}
}

// rootGrant is what makes a principal role administer the service.
func rootGrant() RoleGrant {
	return RoleGrant{Privilege: authz.ServiceManageAccess, Kind: authz.Root, ID: authz.RootID}
}
