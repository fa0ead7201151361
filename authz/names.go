package authz

import "slices"

// Names that users of other systems know. They are privileges like all others: granted, listed and taken back under
// their own name. What their holder may do is what the privileges that they mean let him do.
const (
	Select    Privilege = "SELECT"
	Insert    Privilege = "INSERT"
	Update    Privilege = "UPDATE"
	Delete    Privilege = "DELETE"
	Truncate  Privilege = "TRUNCATE"
	Ownership Privilege = "OWNERSHIP"
)

// The four ways to write mean the same: who has an object store's credentials to write a table's files can add, replace
// and remove them, and the store does not know which statement it was for.
var (
	writeData = []Privilege{TableWriteData}
	owned     = []Privilege{
		NamespaceFullMetadata, TableFullMetadata, ViewFullMetadata, TableWriteData, CatalogWriteProperties,
		CatalogManageGrants, NamespaceManageGrants, TableManageGrants, ViewManageGrants,
	}
	named = []Row{
		{Name: Select, On: onAny, Means: []Privilege{TableReadData, ViewReadProperties}, Meaning: "read a table's data; query a view"},
		{Name: Insert, On: onTable, Means: writeData, Meaning: "write a table's data, in whatever way"},
		{Name: Update, On: onTable, Means: writeData, Meaning: "write a table's data, in whatever way"},
		{Name: Delete, On: onTable, Means: writeData, Meaning: "write a table's data, in whatever way"},
		{Name: Truncate, On: onTable, Means: writeData, Meaning: "write a table's data, in whatever way"},
		{Name: Ownership, On: onAny, Means: owned, Meaning: "do everything with it but drop a warehouse: metadata, data, grants"},
	}
)

// Polaris' privileges that have nothing to be about here. They are known, so that a grant of one is refused with the
// reason and not as a slip of the pen.
const (
	noPolicies = "this server has no policies"
	byRoles    = "it comes with the role: give the role itself (catalogd role assign)"
)

var unserved = []Row{
	{Name: "CATALOG_ROLE_USAGE", Unserved: byRoles, Meaning: "have a catalog role"},
	{Name: "PRINCIPAL_ROLE_USAGE", Unserved: byRoles, Meaning: "have a principal role"},
	{Name: "POLICY_CREATE", ImpliedBy: byPolicy, Unserved: noPolicies, Meaning: "create policies"},
	{Name: "POLICY_READ", ImpliedBy: with(byPolicy, "POLICY_WRITE"), Unserved: noPolicies, Meaning: "read a policy"},
	{Name: "POLICY_DROP", ImpliedBy: byPolicy, Unserved: noPolicies, Meaning: "drop a policy"},
	{Name: "POLICY_WRITE", ImpliedBy: byPolicy, Unserved: noPolicies, Meaning: "change a policy"},
	{Name: "POLICY_LIST", ImpliedBy: with(byPolicy, "POLICY_CREATE", "POLICY_READ", "POLICY_WRITE"), Unserved: noPolicies, Meaning: "see which policies exist"},
	{Name: "POLICY_FULL_METADATA", ImpliedBy: byManage, Unserved: noPolicies, Meaning: "create, list, read, change and drop policies"},
	{Name: "POLICY_ATTACH", ImpliedBy: byManage, Unserved: noPolicies, Meaning: "attach a policy to something"},
	{Name: "POLICY_DETACH", ImpliedBy: byManage, Unserved: noPolicies, Meaning: "detach a policy from something"},
	{Name: "CATALOG_ATTACH_POLICY", ImpliedBy: byManage, Unserved: noPolicies, Meaning: "attach policies to a warehouse"},
	{Name: "NAMESPACE_ATTACH_POLICY", ImpliedBy: byManage, Unserved: noPolicies, Meaning: "attach policies to a namespace"},
	{Name: "TABLE_ATTACH_POLICY", ImpliedBy: byManage, Unserved: noPolicies, Meaning: "attach policies to a table"},
	{Name: "CATALOG_DETACH_POLICY", ImpliedBy: byManage, Unserved: noPolicies, Meaning: "detach policies from a warehouse"},
	{Name: "NAMESPACE_DETACH_POLICY", ImpliedBy: byManage, Unserved: noPolicies, Meaning: "detach policies from a namespace"},
	{Name: "TABLE_DETACH_POLICY", ImpliedBy: byManage, Unserved: noPolicies, Meaning: "detach policies from a table"},
	{Name: "POLICY_MANAGE_GRANTS_ON_SECURABLE", ImpliedBy: byAccess, Unserved: noPolicies, Meaning: "grant privileges on a policy"},
}

var byPolicy = with(byManage, "POLICY_FULL_METADATA")

// assemble puts the parts together. A name from elsewhere contains what it means and all that this contains, so it is
// listed wherever one of these is: Decide looks one step far.
func assemble() []Row {
	all := make([]Row, 0, len(served)+len(unserved)+len(named))
	for _, s := range served {
		all = append(all, Row{Name: s.name, On: s.on, ImpliedBy: s.impliedBy, Meaning: s.meaning})
	}
	all = append(all, unserved...)
	for i := range all {
		by := slices.Clone(all[i].ImpliedBy)
		for _, n := range named {
			means := func(p Privilege) bool { return slices.Contains(n.Means, p) }
			if means(all[i].Name) || slices.ContainsFunc(all[i].ImpliedBy, means) {
				by = append(by, n.Name)
			}
		}
		all[i].ImpliedBy = by
	}
	return append(all, named...)
}

// Unserved says why a privilege that exists cannot be granted here; "" when it can, or does not exist.
func Unserved(p Privilege) string {
	if row, ok := rowOf[p]; ok {
		return row.Unserved
	}
	return ""
}

// Kinds gives the kinds of securables that a privilege can be granted on, from the root down; nil for an unknown one.
func Kinds(p Privilege) []SecurableKind {
	if row, ok := rowOf[p]; ok {
		return row.On
	}
	return nil
}

// Meant gives what must be held, all of it, to have the privilege on a securable of the kind: the privilege itself or
// what it is another name for there. Empty when it says nothing about such securables.
func Meant(p Privilege, on SecurableKind) []Privilege {
	if !Grantable(p, on) {
		return nil
	}
	means := rowOf[p].Means
	if means == nil {
		return []Privilege{p}
	}
	var meant []Privilege
	for _, m := range means {
		if Grantable(m, on) {
			meant = append(meant, m)
		}
	}
	return meant
}

// Effective gives what who holds the privileges on a securable of the kind may do there and below, in the table's order:
// the privileges and all that they contain and that can be held there.
func Effective(held []Privilege, on SecurableKind) []Privilege {
	var all []Privilege
	for _, row := range rows {
		if slices.Contains(row.On, on) && slices.ContainsFunc(held, func(h Privilege) bool { return Implies(h, row.Name) }) {
			all = append(all, row.Name)
		}
	}
	return all
}
