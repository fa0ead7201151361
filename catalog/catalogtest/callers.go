package catalogtest

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

type personalRow struct {
	catalog.PersonalTokenRecord
	form, previous []byte
}

type revokedToken struct {
	principal uuid.UUID
	token     string
}

func personalMark(form []byte) string {
	return auth.StoredSecret{Algorithm: auth.AlgorithmHMAC, Form: form}.Mark()
}

// callerState gives what the tokens of a principal are judged by; nil for the server itself, and for nobody.
func (st *state) callerState(p auth.Principal) *auth.CallerState {
	row, known := st.principals[p.ID]
	if !known || p.Kind == auth.System {
		return nil
	}
	state := &auth.CallerState{NotBefore: row.notBefore, Network: st.networks[p.ID], ServerNetwork: st.networks[uuid.Nil]}
	if len(row.secret.Form) > 0 {
		state.SecretMark = row.secret.Mark()
	}
	for _, k := range row.keys {
		state.Keys = append(state.Keys, auth.LiveKey{ID: k.ID, EndsAt: k.EndsAt})
	}
	for _, l := range row.linked {
		state.Identities = append(state.Identities, l.IdentityLink)
	}
	for r, end := range st.revoked {
		if r.principal == p.ID && end.After(st.now) {
			state.Revoked = append(state.Revoked, r.token)
		}
	}
	for _, t := range st.personal {
		if t.PrincipalID != p.ID || !t.ExpiresAt.After(st.now) {
			continue
		}
		live := auth.LiveToken{ID: t.ID, SecretMark: personalMark(t.form), ExpiresAt: t.ExpiresAt, Networks: t.Networks}
		if t.previous != nil {
			live.PreviousMark, live.PreviousUntil = personalMark(t.previous), t.OverlapUntil
		}
		state.Personal = append(state.Personal, live)
	}
	slices.Sort(state.Revoked)
	slices.SortFunc(state.Personal, func(a, b auth.LiveToken) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return state
}

func (st *state) forgetTokens(principal uuid.UUID) {
	maps.DeleteFunc(st.personal, func(_ uuid.UUID, t personalRow) bool { return t.PrincipalID == principal })
	maps.DeleteFunc(st.revoked, func(r revokedToken, _ time.Time) bool { return r.principal == principal })
}

// CreatePersonalToken keeps a new personal access token.
func (s *Store) CreatePersonalToken(ctx context.Context, t catalog.PersonalTokenRecord, secret auth.StoredSecret, f catalog.Fact) error {
	return s.tx(ctx, "CreatePersonalToken", func(st *state) error {
		if _, ok := st.principals[t.PrincipalID]; !ok {
			return noSuchPrincipal(f.Subject)
		}
		live := 0
		for id, other := range st.personal {
			switch {
			case other.PrincipalID != t.PrincipalID:
			case !other.ExpiresAt.After(t.CreatedAt.Add(-catalog.PersonalTokenKept)), other.Name == t.Name && !other.ExpiresAt.After(t.CreatedAt):
				delete(st.personal, id)
			case other.Name == t.Name:
				return fault.New(fault.AlreadyExists, "Token already exists: %s", t.Name)
			case other.ExpiresAt.After(t.CreatedAt):
				live++
			}
		}
		if live >= auth.PersonalTokensMax {
			return fault.New(fault.IllegalArgument, "a principal has %d personal access tokens at most: revoke one first", auth.PersonalTokensMax)
		}
		st.personal[t.ID] = personalRow{PersonalTokenRecord: t, form: secret.Form}
		return st.write(f)
	})
}

// ListPersonalTokens gives a principal's personal access tokens by name.
func (s *Store) ListPersonalTokens(ctx context.Context, principalID uuid.UUID) ([]catalog.PersonalTokenRecord, error) {
	var found []catalog.PersonalTokenRecord
	err := s.tx(ctx, "ListPersonalTokens", func(st *state) error {
		for _, t := range st.personal {
			if t.PrincipalID == principalID {
				found = append(found, t.PersonalTokenRecord)
			}
		}
		slices.SortFunc(found, func(a, b catalog.PersonalTokenRecord) int { return cmp.Compare(a.Name, b.Name) })
		return nil
	})
	return found, err
}

// RotatePersonalToken gives a personal access token another secret.
func (s *Store) RotatePersonalToken(ctx context.Context, r catalog.PersonalTokenRotation, f catalog.Fact) error {
	return s.changePersonal(ctx, "RotatePersonalToken", r.PrincipalID, r.ID, f, func(st *state, t personalRow) {
		t.previous, t.OverlapUntil = nil, r.OverlapUntil
		if !r.OverlapUntil.IsZero() {
			t.previous = t.form
		}
		t.form, t.RotatedAt = r.Secret.Form, f.At
		if !r.ExpiresAt.IsZero() {
			t.ExpiresAt = r.ExpiresAt
		}
		st.personal[r.ID] = t
	})
}

// DropPersonalToken ends a personal access token.
func (s *Store) DropPersonalToken(ctx context.Context, principalID, id uuid.UUID, f catalog.Fact) error {
	return s.changePersonal(ctx, "DropPersonalToken", principalID, id, f, func(st *state, _ personalRow) { delete(st.personal, id) })
}

func (s *Store) changePersonal(
	ctx context.Context, method string, principalID, id uuid.UUID, f catalog.Fact, change func(*state, personalRow),
) error {
	return s.tx(ctx, method, func(st *state) error {
		t, ok := st.personal[id]
		if !ok || t.PrincipalID != principalID {
			return fault.New(fault.NotFound, "Token does not exist: %s", id)
		}
		change(st, t)
		return st.write(f)
	})
}

// RevokeTokens ends access tokens of a principal.
func (s *Store) RevokeTokens(ctx context.Context, r catalog.TokenRevocation, f catalog.Fact) error {
	return s.tx(ctx, "RevokeTokens", func(st *state) error {
		row, ok := st.principals[r.PrincipalID]
		if !ok {
			return noSuchPrincipal(f.Subject)
		}
		revoked := 0
		maps.DeleteFunc(st.revoked, func(t revokedToken, end time.Time) bool { return t.principal == r.PrincipalID && !end.After(st.now) })
		if r.TokenID != "" {
			for _, id := range auth.RevokedWith(r.TokenID) {
				st.revoked[revokedToken{r.PrincipalID, id}] = r.ExpiresAt
			}
			maps.DeleteFunc(st.personal, func(id uuid.UUID, t personalRow) bool {
				return t.PrincipalID == r.PrincipalID && id.String() == r.TokenID
			})
			families := map[string]bool{} // a token and its family are one revocation
			for t := range st.revoked {
				if t.principal == r.PrincipalID {
					with := auth.RevokedWith(t.token)
					families[with[len(with)-1]] = true
				}
			}
			revoked = len(families)
		}
		if r.TokenID == "" || revoked > auth.RevokedTokensMax {
			moment := f.At
			for _, other := range []time.Time{row.notBefore, st.now} {
				if moment.Before(other) {
					moment = other
				}
			}
			row.notBefore = moment.Truncate(time.Millisecond).Add(time.Millisecond)
			st.principals[r.PrincipalID] = row
			maps.DeleteFunc(st.revoked, func(t revokedToken, _ time.Time) bool { return t.principal == r.PrincipalID })
		}
		if r.Personal {
			maps.DeleteFunc(st.personal, func(_ uuid.UUID, t personalRow) bool { return t.PrincipalID == r.PrincipalID })
		}
		return st.write(f)
	})
}

// RecordTokenUses keeps the latest uses of personal access tokens.
func (s *Store) RecordTokenUses(ctx context.Context, uses []auth.TokenUse) error {
	return s.tx(ctx, "RecordTokenUses", func(st *state) error {
		for _, use := range uses {
			if t, ok := st.personal[use.Token]; ok && t.LastUse.At.Before(use.At) {
				t.LastUse = use
				st.personal[use.Token] = t
			}
		}
		return nil
	})
}

// FindPersonalToken gives a personal access token with its owner's account.
func (s *Store) FindPersonalToken(ctx context.Context, id uuid.UUID) (auth.PersonalAccount, error) {
	var found personalRow
	err := s.tx(ctx, "FindPersonalToken", func(st *state) error {
		var ok bool
		if found, ok = st.personal[id]; !ok {
			return fault.New(fault.NotFound, "there is no such token")
		}
		return nil
	})
	if err != nil {
		return auth.PersonalAccount{}, err
	}
	account, err := s.FindAccountByID(ctx, found.PrincipalID)
	return auth.PersonalAccount{
		Account: account, TokenID: id, Form: found.form, Previous: found.previous, PreviousUntil: found.OverlapUntil,
		TokenRoles: found.Roles, ExpiresAt: found.ExpiresAt,
	}, err
}

// RenewPersonalForm replaces a stored form of a personal access token, unless it was replaced meanwhile.
func (s *Store) RenewPersonalForm(ctx context.Context, id uuid.UUID, old, fresh []byte) error {
	return s.tx(ctx, "RenewPersonalForm", func(st *state) error {
		t := st.personal[id]
		switch {
		case bytes.Equal(t.form, old):
			t.form = fresh
		case bytes.Equal(t.previous, old):
			t.previous = fresh
		default:
			return nil
		}
		st.personal[id] = t
		return nil
	})
}

// FindNetworkPolicy gives a policy; the zero policy where there is none.
func (s *Store) FindNetworkPolicy(ctx context.Context, principalID uuid.UUID) (auth.NetworkPolicy, error) {
	var found auth.NetworkPolicy
	err := s.tx(ctx, "FindNetworkPolicy", func(st *state) error {
		found = st.networks[principalID]
		return nil
	})
	return found, err
}

// SetNetworkPolicy replaces a policy.
func (s *Store) SetNetworkPolicy(ctx context.Context, principalID uuid.UUID, p auth.NetworkPolicy, f catalog.Fact) error {
	return s.tx(ctx, "SetNetworkPolicy", func(st *state) error {
		if _, ok := st.principals[principalID]; !ok && principalID != uuid.Nil {
			return noSuchPrincipal(f.Subject)
		}
		st.networks[principalID] = p
		return st.write(f)
	})
}
