package auth

import (
	"slices"
	"strings"
)

const (
	scopeBytesMax     = 4096
	scopeRolePrefix   = "PRINCIPAL_ROLE:"
	scopeRoleAll      = "ALL"
	sessionRolePrefix = "session:role:"
	sessionRoleAny    = "session:role-any"
)

// scope writes the roles as a token's scope: "" when none is active. Role names that a scope cannot carry are
// refused when they are asked for, so none of them gets here.
func (r RoleScope) scope() string {
	if r.All {
		return scopeRolePrefix + scopeRoleAll
	}
	words := make([]string, len(r.Names))
	for i, name := range r.Names {
		words[i] = scopeRolePrefix + name
	}
	return strings.Join(words, " ")
}

// rolesOf reads a token's own scope.
func rolesOf(scope string) RoleScope {
	var r RoleScope
	for word := range strings.FieldsSeq(scope) {
		name, ok := strings.CutPrefix(word, scopeRolePrefix)
		switch {
		case ok && name == scopeRoleAll:
			return RoleScope{All: true}
		case ok:
			r.Names = append(r.Names, name)
		}
	}
	return r
}

// narrowed gives the roles that are in both.
func (r RoleScope) narrowed(by RoleScope) RoleScope {
	switch {
	case by.All:
		return r
	case r.All:
		return by
	}
	both := RoleScope{}
	for _, name := range r.Names {
		if slices.Contains(by.Names, name) {
			both.Names = append(both.Names, name)
		}
	}
	return both
}

// wish is what a scope asks for. Asking for nothing in particular leaves the choice to the server.
type wish struct {
	all   bool
	roles []wishedRole
}

type wishedRole struct {
	name     string
	foldCase bool // session:role:NAME comes from a system whose role names have no case
	word     string
}

// parseScope reads the scope parameter. Words that do not concern roles are ignored: "catalog" and "sign" are what
// Iceberg clients ask for by themselves, others (openid, email) come with identity providers' presets.
func parseScope(scope string) (wish, *OAuthError) {
	var w wish
	if len(scope) > scopeBytesMax {
		return w, oauthError(codeInvalidScope, "scope is %d bytes long; at most %d are accepted", len(scope), scopeBytesMax)
	}
	for word := range strings.FieldsSeq(scope) {
		role, ours := strings.CutPrefix(word, scopeRolePrefix)
		session, theirs := strings.CutPrefix(word, sessionRolePrefix)
		switch {
		case ours && role == scopeRoleAll || word == sessionRoleAny:
			w.all = true
		case ours:
			w.roles = append(w.roles, wishedRole{name: role, word: word})
		case theirs:
			w.roles = append(w.roles, wishedRole{name: session, foldCase: true, word: word})
		case looksLikeRole(word):
			// A slip of the pen must not turn a narrowed token into one with every role.
			return w, oauthError(codeInvalidScope, "scope %q is not known; roles are asked for as %s<name>", word, scopeRolePrefix)
		}
	}
	return w, nil
}

func looksLikeRole(word string) bool {
	before, _, colon := strings.Cut(word, ":")
	return colon && strings.Contains(strings.ToLower(before), "role")
}

// grant turns a wish into roles of the account. within are the roles of the token that is exchanged, if any: the
// result is never wider.
func (w wish) grant(a Account, within *RoleScope) (RoleScope, *OAuthError) {
	if a.Secret.RotationRequired {
		// Such a secret is good for rotating itself, which needs no role, and for nothing else.
		return RoleScope{}, nil
	}
	limited := within != nil && !within.All
	if w.all || len(w.roles) == 0 {
		if !limited {
			return RoleScope{All: true}, nil
		}
		left := RoleScope{}
		for _, name := range within.Names {
			if slices.Contains(a.Roles, name) {
				left.Names = append(left.Names, name)
			}
		}
		if len(left.Names) == 0 && len(within.Names) > 0 {
			return left, oauthError(codeInvalidScope, "the principal has lost every role of the token")
		}
		return left, nil
	}
	var r RoleScope
	for _, wished := range w.roles {
		name, ok := wished.find(a.Roles)
		if !ok || limited && !slices.Contains(within.Names, name) {
			return r, oauthError(codeInvalidScope, "scope %q: the principal does not have this role, or the token does not", wished.word)
		}
		if !slices.Contains(r.Names, name) {
			r.Names = append(r.Names, name)
		}
	}
	return r, nil
}

func (w wishedRole) find(roles []string) (string, bool) {
	if slices.Contains(roles, w.name) {
		return w.name, true
	}
	if !w.foldCase {
		return "", false
	}
	found, times := "", 0
	for _, role := range roles {
		if strings.EqualFold(role, w.name) {
			found, times = role, times+1
		}
	}
	return found, times == 1
}
