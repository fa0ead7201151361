package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// ownedThings are all that has an owner, by its kind and id.
const ownedThings = `(
    SELECT 'catalog' AS kind, id, owner_id FROM warehouses
    UNION ALL SELECT 'namespace', id, owner_id FROM namespaces
    UNION ALL SELECT kind, id, owner_id FROM tables
) AS owned`

const sqlOwnWarehouse = `UPDATE warehouses SET owner_id = @owner WHERE id = @id`

const sqlOwnNamespace = `UPDATE namespaces SET owner_id = @owner WHERE id = @id`

const sqlOwnTable = `UPDATE tables SET owner_id = @owner WHERE id = @id`

var sqlOwn = map[authz.SecurableKind]string{
	authz.Catalog: sqlOwnWarehouse, authz.Namespace: sqlOwnNamespace, authz.Table: sqlOwnTable, authz.View: sqlOwnTable,
}

// SetOwner gives something another owner. Neither its version nor its content changes.
func (s *Store) SetOwner(ctx context.Context, c catalog.OwnerChange) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if c.Owner != uuid.Nil {
			var there bool
			if err := tx.QueryRow(ctx, sqlPrincipalExists, pgx.NamedArgs{"id": c.Owner}).Scan(&there); err != nil {
				return err
			}
			if !there {
				return fault.New(fault.NotFound, "the principal no longer exists")
			}
		}
		tag, err := tx.Exec(ctx, sqlOwn[c.On.Kind], pgx.NamedArgs{"id": c.On.ID, "owner": nullable(c.Owner)})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.NotFound, "%s no longer exists", c.On)
		}
		return writeFact(ctx, tx, c.Fact)
	})
}

const sqlFindPrincipalName = `SELECT name FROM principals WHERE id = @id`

// FindPrincipalName gives the name of a principal.
func (s *Store) FindPrincipalName(ctx context.Context, id uuid.UUID) (name string, err error) {
	err = s.read(ctx, func(q querier) error {
		err := q.QueryRow(ctx, sqlFindPrincipalName, pgx.NamedArgs{"id": id}).Scan(&name)
		if noRows(err) {
			return fault.New(fault.NotFound, "the principal no longer exists")
		}
		return err
	})
	return name, err
}
