package external

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"catalogd/internal/fault"
)

// Limits of what a token may say.
const (
	subjectBytesMax = 255 // OpenID Connect's own limit
	nameBytesMax    = 256
	groupsMax       = 2000
	rolesMax        = 100
	roleBytesMax    = 256
	claimDepthMax   = 8
)

// claimAt finds a claim by its path: levels separated by dots. A name may have dots itself (kubernetes.io,
// https://example.com/roles); the longest name that is there is taken.
func claimAt(claims map[string]json.RawMessage, path string) (json.RawMessage, bool) {
	return claimBelow(claims, path, claimDepthMax)
}

func claimBelow(claims map[string]json.RawMessage, path string, depth int) (json.RawMessage, bool) {
	if value, ok := claims[path]; ok {
		return value, true
	}
	for end := len(path); depth > 0; {
		end = strings.LastIndexByte(path[:end], '.')
		if end < 0 {
			break
		}
		var below map[string]json.RawMessage
		if value, ok := claims[path[:end]]; ok && json.Unmarshal(value, &below) == nil {
			return claimBelow(below, path[end+1:], depth-1)
		}
	}
	return nil, false
}

// nameOf is what the token's principal is called. What it says is refused rather than mended: a mended name is another's.
func (c *compiled) nameOf(claims map[string]json.RawMessage, subject string) (string, error) {
	name := subject
	if value, ok := claimAt(claims, c.NameClaim); ok {
		if err := json.Unmarshal(value, &name); err != nil {
			return "", fault.New(fault.Unauthenticated, "the token's claim %s is no text", c.NameClaim)
		}
	}
	if name == "" {
		return "", fault.New(fault.Unauthenticated, "the token's claim %s is empty", c.NameClaim)
	}
	name = c.NamePrefix + name
	if err := checkText("name", name, nameBytesMax); err != nil {
		return "", err
	}
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, "system:") || strings.HasPrefix(lower, "system$") {
		return "", fault.New(fault.Unauthenticated, "the name %q is reserved for the server: give this issuer a name_prefix", name)
	}
	return name, nil
}

// checkText refuses texts that cannot be shown or stored as they are.
func checkText(what, text string, bytesMax int) error {
	hidden := func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
	}
	switch {
	case len(text) > bytesMax:
		return fault.New(fault.Unauthenticated, "the token's %s is %d bytes long; at most %d are accepted", what, len(text), bytesMax)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, hidden) || strings.ContainsRune(text, utf8.RuneError):
		return fault.New(fault.Unauthenticated, "the token's %s has characters that cannot be shown", what)
	case strings.TrimSpace(text) != text:
		return fault.New(fault.Unauthenticated, "the token's %s begins or ends with a blank", what)
	}
	return nil
}

// rolesOf gives the principal roles that the token's groups stand for, each once.
func (c *compiled) rolesOf(claims map[string]json.RawMessage) ([]string, error) {
	if c.GroupsClaim == "" {
		return nil, nil
	}
	value, ok := claimAt(claims, c.GroupsClaim)
	if !ok {
		return nil, nil
	}
	var groups []string
	if json.Unmarshal(value, &groups) != nil {
		var one string
		if json.Unmarshal(value, &one) != nil {
			return nil, fault.New(fault.Unauthenticated, "the token's claim %s is neither a text nor a list of texts", c.GroupsClaim)
		}
		groups = []string{one}
	}
	if len(groups) > groupsMax {
		return nil, fault.New(fault.Unauthenticated, "the token has %d groups; at most %d are accepted: have the provider send fewer",
			len(groups), groupsMax)
	}
	var roles []string
	seen := map[string]bool{}
	for _, group := range groups {
		mapped, known := c.mapped(group)
		if !known && c.RefuseUnknownGroups {
			return nil, fault.New(fault.Unauthenticated, "the token's group %q stands for no role", shown([]byte(group)))
		}
		for _, role := range mapped {
			if role == "" || len(role) > roleBytesMax || seen[role] {
				continue
			}
			seen[role] = true
			if roles = append(roles, role); len(roles) > rolesMax {
				return nil, fault.New(fault.Unauthenticated, "the token's groups stand for more than %d roles", rolesMax)
			}
		}
	}
	return roles, nil
}

// mapped gives the roles of one group: all rules that fit count.
func (c *compiled) mapped(group string) (roles []string, known bool) {
	if len(c.Rules) == 0 {
		return []string{group}, true
	}
	for i, rule := range c.Rules {
		if pattern := c.patterns[i]; pattern == nil {
			if rule.Group == group {
				roles, known = append(roles, rule.Role), true
			}
		} else if at := pattern.FindStringSubmatchIndex(group); at != nil {
			roles, known = append(roles, string(pattern.ExpandString(nil, rule.Role, group, at))), true
		}
	}
	return roles, known
}
