package catalog

import (
	"fmt"
	"slices"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// SecurableName names what a question about access is about, in its asker's words. The zero value is the service; with
// Warehouse alone it is a warehouse, with Namespace a namespace, with Table or View one of these.
type SecurableName struct {
	Warehouse   string
	Namespace   Namespace
	Table, View string
}

// Kind tells what is named.
func (n SecurableName) Kind() authz.SecurableKind {
	switch {
	case n.Table != "":
		return authz.Table
	case n.View != "":
		return authz.View
	case len(n.Namespace) > 0:
		return authz.Namespace
	case n.Warehouse != "":
		return authz.Catalog
	}
	return authz.Root
}

// String is for sentences: "table a.t of warehouse lake".
func (n SecurableName) String() string {
	switch kind := n.Kind(); kind {
	case authz.Root:
		return "the service"
	case authz.Catalog:
		return "warehouse " + n.Warehouse
	default:
		return fmt.Sprintf("%s %s of warehouse %s", kind, n.ident(), n.Warehouse)
	}
}

// ident is the dotted name inside the warehouse.
func (n SecurableName) ident() string {
	return Identifier{Namespace: n.Namespace, Name: n.Table + n.View}.String()
}

func (n SecurableName) validate() error {
	switch {
	case n.Table != "" && n.View != "":
		return fault.New(fault.BadRequest, "a question is about a table or about a view, not about both")
	case n.Table+n.View != "" && len(n.Namespace) == 0:
		return fault.New(fault.BadRequest, "the namespace of %s is missing", n.Table+n.View)
	case len(n.Namespace) > 0 && n.Warehouse == "":
		return fault.New(fault.BadRequest, "the catalog (warehouse) of %s is missing", n.ident())
	}
	return nil
}

// outer cuts the name to the kind: the namespace of a table, the warehouse of a namespace. ok is false when it names
// nothing of the kind.
func (n SecurableName) outer(kind authz.SecurableKind) (cut SecurableName, ok bool) {
	switch kind {
	case authz.Root:
		return SecurableName{}, true
	case authz.Catalog:
		return SecurableName{Warehouse: n.Warehouse}, n.Warehouse != ""
	case authz.Namespace:
		return SecurableName{Warehouse: n.Warehouse, Namespace: n.Namespace}, len(n.Namespace) > 0
	}
	return n, n.Kind() == kind
}

func (n SecurableName) lookup() Lookup {
	return Lookup{Warehouse: n.Warehouse, Namespace: n.Namespace, Table: n.Table + n.View}
}

// missing is the refusal of a name that nothing has; nil when the resolution found it.
func (n SecurableName) missing(res Resolution) error {
	if n.Kind() == authz.Root {
		return nil
	}
	return GrantTarget{Kind: n.Kind(), Namespace: n.Namespace, Name: n.Table + n.View}.missing(res)
}

// Question asks about one privilege or about one operation, whichever is set.
type Question struct {
	Privilege authz.Privilege
	Operation string // as in the log and in the API's document: load-table
	On        SecurableName
}

// wish is one privilege that must be held, on what the question is about or on something that this lies in.
type wish struct {
	wanted authz.Privilege
	at     authz.SecurableKind
}

// asked is a question that makes sense: what it comes to.
type asked struct {
	what   string // the privilege or operation, as it was asked
	on     SecurableName
	wishes []wish
}

// asked works out what has to be held, on what. A privilege must be one that the named kind can have; an operation takes
// of the name what it needs: creating a table is decided about its namespace.
func (q Question) asked() (asked, error) {
	if err := q.On.validate(); err != nil {
		return asked{}, err
	}
	switch {
	case (q.Privilege == "") == (q.Operation == ""):
		return asked{}, fault.New(fault.BadRequest, "a question is about a privilege or about an operation: give one of the two")
	case q.Operation != "":
		return q.askedOperation()
	}
	p, kind := q.Privilege, q.On.Kind()
	if err := checkPrivilege(p); err != nil {
		return asked{}, err
	}
	meant := authz.Meant(p, kind)
	if len(meant) == 0 {
		return asked{}, fault.New(fault.BadRequest, "privilege %s says nothing about %s: ask about %s", p, q.On, kindsText(authz.Kinds(p)))
	}
	a := asked{what: string(p), on: q.On}
	for _, m := range meant {
		a.wishes = append(a.wishes, wish{m, kind})
	}
	return a, nil
}

// checkPrivilege refuses names that are no privileges, and privileges that nobody can hold here.
func checkPrivilege(p authz.Privilege) error {
	if !authz.Known(p) {
		return fault.New(fault.BadRequest, "privilege %q does not exist", p)
	}
	if why := authz.Unserved(p); why != "" {
		return fault.New(fault.BadRequest, "privilege %s cannot be granted here: %s", p, why)
	}
	return nil
}

// kindsText is "a warehouse, a namespace or a table".
func kindsText(kinds []authz.SecurableKind) string {
	text := ""
	for i, kind := range kinds {
		switch {
		case i > 0 && i == len(kinds)-1:
			text += " or "
		case i > 0:
			text += ", "
		}
		switch kind {
		case authz.Root:
			text += "the service"
		case authz.Catalog:
			text += "a warehouse"
		default:
			text += "a " + string(kind)
		}
	}
	return text
}

func (q Question) askedOperation() (asked, error) {
	targets, ok := operationNeeds[q.Operation]
	if !ok {
		return asked{}, fault.New(fault.BadRequest,
			"operation %q is not known: operations are named as in the log, such as load-table, commit-table, create-namespace; privileges in upper case", q.Operation)
	}
	for _, kind := range []authz.SecurableKind{q.On.Kind(), authz.Namespace, authz.Catalog, authz.Root} {
		i := slices.IndexFunc(targets, func(t operationTarget) bool { return t.on == kind })
		if i < 0 {
			continue
		}
		if on, ok := q.On.outer(kind); ok {
			return asked{what: q.Operation, on: on, wishes: targets[i].wishes}, nil
		}
	}
	var kinds []authz.SecurableKind
	for _, t := range targets {
		kinds = append(kinds, t.on)
	}
	return asked{}, fault.New(fault.BadRequest, "operation %s is about %s: say which", q.Operation, kindsText(kinds))
}
