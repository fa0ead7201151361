package catalog

import (
	"context"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// Kind tells tables from views: both take their names from one space.
type Kind string

// The kinds of things that a namespace holds. KindNamespace is one in lists alone: namespaces have names of their own.
const (
	KindTable     Kind = "table"
	KindView      Kind = "view"
	KindNamespace Kind = "namespace"
)

// title is the kind at the beginning of a sentence.
func (k Kind) title() string {
	if k == KindView {
		return "View"
	}
	return "Table"
}

// Missing is the refusal of a name that no table, or no view, has.
func (k Kind) Missing(id Identifier) error {
	if k == KindView {
		return fault.New(fault.NoSuchView, "View does not exist: %s", id)
	}
	return fault.New(fault.NoSuchTable, "Table does not exist: %s", id)
}

// Taken is the refusal to make something of this kind under a name that the holder has.
func (k Kind) Taken(id Identifier, holder Kind) error {
	what := holder.title()
	if holder != k {
		what += " with same name"
	}
	return fault.New(fault.AlreadyExists, "%s already exists: %s", what, id)
}

// NotRenamed is the refusal to rename to a name that something of this kind has.
func (k Kind) NotRenamed(source, target Identifier) error {
	return fault.New(fault.AlreadyExists, "Cannot rename %s to %s. %s already exists", source, target, k.title())
}

// rights are the privileges that the operations on one kind need.
type rights struct {
	list, read, create, drop authz.Privilege
}

var rightsOf = map[Kind]rights{
	KindTable: {authz.TableList, authz.TableReadProperties, authz.TableCreate, authz.TableDrop},
	KindView:  {authz.ViewList, authz.ViewReadProperties, authz.ViewCreate, authz.ViewDrop},
}

// of gives the resolution's table or view; nil when there is none of this kind.
func (k Kind) of(res Resolution) *TableRecord {
	if k == KindView {
		return res.View
	}
	return res.Table
}

// resolveKind finds a table or a view for an operation.
func (s *Service) resolveKind(ctx context.Context, c Caller, kind Kind, warehouse string, id Identifier, n need) (Resolution, error) {
	if kind == KindView {
		return s.resolveView(ctx, c, warehouse, id, n)
	}
	return s.resolveTable(ctx, c, warehouse, id, n)
}
