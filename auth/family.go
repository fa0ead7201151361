package auth

import (
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Tokens that are exchanged for one another are a family, whose name is the id of the first: the ids of all others begin with it. So one
// that is revoked takes all of them along, and each request is judged by its own token's id alone.
const (
	familySeparator = "/"
	// familyBytesMax bounds the name: an identity provider's token may have a longer id, and the family then has a mark of it.
	familyBytesMax = 64
)

// newTokenID gives an id to a token of the family; with "" it begins one.
func newTokenID(family string) string {
	if family == "" {
		return uuid.NewString()
	}
	return family + familySeparator + uuid.NewString()
}

// familyOf gives the family of a token by its id.
func familyOf(tokenID string) string {
	if at := strings.LastIndex(tokenID, familySeparator); at > 0 {
		if id, err := uuid.Parse(tokenID[at+1:]); err == nil && id.String() == tokenID[at+1:] {
			return tokenID[:at]
		}
	}
	if len(tokenID) > familyBytesMax {
		return tokenMark(tokenID)
	}
	return tokenID
}

// familyOfShown gives the family of what is exchanged for a caller's token; "" when it begins one: what a personal access token obtains
// ends with that one anyway.
func familyOfShown(p Principal) string {
	if p.TokenID == p.PersonalToken.String() {
		return ""
	}
	return familyOf(p.TokenID)
}

// RevokedWith gives the ids that are revoked with a token: its own, and its family's, which stands for all that the family has.
func RevokedWith(tokenID string) []string {
	if family := familyOf(tokenID); family != tokenID {
		return []string{tokenID, family}
	}
	return []string{tokenID}
}

// revokes tells whether a token was revoked, or one of its family.
func (s *CallerState) revokes(tokenID string) bool {
	return tokenID != "" && len(s.Revoked) > 0 && slices.ContainsFunc(RevokedWith(tokenID), func(id string) bool { return slices.Contains(s.Revoked, id) })
}
