package catalog

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"catalogd/authz"
)

// Words of a command that its reader replaces.
const (
	anyRole          = "ROLE"
	anyPrincipalRole = "PRINCIPAL_ROLE"
)

// remedies are the commands that would give a principal what it lacks: a grant to a role that it has in the warehouse, or
// first a role. The administrators' roles are never proposed: a grant to them would be one to all administrators.
func remedies(principal string, lacks []Lack, roles []HeldRole) []string {
	role, holder := anyRole, anyPrincipalRole
	for _, r := range slices.Backward(roles) { // the first of each stays
		if r.PrincipalRole != ServiceAdminRole {
			holder = r.PrincipalRole
			if r.CatalogRole != "" && r.CatalogRole != CatalogAdminRole {
				role = r.CatalogRole
			}
		}
	}
	var commands []string
	add := func(words ...string) {
		for i, w := range words {
			words[i] = shellWord(w)
		}
		if line := "catalogd " + strings.Join(words, " "); !slices.Contains(commands, line) {
			commands = append(commands, line)
		}
	}
	needHolder := func() {
		if holder == anyPrincipalRole {
			add("role", "create", holder)
			add("role", "assign", holder, "--principal", principal)
		}
	}
	for _, l := range lacks {
		kind := l.On.Kind()
		if kind == authz.Root && authz.Grantable(l.Privilege, kind) && !authz.Implies(authz.ServiceManageAccess, l.Privilege) {
			needHolder() // administrators do not hold it either
			add("grant", "create", string(l.Privilege), "--principal-role", holder)
			continue
		}
		if !authz.Grantable(l.Privilege, kind) || kind == authz.Root {
			add("role", "assign", ServiceAdminRole, "--principal", principal)
			continue
		}
		needHolder()
		if role == anyRole {
			add("role", "create", role, "-w", l.On.Warehouse)
			add("role", "assign", role, "-w", l.On.Warehouse, "--principal-role", holder)
		}
		add(append([]string{"grant", "create", string(l.Privilege), "-w", l.On.Warehouse, "--role", role}, l.On.flags()...)...)
	}
	return commands
}

// flags name the securable to `catalogd grant create`.
func (n SecurableName) flags() []string {
	dotted := slices.ContainsFunc(n.Namespace, func(level string) bool { return strings.Contains(level, ".") })
	dotted = dotted || strings.Contains(n.Table+n.View, ".")
	namespace := n.Namespace.String()
	if dotted {
		raw, err := json.Marshal(n.Namespace)
		if err != nil { // a list of texts: cannot happen
			panic(err)
		}
		namespace = string(raw)
	}
	flag := map[authz.SecurableKind]string{authz.Table: "--table", authz.View: "--view"}[n.Kind()]
	switch {
	case n.Kind() == authz.Catalog:
		return nil
	case flag == "":
		return []string{"--namespace", namespace}
	case dotted:
		return []string{"--namespace", namespace, flag, n.Table + n.View}
	}
	return []string{flag, n.ident()}
}

// plainWord is what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
