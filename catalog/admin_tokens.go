package catalog

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// Limits of personal access tokens.
const (
	PersonalTokenDaysDefault = 30
	PersonalTokenDaysMax     = 365
	TokenOverlapHoursMax     = 7 * 24 // for which the secret before a rotation may stay good
)

// PersonalTokenDraft is a personal access token about to be made.
type PersonalTokenDraft struct {
	Name     string
	Roles    []string // principal roles that it is narrowed to; none: all
	Networks []string // CIDR; none: all
	Days     int      // to its end; 0 means PersonalTokenDaysDefault
}

// PersonalTokenChange says what a rotation does beside the new secret.
type PersonalTokenChange struct {
	OverlapHours int // for which the old secret stays good; 0 ends it at once
	Days         int // to the new end, from now; 0 leaves the end
}

// tokenOwner is the principal whose tokens an operation is about. own tells that it is the caller, with what its own
// token may give away.
type tokenOwner struct {
	PrincipalRecord
	own bool
	// bearer is the personal access token of a request about its owner's tokens; uuid.Nil: it has none.
	bearer uuid.UUID
	reach  tokenReach
}

// tokenReach is what a caller may give to a token of its own: no more than its own token has.
type tokenReach struct {
	roles    auth.RoleScope
	networks []netip.Prefix
	until    time.Time // zero: no end
}

// tokensOf finds the principal that n.subject names. Everybody may for itself, others with the privilege.
func (s *Service) tokensOf(ctx context.Context, c Caller, n need) (tokenOwner, error) {
	p, state, err := s.principalOrSelf(ctx, c, n)
	if err == nil && state == nil {
		err = s.mayBecome(ctx, c, p, n)
	}
	if err != nil || state == nil {
		return tokenOwner{PrincipalRecord: p}, err
	}
	if err := notByActor(c, p); err != nil {
		return tokenOwner{}, err
	}
	owner := tokenOwner{
		PrincipalRecord: p, own: true, bearer: c.Principal.PersonalToken, reach: tokenReach{roles: c.Principal.Roles},
	}
	for _, t := range state.Personal {
		if t.ID == c.Principal.PersonalToken {
			if c.Principal.SecretMark != t.SecretMark {
				return tokenOwner{}, fault.New(fault.Forbidden, "this token was rotated: its old secret works till the overlap ends, and makes and rotates no tokens")
			}
			owner.reach.networks, owner.reach.until = t.Networks, t.ExpiresAt
		}
	}
	return owner, nil
}

// notByActor keeps who acts for a principal, or came in without a token, from changing that one's tokens.
func notByActor(c Caller, p PrincipalRecord) error {
	if c.Principal.Anonymous {
		return fault.New(fault.Forbidden, "this server is open to everybody as %s, and so who shows no token changes none of its tokens; sign in", p.Name)
	}
	if c.Principal.Actor == nil || p.ID != c.Principal.ID {
		return nil
	}
	return fault.New(fault.Forbidden, "%s acts for %s, and so changes none of its tokens", c.Principal.Actor.Name, p.Name)
}

// covers refuses a token that would be wider than what its owner holds in its hands.
func (o tokenOwner) covers(t PersonalTokenRecord) error {
	wider := func(in string) error {
		return fault.New(fault.Forbidden, "a token may not make or rotate one that is wider than itself: this one is wider in its %s", in)
	}
	r := o.reach
	switch {
	case !o.own:
		return nil
	case !r.roles.All && (len(t.Roles) == 0 || slices.ContainsFunc(t.Roles, func(role string) bool { return !slices.Contains(r.roles.Names, role) })):
		return wider("roles")
	case len(r.networks) > 0 && (len(t.Networks) == 0 || slices.ContainsFunc(t.Networks, func(n netip.Prefix) bool { return !coveredBy(n, r.networks) })):
		return wider("networks")
	case !r.until.IsZero() && t.ExpiresAt.After(r.until):
		return wider("end")
	}
	return nil
}

func coveredBy(n netip.Prefix, networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(wide netip.Prefix) bool { return wide.Bits() <= n.Bits() && wide.Contains(n.Addr()) })
}

// signedIn refuses a caller whose token is too old, or personal itself, to make for itself what outlives it.
func (s *Service) signedIn(ctx context.Context, c Caller, n need) error {
	if c.Principal.SignedInLately(s.Now()) {
		return nil
	}
	_ = s.refuseBecause(ctx, c, n, authz.Securable{}, "the token is personal, or its sign-in is too long ago")
	return fault.New(fault.Forbidden, "Principal %q may not %s with this token, which would live on in it: it is a personal access token, or was obtained more "+
		"than %d minutes ago; sign in again, by the client id and the secret, by a key or at the identity provider", c.Principal.Name, n.operation,
		int(auth.SignInFreshMax/time.Minute))
}

// CreatePersonalToken makes a personal access token and gives its text, this once. Everybody may for itself who signed in a short time
// ago, and then nothing wider than the token of the request; for others it takes the right to reset their secrets.
func (s *Service) CreatePersonalToken(ctx context.Context, c Caller, principal string, d PersonalTokenDraft) (PersonalTokenRecord, auth.Secret, error) {
	none := func(err error) (PersonalTokenRecord, auth.Secret, error) { return PersonalTokenRecord{}, "", err }
	n := need{"create-personal-token", principal, authz.PrincipalResetCredentials}
	owner, err := s.tokensOf(ctx, c, n)
	if err == nil && owner.own {
		err = s.signedIn(ctx, c, n)
	}
	if err != nil {
		return none(err)
	}
	if s.Secrets == nil {
		return none(errNoSecrets)
	}
	if err := checkAdminName("token name", d.Name); err != nil {
		return none(err)
	}
	if err := s.checkTokenRoles(ctx, owner, d.Roles); err != nil {
		return none(err)
	}
	days, err := tokenDays(d.Days, PersonalTokenDaysDefault)
	if err != nil {
		return none(err)
	}
	f := s.fact(c, "create-personal-token", principal, uuid.Nil, owner.ID)
	t := PersonalTokenRecord{
		ID: uuid.New(), PrincipalID: owner.ID, Name: d.Name, Roles: d.Roles, CreatedBy: c.Principal.Name,
		CreatedAt: f.At, ExpiresAt: f.At.Add(days),
	}
	if t.Networks, err = parseNetworks("networks", d.Networks); err != nil {
		return none(err)
	}
	if err := owner.covers(t); err != nil {
		return none(err)
	}
	secret, stored := s.Secrets.GeneratePersonal(t.ID)
	f.Details = map[string]any{"token": t.ID.String(), "name": t.Name}
	if err := s.Admin.CreatePersonalToken(ctx, t, stored, f); err != nil {
		return none(fmt.Errorf("create token %s of %s: %w", d.Name, principal, err))
	}
	return t, secret, nil
}

// tokenDays gives the life of a token.
func tokenDays(days, otherwise int) (time.Duration, error) {
	if days == 0 {
		days = otherwise
	}
	if days < 0 || days > PersonalTokenDaysMax {
		return 0, fault.New(fault.BadRequest, "expiresInDays is %d; it must be 1 to %d", days, PersonalTokenDaysMax)
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

// checkTokenRoles wants roles that the owner has, and that the scope of an access token can carry.
func (s *Service) checkTokenRoles(ctx context.Context, owner tokenOwner, roles []string) error {
	if len(roles) == 0 {
		return nil
	}
	held, err := s.Admin.PrincipalRolesOf(ctx, owner.ID, ListQuery{})
	if err != nil {
		return fmt.Errorf("list the roles of %s: %w", owner.Name, err)
	}
	for _, role := range roles {
		if !slices.ContainsFunc(held, func(r RoleRecord) bool { return r.Name == role }) {
			return fault.New(fault.BadRequest, "roles: principal %s does not have the principal role %q", owner.Name, role)
		}
		if strings.ContainsFunc(role, unicode.IsSpace) {
			return fault.New(fault.BadRequest, "roles: %q has a blank in it, which the scope of a token cannot carry", role)
		}
	}
	return nil
}

// ListPersonalTokens gives a principal's tokens by name, also those that ended lately. Everybody may for itself.
func (s *Service) ListPersonalTokens(ctx context.Context, c Caller, principal string) ([]PersonalTokenRecord, error) {
	return s.listPersonal(ctx, c, need{"list-personal-tokens", principal, authz.PrincipalReadProperties})
}

func (s *Service) listPersonal(ctx context.Context, c Caller, n need) ([]PersonalTokenRecord, error) {
	p, _, err := s.principalOrSelf(ctx, c, n)
	if err != nil {
		return nil, err
	}
	all, err := s.Admin.ListPersonalTokens(ctx, p.ID)
	if err != nil {
		return nil, fmt.Errorf("list the tokens of %s: %w", n.subject, err)
	}
	return all, nil
}

// PersonalTokenName is a token by its owner's name and its id.
type PersonalTokenName struct{ Principal, ID string }

// FindPersonalToken gives one token. Everybody may for itself.
func (s *Service) FindPersonalToken(ctx context.Context, c Caller, name PersonalTokenName) (PersonalTokenRecord, error) {
	all, err := s.listPersonal(ctx, c, need{"load-personal-token", name.Principal, authz.PrincipalReadProperties})
	if err != nil {
		return PersonalTokenRecord{}, err
	}
	return name.in(all)
}

func (n PersonalTokenName) in(all []PersonalTokenRecord) (PersonalTokenRecord, error) {
	i := slices.IndexFunc(all, func(t PersonalTokenRecord) bool { return t.ID.String() == n.ID })
	if i < 0 {
		return PersonalTokenRecord{}, fault.New(fault.NotFound, "Token does not exist: %s", n.ID)
	}
	return all[i], nil
}

// RotatePersonalToken gives a token another secret, this once shown. Everybody may for itself who signed in a short time ago, and then of
// no token that is wider than that of the request; a token rotates itself, and ends no later by it. For others it takes the right to reset
// their secrets.
func (s *Service) RotatePersonalToken(ctx context.Context, c Caller, name PersonalTokenName, change PersonalTokenChange) (PersonalTokenRecord, auth.Secret, error) {
	none := func(err error) (PersonalTokenRecord, auth.Secret, error) { return PersonalTokenRecord{}, "", err }
	n := need{"rotate-personal-token", name.Principal, authz.PrincipalResetCredentials}
	owner, err := s.tokensOf(ctx, c, n)
	if err == nil && owner.own && (owner.bearer == uuid.Nil || owner.bearer.String() != name.ID) {
		err = s.signedIn(ctx, c, n)
	}
	if err != nil {
		return none(err)
	}
	if s.Secrets == nil {
		return none(errNoSecrets)
	}
	if change.OverlapHours < 0 || change.OverlapHours > TokenOverlapHoursMax {
		return none(fault.New(fault.BadRequest, "overlapHours is %d; it must be 0 to %d", change.OverlapHours, TokenOverlapHoursMax))
	}
	all, err := s.Admin.ListPersonalTokens(ctx, owner.ID)
	if err != nil {
		return none(fmt.Errorf("list the tokens of %s: %w", name.Principal, err))
	}
	t, err := name.in(all)
	if err != nil {
		return none(err)
	}
	f := s.fact(c, "rotate-personal-token", name.Principal, uuid.Nil, owner.ID)
	r := PersonalTokenRotation{PrincipalID: owner.ID, ID: t.ID}
	if change.Days != 0 {
		days, err := tokenDays(change.Days, 0)
		if err != nil {
			return none(err)
		}
		r.ExpiresAt = f.At.Add(days)
		t.ExpiresAt = r.ExpiresAt
	}
	if err := owner.covers(t); err != nil {
		return none(err)
	}
	if !t.ExpiresAt.After(f.At) {
		return none(fault.New(fault.IllegalArgument, "token %s has expired: give it a new end with expiresInDays", t.Name))
	}
	t.RotatedAt, t.OverlapUntil = f.At, time.Time{}
	if change.OverlapHours > 0 {
		r.OverlapUntil = f.At.Add(time.Duration(change.OverlapHours) * time.Hour)
		t.OverlapUntil = r.OverlapUntil
	}
	var secret auth.Secret
	secret, r.Secret = s.Secrets.GeneratePersonal(t.ID)
	f.Details = map[string]any{"token": t.ID.String(), "name": t.Name}
	if err := s.Admin.RotatePersonalToken(ctx, r, f); err != nil {
		return none(fmt.Errorf("rotate token %s of %s: %w", t.Name, name.Principal, err))
	}
	return t, secret, nil
}

// DropPersonalToken ends a token, and with it every access token that it obtained. Everybody may for itself.
func (s *Service) DropPersonalToken(ctx context.Context, c Caller, name PersonalTokenName) error {
	p, _, err := s.principalOrSelf(ctx, c, need{"revoke-personal-token", name.Principal, authz.PrincipalResetCredentials})
	if err == nil {
		err = notByActor(c, p)
	}
	if err != nil {
		return err
	}
	id, err := uuid.Parse(name.ID)
	if err != nil {
		return fault.New(fault.NotFound, "Token does not exist: %s", name.ID)
	}
	f := s.fact(c, "revoke-personal-token", name.Principal, uuid.Nil, p.ID)
	f.Details = map[string]any{"token": id.String()}
	if err := s.Admin.DropPersonalToken(ctx, p.ID, id, f); err != nil {
		return fmt.Errorf("revoke token %s of %s: %w", id, name.Principal, err)
	}
	return nil
}

// TokensRevoked says which tokens of a principal are to end: the access token of an id, or all; with Personal all
// personal access tokens as well.
type TokensRevoked struct {
	TokenID  string
	Personal bool
}

// RevokeTokens ends access tokens from the next request on, on every server. Everybody may for itself.
func (s *Service) RevokeTokens(ctx context.Context, c Caller, principal string, which TokensRevoked) error {
	p, _, err := s.principalOrSelf(ctx, c, need{"revoke-tokens", principal, authz.PrincipalResetCredentials})
	if err == nil {
		err = notByActor(c, p)
	}
	if err != nil {
		return err
	}
	if len(which.TokenID) > tokenIDBytesMax || strings.ContainsFunc(which.TokenID, unicode.IsControl) {
		return fault.New(fault.BadRequest, "tokenId is no id of an access token")
	}
	f := s.fact(c, "revoke-tokens", principal, uuid.Nil, p.ID)
	f.Details = map[string]any{"token": nameOr(which.TokenID, "all"), "personal": which.Personal}
	kept, err := s.revocationKept(ctx, p)
	if err != nil {
		return err
	}
	err = s.Admin.RevokeTokens(ctx, TokenRevocation{
		PrincipalID: p.ID, TokenID: which.TokenID, ExpiresAt: f.At.Add(kept), Personal: which.Personal,
	}, f)
	if err != nil {
		return fmt.Errorf("revoke tokens of %s: %w", principal, err)
	}
	return nil
}

// revocationKept is for how long the revocation of a principal's token is kept: whoever is an identity provider's subject, by a link too,
// may have shown a token of the provider's.
func (s *Service) revocationKept(ctx context.Context, p PrincipalRecord) (time.Duration, error) {
	if p.Kind == auth.Federated {
		return foreignRevocationKept, nil
	}
	linked, err := s.Admin.LinkedIdentities(ctx, p.ID)
	if err != nil {
		return 0, fmt.Errorf("list the identities of %s: %w", p.Name, err)
	}
	if len(linked) > 0 {
		return foreignRevocationKept, nil
	}
	return auth.TokenLifeMax, nil
}

// RevokeShown ends the very token that the caller showed, whoever acts by it, from the next request on, on every server: a personal
// access token with all that it obtained, of others the one with its family. Who has a token may end it; that it counts was checked.
func (s *Service) RevokeShown(ctx context.Context, c Caller) error {
	p := c.Principal
	f := s.fact(c, "revoke-token", p.Name, uuid.Nil, p.ID)
	f.Details = map[string]any{"token": p.TokenID}
	if p.PersonalToken != uuid.Nil && p.TokenID == p.PersonalToken.String() {
		err := s.Admin.DropPersonalToken(ctx, p.ID, p.PersonalToken, f)
		if err != nil && !fault.Is(err, fault.NotFound) { // somebody else was faster
			return fmt.Errorf("revoke the personal access token %s of %s: %w", p.TokenID, p.Name, err)
		}
		return nil
	}
	err := s.Admin.RevokeTokens(ctx, TokenRevocation{PrincipalID: p.ID, TokenID: p.TokenID, ExpiresAt: p.ExpiresAt.Add(revocationMargin)}, f)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return fmt.Errorf("revoke the token %s of %s: %w", p.TokenID, p.Name, err)
	}
	return nil
}

const (
	// revocationMargin is for servers whose clocks are behind the database's: a revocation is kept a little longer than its token lives.
	revocationMargin = 5 * time.Minute

	tokenIDBytesMax = 128
	// foreignRevocationKept is for which the revocation of a token is kept that an identity provider may have made: how long such a
	// one lives is the provider's to say, and it must not come back to life here.
	foreignRevocationKept = 10 * 365 * 24 * time.Hour
)
