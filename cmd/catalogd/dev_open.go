package main

import (
	"context"
	"fmt"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// devVisitor is who requests without a token are from with --open, and what its roles are called. It works in the dev warehouse and
// administers nothing.
const devVisitor = "anonymous"

// admitVisitors makes the principal of requests without a token, with what it needs to work in the warehouse, as far as that is not
// there. Its secret is shown to nobody.
func (d *dev) admitVisitors(ctx context.Context) error {
	if !d.options.open {
		return nil
	}
	root, err := d.root(ctx)
	if err != nil {
		return err
	}
	s := d.app.service
	role := catalog.RoleName{Warehouse: devWarehouse, Name: devVisitor}
	for _, step := range []func() error{
		func() error {
			_, _, err := s.CreatePrincipal(ctx, root, catalog.PrincipalDraft{Name: devVisitor})
			return err
		},
		func() error {
			_, err := s.CreateRole(ctx, root, catalog.RoleName{Name: devVisitor}, catalog.RoleDraft{})
			return err
		},
		func() error {
			_, err := s.CreateRole(ctx, root, role, catalog.RoleDraft{})
			return err
		},
		func() error {
			return s.AssignPrincipalRole(ctx, root, catalog.PrincipalRoleMember{Principal: devVisitor, Role: devVisitor})
		},
		func() error {
			return s.AssignCatalogRole(ctx, root, catalog.CatalogRoleMember{PrincipalRole: devVisitor, Warehouse: devWarehouse, CatalogRole: devVisitor})
		},
		func() error {
			return s.Grant(ctx, root, role, catalog.GrantTarget{Privilege: authz.CatalogManageContent, Kind: authz.Catalog})
		},
	} {
		if err := step(); err != nil && !fault.Is(err, fault.AlreadyExists) {
			return fmt.Errorf("let requests without a token in: %w", err)
		}
	}
	return nil
}
