package catalogtest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

func noSuchPrincipal(name string) error {
	return fault.New(fault.NotFound, "Principal does not exist: %s", name)
}

// CreatePrincipal makes a principal and its secret.
func (s *Store) CreatePrincipal(ctx context.Context, p catalog.PrincipalRecord, secret auth.StoredSecret, f catalog.Fact) error {
	return s.tx(ctx, "CreatePrincipal", func(st *state) error {
		for _, other := range st.principals {
			switch {
			case other.Name == p.Name:
				return fault.New(fault.AlreadyExists, "Principal already exists")
			case other.ClientID == p.ClientID:
				return fault.New(fault.AlreadyExists, "Another principal has this client id")
			}
		}
		p.Properties, p.Version, p.UpdatedAt = orEmpty(p.Properties), 1, p.CreatedAt
		st.principals[p.ID] = principalRow{PrincipalRecord: p, secret: secret}
		return st.write(f)
	})
}

func orEmpty(properties map[string]string) map[string]string {
	if properties == nil {
		return map[string]string{}
	}
	return maps.Clone(properties)
}

// FindPrincipal gives a principal by name.
func (s *Store) FindPrincipal(ctx context.Context, name string) (catalog.PrincipalRecord, error) {
	var found catalog.PrincipalRecord
	err := s.tx(ctx, "FindPrincipal", func(st *state) error {
		for _, p := range st.principals {
			if p.Name == name {
				found = p.record()
				return nil
			}
		}
		return noSuchPrincipal(name)
	})
	return found, err
}

func (p principalRow) record() catalog.PrincipalRecord {
	r := p.PrincipalRecord
	r.Properties, r.RotationRequired = maps.Clone(r.Properties), p.secret.RotationRequired
	return r
}

// ListPrincipals gives all principals by name.
func (s *Store) ListPrincipals(ctx context.Context, q catalog.ListQuery) ([]catalog.PrincipalRecord, error) {
	return s.listPrincipals(ctx, "ListPrincipals", q, func(*state, uuid.UUID) bool { return true })
}

func (s *Store) listPrincipals(ctx context.Context, method string, q catalog.ListQuery, wanted func(*state, uuid.UUID) bool) ([]catalog.PrincipalRecord, error) {
	var found []catalog.PrincipalRecord
	err := s.tx(ctx, method, func(st *state) error {
		for id, p := range st.principals {
			if wanted(st, id) {
				found = append(found, p.record())
			}
		}
		found = wantedOf(found, q, func(p catalog.PrincipalRecord) string { return p.Name })
		return nil
	})
	return found, err
}

// wantedOf sorts a list by name and cuts it to what is wanted.
func wantedOf[T any](list []T, q catalog.ListQuery, name func(T) string) []T {
	lower := func(text string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' {
				return r + 'a' - 'A'
			}
			return r
		}, text)
	}
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(name(a), name(b)) })
	return atMost(slices.DeleteFunc(list, func(one T) bool {
		n := name(one)
		return n <= q.After || !strings.HasPrefix(n, q.Prefix) || !strings.Contains(lower(n), lower(q.Contains))
	}), q.Limit)
}

// atMost cuts a list; 0 leaves it whole.
func atMost[T any](list []T, most int) []T {
	if most > 0 && len(list) > most {
		return list[:most]
	}
	return list
}

// UpdatePrincipal replaces the properties of the version that p names.
func (s *Store) UpdatePrincipal(ctx context.Context, p catalog.PrincipalRecord, f catalog.Fact) error {
	return s.tx(ctx, "UpdatePrincipal", func(st *state) error {
		row, ok := st.principals[p.ID]
		if !ok {
			return noSuchPrincipal(p.Name)
		}
		if row.Version != p.Version {
			return changedMeanwhile("Principal", p.Name)
		}
		row.Properties, row.Version, row.UpdatedAt = orEmpty(p.Properties), row.Version+1, f.At
		st.principals[p.ID] = row
		return st.write(f)
	})
}

func changedMeanwhile(what, name string) error {
	return fault.New(fault.VersionConflict, "%s %s has changed meanwhile: read it again and repeat with its currentEntityVersion", what, name)
}

// DropPrincipal removes a principal with its memberships.
func (s *Store) DropPrincipal(ctx context.Context, id uuid.UUID, f catalog.Fact) error {
	return s.tx(ctx, "DropPrincipal", func(st *state) error {
		return st.keepingAdministrators(func() error {
			if _, ok := st.principals[id]; !ok {
				return noSuchPrincipal(f.Subject)
			}
			delete(st.principals, id)
			maps.DeleteFunc(st.principalRoles, func(m membership, _ bool) bool { return m.member == id })
			st.forgetTokens(id)
			delete(st.networks, id)
			return st.write(f)
		})
	})
}

// keepingAdministrators refuses what takes the last administrator away.
func (st *state) keepingAdministrators(fn func() error) error {
	before := st.administrators()
	if err := fn(); err != nil {
		return err
	}
	if before > 0 && st.administrators() == 0 {
		return fault.New(fault.IllegalArgument,
			"refused: nobody who signs in with a secret would be left who holds %s; make another principal administrator first", authz.ServiceManageAccess)
	}
	return nil
}

func (st *state) administrators() int {
	found := map[uuid.UUID]bool{}
	for m := range st.principalRoles {
		if st.grants[grantRow{m.role, authz.Root, authz.RootID, authz.ServiceManageAccess}] {
			p := st.principals[m.member]
			found[m.member] = p.Kind == auth.Service && len(p.secret.Form) > 0
		}
	}
	maps.DeleteFunc(found, func(_ uuid.UUID, counts bool) bool { return !counts })
	return len(found)
}

// ReplaceSecret gives a principal a new secret.
func (s *Store) ReplaceSecret(ctx context.Context, c catalog.SecretChange, f catalog.Fact) error {
	return s.tx(ctx, "ReplaceSecret", func(st *state) error {
		row, ok := st.principals[c.PrincipalID]
		if !ok {
			return noSuchPrincipal(f.Subject)
		}
		if c.Replaces != "" && c.Replaces != row.secret.Mark() {
			return fault.New(fault.Forbidden, "the secret of principal %s was replaced since this token was obtained: sign in again", f.Subject)
		}
		for other, p := range st.principals {
			if other != c.PrincipalID && c.ClientID != "" && p.ClientID == c.ClientID {
				return fault.New(fault.AlreadyExists, "Another principal has this client id")
			}
		}
		if c.ClientID != "" {
			row.ClientID = c.ClientID
		}
		row.secret, row.Version, row.UpdatedAt = c.Secret, row.Version+1, f.At
		st.principals[c.PrincipalID] = row
		return st.write(f)
	})
}

// FindAccountByClientID gives the account that a client id belongs to.
func (s *Store) FindAccountByClientID(ctx context.Context, clientID string) (auth.Account, error) {
	return s.findAccount(ctx, "FindAccountByClientID", func(p principalRow) bool { return p.ClientID == clientID })
}

// FindAccountByID gives a principal's account.
func (s *Store) FindAccountByID(ctx context.Context, id uuid.UUID) (auth.Account, error) {
	return s.findAccount(ctx, "FindAccountByID", func(p principalRow) bool { return p.ID == id })
}

// FindAccountByName gives the account of a principal's name, without its secret.
func (s *Store) FindAccountByName(ctx context.Context, name string) (auth.Account, error) {
	account, err := s.findAccount(ctx, "FindAccountByName", func(p principalRow) bool { return p.Name == name })
	account.Secret = auth.StoredSecret{}
	return account, err
}

func (s *Store) findAccount(ctx context.Context, method string, wanted func(principalRow) bool) (auth.Account, error) {
	var account auth.Account
	err := s.tx(ctx, method, func(st *state) error {
		for _, p := range st.principals {
			if !wanted(p) {
				continue
			}
			account = auth.Account{ID: p.ID, Name: p.Name, ClientID: p.ClientID, Kind: p.Kind, Secret: p.secret, Roles: []string{},
				State: st.callerState(auth.Principal{ID: p.ID, Kind: p.Kind})}
			for m := range st.principalRoles {
				if m.member == p.ID {
					account.Roles = append(account.Roles, st.roles[m.role].Name)
				}
			}
			slices.Sort(account.Roles)
			return nil
		}
		return fault.New(fault.NotFound, "no principal has this client id")
	})
	return account, err
}
