package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// Whoever takes administration away from somebody locks the roles that give it, so that two who do it at once see
// what the other did.
const sqlLockAdministration = `
SELECT principal_roles.id
FROM principal_roles
WHERE principal_roles.id IN (SELECT grants.role_id FROM grants
                             WHERE grants.securable_kind = 'root' AND grants.privilege = @privilege)
ORDER BY principal_roles.id
FOR UPDATE`

// Those that an identity provider knows do not count: when it is away, or takes them away, nobody could administer.
const sqlCountAdministrators = `
SELECT count(DISTINCT principal_role_members.principal_id)
FROM grants
JOIN principal_role_members ON principal_role_members.principal_role_id = grants.role_id
JOIN principals ON principals.id = principal_role_members.principal_id AND principals.kind = 'service'
JOIN principal_secrets ON principal_secrets.principal_id = principals.id
WHERE grants.securable_kind = 'root' AND grants.privilege = @privilege`

// keepingAdministrators runs fn and refuses, with fault.IllegalArgument, what takes the service's last administrator with a secret
// away: nobody could undo it. Only bootstrap could help then.
func keepingAdministrators(ctx context.Context, tx pgx.Tx, fn func() error) error {
	args := pgx.NamedArgs{"privilege": string(authz.ServiceManageAccess)}
	if _, err := tx.Exec(ctx, sqlLockAdministration, args); err != nil {
		return err
	}
	var before, left int
	if err := tx.QueryRow(ctx, sqlCountAdministrators, args).Scan(&before); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, sqlCountAdministrators, args).Scan(&left); err != nil {
		return err
	}
	if before > 0 && left == 0 {
		return fault.New(fault.IllegalArgument,
			"refused: nobody who signs in with a secret would be left who holds %s; make another principal administrator first", authz.ServiceManageAccess)
	}
	return nil
}

const sqlInsertPrincipalRoleMember = `
INSERT INTO principal_role_members (principal_role_id, principal_id)
VALUES (@role, @principal)
ON CONFLICT DO NOTHING`

// AssignPrincipalRole gives a principal a role. It is idempotent, and a repeat leaves no fact. fault.NotFound when
// either is gone.
func (s *Store) AssignPrincipalRole(ctx context.Context, principalID, roleID uuid.UUID, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		return insertMember(ctx, tx, sqlInsertPrincipalRoleMember, pgx.NamedArgs{"role": roleID, "principal": principalID}, f)
	})
}

func insertMember(ctx context.Context, tx pgx.Tx, sql string, args pgx.NamedArgs, f catalog.Fact) error {
	tag, err := tx.Exec(ctx, sql, args)
	if err != nil {
		return goneMeans(err, fault.New(fault.NotFound, "the role, or who was to have it, no longer exists"))
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return writeFact(ctx, tx, f)
}

func deleteMember(ctx context.Context, tx pgx.Tx, sql string, args pgx.NamedArgs, f catalog.Fact, missing string) error {
	tag, err := tx.Exec(ctx, sql, args)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return fault.New(fault.NotFound, "%s", missing)
	}
	return writeFact(ctx, tx, f)
}

const sqlDeletePrincipalRoleMember = `
DELETE FROM principal_role_members WHERE principal_role_id = @role AND principal_id = @principal`

// RevokePrincipalRole takes a role from a principal. fault.NotFound when the principal does not have it,
// fault.IllegalArgument when nobody would be left who can administer the service.
func (s *Store) RevokePrincipalRole(ctx context.Context, principalID, roleID uuid.UUID, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		return keepingAdministrators(ctx, tx, func() error {
			return deleteMember(ctx, tx, sqlDeletePrincipalRoleMember, pgx.NamedArgs{"role": roleID, "principal": principalID}, f,
				"the principal does not have this role")
		})
	})
}

const sqlPrincipalRolesOf = `
SELECT principal_roles.id, NULL::uuid AS warehouse_id, principal_roles.name, principal_roles.properties,
       principal_roles.federated, principal_roles.version, principal_roles.created_at, principal_roles.updated_at
FROM principal_role_members
JOIN principal_roles ON principal_roles.id = principal_role_members.principal_role_id
WHERE principal_role_members.principal_id = @principal` + wantedNames

// PrincipalRolesOf gives the roles of a principal by name.
func (s *Store) PrincipalRolesOf(ctx context.Context, principalID uuid.UUID, q catalog.ListQuery) ([]catalog.RoleRecord, error) {
	return s.roles(ctx, sqlPrincipalRolesOf, wantedArgs(q, pgx.NamedArgs{"principal": principalID}))
}

const sqlPrincipalsWith = `
SELECT principals.id, principals.name, principals.client_id, principals.kind, principals.properties,
       principals.version, principals.created_at, principals.updated_at, coalesce(principal_secrets.rotation_required, false)
FROM principal_role_members
JOIN principals ON principals.id = principal_role_members.principal_id
LEFT JOIN principal_secrets ON principal_secrets.principal_id = principals.id
WHERE principal_role_members.principal_role_id = @role` + wantedNames

// PrincipalsWith gives who has a principal role, by name.
func (s *Store) PrincipalsWith(ctx context.Context, roleID uuid.UUID, q catalog.ListQuery) ([]catalog.PrincipalRecord, error) {
	return s.principals(ctx, sqlPrincipalsWith, wantedArgs(q, pgx.NamedArgs{"role": roleID}))
}

const sqlInsertCatalogRoleMember = `
INSERT INTO catalog_role_members (catalog_role_id, principal_role_id)
VALUES (@catalog_role, @principal_role)
ON CONFLICT DO NOTHING`

// AssignCatalogRole gives a principal role a catalog role. It is idempotent, and a repeat leaves no fact.
// fault.NotFound when either is gone.
func (s *Store) AssignCatalogRole(ctx context.Context, principalRoleID, catalogRoleID uuid.UUID, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		return insertMember(ctx, tx, sqlInsertCatalogRoleMember,
			pgx.NamedArgs{"catalog_role": catalogRoleID, "principal_role": principalRoleID}, f)
	})
}

const sqlDeleteCatalogRoleMember = `
DELETE FROM catalog_role_members WHERE catalog_role_id = @catalog_role AND principal_role_id = @principal_role`

// RevokeCatalogRole takes a catalog role from a principal role. fault.NotFound when it does not have it.
func (s *Store) RevokeCatalogRole(ctx context.Context, principalRoleID, catalogRoleID uuid.UUID, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		return deleteMember(ctx, tx, sqlDeleteCatalogRoleMember,
			pgx.NamedArgs{"catalog_role": catalogRoleID, "principal_role": principalRoleID}, f,
			"the principal role does not have this catalog role")
	})
}

const sqlCatalogRolesOf = `
SELECT catalog_roles.id, catalog_roles.warehouse_id, catalog_roles.name, catalog_roles.properties,
       false AS federated, catalog_roles.version, catalog_roles.created_at, catalog_roles.updated_at
FROM catalog_role_members
JOIN catalog_roles ON catalog_roles.id = catalog_role_members.catalog_role_id
WHERE catalog_role_members.principal_role_id = @principal_role AND catalog_roles.warehouse_id = @warehouse` + wantedNames

// CatalogRolesOf gives the catalog roles that a principal role has in a warehouse, by name.
func (s *Store) CatalogRolesOf(ctx context.Context, principalRoleID, warehouseID uuid.UUID, q catalog.ListQuery) ([]catalog.RoleRecord, error) {
	return s.roles(ctx, sqlCatalogRolesOf, wantedArgs(q, pgx.NamedArgs{"principal_role": principalRoleID, "warehouse": warehouseID}))
}

const sqlPrincipalRolesWith = `
SELECT principal_roles.id, NULL::uuid AS warehouse_id, principal_roles.name, principal_roles.properties,
       principal_roles.federated, principal_roles.version, principal_roles.created_at, principal_roles.updated_at
FROM catalog_role_members
JOIN principal_roles ON principal_roles.id = catalog_role_members.principal_role_id
WHERE catalog_role_members.catalog_role_id = @catalog_role` + wantedNames

// PrincipalRolesWith gives the principal roles that have a catalog role, by name.
func (s *Store) PrincipalRolesWith(ctx context.Context, catalogRoleID uuid.UUID, q catalog.ListQuery) ([]catalog.RoleRecord, error) {
	return s.roles(ctx, sqlPrincipalRolesWith, wantedArgs(q, pgx.NamedArgs{"catalog_role": catalogRoleID}))
}
