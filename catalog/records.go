package catalog

import (
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/vending"
)

// Caller is who asks, and in which request.
type Caller struct {
	Principal auth.Principal
	RequestID string
	Client    string // network address
	UserAgent string // as the client says, shortened; for the audit
	// Key is set when the client may send this request again; the zero value when not.
	Key RequestKey
}

// Warehouse is a named root of namespaces with its own storage. Polaris calls it a catalog.
type Warehouse struct {
	ID         uuid.UUID
	Name       string
	Location   string // base of new tables, no trailing slash
	Properties map[string]string
	Storage    vending.Profile
	// FoldsNames tells that names of namespaces, tables and views are compared without regard to case (FoldName) and
	// shown as they were made. It never changes.
	FoldsNames bool
	OwnerID    uuid.UUID // the principal that owns it; uuid.Nil: nobody does
	Version    int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// NamespaceRecord is a namespace as stored.
type NamespaceRecord struct {
	ID         uuid.UUID
	Levels     Namespace
	Properties map[string]string
	OwnerID    uuid.UUID // as of a Warehouse
	Version    int64
}

// TableRecord is a table's or a view's row: the pointer and what is queried beside it.
type TableRecord struct {
	ID               uuid.UUID // the row's, stays over renames
	Kind             Kind
	NamespaceID      uuid.UUID
	Ident            Identifier
	UUID             uuid.UUID // the metadata's table-uuid or view-uuid
	Location         string    // no trailing slash
	MetadataLocation string
	FormatVersion    int
	OwnerID          uuid.UUID // as of a Warehouse
	Version          int64
}

// place is where the table or view was when the record was read.
func (r TableRecord) place() Place { return Place{r.NamespaceID, r.Ident.Name} }

// Lookup says what a request is about. Namespace nil means the warehouse alone; Table "" the namespace alone. Table is
// the name of a table or a view.
type Lookup struct {
	Principal auth.Principal
	Warehouse string // name or id
	Namespace Namespace
	Table     string
}

// Resolution is the answer to a Lookup: one statement, one moment in time. What is missing is nil.
type Resolution struct {
	Warehouse *Warehouse
	// Ancestors are the namespace's proper ancestors that exist, outermost first; their grants hold below them.
	Ancestors []NamespaceRecord
	Namespace *NamespaceRecord
	// At most one of Table and View is set: the name is the one's or the other's.
	Table *TableRecord
	View  *TableRecord
	// Caller is what the caller's token is judged by; nil when the principal has been deleted since it was made, and for
	// the server itself.
	Caller *auth.CallerState
	// Grants are those of the caller's active roles on the root, the warehouse, the namespaces and the table above.
	Grants []authz.Grant
}

// Path gives the securables from the root to the innermost thing that was found.
func (r Resolution) Path() []authz.Securable {
	path := make([]authz.Securable, 1, 4+len(r.Ancestors))
	path[0] = authz.Securable{Kind: authz.Root, ID: authz.RootID, Name: "root"}
	if r.Warehouse == nil {
		return path
	}
	path = append(path, authz.Securable{Kind: authz.Catalog, ID: r.Warehouse.ID, Name: r.Warehouse.Name})
	for _, a := range r.Ancestors {
		path = append(path, authz.Securable{Kind: authz.Namespace, ID: a.ID, Name: a.Levels.String()})
	}
	if r.Namespace != nil {
		path = append(path, authz.Securable{Kind: authz.Namespace, ID: r.Namespace.ID, Name: r.Namespace.Levels.String()})
	}
	if r.Table != nil {
		path = append(path, authz.Securable{Kind: authz.Table, ID: r.Table.ID, Name: r.Table.Ident.String()})
	}
	if r.View != nil {
		path = append(path, authz.Securable{Kind: authz.View, ID: r.View.ID, Name: r.View.Ident.String()})
	}
	return path
}

// Page asks for a part of a list in name order. Limit 0 means everything.
type Page struct {
	After string // the last name of the page before; "" for the first
	Limit int
}

// ListQuery says which part of a list by name is wanted. The zero value is all of it.
type ListQuery struct {
	Page
	Prefix   string // names that begin so; "" takes all
	Contains string // names that have this in them, the letters A to Z in either case; "" takes all
}

// Fact is what a mutation leaves behind: one event row and one audit row, written in the mutation's transaction.
type Fact struct {
	ID        uuid.UUID // of the event; for commits also the commit's id
	At        time.Time
	Caller    Caller
	Operation string // the endpoint table's name, for example "commit-table"
	Warehouse uuid.UUID
	Securable uuid.UUID
	Subject   string         // for people: "ns.table"
	Details   map[string]any // small; never secrets
	// Outcome is kept with the fact, under the caller's key; nil keeps none. One fact of a transaction has it.
	Outcome *Outcome
}

// Denial is a refused attempt, for the audit.
type Denial struct {
	At        time.Time
	Caller    Caller
	Operation string
	Subject   string
	Reason    string
	Warehouse uuid.UUID       // uuid.Nil: none, or not known
	On        authz.Securable // that the privilege was looked for on; the zero value: none was
	Privilege authz.Privilege // that was missing; "": the refusal has another reason
	Repeats   int64           // more than 0: the row stands for so many refusals that have none of their own
}
