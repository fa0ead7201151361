package store

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// The role's row is locked against deletion while a grant is added; grants refer to two tables, so no constraint can
// do it.
const sqlLockRole = `
SELECT id FROM catalog_roles WHERE id = @role FOR KEY SHARE`

const sqlLockPrincipalRole = `
SELECT id FROM principal_roles WHERE id = @role FOR KEY SHARE`

const sqlInsertGrant = `
INSERT INTO grants (role_id, warehouse_id, securable_kind, securable_id, privilege, created_at)
VALUES (@role, @warehouse, @kind, @securable, @privilege, @created_at)
ON CONFLICT DO NOTHING`

// AddGrant grants a privilege to a role: to a catalog role inside its warehouse, to a principal role on the root. It is
// idempotent, and a repeat leaves no fact. fault.NotFound when the role is gone.
func (s *Store) AddGrant(ctx context.Context, role catalog.RoleRecord, g catalog.RoleGrant, f catalog.Fact) error {
	sqlLock := sqlLockPrincipalRole
	if role.WarehouseID != uuid.Nil {
		sqlLock = sqlLockRole
	}
	return s.InTx(ctx, func(tx pgx.Tx) error { return addGrant(ctx, tx, sqlLock, role, g, f) })
}

func addGrant(ctx context.Context, tx pgx.Tx, sqlLock string, role catalog.RoleRecord, g catalog.RoleGrant, f catalog.Fact) error {
	missing := fault.New(fault.NotFound, "the role no longer exists: %s", role.Name)
	tag, err := tx.Exec(ctx, sqlLock, pgx.NamedArgs{"role": role.ID})
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return missing
	}
	args := grantArgs(role, g)
	args["warehouse"], args["created_at"] = nullable(role.WarehouseID), f.At
	if tag, err = tx.Exec(ctx, sqlInsertGrant, args); err != nil {
		return goneMeans(err, missing)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return writeFact(ctx, tx, f)
}

// ChangeGrants makes all of the changes or none. They are written in one order whatever the request's is, for else two requests about
// the same grants would wait for each other in a circle, which the database looks for only after a second; those of one grant stay in theirs.
func (s *Store) ChangeGrants(ctx context.Context, changes []catalog.GrantWrite) error {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b catalog.GrantWrite) int {
		return cmp.Or(bytes.Compare(a.Role.ID[:], b.Role.ID[:]), bytes.Compare(a.Grant.ID[:], b.Grant.ID[:]),
			cmp.Compare(a.Grant.Kind, b.Grant.Kind), cmp.Compare(a.Grant.Privilege, b.Grant.Privilege))
	})
	return s.InTx(ctx, func(tx pgx.Tx) error {
		for _, c := range changes {
			change := func() error { return addGrant(ctx, tx, sqlLockRole, c.Role, c.Grant, c.Fact) }
			if c.Revoke {
				change = func() error { return revokeGrant(ctx, tx, c.Role, c.Grant, c.Fact) }
			}
			if err := change(); err != nil {
				return err
			}
		}
		return nil
	})
}

func grantArgs(role catalog.RoleRecord, g catalog.RoleGrant) pgx.NamedArgs {
	return pgx.NamedArgs{
		"role": role.ID, "kind": string(g.Kind), "securable": g.ID, "privilege": string(g.Privilege),
	}
}

const sqlDeleteGrant = `
DELETE FROM grants
WHERE role_id = @role AND securable_id = @securable AND privilege = @privilege AND securable_kind = @kind`

// RevokeGrant takes a grant back. It is idempotent, and a repeat leaves no fact. fault.IllegalArgument when nobody
// would be left who can administer the service.
func (s *Store) RevokeGrant(ctx context.Context, role catalog.RoleRecord, g catalog.RoleGrant, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		revoke := func() error { return revokeGrant(ctx, tx, role, g, f) }
		if g.Kind == authz.Root {
			return keepingAdministrators(ctx, tx, revoke)
		}
		return revoke()
	})
}

func revokeGrant(ctx context.Context, tx pgx.Tx, role catalog.RoleRecord, g catalog.RoleGrant, f catalog.Fact) error {
	tag, err := tx.Exec(ctx, sqlDeleteGrant, grantArgs(role, g))
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return writeFact(ctx, tx, f)
}

// Grants on what has been dropped are not listed: their securable has no name any more.
const sqlListGrants = `
SELECT grants.privilege, grants.securable_kind, grants.securable_id,
       namespaces.levels, coalesce(tables.name, '') AS name
FROM grants
LEFT JOIN tables ON tables.id = grants.securable_id AND tables.kind = grants.securable_kind
LEFT JOIN namespaces ON namespaces.id = coalesce(tables.namespace_id, grants.securable_id)
WHERE grants.role_id = @role
  AND (grants.securable_kind IN ('root', 'catalog') OR namespaces.id IS NOT NULL)
  AND (coalesce(namespaces.levels, '{}'), coalesce(tables.name, ''), grants.privilege COLLATE "C")
      > (@after_levels::text[], @after_name::text, @after_privilege::text)
ORDER BY coalesce(namespaces.levels, '{}'), coalesce(tables.name, ''), grants.privilege COLLATE "C"
LIMIT @limit::bigint`

// ListGrants gives what a role holds, outermost securables first.
func (s *Store) ListGrants(ctx context.Context, role catalog.RoleRecord, behind catalog.GrantKey, most int) ([]catalog.RoleGrant, error) {
	return collect(ctx, s, sqlListGrants, pgx.NamedArgs{
		"role": role.ID, "after_levels": texts(behind.Namespace, after), "after_name": after(behind.Name),
		"after_privilege": after(string(behind.Privilege)), "limit": limit(catalog.Page{Limit: most}),
	}, func(row pgx.CollectableRow) (catalog.RoleGrant, error) {
		var g catalog.RoleGrant
		var privilege, kind string
		var levels []string
		err := row.Scan(&privilege, &kind, &g.ID, &levels, &g.Name)
		g.Privilege, g.Kind, g.Namespace = authz.Privilege(privilege), authz.SecurableKind(kind), levels
		return g, err
	})
}

const sqlListGrantsOn = `
SELECT catalog_roles.name, grants.privilege
FROM grants
JOIN catalog_roles ON catalog_roles.id = grants.role_id AND catalog_roles.warehouse_id = @warehouse
WHERE grants.securable_id = @securable AND grants.securable_kind = @kind
  AND (catalog_roles.name, grants.privilege COLLATE "C") > (@after_role::text, @after_privilege::text)
ORDER BY catalog_roles.name, grants.privilege COLLATE "C"
LIMIT @limit::bigint`

// ListGrantsOn gives who holds what on a securable of a warehouse, by role and privilege.
func (s *Store) ListGrantsOn(
	ctx context.Context, warehouseID uuid.UUID, on authz.Securable, behind catalog.GrantOn, most int,
) ([]catalog.GrantOn, error) {
	return collect(ctx, s, sqlListGrantsOn, pgx.NamedArgs{
		"warehouse": warehouseID, "securable": on.ID, "kind": string(on.Kind), "after_role": after(behind.Role),
		"after_privilege": after(string(behind.Privilege)), "limit": limit(catalog.Page{Limit: most}),
	}, func(row pgx.CollectableRow) (catalog.GrantOn, error) {
		var g catalog.GrantOn
		var privilege string
		err := row.Scan(&g.Role, &privilege)
		g.Privilege = authz.Privilege(privilege)
		return g, err
	})
}
