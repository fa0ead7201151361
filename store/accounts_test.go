package store

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/internal/fault"
)

// What is kept of an account is used until any of it changes, whoever changes it: the statements here are another server's.
func TestAccounts_AreKeptWhileTheyAreTrue(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	ann := s.principal("ann")
	s.assign(ann, s.role(uuid.Nil, "r"))
	find := func() auth.Account {
		t.Helper()
		a, err := s.FindAccountByClientID(ctx, ann.ClientID)
		s.must(err)
		return a
	}
	find()
	key := "c" + ann.ClientID
	before, ok := s.accounts.find(key)
	if !ok || before.account.ID != ann.ID {
		t.Fatal("nothing is kept")
	}
	if a := find(); &a.Roles[0] != &before.account.Roles[0] {
		t.Error("what is kept is not used")
	}
	elsewhere := func(statement string) {
		t.Helper()
		s.must(s.InTx(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, statement, ann.ID)
			return err
		}))
	}
	elsewhere(`UPDATE principal_secrets SET secret = 'later' WHERE principal_id = $1`)
	if a := find(); string(a.Secret.Form) != "later" || a.State.SecretMark != a.Secret.Mark() {
		t.Errorf("after another secret: %q", a.Secret.Form)
	}
	elsewhere(`INSERT INTO principal_keys (principal_id, kid, algorithm, public_key, created_at) VALUES ($1, 'k', 'a', '', now())`)
	if a := find(); len(a.State.Keys) != 1 {
		t.Errorf("after a key: %+v", a.State)
	}
	elsewhere(`DELETE FROM principal_role_members WHERE principal_id = $1`)
	if a := find(); len(a.Roles) != 0 {
		t.Errorf("after the role: %v", a.Roles)
	}
	if _, err := s.FindAccountByClientID(ctx, "later"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	elsewhere(`UPDATE principals SET client_id = 'later' WHERE id = $1`)
	if a, err := s.FindAccountByClientID(ctx, "later"); err != nil || a.ID != ann.ID {
		t.Errorf("an id that was nobody's: %v", err)
	}
	if _, err := s.FindAccountByClientID(ctx, ann.ClientID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the id before: %v", err)
	}
}

// Whatever an account is made of moves the epoch.
func TestEpoch_CoversAccounts(t *testing.T) {
	for _, m := range regexp.MustCompile(`(?:FROM|JOIN) ([a-z_]+)\b`).FindAllStringSubmatch(sqlFindAccount, -1) {
		if m[1] == "federated_identities" {
			continue // by them nothing is kept
		}
		if !slices.ContainsFunc(decisiveTables, func(d struct{ name, insert, column string }) bool { return d.name == m[1] }) {
			t.Errorf("an account is made of %s, which does not move the epoch", m[1])
		}
	}
}
