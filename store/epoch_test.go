package store

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/internal/pgserver/pgtest"
)

// decisiveTables are those that an answer about access depends on, in an order in which rows can be made: with a row for
// each, and a column to touch.
var decisiveTables = []struct{ name, insert, column string }{
	{"warehouses", `INSERT INTO warehouses (id, name, location, storage, created_at, updated_at) VALUES (@id, 'w', 's3://b/w', '{}', now(), now())`, "name"},
	{"namespaces", `INSERT INTO namespaces (id, warehouse_id, levels, created_at, updated_at) VALUES (@id, @id, ARRAY['a'], now(), now())`, "levels"},
	{"principals", `INSERT INTO principals (id, name, client_id, kind, created_at, updated_at) VALUES (@id, 'p', 'p', 'service', now(), now())`, "name"},
	{"principal_secrets", `INSERT INTO principal_secrets (principal_id, algorithm, secret, created_at) VALUES (@id, 'a', '', now())`, "secret"},
	{"revoked_tokens", `INSERT INTO revoked_tokens (principal_id, token_id, expires_at) VALUES (@id, 'j', now())`, "expires_at"},
	{"personal_tokens", `INSERT INTO personal_tokens (id, principal_id, name, secret, created_by, created_at, expires_at) VALUES (@id, @id, 't', '', 'p', now(), now())`, "secret"},
	{"principal_keys", `INSERT INTO principal_keys (principal_id, kid, algorithm, public_key, created_at) VALUES (@id, 'k', 'a', '', now())`, "ends_at"},
	{"network_policies", `INSERT INTO network_policies (principal_id, updated_at) VALUES (@id, now())`, "allowed"},
	{"federated_identities", `INSERT INTO federated_identities (issuer, subject, principal_id, created_at) VALUES ('i', 's', @id, now())`, "subject"},
	{"principal_roles", `INSERT INTO principal_roles (id, name, created_at, updated_at) VALUES (@id, 'r', now(), now())`, "name"},
	{"principal_role_members", `INSERT INTO principal_role_members (principal_role_id, principal_id) VALUES (@id, @id)`, "principal_id"},
	{"catalog_roles", `INSERT INTO catalog_roles (id, warehouse_id, name, created_at, updated_at) VALUES (@id, @id, 'c', now(), now())`, "name"},
	{"catalog_role_members", `INSERT INTO catalog_role_members (catalog_role_id, principal_role_id) VALUES (@id, @id)`, "catalog_role_id"},
	{"grants", `INSERT INTO grants (role_id, warehouse_id, securable_kind, securable_id, privilege, created_at) VALUES (@id, @id, 'table', @id, 'TABLE_LIST', now())`, "privilege"},
}

// TestEpoch_MovesWithEveryDecisiveRow makes, touches and removes a row of each table: what servers keep in memory must be
// out of date with each, whether or not the row is one that anybody asked about.
func TestEpoch_MovesWithEveryDecisiveRow(t *testing.T) {
	connection := connect(t, pgtest.Database(t))
	args := pgx.NamedArgs{"id": uuid.New()}
	var epoch int64
	look := func() int64 {
		var now int64
		if err := connection.QueryRow(t.Context(), `SELECT coalesce(max(value), 0) FROM access_epoch`).Scan(&now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	moves := func(statement string) {
		t.Helper()
		tag, err := connection.Exec(t.Context(), statement, args)
		if err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %d rows, %v", statement, tag.RowsAffected(), err)
		}
		now := look()
		if now <= epoch {
			t.Errorf("the epoch was %d and is %d after %s", epoch, now, statement)
		}
		epoch = now
	}
	epoch = look()
	for _, table := range decisiveTables {
		moves(table.insert)
	}
	for _, table := range decisiveTables {
		moves("UPDATE " + table.name + " SET " + table.column + " = " + table.column)
	}
	for _, table := range slices.Backward(decisiveTables) {
		moves("DELETE FROM " + table.name)
	}
	if now := look(); now != epoch {
		t.Errorf("reading moved the epoch from %d to %d", epoch, now)
	}
}

// TestEpoch_MovesThoughAnOlderClusterCountedAlike: a restored dump brings the number of a transaction of its own cluster.
// The one that has this number in the new cluster moves the epoch like any other.
func TestEpoch_MovesThoughAnOlderClusterCountedAlike(t *testing.T) {
	connection := connect(t, pgtest.Database(t))
	tx, err := connection.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	var before, after int64
	for _, step := range []struct {
		statement string
		into      *int64
	}{
		{"INSERT INTO access_epoch (value, changed_by) VALUES (7, pg_current_xact_id()) RETURNING value", &before},
		{decisiveTables[0].insert + " RETURNING version", new(int64)},
		{"SET CONSTRAINTS ALL IMMEDIATE", nil},
		{"SELECT value FROM access_epoch", &after},
	} {
		if step.into == nil {
			_, err = tx.Exec(t.Context(), step.statement)
		} else {
			err = tx.QueryRow(t.Context(), step.statement, pgx.NamedArgs{"id": uuid.New()}).Scan(step.into)
		}
		if err != nil {
			t.Fatalf("%s: %v", step.statement, err)
		}
	}
	if after <= before {
		t.Errorf("the epoch was %d and is %d after a change", before, after)
	}
}

// TestEpoch_CoversWhatIsKept: whatever the whole lookup reads is kept in memory, except what each lookup reads anew.
func TestEpoch_CoversWhatIsKept(t *testing.T) {
	anew := []string{"tables", "access_epoch"} // by sqlFindTables; grants on tables too, but which roles have any is kept
	var covered, read []string
	for _, table := range decisiveTables {
		covered = append(covered, table.name)
	}
	for _, m := range regexp.MustCompile(`(\w+) AS \(`).FindAllStringSubmatch(sqlResolve, -1) {
		anew = append(anew, m[1]) // its own, made of what it reads elsewhere
	}
	for _, m := range regexp.MustCompile(`(?:FROM|JOIN) ([a-z_]+)\b(\(?)`).FindAllStringSubmatch(sqlResolve, -1) {
		if m[2] == "" && !slices.Contains(anew, m[1]) { // not a function
			read = append(read, m[1])
		}
	}
	slices.Sort(covered)
	slices.Sort(read)
	if read = slices.Compact(read); !slices.Equal(covered, read) {
		t.Errorf("a lookup keeps what it reads of\n%s\nand the epoch moves with\n%s", strings.Join(read, " "), strings.Join(covered, " "))
	}
}
