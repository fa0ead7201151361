// Package authz decides whether a caller may do something. It is pure: values in, a decision with its reason out.
// The model is Apache Polaris': privileges are granted to roles on securables, and a grant holds for everything
// below the securable it was made on. There are no deny rules; what is not granted is refused.
package authz

import "github.com/google/uuid"

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
	Role        string // the role it came through; for explanations
}

// Decision is an answer and why.
type Decision struct {
	Allowed bool
	Wanted  Privilege
	On      Securable // the securable that was asked about (last of the path)
	By      Grant     // the grant that allowed it
	Reason  string    // one sentence; safe to log
}

// Decide tells whether one of the grants, on any element of the path (root first, target last), is the wanted
// privilege or one that implies it.
func Decide(grants []Grant, path []Securable, wanted Privilege) Decision {
	return decide(grants, path, wanted)
}
