package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

const sqlInsertPrincipal = `
INSERT INTO principals (id, name, client_id, kind, properties, version, created_at, updated_at)
VALUES (@id, @name, @client_id, @kind, @properties, 1, @created_at, @created_at)`

const sqlUpsertSecret = `
INSERT INTO principal_secrets (principal_id, algorithm, secret, rotation_required, created_at)
VALUES (@principal, @algorithm, @secret, @rotation_required, @created_at)
ON CONFLICT (principal_id) DO UPDATE
SET algorithm = excluded.algorithm, secret = excluded.secret,
    rotation_required = excluded.rotation_required, created_at = excluded.created_at`

// CreatePrincipal makes a principal and its secret. fault.AlreadyExists when the name or the client id is taken.
func (s *Store) CreatePrincipal(ctx context.Context, p catalog.PrincipalRecord, secret auth.StoredSecret, f catalog.Fact) error {
	properties, err := encodeProperties(p.Properties)
	if err != nil {
		return err
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlInsertPrincipal, pgx.NamedArgs{
			"id": p.ID, "name": p.Name, "client_id": p.ClientID, "kind": string(p.Kind),
			"properties": properties, "created_at": p.CreatedAt,
		}); err != nil {
			return takenMeans(err, "principals_name_key", "Principal", p.Name)
		}
		if err := putSecret(ctx, tx, p.ID, secret, f); err != nil {
			return err
		}
		return writeFact(ctx, tx, f)
	})
}

func putSecret(ctx context.Context, tx pgx.Tx, id uuid.UUID, secret auth.StoredSecret, f catalog.Fact) error {
	_, err := tx.Exec(ctx, sqlUpsertSecret, pgx.NamedArgs{
		"principal": id, "algorithm": secret.Algorithm, "secret": secret.Form,
		"rotation_required": secret.RotationRequired, "created_at": f.At,
	})
	return err
}

const sqlFindPrincipal = `
SELECT id, name, client_id, kind, properties, version, created_at, updated_at, coalesce(rotation_required, false)
FROM principals
LEFT JOIN (SELECT principal_id, rotation_required FROM principal_secrets) AS secrets ON principal_id = id
WHERE name = @name`

// FindPrincipal gives a principal by name: fault.NotFound.
func (s *Store) FindPrincipal(ctx context.Context, name string) (catalog.PrincipalRecord, error) {
	found, err := s.principals(ctx, sqlFindPrincipal, pgx.NamedArgs{"name": lookup(name)})
	if err != nil {
		return catalog.PrincipalRecord{}, err
	}
	if len(found) == 0 {
		return catalog.PrincipalRecord{}, fault.New(fault.NotFound, "Principal does not exist: %s", name)
	}
	return found[0], nil
}

const sqlListPrincipals = `
SELECT id, name, client_id, kind, properties, version, created_at, updated_at, coalesce(rotation_required, false)
FROM principals
LEFT JOIN (SELECT principal_id, rotation_required FROM principal_secrets) AS secrets ON principal_id = id
WHERE true` + wantedNames

// ListPrincipals gives principals by name.
func (s *Store) ListPrincipals(ctx context.Context, q catalog.ListQuery) ([]catalog.PrincipalRecord, error) {
	return s.principals(ctx, sqlListPrincipals, wantedArgs(q, nil))
}

// principals runs a query for principals' columns in the order of scanPrincipal.
func (s *Store) principals(ctx context.Context, sql string, args pgx.NamedArgs) ([]catalog.PrincipalRecord, error) {
	return collect(ctx, s, sql, args, scanPrincipal)
}

func scanPrincipal(row pgx.CollectableRow) (catalog.PrincipalRecord, error) {
	var p catalog.PrincipalRecord
	var kind string
	var properties []byte
	if err := row.Scan(&p.ID, &p.Name, &p.ClientID, &kind, &properties, &p.Version, &p.CreatedAt, &p.UpdatedAt,
		&p.RotationRequired); err != nil {
		return p, err
	}
	p.Kind = auth.PrincipalKind(kind)
	p.CreatedAt, p.UpdatedAt = p.CreatedAt.UTC(), p.UpdatedAt.UTC()
	if err := json.Unmarshal(properties, &p.Properties); err != nil {
		return p, fmt.Errorf("decode the properties of principal %s: %w", p.Name, err)
	}
	return p, nil
}

const sqlUpdatePrincipal = `
UPDATE principals
SET properties = @properties, version = version + 1, updated_at = @updated_at
WHERE id = @id AND version = @version`

const sqlPrincipalExists = `SELECT EXISTS (SELECT 1 FROM principals WHERE id = @id)`

// UpdatePrincipal replaces the properties when the version is still the record's: fault.VersionConflict else,
// fault.NotFound when the principal is gone.
func (s *Store) UpdatePrincipal(ctx context.Context, p catalog.PrincipalRecord, f catalog.Fact) error {
	return s.updateProperties(ctx, propertiesUpdate{
		sql: sqlUpdatePrincipal, sqlExists: sqlPrincipalExists, what: "Principal",
		id: p.ID, name: p.Name, version: p.Version, properties: p.Properties,
	}, f)
}

// propertiesUpdate gives a principal or a role other properties when its version is still the one named.
type propertiesUpdate struct {
	sql, sqlExists string
	what           string // for messages
	id             uuid.UUID
	name           string
	version        int64
	properties     map[string]string
}

func (s *Store) updateProperties(ctx context.Context, u propertiesUpdate, f catalog.Fact) error {
	properties, err := encodeProperties(u.properties)
	if err != nil {
		return err
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, u.sql, pgx.NamedArgs{
			"id": u.id, "version": u.version, "properties": properties, "updated_at": f.At,
		})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return u.whyNot(ctx, tx)
		}
		return writeFact(ctx, tx, f)
	})
}

func (u propertiesUpdate) whyNot(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	if err := tx.QueryRow(ctx, u.sqlExists, pgx.NamedArgs{"id": u.id}).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		return fault.New(fault.NotFound, "%s does not exist: %s", u.what, u.name)
	}
	return fault.New(fault.VersionConflict, "%s %s has changed meanwhile: read it again and repeat with its currentEntityVersion", u.what, u.name)
}

const sqlDeletePrincipal = `DELETE FROM principals WHERE id = @id`

// DropPrincipal removes a principal, its secret and its memberships. fault.IllegalArgument when nobody would be left
// who can administer the service.
func (s *Store) DropPrincipal(ctx context.Context, id uuid.UUID, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		return keepingAdministrators(ctx, tx, func() error {
			tag, err := tx.Exec(ctx, sqlDeletePrincipal, pgx.NamedArgs{"id": id})
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				return fault.New(fault.NotFound, "Principal does not exist: %s", f.Subject)
			}
			return writeFact(ctx, tx, f)
		})
	})
}

const sqlTouchPrincipal = `
UPDATE principals
SET client_id = CASE WHEN @client_id = '' THEN client_id ELSE @client_id END, version = version + 1, updated_at = @updated_at
WHERE id = @id`

const sqlFindSecret = `SELECT algorithm, secret FROM principal_secrets WHERE principal_id = @id`

// ReplaceSecret gives a principal a new secret and, if it is to have one, a new client id. The old ones end at once.
// fault.NotFound when the principal is gone, fault.AlreadyExists when the client id is another's.
func (s *Store) ReplaceSecret(ctx context.Context, c catalog.SecretChange, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		// The principal's row is locked by its update, so that the secret which is compared is the one that is replaced.
		tag, err := tx.Exec(ctx, sqlTouchPrincipal, pgx.NamedArgs{"id": c.PrincipalID, "client_id": c.ClientID, "updated_at": f.At})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.NotFound, "Principal does not exist: %s", f.Subject)
		}
		if c.Replaces != "" {
			var present auth.StoredSecret
			err := tx.QueryRow(ctx, sqlFindSecret, pgx.NamedArgs{"id": c.PrincipalID}).Scan(&present.Algorithm, &present.Form)
			if err != nil && !noRows(err) {
				return err
			}
			if err != nil || present.Mark() != c.Replaces {
				return fault.New(fault.Forbidden, "the secret of principal %s was replaced since this token was obtained: sign in again", f.Subject)
			}
		}
		if err := putSecret(ctx, tx, c.PrincipalID, c.Secret, f); err != nil {
			return err
		}
		return writeFact(ctx, tx, f)
	})
}
