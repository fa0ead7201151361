package store

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/maintenance"
)

// firstRelease is the schema of the first release, before there were tokens, policies and feeds.
const firstRelease = 3

// upgraded are the things of a database that the first release filled.
type upgraded struct {
	warehouse, namespace, table, view, alice, role, reader, job, event uuid.UUID

	ring   *auth.Ring
	key    auth.StoredKey
	secret auth.Secret
	stored auth.StoredSecret
}

// newUpgraded makes the ids, and a secret and a signing key as servers make them.
func newUpgraded(t *testing.T) upgraded {
	t.Helper()
	id := uuid.New
	u := upgraded{warehouse: id(), namespace: id(), table: id(), view: id(), alice: id(), role: id(), reader: id(), job: id(), event: id()}
	var err error
	if u.ring, err = auth.NewRing(auth.NewRingKey()); err != nil {
		t.Fatal(err)
	}
	if u.key, err = auth.NewKeys(nil, u.ring, nil).NextKey(true); err != nil {
		t.Fatal(err)
	}
	u.secret, u.stored = auth.NewSecrets(u.ring).Generate("id-alice")
	return u
}

func (u upgraded) statements() []string {
	text := func(id uuid.UUID) string { return "'" + id.String() + "'" }
	w, n, t, v, a, r, c := text(u.warehouse), text(u.namespace), text(u.table), text(u.view), text(u.alice), text(u.role), text(u.reader)
	bytea := func(raw []byte) string { return fmt.Sprintf(`'\x%x'`, raw) }
	return []string{
		`INSERT INTO warehouses (id, name, location, storage, created_at, updated_at)
		VALUES (` + w + `, 'lake', 'file:///lake', '{"storageType": "FILE", "allowedLocations": ["file:///lake"]}', now(), now())`,
		`INSERT INTO namespaces (id, warehouse_id, levels, properties, created_at, updated_at)
		VALUES (` + n + `, ` + w + `, '{iot}', '{"team": "sensors"}', now(), now())`,
		`INSERT INTO tables (id, warehouse_id, namespace_id, kind, name, table_uuid, location, metadata_location, format_version, created_at, updated_at)
		VALUES (` + t + `, ` + w + `, ` + n + `, 'table', 'readings', ` + t + `, 'file:///lake/t', 'file:///lake/t/metadata/1.json', 2, now(), now()),
		       (` + v + `, ` + w + `, ` + n + `, 'view', 'warm', ` + v + `, 'file:///lake/v', 'file:///lake/v/metadata/1.json', 1, now(), now())`,
		`INSERT INTO locations (location, warehouse_id, owner_kind, owner_id) VALUES ('file:///lake/t', ` + w + `, 'table', ` + t + `)`,
		`INSERT INTO principals (id, name, client_id, kind, created_at, updated_at) VALUES (` + a + `, 'alice', 'id-alice', 'service', now(), now())`,
		`INSERT INTO principal_secrets (principal_id, algorithm, secret, created_at) VALUES (` + a + `, '` + u.stored.Algorithm + `', ` + bytea(u.stored.Form) + `, now())`,
		`INSERT INTO principal_roles (id, name, created_at, updated_at) VALUES (` + r + `, 'analysts', now(), now())`,
		`INSERT INTO principal_role_members (principal_role_id, principal_id) VALUES (` + r + `, ` + a + `)`,
		`INSERT INTO catalog_roles (id, warehouse_id, name, created_at, updated_at) VALUES (` + c + `, ` + w + `, 'reader', now(), now())`,
		`INSERT INTO catalog_role_members (catalog_role_id, principal_role_id) VALUES (` + c + `, ` + r + `)`,
		`INSERT INTO grants (role_id, warehouse_id, securable_kind, securable_id, privilege, created_at) VALUES
		(` + c + `, ` + w + `, 'table', ` + t + `, 'TABLE_READ_DATA', now()), (` + r + `, NULL, 'root', '` + authz.RootID.String() + `', 'CATALOG_LIST', now())`,
		`INSERT INTO events (id, at, operation, warehouse_id, securable_id, subject) VALUES (` + text(u.event) + `, now(), 'create-table', ` + w + `, ` + t + `, 'iot.readings')`,
		`INSERT INTO audit (at, event_id, principal, operation, subject, allowed, reason) VALUES
		(now(), ` + text(u.event) + `, 'alice', 'create-table', 'iot.readings', true, ''), (now(), NULL, 'alice', 'drop-table', 'iot.readings', false, 'TABLE_DROP is missing')`,
		`INSERT INTO jobs (id, kind, table_id, warehouse, subject, state, trigger, not_before, created_at)
		VALUES (` + text(u.job) + `, 'compaction', ` + t + `, 'lake', 'iot.readings', 'queued', 'on-demand', now(), now())`,
		`INSERT INTO signing_keys (kid, algorithm, public_key, private_key, created_at) VALUES
		('` + u.key.KID + `', '` + u.key.Algorithm + `', ` + bytea(u.key.PublicKey) + `, ` + bytea(u.key.PrivateKey) + `, now())`,
	}
}

// TestUpgrade_TheFirstReleasesDataIsServed fills a database as the first release did, takes all newer steps, and wants every thing
// of it back by the questions that this release asks.
func TestUpgrade_TheFirstReleasesDataIsServed(t *testing.T) {
	ctx, database := t.Context(), pgtest.EmptyDatabase(t)
	if err := migrateTo(ctx, database, firstRelease); err != nil {
		t.Fatal(err)
	}
	u := newUpgraded(t)
	before := connect(t, database)
	for _, statement := range u.statements() {
		if _, err := before.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := before.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := Migrate(ctx, database); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, Config{URL: database})
	if err := s.CheckSchema(ctx); err != nil {
		t.Fatal(err)
	}
	u.wantAccess(t, s)
	u.wantLogin(t, s)
	u.wantRecords(t, s)
}

// wantAccess wants that alice logs in as before, and may what she might.
func (u upgraded) wantAccess(t *testing.T, s *Store) {
	t.Helper()
	account, err := s.FindAccountByClientID(t.Context(), "id-alice")
	if err != nil || account.ID != u.alice || account.Secret.Algorithm != "hmac-sha256" || len(account.Roles) != 1 || account.Roles[0] != "analysts" {
		t.Errorf("the account is %+v: %v", account, err)
	}
	alice := auth.Principal{ID: u.alice, Name: "alice", Kind: auth.Service, Roles: auth.RoleScope{All: true}, SecretMark: account.Secret.Mark()}
	res, err := s.Resolve(t.Context(), catalog.Lookup{Principal: alice, Warehouse: "lake", Namespace: catalog.Namespace{"iot"}, Table: "readings"})
	if err != nil || res.Warehouse == nil || res.Namespace == nil || res.Table == nil {
		t.Fatalf("resolved %+v: %v", res, err)
	}
	if err := res.Caller.Admit(alice, time.Now()); err != nil {
		t.Errorf("alice is kept out: %v", err)
	}
	if res.Table.MetadataLocation != "file:///lake/t/metadata/1.json" || res.Table.OwnerID != uuid.Nil || res.Namespace.Properties["team"] != "sensors" {
		t.Errorf("the table is %+v in %+v", res.Table, res.Namespace)
	}
	for wanted, allowed := range map[authz.Privilege]bool{authz.TableReadData: true, authz.TableWriteData: false, authz.CatalogList: true} {
		if got := authz.Decide(res.Grants, res.Path(), wanted).Allowed; got != allowed {
			t.Errorf("%s: %t", wanted, got)
		}
	}
	view, err := s.Resolve(t.Context(), catalog.Lookup{Principal: alice, Warehouse: "lake", Namespace: catalog.Namespace{"iot"}, Table: "warm"})
	if err != nil || view.View == nil || view.View.MetadataLocation != "file:///lake/v/metadata/1.json" {
		t.Errorf("the view is %+v: %v", view.View, err)
	}
	names, err := catalogtest.Names(t.Context(), s, catalog.NamesWanted{
		WarehouseID: u.warehouse, In: u.namespace, Kind: catalog.KindTable,
		GrantedTo: &catalog.GrantedTo{Principal: alice, Privileges: authz.Implying(authz.TableList)},
	})
	if err != nil || !slices.Equal(names, []string{"readings"}) {
		t.Errorf("alice may see %v: %v", names, err)
	}
	keys, err := s.SigningKeys(t.Context())
	if err != nil || len(keys) != 1 || keys[0].KID != u.key.KID || !keys[0].SignsFrom.IsZero() {
		t.Errorf("signing keys %+v: %v", keys, err)
	}
}

// wantLogin wants a token for the secret of then, signed by the key of then.
func (u upgraded) wantLogin(t *testing.T, s *Store) {
	t.Helper()
	tokens := auth.NewTokens(auth.TokensConfig{Accounts: s, Keys: auth.NewKeys(s, u.ring, nil), Secrets: auth.NewSecrets(u.ring)})
	answer, err := tokens.Issue(t.Context(), auth.TokenRequest{Form: url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"id-alice"}, "client_secret": {u.secret.Reveal()},
	}})
	if err != nil {
		t.Fatalf("alice does not log in: %v", err)
	}
	token, _, err := jwt.NewParser().ParseUnverified(answer.AccessToken, jwt.MapClaims{})
	if err != nil || token.Header["kid"] != u.key.KID {
		t.Errorf("the token is not signed by the key of before: %v", err)
	}
}

// wantRecords wants the records in the feeds, in which they had no place before, and the job under its warehouse.
func (u upgraded) wantRecords(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	events, _, err := s.ListEvents(ctx, catalog.EventQuery{Limit: 10})
	if err != nil || len(events) != 1 || events[0].ID != u.event || events[0].Warehouse != "lake" || events[0].Position == 0 {
		t.Errorf("events %+v: %v", events, err)
	}
	audit, _, err := s.ListAudit(ctx, catalog.AuditQuery{Oldest: true, Limit: 10})
	if err != nil || len(audit) != 2 || audit[0].Principal != "alice" || !audit[0].Allowed || audit[1].Allowed || audit[1].Reason == "" {
		t.Errorf("audit %+v: %v", audit, err)
	}
	jobs, err := s.ListWarehouseJobs(ctx, u.warehouse, maintenance.JobsPage{States: []maintenance.State{maintenance.Queued}, Limit: 10})
	if err != nil || len(jobs) != 1 || jobs[0].ID != u.job {
		t.Errorf("jobs of the warehouse %+v: %v", jobs, err)
	}
	claim, err := s.ClaimJob(ctx, "worker")
	if err != nil || claim == nil || claim.Job.ID != u.job {
		t.Errorf("claimed %+v: %v", claim, err)
	}
}
