package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// Personal access tokens are catalogd_pat_<id>_<256 random bits>_<checksum>: the prefix and the checksum (CRC-32 of all
// before it) let scanners tell one in a text from anything else without asking a server; the id finds it. Only letters,
// digits, - and _: no client encodes those. The pattern is a promise of docs/security.md.
var personalToken = regexp.MustCompile(`^catalogd_pat_([0-9a-f]{32})_[A-Za-z0-9_-]{43}_([0-9a-f]{8})$`)

const personalPrefix = "catalogd_pat_"

func isPersonal(text string) bool { return strings.HasPrefix(text, personalPrefix) }

func checksum(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

// GeneratePersonal makes the text of a personal access token and its stored form.
func (s *Secrets) GeneratePersonal(id uuid.UUID) (Secret, StoredSecret) {
	raw := make([]byte, secretRandomBytes)
	_, _ = rand.Read(raw)
	text := personalPrefix + hex.EncodeToString(id[:]) + "_" + base64.RawURLEncoding.EncodeToString(raw)
	secret := Secret(text + "_" + checksum(text))
	return secret, s.stored(secret)
}

// personalID reads the id of a personal access token: fault.Unauthenticated when the text is not a whole one.
func personalID(text string) (uuid.UUID, error) {
	m := personalToken.FindStringSubmatch(text)
	if m == nil || checksum(strings.TrimSuffix(text, "_"+m[2])) != m[2] {
		return uuid.Nil, fault.New(fault.Unauthenticated, "this is not a whole personal access token: copy it anew")
	}
	return uuid.Parse(m[1])
}

// PersonalAccount is a personal access token as stored, with its owner's account.
type PersonalAccount struct {
	Account
	TokenID       uuid.UUID
	Form          []byte // of the present secret
	Previous      []byte // of the secret before; nil when there is none
	PreviousUntil time.Time
	TokenRoles    []string // that it is narrowed to; none: all
	ExpiresAt     time.Time
}

// personal finds out whose personal access token a text is, and by which of its secrets: fault.Unauthenticated when it
// is nobody's or has ended.
func (t *Tokens) personal(ctx context.Context, text string) (Principal, Account, error) {
	refused := func(reason string) (Principal, Account, error) {
		return Principal{}, Account{}, fault.New(fault.Unauthenticated, "the personal access token %s", reason)
	}
	id, err := personalID(text)
	if err != nil {
		return Principal{}, Account{}, err
	}
	found, err := t.accounts.FindPersonalToken(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && found.Kind == System {
		return refused("is not known here: it was revoked, or is another server's")
	}
	if err != nil {
		return Principal{}, Account{}, fmt.Errorf("find personal access token: %w", err)
	}
	now := t.now()
	if !now.Before(found.ExpiresAt) {
		return refused("has expired")
	}
	form := found.Form
	if !t.secrets.verifyHMAC(form, Secret(text)) {
		form = found.Previous
		if !t.secrets.verifyHMAC(form, Secret(text)) {
			return refused("is not known here: it was revoked, or is another server's")
		}
		if !now.Before(found.PreviousUntil) {
			return refused("was rotated; use its new secret")
		}
	}
	stored := StoredSecret{Algorithm: AlgorithmHMAC, Form: form}
	if fresh, renewed := t.secrets.renew(stored, Secret(text)); renewed && t.rotation != nil {
		// As with a login: who does not get renewed is named by `catalogd doctor`.
		_ = t.rotation.RenewPersonalForm(ctx, id, form, fresh)
	}
	p := Principal{
		ID: found.ID, Name: found.Name, Kind: found.Kind, Roles: RoleScope{All: len(found.TokenRoles) == 0, Names: found.TokenRoles},
		TokenID: id.String(), ExpiresAt: found.ExpiresAt, SecretMark: stored.Mark(), PersonalToken: id,
	}
	return p, found.Account, nil
}

// session is what an access token rests on.
type session struct {
	Account
	mark     string    // of the secret
	personal uuid.UUID // the personal access token; uuid.Nil when it is the principal's own secret
	within   RoleScope // no token of the session has more roles
	until    time.Time // none ends later; zero: no such end
	family   string    // of the token that it is exchanged for; "": it begins one
	// signedInAt is when who has it showed more than a token; zero where that is not known.
	signedInAt time.Time
	origin     // of a session that no secret of the principal began
}

// ofPersonal is the session of who shows a personal access token, or a token that one obtained.
func ofPersonal(p Principal, a Account) session {
	a.Secret = StoredSecret{} // it was not shown, and what is wrong with it is no matter here
	s := session{Account: a, mark: p.SecretMark, personal: p.PersonalToken, within: p.Roles, family: familyOfShown(p)}
	if a.State != nil {
		if at := slices.IndexFunc(a.State.Personal, func(l LiveToken) bool { return l.ID == p.PersonalToken }); at >= 0 {
			s.until = a.State.Personal[at].ExpiresAt
		}
	}
	return s
}

// clientByPersonal authenticates the client of a token request who shows a personal access token as its secret. With a
// client id beside, that must be the owner's or the token's own.
func (t *Tokens) clientByPersonal(ctx context.Context, r TokenRequest, shown presented) (session, error) {
	p, account, err := t.personal(ctx, string(shown.secret))
	if err == nil && shown.clientID != "" && shown.clientID != account.ClientID && shown.clientID != p.TokenID {
		err = fault.New(fault.Unauthenticated, "client_id is not of the owner of this personal access token; leave it away")
	}
	if err == nil {
		r.seen(account)
		p.Address = r.Address
		err = account.State.Admit(p, t.now())
	}
	if fault.Is(err, fault.Unauthenticated) {
		return session{}, t.notAdmitted(ctx, r, account, fault.Message(err))
	}
	return ofPersonal(p, account), err
}

// authenticatePersonal is Authenticate for a personal access token.
func (t *Tokens) authenticatePersonal(ctx context.Context, text string) (Principal, error) {
	p, _, err := t.personal(ctx, text)
	if err == nil {
		t.checked.keep(text, checkedToken{principal: p, expiresAt: p.ExpiresAt})
	}
	return p, err
}
