package store

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

func newIdentity(name, subject string) auth.NewFederated {
	return auth.NewFederated{
		ID: uuid.New(), Name: name, ClientID: auth.NewClientID(), Issuer: "https://idp", Subject: subject, At: time.Now().Truncate(time.Second),
	}
}

// Requests of one new subject at many servers make one principal; nobody gets a name that is another's.
func TestIdentities_AreMadeOnce(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := s.CreateIdentity(ctx, newIdentity("ann", "u-1")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	principals, err := s.ListPrincipals(ctx, catalog.ListQuery{})
	s.must(err)
	if len(principals) != 1 || principals[0].Name != "ann" || principals[0].Kind != auth.Federated {
		t.Fatalf("there are %+v", principals)
	}
	wantKind(t, s.CreateIdentity(ctx, newIdentity("ann", "u-2")), fault.AlreadyExists)
	_, err = s.FindIdentity(ctx, "https://idp", "u-2", nil)
	wantKind(t, err, fault.NotFound)

	given := s.role(uuid.Nil, "given")
	brought := catalog.RoleRecord{ID: uuid.New(), Name: "brought", Federated: true, CreatedAt: time.Now()}
	s.must(s.CreateRole(ctx, brought, adminFact("create-role")))
	s.assign(principals[0], given)
	a, err := s.FindIdentity(ctx, "https://idp", "u-1", []string{"given", "brought", "nobody", "\x00"})
	s.must(err)
	if a.ID != principals[0].ID || a.Kind != auth.Federated || !slices.Equal(a.Roles, []string{"given", "brought"}) || !slices.Equal(a.Brought, []string{"brought"}) {
		t.Errorf("the account is %+v", a)
	}
	for _, odd := range [][2]string{{"https://idp", ""}, {"", "u-1"}, {"https://other", "u-1"}, {"https://idp", "U-1"}, {"https://idp", "\x00"}} {
		_, err := s.FindIdentity(ctx, odd[0], odd[1], nil)
		wantKind(t, err, fault.NotFound)
	}
	// It has no secret, so nobody signs in with its client id; it is there by id and by name.
	_, err = s.FindAccountByClientID(ctx, a.ClientID)
	wantKind(t, err, fault.NotFound)
	if byID, err := s.FindAccountByID(ctx, a.ID); err != nil || byID.Name != "ann" || byID.Secret.Form != nil {
		t.Errorf("by id %+v, %v", byID, err)
	}
	if byName, err := s.FindAccountByName(ctx, "ann"); err != nil || byName.ID != a.ID {
		t.Errorf("by name %+v, %v", byName, err)
	}
	s.must(s.DropPrincipal(ctx, a.ID, adminFact("drop-principal")))
	_, err = s.FindIdentity(ctx, "https://idp", "u-1", nil)
	wantKind(t, err, fault.NotFound)
	s.must(s.CreateIdentity(ctx, newIdentity("ann", "u-1")))
	if back, err := s.FindIdentity(ctx, "https://idp", "u-1", nil); err != nil || back.ID == a.ID || len(back.Roles) != 0 {
		t.Errorf("it came back as %+v, %v", back, err)
	}
}

// A name gives the account without its secret, which proves nothing there.
func TestIdentities_AccountsByNameHaveNoSecret(t *testing.T) {
	s := newStaff(t)
	ann := s.principal("ann")
	a, err := s.FindAccountByName(t.Context(), "ann")
	s.must(err)
	if a.ID != ann.ID || a.Secret.Form != nil || a.Secret.Algorithm != "" {
		t.Errorf("found %+v", a)
	}
}
