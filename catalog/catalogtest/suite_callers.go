package catalogtest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

var callerPromises = []promise{
	{"EveryAnswerKnowsTheCaller", everyAnswerKnowsTheCaller},
	{"AReplacedSecretIsAnotherMark", func(b *bench) {
		b.addPrincipal()
		before := b.callerState().SecretMark
		secret := auth.StoredSecret{Algorithm: auth.AlgorithmArgon2, Form: []byte("another form")}
		b.must(b.admin.ReplaceSecret(b.Context(), catalog.SecretChange{PrincipalID: b.principal.ID, Secret: secret}, b.fact("reset-secret", "alice")))
		if now := b.callerState().SecretMark; now == before || now != secret.Mark() {
			b.Errorf("the mark was %q and is %q", before, now)
		}
	}},
	{"PersonalTokensAreKept", personalTokensAreKept},
	{"PersonalTokensRotate", personalTokensRotate},
	{"PersonalTokensAreLimited", func(b *bench) {
		b.addPrincipal()
		for i := range auth.PersonalTokensMax {
			b.must(b.createPersonal(b.newPersonal(fmt.Sprintf("t%03d", i))))
		}
		b.refused(b.createPersonal(b.newPersonal("more")), fault.IllegalArgument, "")
		all, err := b.admin.ListPersonalTokens(b.Context(), b.principal.ID)
		b.must(err)
		b.must(b.admin.DropPersonalToken(b.Context(), b.principal.ID, all[7].ID, b.fact("revoke-personal-token", "alice")))
		b.must(b.createPersonal(b.newPersonal("more")))
	}},
	{"PersonalTokensAreTheirOwners", func(b *bench) {
		b.addPrincipal()
		t := b.newPersonal("t")
		b.must(b.createPersonal(t))
		b.leavesNoTrace(func() {
			b.refused(b.admin.DropPersonalToken(b.Context(), uuid.New(), t.ID, b.fact("revoke-personal-token", "alice")), fault.NotFound, "")
			b.refused(b.admin.RotatePersonalToken(b.Context(), catalog.PersonalTokenRotation{PrincipalID: uuid.New(), ID: t.ID},
				b.fact("rotate-personal-token", "alice")), fault.NotFound, "")
			stranger := b.newPersonal("t")
			stranger.PrincipalID = uuid.New()
			b.refused(b.createPersonal(stranger), fault.NotFound, "")
			b.refused(b.createPersonal(b.newPersonal("t")), fault.AlreadyExists, "")
		})
		b.must(b.admin.DropPrincipal(b.Context(), b.principal.ID, b.fact("drop-principal", "alice")))
		_, err := b.accounts().FindPersonalToken(b.Context(), t.ID)
		b.refused(err, fault.NotFound, "")
	}},
	{"AnAccountIsFoundByItsName", func(b *bench) {
		b.addPrincipal()
		a, err := b.accounts().FindAccountByName(b.Context(), b.principal.Name)
		b.must(err)
		if a.ID != b.principal.ID || a.Name != b.principal.Name || a.Secret.Form != nil || a.State == nil {
			b.Errorf("by its name the account is %+v", a)
		}
		for _, other := range []string{"", "nobody", strings.ToUpper(b.principal.Name)} {
			_, err := b.accounts().FindAccountByName(b.Context(), other)
			b.refused(err, fault.NotFound, "")
		}
	}},
	{"UsesAreNoted", usesAreNoted},
	{"ARevokedTokenIsListed", func(b *bench) {
		b.addPrincipal()
		b.revoke("one", at.Add(10*365*24*time.Hour))
		b.revoke("one", at.Add(10*365*24*time.Hour)) // again
		b.revoke("ended", at.Add(-10*365*24*time.Hour))
		state := b.callerState()
		if !slices.Equal(state.Revoked, []string{"one"}) || !state.NotBefore.IsZero() {
			b.Errorf("%+v", state)
		}
		b.refused(b.admin.RevokeTokens(b.Context(), catalog.TokenRevocation{PrincipalID: uuid.New()}, b.fact("revoke-tokens", "nobody")), fault.NotFound, "")
	}},
	{"ARevokedTokensFamilyIsListed", func(b *bench) {
		b.addPrincipal()
		id := "first/" + uuid.NewString()
		b.revoke(id, farFuture)
		if state := b.callerState(); !slices.Equal(state.Revoked, []string{"first", id}) {
			b.Errorf("%+v", state)
		}
	}},
	{"BeyondTheLimitAllAreRevoked", func(b *bench) {
		b.addPrincipal()
		for i := range auth.RevokedTokensMax + 1 {
			if state := b.callerState(); !state.NotBefore.IsZero() {
				b.Fatalf("after %d all are revoked", i)
			}
			id := fmt.Sprint("token ", i)
			if i%2 == 0 { // one that was obtained by another
				id += "/" + uuid.NewString()
			}
			b.revoke(id, at.Add(10*365*24*time.Hour))
		}
		if state := b.callerState(); len(state.Revoked) != 0 || !state.NotBefore.After(at) {
			b.Errorf("%d are listed, and none counts from before %s", len(state.Revoked), state.NotBefore)
		}
	}},
	{"EachRevocationOfAllIsLater", func(b *bench) {
		b.addPrincipal()
		last := at.Truncate(time.Millisecond)
		for range 3 {
			b.revoke("", time.Time{})
			now := b.callerState().NotBefore
			if !now.After(last) || !now.Equal(now.Truncate(time.Millisecond)) {
				b.Errorf("%s after %s", now, last)
			}
			last = now
		}
	}},
	{"ASlowServersRevocationIsOfNow", func(b *bench) {
		b.addPrincipal()
		// By the clock of the database, which both stores share with the test: the fact's time is long ago.
		before := time.Now().Truncate(time.Millisecond)
		b.revoke("", time.Time{})
		if state := b.callerState(); !state.NotBefore.After(before) {
			b.Errorf("what was issued till %s counts after a revocation at %s", state.NotBefore, before)
		}
	}},
	{"AllMayIncludePersonalTokens", func(b *bench) {
		b.addPrincipal()
		b.must(b.createPersonal(b.newPersonal("t")))
		b.revoke("", time.Time{})
		if len(b.callerState().Personal) != 1 {
			b.Error("personal tokens ended with the others")
		}
		b.must(b.admin.RevokeTokens(b.Context(), catalog.TokenRevocation{PrincipalID: b.principal.ID, Personal: true}, b.fact("revoke-tokens", "alice")))
		if len(b.callerState().Personal) != 0 {
			b.Error("personal tokens did not end")
		}
	}},
	{"APersonalTokenThatIsRevokedByItsIDEnds", func(b *bench) {
		b.addPrincipal()
		kept, gone := uuid.New(), uuid.New()
		for _, id := range []uuid.UUID{kept, gone} {
			b.must(b.admin.CreatePersonalToken(b.Context(), catalog.PersonalTokenRecord{
				ID: id, PrincipalID: b.principal.ID, Name: id.String(), CreatedBy: "alice", CreatedAt: at, ExpiresAt: at.Add(10 * 365 * 24 * time.Hour),
			}, auth.StoredSecret{Algorithm: auth.AlgorithmHMAC, Form: id[:]}, b.fact("create", "alice")))
		}
		b.revoke(gone.String(), at.Add(10*365*24*time.Hour))
		if left := b.callerState().Personal; len(left) != 1 || left[0].ID != kept {
			b.Errorf("left are %+v", left)
		}
	}},
	{"NetworkPoliciesAreKept", networkPoliciesAreKept},
}

// accounts is the store as the token route sees it.
func (b *bench) accounts() auth.AccountStore {
	b.Helper()
	return storeAs[auth.AccountStore](b)
}

// callerState gives what the answer about a path knows of the caller, whole and with what is kept of it.
func (b *bench) callerState() *auth.CallerState {
	b.Helper()
	first, again := b.resolve(catalog.Lookup{}).Caller, b.resolve(catalog.Lookup{}).Caller
	if first == nil || again == nil || fmt.Sprint(*first) != fmt.Sprint(*again) {
		b.Fatalf("%+v, and then %+v", first, again)
	}
	return again
}

// farFuture is an end that the database's clock has not reached.
var farFuture = time.Date(2126, 3, 4, 5, 6, 7, 0, time.UTC)

func (b *bench) newPersonal(name string) catalog.PersonalTokenRecord {
	return catalog.PersonalTokenRecord{
		ID: uuid.New(), PrincipalID: b.principal.ID, Name: name, Roles: []string{"r"}, CreatedBy: "alice", CreatedAt: at, ExpiresAt: farFuture,
		Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")},
	}
}

func personalSecret(text string) auth.StoredSecret {
	return auth.StoredSecret{Algorithm: auth.AlgorithmHMAC, Form: []byte(text)}
}

func (b *bench) createPersonal(t catalog.PersonalTokenRecord) error {
	return b.admin.CreatePersonalToken(b.Context(), t, personalSecret("secret of "+t.Name), b.fact("create-personal-token", "alice"))
}

func (b *bench) revoke(token string, expires time.Time) {
	b.Helper()
	b.must(b.admin.RevokeTokens(b.Context(), catalog.TokenRevocation{PrincipalID: b.principal.ID, TokenID: token, ExpiresAt: expires},
		b.fact("revoke-tokens", "alice")))
}

// everyAnswerKnowsTheCaller changes each thing that a caller is judged by and wants it in every answer, in another server's
// too, from the next question on.
func everyAnswerKnowsTheCaller(b *bench) {
	b.addPrincipal()
	replica := b.back.Replica(b)
	other, ok := replica.(auth.AccountStore)
	if !ok {
		b.Fatalf("%T is no auth.AccountStore", replica)
	}
	lookup := catalog.Lookup{Principal: b.principal, Warehouse: b.warehouse.Name}
	answers := func() (texts []string) {
		for range 2 {
			for _, store := range []catalog.Store{b.store, replica} {
				res, err := store.Resolve(b.Context(), lookup)
				b.must(err)
				_, state, err := store.ResolveGrants(b.Context(), lookup)
				b.must(err)
				named, err := store.ResolveWarehouses(b.Context(), b.principal)
				b.must(err)
				listed, err := store.ResolveNames(b.Context(), lookup, func(catalog.Resolution) (catalog.NamesWanted, bool) {
					return catalog.NamesWanted{WarehouseID: b.warehouse.ID, Kind: catalog.KindNamespace}, true
				}, func([]string) bool { return true })
				b.must(err)
				for _, s := range []*auth.CallerState{res.Caller, state, named.Caller, listed.Caller} {
					if s == nil {
						b.Fatal("an answer knows nothing of the caller")
					}
					texts = append(texts, fmt.Sprintf("%+v", *s))
				}
			}
			account, err := other.FindAccountByID(b.Context(), b.principal.ID)
			b.must(err)
			texts = append(texts, fmt.Sprintf("%+v", *account.State))
		}
		return texts
	}
	t := b.newPersonal("t")
	seen := map[string]bool{}
	for i, change := range []func() error{
		func() error { return nil },
		func() error {
			return b.admin.ReplaceSecret(b.Context(), catalog.SecretChange{PrincipalID: b.principal.ID, Secret: personalSecret("new")}, b.fact("reset", "alice"))
		},
		func() error { return b.createPersonal(t) },
		func() error {
			return b.admin.RotatePersonalToken(b.Context(), catalog.PersonalTokenRotation{
				PrincipalID: b.principal.ID, ID: t.ID, Secret: personalSecret("rotated"), OverlapUntil: farFuture,
			}, b.fact("rotate", "alice"))
		},
		func() error {
			return b.admin.RevokeTokens(b.Context(), catalog.TokenRevocation{PrincipalID: b.principal.ID, TokenID: "jti", ExpiresAt: farFuture}, b.fact("revoke", "alice"))
		},
		func() error {
			return b.admin.RevokeTokens(b.Context(), catalog.TokenRevocation{PrincipalID: b.principal.ID}, b.fact("revoke", "alice"))
		},
		func() error {
			return b.admin.SetNetworkPolicy(b.Context(), b.principal.ID, auth.NetworkPolicy{Allowed: t.Networks}, b.fact("networks", "alice"))
		},
		func() error {
			return b.admin.SetNetworkPolicy(b.Context(), uuid.Nil, auth.NetworkPolicy{Blocked: t.Networks}, b.fact("networks", "the server"))
		},
		func() error {
			return b.admin.DropPersonalToken(b.Context(), b.principal.ID, t.ID, b.fact("drop", "alice"))
		},
	} {
		b.must(change())
		all := answers()
		for _, text := range all {
			if text != all[0] {
				b.Errorf("after change %d:\n%s\nand\n%s", i, all[0], text)
			}
		}
		if seen[all[0]] {
			b.Errorf("change %d is not seen: %s", i, all[0])
		}
		seen[all[0]] = true
	}
	res, err := b.store.Resolve(b.Context(), catalog.Lookup{Principal: auth.MaintenancePrincipal(), Warehouse: b.warehouse.Name})
	b.must(err)
	b.must(res.Caller.Admit(auth.MaintenancePrincipal(), at)) // whatever the server's own policy says
}

func personalTokensAreKept(b *bench) {
	b.addPrincipal(b.addPrincipalRole("r"))
	bare := catalog.PersonalTokenRecord{ID: uuid.New(), PrincipalID: b.principal.ID, Name: "a", CreatedBy: "root", CreatedAt: at, ExpiresAt: farFuture}
	full := b.newPersonal("b")
	b.must(b.createPersonal(full))
	b.must(b.createPersonal(bare))
	all, err := b.admin.ListPersonalTokens(b.Context(), b.principal.ID)
	b.must(err)
	if len(all) != 2 || len(all[0].Roles)+len(all[0].Networks) != 0 || all[0].ID != bare.ID || all[0].CreatedBy != "root" ||
		fmt.Sprint(all[1]) != fmt.Sprint(full) {
		b.Errorf("%+v, want %+v", all, full)
	}
	found, err := b.accounts().FindPersonalToken(b.Context(), full.ID)
	b.must(err)
	if found.ID != b.principal.ID || found.Name != "alice" || found.TokenID != full.ID || string(found.Form) != "secret of b" || found.Previous != nil ||
		!slices.Equal(found.TokenRoles, full.Roles) || !slices.Equal(found.Account.Roles, []string{"r"}) || !found.ExpiresAt.Equal(full.ExpiresAt) || found.State == nil {
		b.Errorf("%+v", found)
	}
	live := b.callerState().Personal
	if len(live) != 2 {
		b.Fatalf("%+v", live)
	}
	for _, l := range live {
		if l.ID == full.ID && (l.SecretMark != personalSecret("secret of b").Mark() || l.PreviousMark != "" || !slices.Equal(l.Networks, full.Networks)) {
			b.Errorf("%+v", l)
		}
	}
	// One that has ended is not live, and leaves its name.
	ended := b.newPersonal("ended")
	ended.ExpiresAt = at.Add(-time.Hour)
	b.must(b.createPersonal(ended))
	if len(b.callerState().Personal) != 2 {
		b.Error("a token that has ended is live")
	}
	b.must(b.createPersonal(b.newPersonal("ended")))
	if n := len(b.events("create-personal-token")); n != 4 {
		b.Errorf("%d events", n)
	}
}

func personalTokensRotate(b *bench) {
	b.addPrincipal()
	t := b.newPersonal("t")
	b.must(b.createPersonal(t))
	r := catalog.PersonalTokenRotation{PrincipalID: b.principal.ID, ID: t.ID, Secret: personalSecret("second"), OverlapUntil: farFuture}
	b.must(b.admin.RotatePersonalToken(b.Context(), r, b.fact("rotate-personal-token", "alice")))
	found, err := b.accounts().FindPersonalToken(b.Context(), t.ID)
	b.must(err)
	live := b.callerState().Personal[0]
	if string(found.Form) != "second" || string(found.Previous) != "secret of t" || !found.PreviousUntil.Equal(farFuture) || !found.ExpiresAt.Equal(t.ExpiresAt) ||
		live.SecretMark != r.Secret.Mark() || live.PreviousMark != personalSecret("secret of t").Mark() || !live.PreviousUntil.Equal(farFuture) {
		b.Errorf("%+v, %+v", found, live)
	}
	rotation, ok := b.store.(auth.RotationStore)
	if ok {
		b.must(rotation.RenewPersonalForm(b.Context(), t.ID, []byte("secret of t"), []byte("renewed")))
		b.must(rotation.RenewPersonalForm(b.Context(), t.ID, []byte("nobody's"), []byte("wrong")))
		found, err = b.accounts().FindPersonalToken(b.Context(), t.ID)
		b.must(err)
		if string(found.Form) != "second" || string(found.Previous) != "renewed" {
			b.Errorf("%+v", found)
		}
	}
	r.Secret, r.OverlapUntil, r.ExpiresAt = personalSecret("third"), time.Time{}, farFuture.Add(time.Hour)
	b.must(b.admin.RotatePersonalToken(b.Context(), r, b.fact("rotate-personal-token", "alice")))
	live = b.callerState().Personal[0]
	if live.SecretMark != r.Secret.Mark() || live.PreviousMark != "" || !live.ExpiresAt.Equal(r.ExpiresAt) {
		b.Errorf("%+v", live)
	}
	all, err := b.admin.ListPersonalTokens(b.Context(), b.principal.ID)
	b.must(err)
	if !all[0].RotatedAt.Equal(at) || !all[0].OverlapUntil.IsZero() || !all[0].ExpiresAt.Equal(r.ExpiresAt) {
		b.Errorf("%+v", all)
	}
}

func usesAreNoted(b *bench) {
	b.addPrincipal()
	one, two := b.newPersonal("one"), b.newPersonal("two")
	b.must(b.createPersonal(one))
	b.must(b.createPersonal(two))
	kept := b.resolve(catalog.Lookup{}).Caller
	use := func(id uuid.UUID, after time.Duration, client string) auth.TokenUse {
		return auth.TokenUse{Token: id, At: at.Add(after), Address: "192.0.2.1", Client: client}
	}
	b.leavesNoTrace(func() {
		b.must(b.admin.RecordTokenUses(b.Context(), []auth.TokenUse{use(one.ID, 0, "first"), use(uuid.New(), 0, "of nothing")}))
		b.must(b.admin.RecordTokenUses(b.Context(), []auth.TokenUse{use(one.ID, time.Minute, "second\x00\xff")}))
		b.must(b.admin.RecordTokenUses(b.Context(), []auth.TokenUse{use(one.ID, time.Second, "too late")}))
	})
	all, err := b.admin.ListPersonalTokens(b.Context(), b.principal.ID)
	b.must(err)
	if u := all[0].LastUse; !u.At.Equal(at.Add(time.Minute)) || u.Address != "192.0.2.1" || len(u.Client) < 6 || u.Client[:6] != "second" || u.Token != one.ID {
		b.Errorf("%+v", u)
	}
	if !all[1].LastUse.At.IsZero() {
		b.Errorf("%+v", all[1].LastUse)
	}
	if now := b.resolve(catalog.Lookup{}).Caller; fmt.Sprint(*now) != fmt.Sprint(*kept) {
		b.Error("a use changed what the caller is judged by")
	}
}

func networkPoliciesAreKept(b *bench) {
	b.addPrincipal()
	policy := auth.NetworkPolicy{Allowed: b.newPersonal("").Networks, Blocked: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	for _, id := range []uuid.UUID{b.principal.ID, uuid.Nil} {
		want := func(p auth.NetworkPolicy) {
			b.Helper()
			found, err := b.admin.FindNetworkPolicy(b.Context(), id)
			b.must(err)
			state := b.callerState().Network
			if id == uuid.Nil {
				state = b.callerState().ServerNetwork
			}
			if fmt.Sprint(found) != fmt.Sprint(p) || fmt.Sprint(state) != fmt.Sprint(p) {
				b.Errorf("of %s: %v and %v, want %v", id, found, state, p)
			}
		}
		want(auth.NetworkPolicy{})
		for _, p := range []auth.NetworkPolicy{policy, {Blocked: policy.Allowed}, {}, policy, {}} {
			b.must(b.admin.SetNetworkPolicy(b.Context(), id, p, b.fact("set-network-policy", "alice")))
			want(p)
		}
	}
	b.refused(b.admin.SetNetworkPolicy(b.Context(), uuid.New(), policy, b.fact("set-network-policy", "nobody")), fault.NotFound, "")
	b.must(b.admin.SetNetworkPolicy(b.Context(), b.principal.ID, policy, b.fact("set-network-policy", "alice")))
	b.must(b.admin.DropPrincipal(b.Context(), b.principal.ID, b.fact("drop-principal", "alice")))
	if found, err := b.admin.FindNetworkPolicy(b.Context(), b.principal.ID); err != nil || len(found.Allowed) != 0 {
		b.Errorf("after the principal: %v, %v", found, err)
	}
	if b.resolve(catalog.Lookup{}).Caller != nil {
		b.Error("a dropped principal is known")
	}
}
