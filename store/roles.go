package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

const sqlInsertPrincipalRole = `
INSERT INTO principal_roles (id, name, properties, federated, version, created_at, updated_at)
VALUES (@id, @name, @properties, @federated, 1, @created_at, @created_at)`

const sqlInsertCatalogRole = `
INSERT INTO catalog_roles (id, warehouse_id, name, properties, version, created_at, updated_at)
VALUES (@id, @warehouse, @name, @properties, 1, @created_at, @created_at)`

// CreateRole makes a principal role or, in a warehouse, a catalog role. fault.AlreadyExists when the name is taken,
// fault.NoSuchWarehouse when the warehouse is gone.
func (s *Store) CreateRole(ctx context.Context, r catalog.RoleRecord, f catalog.Fact) error {
	properties, err := encodeProperties(r.Properties)
	if err != nil {
		return err
	}
	sql := sqlInsertPrincipalRole
	args := pgx.NamedArgs{
		"id": r.ID, "name": r.Name, "properties": properties, "federated": r.Federated, "created_at": r.CreatedAt,
	}
	if r.WarehouseID != uuid.Nil {
		sql, args["warehouse"] = sqlInsertCatalogRole, r.WarehouseID
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql, args); err != nil {
			err = takenMeans(err, "principal_roles_name_key", "Principal role", r.Name)
			err = takenMeans(err, "catalog_roles_name_key", "Catalog role", r.Name)
			return goneMeans(err, fault.New(fault.NoSuchWarehouse, "Warehouse does not exist"))
		}
		return writeFact(ctx, tx, f)
	})
}

// takenMeans names what is taken when err is the violation of the constraint on its name.
func takenMeans(err error, constraint, what, name string) error {
	if violates(err, constraint) {
		return fault.Wrap(fault.AlreadyExists, err, "%s already exists: %s", what, name)
	}
	return err
}

// goneMeans gives missing instead of err when err says that a row that was referred to is not there any more.
func goneMeans(err error, missing *fault.Error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == stateForeignKeyViolation {
		return missing
	}
	return err
}

// Both kinds of roles have the same columns here, so that one function reads them.
const sqlListPrincipalRoles = `
SELECT id, NULL::uuid AS warehouse_id, name, properties, federated, version, created_at, updated_at
FROM principal_roles
WHERE (@name::text IS NULL OR name = @name)` + wantedNames

const sqlListCatalogRoles = `
SELECT id, warehouse_id, name, properties, false AS federated, version, created_at, updated_at
FROM catalog_roles
WHERE warehouse_id = @warehouse AND (@name::text IS NULL OR name = @name)` + wantedNames

// FindRole gives a role by name: fault.NotFound.
func (s *Store) FindRole(ctx context.Context, warehouseID uuid.UUID, name string) (catalog.RoleRecord, error) {
	found, err := s.listRoles(ctx, warehouseID, lookup(name), catalog.ListQuery{})
	if err != nil {
		return catalog.RoleRecord{}, err
	}
	if len(found) == 0 {
		what := "Principal role"
		if warehouseID != uuid.Nil {
			what = "Catalog role"
		}
		return catalog.RoleRecord{}, fault.New(fault.NotFound, "%s does not exist: %s", what, name)
	}
	return found[0], nil
}

// ListRoles gives principal roles, or catalog roles of a warehouse, by name.
func (s *Store) ListRoles(ctx context.Context, warehouseID uuid.UUID, q catalog.ListQuery) ([]catalog.RoleRecord, error) {
	return s.listRoles(ctx, warehouseID, nil, q)
}

func (s *Store) listRoles(ctx context.Context, warehouseID uuid.UUID, name any, q catalog.ListQuery) ([]catalog.RoleRecord, error) {
	if warehouseID == uuid.Nil {
		return s.roles(ctx, sqlListPrincipalRoles, wantedArgs(q, pgx.NamedArgs{"name": name}))
	}
	return s.roles(ctx, sqlListCatalogRoles, wantedArgs(q, pgx.NamedArgs{"warehouse": warehouseID, "name": name}))
}

// roles runs a query for roles' columns in the order of scanRole.
func (s *Store) roles(ctx context.Context, sql string, args pgx.NamedArgs) ([]catalog.RoleRecord, error) {
	return collect(ctx, s, sql, args, scanRole)
}

func scanRole(row pgx.CollectableRow) (catalog.RoleRecord, error) {
	var r catalog.RoleRecord
	var warehouse *uuid.UUID
	var properties []byte
	if err := row.Scan(&r.ID, &warehouse, &r.Name, &properties, &r.Federated, &r.Version, &r.CreatedAt, &r.UpdatedAt); err != nil {
		return r, err
	}
	if warehouse != nil {
		r.WarehouseID = *warehouse
	}
	r.CreatedAt, r.UpdatedAt = r.CreatedAt.UTC(), r.UpdatedAt.UTC()
	if err := json.Unmarshal(properties, &r.Properties); err != nil {
		return r, fmt.Errorf("decode the properties of role %s: %w", r.Name, err)
	}
	return r, nil
}

const sqlUpdatePrincipalRole = `
UPDATE principal_roles
SET properties = @properties, version = version + 1, updated_at = @updated_at
WHERE id = @id AND version = @version`

const sqlUpdateCatalogRole = `
UPDATE catalog_roles
SET properties = @properties, version = version + 1, updated_at = @updated_at
WHERE id = @id AND version = @version`

const sqlPrincipalRoleExists = `SELECT EXISTS (SELECT 1 FROM principal_roles WHERE id = @id)`

const sqlCatalogRoleExists = `SELECT EXISTS (SELECT 1 FROM catalog_roles WHERE id = @id)`

// UpdateRole replaces the properties when the version is still the record's: fault.VersionConflict else,
// fault.NotFound when the role is gone.
func (s *Store) UpdateRole(ctx context.Context, r catalog.RoleRecord, f catalog.Fact) error {
	u := propertiesUpdate{
		sql: sqlUpdatePrincipalRole, sqlExists: sqlPrincipalRoleExists, what: "Principal role",
		id: r.ID, name: r.Name, version: r.Version, properties: r.Properties,
	}
	if r.WarehouseID != uuid.Nil {
		u.sql, u.sqlExists, u.what = sqlUpdateCatalogRole, sqlCatalogRoleExists, "Catalog role"
	}
	return s.updateProperties(ctx, u, f)
}

const sqlDeletePrincipalRole = `DELETE FROM principal_roles WHERE id = @id`

const sqlDeleteCatalogRole = `DELETE FROM catalog_roles WHERE id = @id`

const sqlDeleteRoleGrants = `DELETE FROM grants WHERE role_id = @id`

// DropRole removes a role with its memberships and its grants. fault.NotFound when it is gone, fault.IllegalArgument
// when nobody would be left who can administer the service.
func (s *Store) DropRole(ctx context.Context, r catalog.RoleRecord, f catalog.Fact) error {
	sql, what := sqlDeletePrincipalRole, "Principal role"
	if r.WarehouseID != uuid.Nil {
		sql, what = sqlDeleteCatalogRole, "Catalog role"
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		return keepingAdministrators(ctx, tx, func() error {
			// The role first: its row's lock keeps new grants out, see AddGrant.
			tag, err := tx.Exec(ctx, sql, pgx.NamedArgs{"id": r.ID})
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				return fault.New(fault.NotFound, "%s does not exist: %s", what, r.Name)
			}
			if _, err := tx.Exec(ctx, sqlDeleteRoleGrants, pgx.NamedArgs{"id": r.ID}); err != nil {
				return err
			}
			return writeFact(ctx, tx, f)
		})
	})
}
