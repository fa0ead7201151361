package authz

import "slices"

// The privileges, spelled as Apache Polaris spells them.
const (
	ServiceManageAccess Privilege = "SERVICE_MANAGE_ACCESS"
	// AuditRead is ours: Polaris has no audit to read.
	AuditRead Privilege = "AUDIT_READ"

	CatalogManageAccess    Privilege = "CATALOG_MANAGE_ACCESS"
	CatalogManageMetadata  Privilege = "CATALOG_MANAGE_METADATA"
	CatalogManageContent   Privilege = "CATALOG_MANAGE_CONTENT"
	CatalogCreate          Privilege = "CATALOG_CREATE"
	CatalogDrop            Privilege = "CATALOG_DROP"
	CatalogList            Privilege = "CATALOG_LIST"
	CatalogReadProperties  Privilege = "CATALOG_READ_PROPERTIES"
	CatalogWriteProperties Privilege = "CATALOG_WRITE_PROPERTIES"
	CatalogFullMetadata    Privilege = "CATALOG_FULL_METADATA"
	CatalogListGrants      Privilege = "CATALOG_LIST_GRANTS"
	CatalogManageGrants    Privilege = "CATALOG_MANAGE_GRANTS_ON_SECURABLE"

	NamespaceCreate          Privilege = "NAMESPACE_CREATE"
	NamespaceDrop            Privilege = "NAMESPACE_DROP"
	NamespaceList            Privilege = "NAMESPACE_LIST"
	NamespaceReadProperties  Privilege = "NAMESPACE_READ_PROPERTIES"
	NamespaceWriteProperties Privilege = "NAMESPACE_WRITE_PROPERTIES"
	NamespaceFullMetadata    Privilege = "NAMESPACE_FULL_METADATA"
	NamespaceListGrants      Privilege = "NAMESPACE_LIST_GRANTS"
	NamespaceManageGrants    Privilege = "NAMESPACE_MANAGE_GRANTS_ON_SECURABLE"

	TableCreate          Privilege = "TABLE_CREATE"
	TableDrop            Privilege = "TABLE_DROP"
	TableList            Privilege = "TABLE_LIST"
	TableReadProperties  Privilege = "TABLE_READ_PROPERTIES"
	TableWriteProperties Privilege = "TABLE_WRITE_PROPERTIES"
	TableReadData        Privilege = "TABLE_READ_DATA"
	TableWriteData       Privilege = "TABLE_WRITE_DATA"
	TableFullMetadata    Privilege = "TABLE_FULL_METADATA"
	TableListGrants      Privilege = "TABLE_LIST_GRANTS"
	TableManageGrants    Privilege = "TABLE_MANAGE_GRANTS_ON_SECURABLE"
	TableManageStructure Privilege = "TABLE_MANAGE_STRUCTURE"

	TableAssignUUID           Privilege = "TABLE_ASSIGN_UUID"
	TableUpgradeFormatVersion Privilege = "TABLE_UPGRADE_FORMAT_VERSION"
	TableAddSchema            Privilege = "TABLE_ADD_SCHEMA"
	TableSetCurrentSchema     Privilege = "TABLE_SET_CURRENT_SCHEMA"
	TableAddPartitionSpec     Privilege = "TABLE_ADD_PARTITION_SPEC"
	TableAddSortOrder         Privilege = "TABLE_ADD_SORT_ORDER"
	TableSetDefaultSortOrder  Privilege = "TABLE_SET_DEFAULT_SORT_ORDER"
	TableAddSnapshot          Privilege = "TABLE_ADD_SNAPSHOT"
	TableSetSnapshotRef       Privilege = "TABLE_SET_SNAPSHOT_REF"
	TableRemoveSnapshots      Privilege = "TABLE_REMOVE_SNAPSHOTS"
	TableRemoveSnapshotRef    Privilege = "TABLE_REMOVE_SNAPSHOT_REF"
	TableSetLocation          Privilege = "TABLE_SET_LOCATION"
	TableSetProperties        Privilege = "TABLE_SET_PROPERTIES"
	TableRemoveProperties     Privilege = "TABLE_REMOVE_PROPERTIES"
	TableSetStatistics        Privilege = "TABLE_SET_STATISTICS"
	TableRemoveStatistics     Privilege = "TABLE_REMOVE_STATISTICS"
	TableRemovePartitionSpecs Privilege = "TABLE_REMOVE_PARTITION_SPECS"

	ViewCreate          Privilege = "VIEW_CREATE"
	ViewDrop            Privilege = "VIEW_DROP"
	ViewList            Privilege = "VIEW_LIST"
	ViewReadProperties  Privilege = "VIEW_READ_PROPERTIES"
	ViewWriteProperties Privilege = "VIEW_WRITE_PROPERTIES"
	ViewFullMetadata    Privilege = "VIEW_FULL_METADATA"
	ViewListGrants      Privilege = "VIEW_LIST_GRANTS"
	ViewManageGrants    Privilege = "VIEW_MANAGE_GRANTS_ON_SECURABLE"

	PrincipalCreate                 Privilege = "PRINCIPAL_CREATE"
	PrincipalDrop                   Privilege = "PRINCIPAL_DROP"
	PrincipalList                   Privilege = "PRINCIPAL_LIST"
	PrincipalReadProperties         Privilege = "PRINCIPAL_READ_PROPERTIES"
	PrincipalWriteProperties        Privilege = "PRINCIPAL_WRITE_PROPERTIES"
	PrincipalFullMetadata           Privilege = "PRINCIPAL_FULL_METADATA"
	PrincipalListGrants             Privilege = "PRINCIPAL_LIST_GRANTS"
	PrincipalManageGrants           Privilege = "PRINCIPAL_MANAGE_GRANTS_ON_SECURABLE"
	PrincipalManageGrantsForGrantee Privilege = "PRINCIPAL_MANAGE_GRANTS_FOR_GRANTEE"
	PrincipalRotateCredentials      Privilege = "PRINCIPAL_ROTATE_CREDENTIALS"
	PrincipalResetCredentials       Privilege = "PRINCIPAL_RESET_CREDENTIALS"
	PrincipalImpersonate            Privilege = "PRINCIPAL_IMPERSONATE"

	PrincipalRoleCreate                 Privilege = "PRINCIPAL_ROLE_CREATE"
	PrincipalRoleDrop                   Privilege = "PRINCIPAL_ROLE_DROP"
	PrincipalRoleList                   Privilege = "PRINCIPAL_ROLE_LIST"
	PrincipalRoleReadProperties         Privilege = "PRINCIPAL_ROLE_READ_PROPERTIES"
	PrincipalRoleWriteProperties        Privilege = "PRINCIPAL_ROLE_WRITE_PROPERTIES"
	PrincipalRoleFullMetadata           Privilege = "PRINCIPAL_ROLE_FULL_METADATA"
	PrincipalRoleListGrants             Privilege = "PRINCIPAL_ROLE_LIST_GRANTS"
	PrincipalRoleManageGrants           Privilege = "PRINCIPAL_ROLE_MANAGE_GRANTS_ON_SECURABLE"
	PrincipalRoleManageGrantsForGrantee Privilege = "PRINCIPAL_ROLE_MANAGE_GRANTS_FOR_GRANTEE"

	CatalogRoleCreate                 Privilege = "CATALOG_ROLE_CREATE"
	CatalogRoleDrop                   Privilege = "CATALOG_ROLE_DROP"
	CatalogRoleList                   Privilege = "CATALOG_ROLE_LIST"
	CatalogRoleReadProperties         Privilege = "CATALOG_ROLE_READ_PROPERTIES"
	CatalogRoleWriteProperties        Privilege = "CATALOG_ROLE_WRITE_PROPERTIES"
	CatalogRoleFullMetadata           Privilege = "CATALOG_ROLE_FULL_METADATA"
	CatalogRoleListGrants             Privilege = "CATALOG_ROLE_LIST_GRANTS"
	CatalogRoleManageGrants           Privilege = "CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE"
	CatalogRoleManageGrantsForGrantee Privilege = "CATALOG_ROLE_MANAGE_GRANTS_FOR_GRANTEE"
)

// Row says everything about one privilege.
type Row struct {
	Name Privilege
	// On are the kinds of securables that it can be granted on; from there it holds for everything below.
	On []SecurableKind
	// ImpliedBy are the privileges that contain this one. The relation is complete: whatever contains one of
	// these is listed as well (a test holds the table to it), so a decision never has to follow chains.
	ImpliedBy []Privilege
	Meaning   string
	// Means are the privileges that this one is another name for, all of them together; nil for most.
	Means []Privilege
	// Unserved says why nobody can be granted it here; "" for most. Such a row has no On.
	Unserved string
}

// Rows gives the table of all privileges. Callers must not change it.
func Rows() []Row { return rows }

// Known tells whether the table has the privilege.
func Known(p Privilege) bool {
	_, ok := rowOf[p]
	return ok
}

// Grantable tells whether the privilege can be granted on securables of the kind.
func Grantable(p Privilege, on SecurableKind) bool {
	row, ok := rowOf[p]
	return ok && slices.Contains(row.On, on)
}

// Implies tells whether who holds held may do what needs wanted, on the same securable.
func Implies(held, wanted Privilege) bool {
	row, ok := rowOf[wanted]
	return ok && (held == wanted || slices.Contains(row.ImpliedBy, held))
}

// Implying gives the privilege and all that contain it.
func Implying(wanted Privilege) []Privilege {
	row, ok := rowOf[wanted]
	if !ok {
		return nil
	}
	return append([]Privilege{wanted}, row.ImpliedBy...)
}

// rows is the whole table: what is served, what is not, and the names from elsewhere.
var rows = assemble()

var rowOf = func() map[Privilege]*Row {
	byName := make(map[Privilege]*Row, len(rows))
	for i := range rows {
		byName[rows[i].Name] = &rows[i]
	}
	return byName
}()

// Where a privilege can be granted. Those of service administration are held on the root, by principal roles; all
// others by catalog roles, on the warehouse or on something inside.
var (
	onRoot      = []SecurableKind{Root}
	onCatalog   = []SecurableKind{Catalog}
	onNamespace = []SecurableKind{Catalog, Namespace}
	onTable     = []SecurableKind{Catalog, Namespace, Table}
	onView      = []SecurableKind{Catalog, Namespace, View}
	onAny       = []SecurableKind{Catalog, Namespace, Table, View}
)

// What contains what is Polaris' relation: CATALOG_MANAGE_CONTENT contains CATALOG_MANAGE_METADATA, and data
// privileges contain the metadata privileges that using the data needs; metadata privileges never contain data.
var (
	byService   = []Privilege{ServiceManageAccess}
	byAccess    = []Privilege{CatalogManageAccess}
	byContent   = []Privilege{CatalogManageContent}
	byManage    = []Privilege{CatalogManageMetadata, CatalogManageContent}
	byNamespace = with(byManage, NamespaceFullMetadata)
	byTable     = with(byManage, TableFullMetadata)
	byView      = with(byManage, ViewFullMetadata)
	// byStructure is for updates of a table; bySnapshot for those two that put data into it.
	byStructure = with(byTable, TableManageStructure, TableWriteProperties, TableWriteData)
	bySnapshot  = with(byTable, TableWriteProperties, TableWriteData)
)

func with(some []Privilege, more ...Privilege) []Privilege {
	return append(append([]Privilege(nil), more...), some...)
}

// servedRow is a row of a privilege that can be granted.
type servedRow struct {
	name      Privilege
	on        []SecurableKind
	impliedBy []Privilege
	meaning   string
}

var served = []servedRow{
	{ServiceManageAccess, onRoot, nil, "administer the service: warehouses, principals and principal roles"},

	{AuditRead, []SecurableKind{Root, Catalog}, with(byService, CatalogManageAccess), "read the audit and all events, of the service or of a warehouse"},

	{CatalogManageAccess, onAny, nil, "administer the catalog roles and grants of a warehouse"},
	{CatalogManageMetadata, onNamespace, byContent, "do everything with namespaces, tables and views but touch data"},
	{CatalogManageContent, onNamespace, nil, "do everything with namespaces, tables and views, data included"},
	{CatalogCreate, onRoot, with(byService, CatalogFullMetadata), "create warehouses"},
	{CatalogDrop, onRoot, with(byService, CatalogFullMetadata), "drop an empty warehouse"},
	{CatalogList, []SecurableKind{Root, Catalog}, with(with(byManage, ServiceManageAccess), CatalogCreate, CatalogReadProperties, CatalogWriteProperties, CatalogFullMetadata), "see that a warehouse exists"},
	{CatalogReadProperties, []SecurableKind{Root, Catalog}, with(with(byManage, ServiceManageAccess), CatalogWriteProperties, CatalogFullMetadata), "read a warehouse's properties and storage settings"},
	{CatalogWriteProperties, []SecurableKind{Root, Catalog}, with(with(byManage, ServiceManageAccess), CatalogFullMetadata), "change a warehouse's properties and storage settings"},
	{CatalogFullMetadata, onRoot, byService, "create, list, read, change and drop warehouses"},
	{CatalogListGrants, onCatalog, with(byAccess, CatalogManageGrants), "see the grants on a warehouse"},
	{CatalogManageGrants, onCatalog, byAccess, "grant privileges on a warehouse"},

	{NamespaceCreate, onNamespace, byNamespace, "create namespaces"},
	{NamespaceDrop, onNamespace, byNamespace, "drop an empty namespace"},
	{NamespaceList, onNamespace, with(byNamespace, NamespaceCreate, NamespaceReadProperties, NamespaceWriteProperties), "see which namespaces exist"},
	{NamespaceReadProperties, onNamespace, with(byNamespace, NamespaceWriteProperties), "read a namespace's properties"},
	{NamespaceWriteProperties, onNamespace, byNamespace, "change a namespace's properties"},
	{NamespaceFullMetadata, onNamespace, byManage, "create, list, read, change and drop namespaces"},
	{NamespaceListGrants, onNamespace, with(byAccess, NamespaceManageGrants), "see the grants on a namespace"},
	{NamespaceManageGrants, onNamespace, byAccess, "grant privileges on a namespace"},

	{TableCreate, onNamespace, byTable, "create and register tables"},
	{TableDrop, onTable, byTable, "drop a table"},
	{TableList, onTable, with(byTable, TableCreate, TableReadProperties, TableWriteProperties, TableReadData, TableWriteData), "see which tables exist"},
	{TableReadProperties, onTable, with(byTable, TableWriteProperties, TableReadData, TableWriteData), "load a table's metadata"},
	{TableWriteProperties, onTable, with(byTable, TableWriteData), "commit changes to a table's metadata"},
	{TableReadData, onTable, with(byContent, TableWriteData), "get credentials to read a table's files"},
	{TableWriteData, onTable, byContent, "get credentials to read and write a table's files"},
	{TableFullMetadata, onTable, byManage, "create, list, load, change and drop tables"},
	{TableListGrants, onTable, with(byAccess, TableManageGrants), "see the grants on a table"},
	{TableManageGrants, onTable, byAccess, "grant privileges on a table"},
	{TableManageStructure, onTable, with(byTable, TableWriteProperties, TableWriteData), "change a table's structure, but add no snapshot"},

	{TableAssignUUID, onTable, byStructure, "commit assign-uuid"},
	{TableUpgradeFormatVersion, onTable, byStructure, "commit upgrade-format-version"},
	{TableAddSchema, onTable, byStructure, "commit add-schema"},
	{TableSetCurrentSchema, onTable, byStructure, "commit set-current-schema"},
	{TableAddPartitionSpec, onTable, byStructure, "commit add-spec and set-default-spec"},
	{TableAddSortOrder, onTable, byStructure, "commit add-sort-order"},
	{TableSetDefaultSortOrder, onTable, byStructure, "commit set-default-sort-order"},
	{TableAddSnapshot, onTable, bySnapshot, "commit add-snapshot"},
	{TableSetSnapshotRef, onTable, bySnapshot, "commit set-snapshot-ref"},
	{TableRemoveSnapshots, onTable, byStructure, "commit remove-snapshots"},
	{TableRemoveSnapshotRef, onTable, byStructure, "commit remove-snapshot-ref"},
	{TableSetLocation, onTable, byStructure, "commit set-location"},
	{TableSetProperties, onTable, byStructure, "commit set-properties"},
	{TableRemoveProperties, onTable, byStructure, "commit remove-properties"},
	{TableSetStatistics, onTable, byStructure, "commit set-statistics and set-partition-statistics"},
	{TableRemoveStatistics, onTable, byStructure, "commit remove-statistics and remove-partition-statistics"},
	{TableRemovePartitionSpecs, onTable, byStructure, "commit remove-partition-specs"},

	{ViewCreate, onNamespace, byView, "create views"},
	{ViewDrop, onView, byView, "drop a view"},
	{ViewList, onView, with(byView, ViewCreate, ViewReadProperties, ViewWriteProperties), "see which views exist"},
	{ViewReadProperties, onView, with(byView, ViewWriteProperties), "load a view's metadata"},
	{ViewWriteProperties, onView, byView, "commit changes to a view"},
	{ViewFullMetadata, onView, byManage, "create, list, load, change and drop views"},
	{ViewListGrants, onView, with(byAccess, ViewManageGrants), "see the grants on a view"},
	{ViewManageGrants, onView, byAccess, "grant privileges on a view"},

	{PrincipalCreate, onRoot, with(byService, PrincipalFullMetadata), "create principals"},
	{PrincipalDrop, onRoot, with(byService, PrincipalFullMetadata), "drop principals"},
	{PrincipalList, onRoot, with(byService, PrincipalFullMetadata, PrincipalCreate, PrincipalReadProperties, PrincipalWriteProperties), "see which principals exist"},
	{PrincipalReadProperties, onRoot, with(byService, PrincipalFullMetadata, PrincipalWriteProperties), "read a principal's properties"},
	{PrincipalWriteProperties, onRoot, with(byService, PrincipalFullMetadata), "change a principal's properties"},
	{PrincipalFullMetadata, onRoot, byService, "create, list, read, change and drop principals"},
	{PrincipalListGrants, onRoot, with(byService, PrincipalManageGrants, PrincipalManageGrantsForGrantee), "see which roles a principal has"},
	{PrincipalManageGrants, onRoot, byService, "grant privileges on a principal"},
	{PrincipalManageGrantsForGrantee, onRoot, byService, "take roles away from a principal"},
	{PrincipalRotateCredentials, onRoot, byService, "give a principal a new secret that nobody chose; everybody may himself"},
	{PrincipalResetCredentials, onRoot, byService, "give a principal a new secret"},
	{PrincipalImpersonate, onRoot, nil, "act for principals that have no rights over principals, at the token route; nothing contains it"},

	{PrincipalRoleCreate, onRoot, with(byService, PrincipalRoleFullMetadata), "create principal roles"},
	{PrincipalRoleDrop, onRoot, with(byService, PrincipalRoleFullMetadata), "drop principal roles"},
	{PrincipalRoleList, onRoot, with(byService, PrincipalRoleFullMetadata, PrincipalRoleCreate, PrincipalRoleReadProperties, PrincipalRoleWriteProperties), "see which principal roles exist"},
	{PrincipalRoleReadProperties, onRoot, with(byService, PrincipalRoleFullMetadata, PrincipalRoleWriteProperties), "read a principal role's properties"},
	{PrincipalRoleWriteProperties, onRoot, with(byService, PrincipalRoleFullMetadata), "change a principal role's properties"},
	{PrincipalRoleFullMetadata, onRoot, byService, "create, list, read, change and drop principal roles"},
	{PrincipalRoleListGrants, onRoot, with(byService, PrincipalRoleManageGrants, PrincipalRoleManageGrantsForGrantee), "see who has a principal role and what it has"},
	{PrincipalRoleManageGrants, onRoot, byService, "give principals a principal role that holds nothing on the service itself"},
	{PrincipalRoleManageGrantsForGrantee, onRoot, byService, "give and take catalog roles to and from a principal role"},

	{CatalogRoleCreate, onCatalog, with(byAccess, CatalogRoleFullMetadata), "create catalog roles"},
	{CatalogRoleDrop, onCatalog, with(byAccess, CatalogRoleFullMetadata), "drop catalog roles"},
	{CatalogRoleList, onCatalog, with(byAccess, CatalogRoleFullMetadata, CatalogRoleCreate, CatalogRoleReadProperties, CatalogRoleWriteProperties), "see which catalog roles exist"},
	{CatalogRoleReadProperties, onCatalog, with(byAccess, CatalogRoleFullMetadata, CatalogRoleWriteProperties), "read a catalog role's properties"},
	{CatalogRoleWriteProperties, onCatalog, with(byAccess, CatalogRoleFullMetadata), "change a catalog role's properties"},
	{CatalogRoleFullMetadata, onCatalog, byAccess, "create, list, read, change and drop catalog roles"},
	{CatalogRoleListGrants, onCatalog, with(byAccess, CatalogRoleManageGrants, CatalogRoleManageGrantsForGrantee), "see what a catalog role holds and who has it"},
	{CatalogRoleManageGrants, onCatalog, byAccess, "give a catalog role that administers no roles to principal roles and take it back"},
	{CatalogRoleManageGrantsForGrantee, onCatalog, byAccess, "take grants away from a catalog role"},
}
