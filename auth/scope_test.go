package auth

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is exchanged for whatever scopes, and whatever roles come and go meanwhile: no token in the chain reaches
// a role that the one before did not reach, or that the principal does not have then.
func TestScope_ChainsOfExchangesNeverWiden(t *testing.T) {
	roles := []string{"a", "b", "c", "d"}
	words := []string{"catalog", "sign", "openid", "PRINCIPAL_ROLE:ALL", "session:role-any", "session:role:A", "session:role:D",
		"PRINCIPAL_ROLE:a", "PRINCIPAL_ROLE:b", "PRINCIPAL_ROLE:c", "PRINCIPAL_ROLE:d", "PRINCIPAL_ROLE:e"}
	reach := func(r RoleScope, a Account) (out []string) {
		for _, role := range a.Roles {
			if r.All || slices.Contains(r.Names, role) {
				out = append(out, role)
			}
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfDistinct(rapid.SampledFrom(roles), rapid.ID[string])
		var before *RoleScope
		for range rapid.IntRange(1, 5).Draw(t, "length") {
			a := Account{Roles: some.Draw(t, "roles")}
			scope := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(t, "scope"), " ")
			w, refused := parseScope(scope)
			if refused != nil {
				t.Fatal(refused)
			}
			r, refused := w.grant(a, before)
			if refused != nil {
				continue
			}
			if again := rolesOf(r.scope()); again.All != r.All || !slices.Equal(again.Names, r.Names) {
				t.Fatalf("%+v does not survive a token's scope: %+v", r, again)
			}
			for _, role := range r.Names {
				if !slices.Contains(a.Roles, role) {
					t.Fatalf("scope %q gives the role %s, which the principal does not have", scope, role)
				}
			}
			if before != nil {
				// Tested for a principal with every role: what it gets later must not come alive either.
				everything := Account{Roles: roles}
				for _, role := range reach(r, everything) {
					if !slices.Contains(reach(*before, everything), role) {
						t.Fatalf("scope %q widens %+v to %+v", scope, *before, r)
					}
				}
			}
			before = &r
		}
	})
}

// No header and no body, however broken, does more than be refused.
func TestClient_ReadsAnythingWithoutHarm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		header := rapid.OneOf(rapid.String(), rapid.Map(rapid.String(), func(s string) string { return "Basic " + s }),
			rapid.Map(rapid.String(), basic)).Draw(t, "header")
		form, err := ParseTokenForm(rapid.OneOf(rapid.String(), rapid.Map(rapid.MapOf(rapid.String(), rapid.String()), func(m map[string]string) string {
			v := url.Values{}
			for name, value := range m {
				v.Set(name, value)
			}
			return v.Encode()
		})).Draw(t, "body"))
		if err != nil {
			return
		}
		readings, refused := readCredentials(TokenRequest{Form: form, Authorization: header})
		if (len(readings) == 0) == (refused == nil) {
			t.Fatalf("%d readings and %v", len(readings), refused)
		}
		for _, r := range readings {
			if r.clientID == "" || r.secret == "" {
				t.Fatal("a reading without a client id or a secret")
			}
		}
		if refused != nil && printable(refused.Description) != refused.Description {
			t.Fatalf("a description that cannot be sent: %q", refused.Description)
		}
	})
}
