package catalog

import (
	"maps"
	"slices"

	"catalogd/authz"
)

// operationTarget says what an operation needs on a kind of securable: all of the wishes.
type operationTarget struct {
	on     authz.SecurableKind
	wishes []wish
}

// on is a target whose needs are all on the securable itself.
func on(kind authz.SecurableKind, wanted ...authz.Privilege) []operationTarget {
	t := operationTarget{on: kind}
	for _, p := range wanted {
		t.wishes = append(t.wishes, wish{p, kind})
	}
	return []operationTarget{t}
}

// and adds a need on something around.
func and(targets []operationTarget, wanted authz.Privilege, at authz.SecurableKind) []operationTarget {
	for i := range targets {
		targets[i].wishes = append(targets[i].wishes, wish{wanted, at})
	}
	return targets
}

// operationNeeds is what the operations need, under their names in the endpoint table. It is for answering questions: the
// operations themselves ask for their rights where they stand, and a test runs each of them with exactly these, and with
// each of these taken away. Some need more than their name tells, and the answer is about the usual case:
// committing needs TABLE_WRITE_PROPERTIES for any update, a narrower privilege for one of its kind; a renamed table is taken to stay in its
// namespace; creating is without data; registering is without overwriting; dropping is without purging.
var operationNeeds = map[string][]operationTarget{
	"list-namespaces":  slices.Concat(on(authz.Namespace, authz.NamespaceList), on(authz.Catalog, authz.NamespaceList)),
	"create-namespace": slices.Concat(on(authz.Namespace, authz.NamespaceCreate), on(authz.Catalog, authz.NamespaceCreate)),
	"load-namespace":   on(authz.Namespace, authz.NamespaceReadProperties),
	"namespace-exists": on(authz.Namespace, authz.NamespaceList),
	"update-namespace": on(authz.Namespace, authz.NamespaceWriteProperties),
	"drop-namespace":   on(authz.Namespace, authz.NamespaceDrop),

	"list-tables":        on(authz.Namespace, authz.TableList),
	"create-table":       on(authz.Namespace, authz.TableCreate),
	"register-table":     on(authz.Namespace, authz.TableCreate),
	"load-table":         on(authz.Table, authz.TableReadProperties),
	"table-exists":       on(authz.Table, authz.TableList),
	"commit-table":       on(authz.Table, authz.TableWriteProperties),
	"commit-transaction": on(authz.Table, authz.TableWriteProperties),
	"drop-table":         on(authz.Table, authz.TableDrop),
	"unregister-table":   on(authz.Table, authz.TableDrop, authz.TableReadProperties),
	"rename-table":       and(on(authz.Table, authz.TableDrop), authz.TableCreate, authz.Namespace),
	"load-credentials":   on(authz.Table, authz.TableReadData),
	"report-metrics":     on(authz.Table, authz.TableReadData),

	"list-views":    on(authz.Namespace, authz.ViewList),
	"create-view":   on(authz.Namespace, authz.ViewCreate),
	"register-view": on(authz.Namespace, authz.ViewCreate),
	"load-view":     on(authz.View, authz.ViewReadProperties),
	"view-exists":   on(authz.View, authz.ViewList),
	"replace-view":  on(authz.View, authz.ViewWriteProperties),
	"drop-view":     on(authz.View, authz.ViewDrop),
	"rename-view":   and(on(authz.View, authz.ViewDrop), authz.ViewCreate, authz.Namespace),

	"show-maintenance": on(authz.Table, authz.TableReadProperties),
	"set-maintenance":  on(authz.Table, authz.TableWriteData),
	"run-maintenance":  on(authz.Table, authz.TableWriteData),
	"list-jobs":        on(authz.Catalog, authz.TableReadProperties),
	"list-metrics":     on(authz.Table, authz.TableWriteData),

	"list-warehouses":  on(authz.Root, authz.CatalogList),
	"create-warehouse": on(authz.Root, authz.CatalogCreate),
	"load-warehouse":   on(authz.Catalog, authz.CatalogReadProperties),
	"update-warehouse": on(authz.Catalog, authz.CatalogWriteProperties),
	"drop-warehouse":   on(authz.Catalog, authz.CatalogDrop),
	"list-dropped":     on(authz.Catalog, authz.TableReadProperties),

	"list-audit": slices.Concat(on(authz.Root, authz.AuditRead), on(authz.Catalog, authz.AuditRead)),
	// Of a warehouse AUDIT_READ does as well, and shows changes of rights too.
	"list-events": slices.Concat(on(authz.Root, authz.AuditRead), on(authz.Catalog, authz.TableReadProperties),
		on(authz.Table, authz.TableReadProperties), on(authz.View, authz.ViewReadProperties)),

	"list-webhooks":  slices.Concat(on(authz.Root, authz.ServiceManageAccess), on(authz.Catalog, authz.CatalogManageAccess)),
	"create-webhook": slices.Concat(on(authz.Root, authz.ServiceManageAccess), on(authz.Catalog, authz.CatalogManageAccess)),

	"list-principals":       on(authz.Root, authz.PrincipalList),
	"create-principal":      on(authz.Root, authz.PrincipalCreate),
	"load-principal":        on(authz.Root, authz.PrincipalReadProperties),
	"update-principal":      on(authz.Root, authz.PrincipalWriteProperties),
	"drop-principal":        on(authz.Root, authz.PrincipalDrop),
	"reset-secret":          on(authz.Root, authz.PrincipalResetCredentials),
	"rotate-secret":         on(authz.Root, authz.PrincipalRotateCredentials),
	"list-principal-keys":   on(authz.Root, authz.PrincipalReadProperties),
	"add-principal-key":     on(authz.Root, authz.PrincipalResetCredentials),
	"remove-principal-key":  on(authz.Root, authz.PrincipalResetCredentials),
	"list-signing-keys":     on(authz.Root, authz.ServiceManageAccess),
	"rotate-signing-keys":   on(authz.Root, authz.ServiceManageAccess),
	"list-personal-tokens":  on(authz.Root, authz.PrincipalReadProperties),
	"load-personal-token":   on(authz.Root, authz.PrincipalReadProperties),
	"create-personal-token": on(authz.Root, authz.PrincipalResetCredentials),
	"rotate-personal-token": on(authz.Root, authz.PrincipalResetCredentials),
	"revoke-personal-token": on(authz.Root, authz.PrincipalResetCredentials),
	"revoke-tokens":         on(authz.Root, authz.PrincipalResetCredentials),
	"list-identities":       on(authz.Root, authz.PrincipalReadProperties),
	"link-identity":         on(authz.Root, authz.PrincipalResetCredentials),
	"unlink-identity":       on(authz.Root, authz.PrincipalResetCredentials),
	"load-network-policy":   on(authz.Root, authz.PrincipalReadProperties),
	"set-network-policy":    on(authz.Root, authz.ServiceManageAccess),

	"load-server-network-policy": on(authz.Root, authz.ServiceManageAccess),
	"set-server-network-policy":  on(authz.Root, authz.ServiceManageAccess),

	"list-roles-of-principal":   on(authz.Root, authz.PrincipalListGrants),
	"assign-principal-role":     on(authz.Root, authz.PrincipalRoleManageGrants),
	"list-grants-on-service":    on(authz.Root, authz.PrincipalRoleListGrants),
	"grant-on-service":          on(authz.Root, authz.ServiceManageAccess),
	"revoke-on-service":         on(authz.Root, authz.ServiceManageAccess),
	"revoke-principal-role":     on(authz.Root, authz.PrincipalRoleManageGrants, authz.PrincipalManageGrantsForGrantee),
	"list-principals-with-role": on(authz.Root, authz.PrincipalRoleListGrants),

	"list-principal-roles":  on(authz.Root, authz.PrincipalRoleList),
	"create-principal-role": on(authz.Root, authz.PrincipalRoleCreate),
	"load-principal-role":   on(authz.Root, authz.PrincipalRoleReadProperties),
	"update-principal-role": on(authz.Root, authz.PrincipalRoleWriteProperties),
	"drop-principal-role":   on(authz.Root, authz.PrincipalRoleDrop),

	"list-catalog-roles":  on(authz.Catalog, authz.CatalogRoleList),
	"create-catalog-role": on(authz.Catalog, authz.CatalogRoleCreate),
	"load-catalog-role":   on(authz.Catalog, authz.CatalogRoleReadProperties),
	"update-catalog-role": on(authz.Catalog, authz.CatalogRoleWriteProperties),
	"drop-catalog-role":   on(authz.Catalog, authz.CatalogRoleDrop),

	"assign-catalog-role":          on(authz.Catalog, authz.CatalogRoleManageGrants),
	"revoke-catalog-role":          on(authz.Catalog, authz.CatalogRoleManageGrants),
	"list-catalog-roles-of-holder": on(authz.Catalog, authz.CatalogRoleListGrants),
	"list-holders-of-catalog-role": on(authz.Catalog, authz.CatalogRoleListGrants),
	"list-grants":                  on(authz.Catalog, authz.CatalogRoleListGrants),
	"who-can":                      onEach(grantsSeen),
	"add-grant":                    onEach(grantsRight),
	"change-grants":                onEach(grantsRight), // of what is added
	"list-grants-on":               onEach(inWarehouse(grantsSeen)),
	"load-owner":                   onEach(inWarehouse(grantsSeen)),
	"set-owner":                    onEach(grantsRight),
	"revoke-grant":                 and(onEach(grantsRight), authz.CatalogRoleManageGrantsForGrantee, authz.Catalog),
}

// inWarehouse leaves out what is about the service.
func inWarehouse(rights map[authz.SecurableKind]authz.Privilege) map[authz.SecurableKind]authz.Privilege {
	inside := maps.Clone(rights)
	delete(inside, authz.Root)
	return inside
}

// onEach is one target for each kind that rights has.
func onEach(rights map[authz.SecurableKind]authz.Privilege) []operationTarget {
	var all []operationTarget
	for _, kind := range slices.Sorted(maps.Keys(rights)) {
		all = append(all, on(kind, rights[kind])...)
	}
	return all
}

// OperationsExplained gives the names of the operations that questions may be about, in order.
func OperationsExplained() []string { return slices.Sorted(maps.Keys(operationNeeds)) }
