package catalog

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// Limits of a link. A subject's is OpenID Connect's own.
const (
	issuerBytesMax  = 2048
	subjectBytesMax = 255
)

// LinkedIdentity is an identity provider's subject that is a principal.
type LinkedIdentity struct {
	auth.IdentityLink
	LinkedAt time.Time
}

// IdentityLinkStore keeps which identity providers' subjects are which principals.
type IdentityLinkStore interface {
	// LinkedIdentities gives a principal's by issuer and subject.
	LinkedIdentities(ctx context.Context, principal uuid.UUID) ([]LinkedIdentity, error)
	// LinkIdentity: fault.AlreadyExists when the subject is a principal already, fault.IllegalArgument when the principal has too
	// many, fault.NotFound when it is gone.
	LinkIdentity(ctx context.Context, principal uuid.UUID, l LinkedIdentity, f Fact) error
	// UnlinkIdentity: fault.NotFound when the principal has no such subject.
	UnlinkIdentity(ctx context.Context, principal uuid.UUID, l auth.IdentityLink, f Fact) error
}

// LinkedIdentities gives the identity providers' subjects that are a principal; everybody may ask for his own.
func (s *Service) LinkedIdentities(ctx context.Context, c Caller, name string) ([]LinkedIdentity, error) {
	p, err := s.principalForSelfToo(ctx, c, need{"list-identities", name, authz.PrincipalReadProperties})
	if err != nil {
		return nil, err
	}
	linked, err := s.Admin.LinkedIdentities(ctx, p.ID)
	if err != nil {
		return nil, fmt.Errorf("list the identities of %s: %w", name, err)
	}
	return linked, nil
}

// LinkIdentity lets an identity provider's subject be a principal: its tokens then have all that the principal has. Nobody links
// his own without PRINCIPAL_RESET_CREDENTIALS: a subject that is another's would become him. Of a principal with rights over
// principals it takes SERVICE_MANAGE_ACCESS.
func (s *Service) LinkIdentity(ctx context.Context, c Caller, name string, l auth.IdentityLink) (LinkedIdentity, error) {
	p, err := s.identityHolder(ctx, c, need{"link-identity", name, authz.PrincipalResetCredentials})
	if err == nil {
		err = checkLink(l)
	}
	if err != nil {
		return LinkedIdentity{}, err
	}
	f := s.linkFact(c, "link-identity", p, l)
	linked := LinkedIdentity{l, f.At}
	if err := s.Admin.LinkIdentity(ctx, p.ID, linked, f); err != nil {
		return LinkedIdentity{}, fmt.Errorf("link subject %s of %s to %s: %w", l.Subject, l.Issuer, name, err)
	}
	return linked, nil
}

// UnlinkIdentity ends that; tokens of the subject, and those that it obtained, end at once. Who may is as of LinkIdentity.
func (s *Service) UnlinkIdentity(ctx context.Context, c Caller, name string, l auth.IdentityLink) error {
	p, err := s.identityHolder(ctx, c, need{"unlink-identity", name, authz.PrincipalResetCredentials})
	if err == nil {
		err = checkLink(l)
	}
	if err != nil {
		return err
	}
	if err := s.Admin.UnlinkIdentity(ctx, p.ID, l, s.linkFact(c, "unlink-identity", p, l)); err != nil {
		return fmt.Errorf("unlink subject %s of %s from %s: %w", l.Subject, l.Issuer, name, err)
	}
	return nil
}

func (s *Service) linkFact(c Caller, operation string, p PrincipalRecord, l auth.IdentityLink) Fact {
	f := s.fact(c, operation, p.Name, uuid.Nil, p.ID)
	f.Details = map[string]any{"issuer": l.Issuer, "subject": l.Subject}
	return f
}

// identityHolder finds the principal whose links the caller may change. His own he changes by a token with all his roles that his
// secret or a key of his obtained: any other may be narrow or short, and what is linked is neither.
func (s *Service) identityHolder(ctx context.Context, c Caller, n need) (PrincipalRecord, error) {
	p, err := s.principalFor(ctx, c, n)
	if err != nil {
		return p, err
	}
	if p.ID != c.Principal.ID {
		return p, s.mayBecome(ctx, c, p, n)
	}
	return p, s.requireOwnCredential(ctx, c, n, "who else it is")
}

// checkLink refuses what no token says.
func checkLink(l auth.IdentityLink) error {
	for _, part := range []struct {
		name, text string
		bytesMax   int
	}{{"issuer", l.Issuer, issuerBytesMax}, {"subject", l.Subject, subjectBytesMax}} {
		switch {
		case part.text == "":
			return fault.New(fault.BadRequest, "%s is missing", part.name)
		case len(part.text) > part.bytesMax:
			return fault.New(fault.BadRequest, "%s is %d bytes long; at most %d are accepted", part.name, len(part.text), part.bytesMax)
		case !utf8.ValidString(part.text) || strings.ContainsFunc(part.text, unicode.IsControl) || strings.TrimSpace(part.text) != part.text:
			return fault.New(fault.BadRequest, "%s has blanks around it, or characters that cannot be shown", part.name)
		}
	}
	if !strings.HasPrefix(l.Issuer, "https://") && !strings.HasPrefix(l.Issuer, "http://") {
		return fault.New(fault.BadRequest, "issuer %q is no URL: it is the \"iss\" of the provider's tokens, to the letter", l.Issuer)
	}
	return nil
}
