package manage_test

import (
	"sync"
	"testing"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

func (o *office) bootstrap(b catalog.Bootstrap) catalog.Bootstrapped {
	o.t.Helper()
	b.Accounts = o.store
	done, err := o.service.Bootstrap(o.t.Context(), b)
	if err != nil {
		o.t.Fatal(err)
	}
	return done
}

func TestBootstrap_IsIdempotent(t *testing.T) {
	o := newOffice(t)
	before := o.count("SELECT count(*) FROM catalogd.events")
	for range 2 {
		if done := o.bootstrap(catalog.Bootstrap{}); done.Created || done.Rotated || done.Credential.Secret != "" || done.Credential.ClientID != o.root.ClientID {
			t.Errorf("created %v, rotated %v, client id %s", done.Created, done.Rotated, done.Credential.ClientID)
		}
	}
	if done := o.bootstrap(catalog.Bootstrap{Known: o.root}); done.Created || done.Rotated || done.Credential != o.root {
		t.Errorf("with the known credential: created %v, rotated %v", done.Created, done.Rotated)
	}
	if n := o.count("SELECT count(*) FROM catalogd.events"); n != before {
		t.Errorf("%d events of nothing", n-before)
	}
	o.admin().want(200, get, "/principals", "")
}

func TestBootstrap_ChosenCredentialHolds(t *testing.T) {
	o := newOffice(t)
	chosen := catalog.Credential{ClientID: "root", Secret: "chosen by the operator, long enough"}
	if done := o.bootstrap(catalog.Bootstrap{Chosen: chosen}); !done.Rotated || done.Created || done.Credential != chosen {
		t.Errorf("first: %+v", done)
	}
	if r := o.tryLogin(o.root, ""); r.status != 401 {
		t.Errorf("the old credential: %d", r.status)
	}
	o.login(chosen, "").want(200, get, "/principals", "")
	if done := o.bootstrap(catalog.Bootstrap{Chosen: chosen}); done.Rotated {
		t.Error("the same credential was rotated again")
	}
	// A server that remembers something old makes a new one; the chosen one wins over it.
	if done := o.bootstrap(catalog.Bootstrap{Chosen: chosen, Known: o.root}); done.Rotated {
		t.Error("the remembered credential won over the chosen one")
	}
	fresh := o.bootstrap(catalog.Bootstrap{Known: o.root})
	if !fresh.Rotated || fresh.Credential == o.root || fresh.Credential.Secret == "" {
		t.Errorf("a remembered credential that does not hold: %+v", fresh)
	}
	o.login(fresh.Credential, "")
	for _, bad := range []catalog.Credential{{ClientID: "root", Secret: "short"}, {ClientID: "root"}, {Secret: "chosen by the operator, long enough"},
		{ClientID: "a b", Secret: "chosen by the operator, long enough"}} {
		if _, err := o.service.Bootstrap(t.Context(), catalog.Bootstrap{Accounts: o.store, Chosen: bad}); !fault.Is(err, fault.BadRequest) {
			t.Errorf("client id %q and %d characters of secret: %v", bad.ClientID, len(bad.Secret), err)
		}
	}
}

// Servers that start at once on an empty database end up with one root and agree on its credential.
func TestBootstrap_AtOnce(t *testing.T) {
	o := newOffice(t)
	o.count("WITH a AS (DELETE FROM catalogd.principals RETURNING 1), b AS (DELETE FROM catalogd.principal_roles RETURNING 1), c AS (DELETE FROM catalogd.grants RETURNING 1) SELECT 1")
	chosen := catalog.Credential{ClientID: "root", Secret: auth.Secret("chosen by the operator, long enough")}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if _, err := o.service.Bootstrap(t.Context(), catalog.Bootstrap{Accounts: o.store, Chosen: chosen}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	o.login(chosen, "").want(200, get, "/principals", "")
	if n := o.count("SELECT count(*) FROM catalogd.principals"); n != 1 {
		t.Errorf("%d principals", n)
	}
	if n := o.count("SELECT count(*) FROM catalogd.grants"); n != 1 {
		t.Errorf("%d grants", n)
	}
}

func TestEnsureWarehouse_MakesItOnce(t *testing.T) {
	o := newOffice(t)
	draft := catalog.WarehouseDraft{Name: "dev", Location: "file:///dev-lake"}
	draft.Storage.StorageType = "FILE"
	w, created, err := o.service.EnsureWarehouse(t.Context(), draft)
	if err != nil || !created || w.Name != "dev" {
		t.Fatalf("%v %v", created, err)
	}
	again, created, err := o.service.EnsureWarehouse(t.Context(), draft)
	if err != nil || created || again.ID != w.ID {
		t.Errorf("%v %v", created, err)
	}
	if r := o.admin().catalogCall(post, "/dev/namespaces", `{"namespace":["a"]}`); r.status != 200 {
		t.Errorf("root may not use it: %d %s", r.status, r.body)
	}
}
