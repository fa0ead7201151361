package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// GrantTarget says which privilege, on what. Namespace and Name are those of the securable's kind.
type GrantTarget struct {
	Privilege authz.Privilege
	Kind      authz.SecurableKind // catalog, namespace, table, view
	Namespace Namespace
	Name      string
}

func (t GrantTarget) subject(role RoleName) string {
	on := Identifier{Namespace: t.Namespace, Name: t.Name}.String()
	if t.Kind == authz.Catalog {
		on = role.Warehouse
	}
	return fmt.Sprintf("%s on %s %s to %s", t.Privilege, t.Kind, on, role.subject())
}

// grantsRight is what managing grants on a kind of securable needs.
var grantsRight = map[authz.SecurableKind]authz.Privilege{
	authz.Catalog:   authz.CatalogManageGrants,
	authz.Namespace: authz.NamespaceManageGrants,
	authz.Table:     authz.TableManageGrants,
	authz.View:      authz.ViewManageGrants,
}

// grantsSeen is what seeing the grants on a kind of securable needs.
var grantsSeen = map[authz.SecurableKind]authz.Privilege{
	authz.Root:      authz.PrincipalListGrants,
	authz.Catalog:   authz.CatalogListGrants,
	authz.Namespace: authz.NamespaceListGrants,
	authz.Table:     authz.TableListGrants,
	authz.View:      authz.ViewListGrants,
}

// Grant gives a catalog role a privilege on something in its warehouse. It is idempotent.
func (s *Service) Grant(ctx context.Context, c Caller, role RoleName, t GrantTarget) error {
	g, err := s.grantWrite(ctx, c, role, t, false)
	if err != nil {
		return err
	}
	if err := s.Admin.AddGrant(ctx, g.Role, g.Grant, g.Fact); err != nil {
		return fmt.Errorf("grant %s: %w", g.Fact.Subject, err)
	}
	return nil
}

// Revoke takes a privilege back from a catalog role. It is idempotent.
func (s *Service) Revoke(ctx context.Context, c Caller, role RoleName, t GrantTarget) error {
	g, err := s.grantWrite(ctx, c, role, t, true)
	if err != nil {
		return err
	}
	if err := s.Admin.RevokeGrant(ctx, g.Role, g.Grant, g.Fact); err != nil {
		return fmt.Errorf("revoke %s: %w", g.Fact.Subject, err)
	}
	return nil
}

// grantWrite finds what a grant or its taking back writes, for callers who may. What administers the warehouse's roles is given by who holds
// CATALOG_MANAGE_ACCESS on it: managing its grants, as its owner may, does not contain that.
func (s *Service) grantWrite(ctx context.Context, c Caller, role RoleName, t GrantTarget, revoke bool) (GrantWrite, error) {
	if err := t.validate(); err != nil {
		return GrantWrite{}, err
	}
	n := need{"add-grant", t.subject(role), grantsRight[t.Kind]}
	if revoke {
		n.operation = "revoke-grant"
	}
	res, on, err := s.grantSecurable(ctx, c, role, t, n)
	if err != nil {
		return GrantWrite{}, err
	}
	if revoke {
		grantee := need{n.operation, n.subject, authz.CatalogRoleManageGrantsForGrantee}
		if err := s.require(ctx, c, res, res.Path()[:2], grantee); err != nil {
			return GrantWrite{}, err
		}
	} else if t.Kind == authz.Catalog && authz.AdministersRoles(t.Privilege) {
		if err := s.require(ctx, c, res, res.Path(), need{n.operation, n.subject, authz.CatalogManageAccess}); err != nil {
			return GrantWrite{}, err
		}
	}
	r, err := s.roleNamed(ctx, res.Warehouse.ID, role.Name)
	if err != nil {
		return GrantWrite{}, err
	}
	return GrantWrite{Role: r, Grant: t.on(on), Revoke: revoke, Fact: s.fact(c, n.operation, n.subject, r.WarehouseID, on.ID)}, nil
}

// ListGrants gives what a catalog role holds behind a page's token, outermost securables first.
func (s *Service) ListGrants(ctx context.Context, c Caller, role RoleName, p Page) ([]RoleGrant, error) {
	var behind GrantKey
	if err := parseKey(p.After, &behind); err != nil {
		return nil, err
	}
	r, err := s.grantee(ctx, c, role, "list-grants", authz.CatalogRoleListGrants)
	if err != nil {
		return nil, err
	}
	grants, err := s.Admin.ListGrants(ctx, r, behind, p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list the grants of %s: %w", role.Name, err)
	}
	return grants, nil
}

// ListGrantsOn gives the grants on a warehouse, or on something in it, by role and privilege; what holds there because of a
// grant further out is WhoCan's to say. The right to list the grants on it is needed, and who lacks it does not learn
// whether it is there.
func (s *Service) ListGrantsOn(ctx context.Context, c Caller, on SecurableName, p Page) ([]GrantOn, error) {
	var behind GrantOn
	if err := errors.Join(on.validate(), parseKey(p.After, &behind)); err != nil {
		return nil, err
	}
	res, err := s.resolve(ctx, c, on.lookup())
	if err != nil {
		return nil, err
	}
	path := res.Path()
	if err := s.require(ctx, c, res, path, need{"list-grants-on", on.String(), grantsSeen[on.Kind()]}); err != nil {
		return nil, err
	}
	if err := on.missing(res); err != nil {
		return nil, err
	}
	grants, err := s.Admin.ListGrantsOn(ctx, res.Warehouse.ID, path[len(path)-1], behind, p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list the grants on %s: %w", on, err)
	}
	return grants, nil
}

// grantableOn names what a privilege can be granted on, for who tried it elsewhere.
func grantableOn(p authz.Privilege) string {
	var kinds []string
	for _, kind := range []authz.SecurableKind{authz.Root, authz.Catalog, authz.Namespace, authz.Table, authz.View} {
		if !authz.Grantable(p, kind) {
			continue
		}
		text := "a " + string(kind)
		if kind == authz.Root {
			text = "the service (root)"
		}
		kinds = append(kinds, text)
	}
	if len(kinds) == 0 {
		return "nothing: it comes with a role"
	}
	return strings.Join(kinds, ", ")
}

func (t GrantTarget) validate() error {
	if _, ok := grantsRight[t.Kind]; !ok {
		return fault.New(fault.BadRequest, "grants of type %q are not served; catalog, namespace, table and view are", t.Kind)
	}
	if err := checkPrivilege(t.Privilege); err != nil {
		return err
	}
	if !authz.Grantable(t.Privilege, t.Kind) {
		return fault.New(fault.BadRequest, "privilege %s cannot be granted on a %s; it can be on %s", t.Privilege, t.Kind, grantableOn(t.Privilege))
	}
	if t.Kind != authz.Catalog && len(t.Namespace) == 0 {
		return fault.New(fault.BadRequest, "the grant's namespace is missing")
	}
	if (t.Kind == authz.Table || t.Kind == authz.View) && t.Name == "" {
		return fault.New(fault.BadRequest, "the grant's %sName is missing", t.Kind)
	}
	return nil
}

func (t GrantTarget) on(s authz.Securable) RoleGrant {
	return RoleGrant{Privilege: t.Privilege, Kind: t.Kind, ID: s.ID, Namespace: t.Namespace, Name: t.Name}
}

// grantSecurable finds what a grant is about, for callers who may manage grants on it. Who may not manage them where
// it would be does not learn whether it is there.
func (s *Service) grantSecurable(ctx context.Context, c Caller, role RoleName, t GrantTarget, n need) (Resolution, authz.Securable, error) {
	l := Lookup{Warehouse: role.Warehouse}
	if t.Kind != authz.Catalog {
		l.Namespace = t.Namespace
	}
	if t.Kind == authz.Table || t.Kind == authz.View {
		l.Table = t.Name
	}
	res, err := s.resolve(ctx, c, l)
	if err != nil {
		return res, authz.Securable{}, err
	}
	path := res.Path()
	if err := s.require(ctx, c, res, path, n); err != nil {
		return res, authz.Securable{}, err
	}
	missing := t.missing(res)
	if missing != nil {
		return res, authz.Securable{}, missing
	}
	return res, path[len(path)-1], nil
}

// missing says what is not there; nil when the last securable of the resolution's path is what the grant is about.
func (t GrantTarget) missing(res Resolution) error {
	id := Identifier{Namespace: t.Namespace, Name: t.Name}
	switch {
	case t.Kind == authz.Catalog:
		return nil
	case res.Namespace == nil:
		return fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", t.Namespace)
	case t.Kind == authz.Namespace:
		return nil
	case t.Kind == authz.Table && res.Table == nil:
		return KindTable.Missing(id)
	case t.Kind == authz.View && res.View == nil:
		return KindView.Missing(id)
	}
	return nil
}
