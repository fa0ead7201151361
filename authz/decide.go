// Package authz decides whether a caller may do something. It is pure: values in, a decision with its reason out.
// The model is Apache Polaris': privileges are granted to roles on securables, and a grant holds for everything
// below the securable it was made on. There are no deny rules; what is not granted is refused.
package authz

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Privilege is the name of a right, spelled as Apache Polaris spells it. privilege.go has the table of all of them.
type Privilege string

// SecurableKind tells what a securable is.
type SecurableKind string

// The kinds of securables, from the root down.
const (
	Root          SecurableKind = "root"
	Catalog       SecurableKind = "catalog"
	Namespace     SecurableKind = "namespace"
	Table         SecurableKind = "table"
	View          SecurableKind = "view"
	PrincipalKind SecurableKind = "principal"
	PrincipalRole SecurableKind = "principal-role"
	CatalogRole   SecurableKind = "catalog-role"
)

// RootID is the id of the one root securable.
var RootID = uuid.Nil

// Securable is one thing that privileges can be granted on. Name is for messages only.
type Securable struct {
	Kind SecurableKind
	ID   uuid.UUID
	Name string
}

// Grant is one privilege that one role holds on one securable.
type Grant struct {
	Privilege   Privilege
	Kind        SecurableKind
	SecurableID uuid.UUID
	Role        string // the role it came through, "" for an owner; for explanations
}

// Decision is an answer and why.
type Decision struct {
	Allowed bool
	Wanted  Privilege
	On      Securable // the securable that was asked about (last of the path)
	By      Grant     // the grant that allowed it
	holder  Securable // the securable that By was made on
	asked   int       // length of the path
}

// Reason explains the decision in one sentence, which is safe to log. It is spelled when somebody wants it: most
// decisions allow, and nobody asks those why.
func (d Decision) Reason() string {
	switch {
	case d.Allowed && d.By.Role == "" && d.By.Privilege == Ownership:
		return fmt.Sprintf("%s on %s is held by its owner or that of %s", d.Wanted, d.On, d.holder)
	case d.Allowed:
		return fmt.Sprintf("%s on %s is held through %s on %s (role %s)", d.Wanted, d.On, d.By.Privilege, d.holder, d.By.Role)
	case d.asked == 0 || !Known(d.Wanted):
		return fmt.Sprintf("nothing was asked that can be decided: privilege %q on %d securables", d.Wanted, d.asked)
	}
	return fmt.Sprintf("missing privilege %s on %s", d.Wanted, d.On)
}

// Decide tells whether one of the grants, on any element of the path (root first, target last), is the wanted
// privilege or one that implies it.
func Decide(grants []Grant, path []Securable, wanted Privilege) Decision {
	if Open {
		return Decision{Wanted: wanted, Allowed: true, asked: len(path)}
	}
	return decide(grants, path, wanted)
}

func decide(grants []Grant, path []Securable, wanted Privilege) Decision {
	d := Decision{Wanted: wanted, asked: len(path)}
	if len(path) == 0 || !Known(wanted) {
		return d
	}
	d.On = path[len(path)-1]
	for _, g := range grants {
		if !Implies(g.Privilege, wanted) {
			continue
		}
		at := position(path, g)
		if at < 0 {
			continue
		}
		d.Allowed, d.By, d.holder = true, g, path[at]
		return d
	}
	return d
}

// position finds the element that the grant was made on; -1: the grant is about something else.
func position(path []Securable, g Grant) int {
	for i, s := range path {
		if s.Kind == g.Kind && s.ID == g.SecurableID {
			return i
		}
	}
	return -1
}

// String names the securable for messages: its kind and its quoted name; the root has no name.
func (s Securable) String() string {
	if s.Kind == Root {
		return "the service"
	}
	return fmt.Sprintf("%s %q", s.Kind, s.Name)
}

// HoldsOnService tells whether one of the grants is on the service itself, whatever it is about.
func HoldsOnService(grants []Grant) bool {
	return slices.ContainsFunc(grants, func(g Grant) bool { return g.Kind == Root })
}

// AdministersRoles tells whether a privilege on a warehouse is about its catalog roles: CATALOG_MANAGE_ACCESS and what it contains of
// that kind. Who manages grants on the warehouse, its owner too, does not hold it.
func AdministersRoles(p Privilege) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return strings.HasPrefix(string(r.Name), catalogRolePrefix) && Implies(p, r.Name) })
}

// Administers tells whether one of the grants is about other callers' rights: those of AdministersPrincipals, and on a warehouse those
// of AdministersRoles.
func Administers(grants []Grant) bool {
	return AdministersPrincipals(grants) || slices.ContainsFunc(grants, func(g Grant) bool { return AdministersRoles(g.Privilege) })
}

const catalogRolePrefix = "CATALOG_ROLE_"

// AdministersPrincipals tells whether one of the grants is on the service and about more than warehouses: principals, their
// roles, or everything.
func AdministersPrincipals(grants []Grant) bool {
	for _, g := range grants {
		if g.Kind == Root && !slices.Contains(aboutWarehouses, g.Privilege) {
			return true
		}
	}
	return false
}

// aboutWarehouses are the privileges on the service that are about warehouses alone.
var aboutWarehouses = []Privilege{CatalogCreate, CatalogDrop, CatalogList, CatalogReadProperties, CatalogWriteProperties, CatalogFullMetadata}
