package authz

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// namesText is the part of docs/privileges.md about names from other systems.
func namesText() string {
	var b strings.Builder
	b.WriteString("\n## Names from SQL and Snowflake\n\n" +
		"They are granted, listed and taken back like all others, on a warehouse, a namespace, a table or a view, and hold for everything below.\n" +
		"Their holder may do what the privileges that they mean there let him do. **INSERT, UPDATE, DELETE and TRUNCATE are one right**: an object\n" +
		"store cannot tell them apart, so who has one can add, replace and remove all data of the table, and read it. Grant the one whose name says\n" +
		"best what you expect, not to keep somebody from the others.\n\n" +
		"| name | on a table | on a view | on a namespace | on a warehouse |\n| --- | --- | --- | --- | --- |\n")
	for _, n := range named {
		fmt.Fprintf(&b, "| %s ", n.Name)
		for _, kind := range []SecurableKind{Table, View, Namespace, Catalog} {
			names := make([]string, 0, len(n.Means))
			for _, m := range Meant(n.Name, kind) {
				names = append(names, string(m))
			}
			if len(names) == 0 {
				names = append(names, "cannot be granted")
			}
			fmt.Fprintf(&b, "| %s ", strings.Join(names, ", "))
		}
		b.WriteString("|\n")
	}
	return b.String() + "\nNone of them contains USAGE or its like: engines that list before they read want NAMESPACE_LIST on the warehouse too.\n"
}

// unservedText is the part about privileges that Polaris has and nobody can be granted here.
func unservedText() string {
	why := map[string][]string{}
	for _, row := range unserved {
		why[row.Unserved] = append(why[row.Unserved], string(row.Name))
	}
	var b strings.Builder
	b.WriteString("\n## Polaris' privileges that cannot be granted here\n\n")
	for _, reason := range []string{noPolicies, byRoles} {
		fmt.Fprintf(&b, "- %s: %s.\n", reason, strings.Join(why[reason], ", "))
	}
	return b.String()
}

// polarisNames are Apache Polaris' privileges in the order of its codes, from 1.
const polarisNames = `
SERVICE_MANAGE_ACCESS CATALOG_MANAGE_ACCESS CATALOG_ROLE_USAGE PRINCIPAL_ROLE_USAGE
NAMESPACE_CREATE TABLE_CREATE VIEW_CREATE NAMESPACE_DROP TABLE_DROP VIEW_DROP NAMESPACE_LIST TABLE_LIST VIEW_LIST
NAMESPACE_READ_PROPERTIES TABLE_READ_PROPERTIES VIEW_READ_PROPERTIES
NAMESPACE_WRITE_PROPERTIES TABLE_WRITE_PROPERTIES VIEW_WRITE_PROPERTIES TABLE_READ_DATA TABLE_WRITE_DATA
NAMESPACE_FULL_METADATA TABLE_FULL_METADATA VIEW_FULL_METADATA
CATALOG_CREATE CATALOG_DROP CATALOG_LIST CATALOG_READ_PROPERTIES CATALOG_WRITE_PROPERTIES CATALOG_FULL_METADATA
CATALOG_MANAGE_METADATA CATALOG_MANAGE_CONTENT
PRINCIPAL_LIST_GRANTS PRINCIPAL_ROLE_LIST_GRANTS CATALOG_ROLE_LIST_GRANTS CATALOG_LIST_GRANTS NAMESPACE_LIST_GRANTS TABLE_LIST_GRANTS VIEW_LIST_GRANTS
CATALOG_MANAGE_GRANTS_ON_SECURABLE NAMESPACE_MANAGE_GRANTS_ON_SECURABLE TABLE_MANAGE_GRANTS_ON_SECURABLE VIEW_MANAGE_GRANTS_ON_SECURABLE
PRINCIPAL_CREATE PRINCIPAL_DROP PRINCIPAL_LIST PRINCIPAL_READ_PROPERTIES PRINCIPAL_WRITE_PROPERTIES PRINCIPAL_FULL_METADATA
PRINCIPAL_MANAGE_GRANTS_ON_SECURABLE PRINCIPAL_MANAGE_GRANTS_FOR_GRANTEE PRINCIPAL_ROTATE_CREDENTIALS PRINCIPAL_RESET_CREDENTIALS
PRINCIPAL_ROLE_CREATE PRINCIPAL_ROLE_DROP PRINCIPAL_ROLE_LIST PRINCIPAL_ROLE_READ_PROPERTIES PRINCIPAL_ROLE_WRITE_PROPERTIES
PRINCIPAL_ROLE_FULL_METADATA PRINCIPAL_ROLE_MANAGE_GRANTS_ON_SECURABLE PRINCIPAL_ROLE_MANAGE_GRANTS_FOR_GRANTEE
CATALOG_ROLE_CREATE CATALOG_ROLE_DROP CATALOG_ROLE_LIST CATALOG_ROLE_READ_PROPERTIES CATALOG_ROLE_WRITE_PROPERTIES
CATALOG_ROLE_FULL_METADATA CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE CATALOG_ROLE_MANAGE_GRANTS_FOR_GRANTEE
POLICY_CREATE POLICY_READ POLICY_DROP POLICY_WRITE POLICY_LIST POLICY_FULL_METADATA POLICY_ATTACH POLICY_DETACH
CATALOG_ATTACH_POLICY NAMESPACE_ATTACH_POLICY TABLE_ATTACH_POLICY CATALOG_DETACH_POLICY NAMESPACE_DETACH_POLICY TABLE_DETACH_POLICY
POLICY_MANAGE_GRANTS_ON_SECURABLE
TABLE_ASSIGN_UUID TABLE_UPGRADE_FORMAT_VERSION TABLE_ADD_SCHEMA TABLE_SET_CURRENT_SCHEMA TABLE_ADD_PARTITION_SPEC TABLE_ADD_SORT_ORDER
TABLE_SET_DEFAULT_SORT_ORDER TABLE_ADD_SNAPSHOT TABLE_SET_SNAPSHOT_REF TABLE_REMOVE_SNAPSHOTS TABLE_REMOVE_SNAPSHOT_REF TABLE_SET_LOCATION
TABLE_SET_PROPERTIES TABLE_REMOVE_PROPERTIES TABLE_SET_STATISTICS TABLE_REMOVE_STATISTICS TABLE_REMOVE_PARTITION_SPECS
TABLE_MANAGE_STRUCTURE`

// polarisRelation says what satisfies a wish for a privilege in Polaris, beside the privilege itself: "WANTED... <- HELD...".
// M and C are CATALOG_MANAGE_METADATA and CATALOG_MANAGE_CONTENT, A and S the ..._MANAGE_ACCESS of catalog and service.
const polarisRelation = `
CATALOG_MANAGE_METADATA <- C
NAMESPACE_CREATE NAMESPACE_DROP NAMESPACE_WRITE_PROPERTIES <- NAMESPACE_FULL_METADATA M C
NAMESPACE_LIST <- NAMESPACE_CREATE NAMESPACE_READ_PROPERTIES NAMESPACE_WRITE_PROPERTIES NAMESPACE_FULL_METADATA M C
NAMESPACE_READ_PROPERTIES <- NAMESPACE_WRITE_PROPERTIES NAMESPACE_FULL_METADATA M C
TABLE_CREATE TABLE_DROP <- TABLE_FULL_METADATA M C
TABLE_LIST <- TABLE_CREATE TABLE_READ_PROPERTIES TABLE_WRITE_PROPERTIES TABLE_READ_DATA TABLE_WRITE_DATA TABLE_FULL_METADATA M C
TABLE_READ_PROPERTIES <- TABLE_WRITE_PROPERTIES TABLE_READ_DATA TABLE_WRITE_DATA TABLE_FULL_METADATA M C
TABLE_WRITE_PROPERTIES <- TABLE_WRITE_DATA TABLE_FULL_METADATA M C
TABLE_READ_DATA <- TABLE_WRITE_DATA C
TABLE_WRITE_DATA <- C
TABLE_MANAGE_STRUCTURE <- TABLE_WRITE_PROPERTIES TABLE_WRITE_DATA TABLE_FULL_METADATA M C
TABLE_ADD_SNAPSHOT TABLE_SET_SNAPSHOT_REF <- TABLE_WRITE_PROPERTIES TABLE_WRITE_DATA TABLE_FULL_METADATA M C
TABLE_ASSIGN_UUID TABLE_UPGRADE_FORMAT_VERSION TABLE_ADD_SCHEMA TABLE_SET_CURRENT_SCHEMA TABLE_ADD_PARTITION_SPEC TABLE_ADD_SORT_ORDER TABLE_SET_DEFAULT_SORT_ORDER <- TABLE_MANAGE_STRUCTURE TABLE_WRITE_PROPERTIES TABLE_WRITE_DATA TABLE_FULL_METADATA M C
TABLE_REMOVE_SNAPSHOTS TABLE_REMOVE_SNAPSHOT_REF TABLE_SET_LOCATION TABLE_SET_PROPERTIES TABLE_REMOVE_PROPERTIES TABLE_SET_STATISTICS TABLE_REMOVE_STATISTICS TABLE_REMOVE_PARTITION_SPECS <- TABLE_MANAGE_STRUCTURE TABLE_WRITE_PROPERTIES TABLE_WRITE_DATA TABLE_FULL_METADATA M C
VIEW_CREATE VIEW_DROP VIEW_WRITE_PROPERTIES <- VIEW_FULL_METADATA M C
VIEW_LIST <- VIEW_CREATE VIEW_READ_PROPERTIES VIEW_WRITE_PROPERTIES VIEW_FULL_METADATA M C
VIEW_READ_PROPERTIES <- VIEW_WRITE_PROPERTIES VIEW_FULL_METADATA M C
NAMESPACE_FULL_METADATA TABLE_FULL_METADATA VIEW_FULL_METADATA <- M C
CATALOG_CREATE CATALOG_DROP <- CATALOG_FULL_METADATA S
CATALOG_LIST <- CATALOG_CREATE CATALOG_READ_PROPERTIES CATALOG_WRITE_PROPERTIES CATALOG_FULL_METADATA M C S
CATALOG_READ_PROPERTIES <- CATALOG_WRITE_PROPERTIES CATALOG_FULL_METADATA M C S
CATALOG_WRITE_PROPERTIES <- CATALOG_FULL_METADATA M C S
CATALOG_FULL_METADATA <- S
PRINCIPAL_CREATE PRINCIPAL_DROP PRINCIPAL_WRITE_PROPERTIES <- PRINCIPAL_FULL_METADATA S
PRINCIPAL_LIST <- PRINCIPAL_CREATE PRINCIPAL_READ_PROPERTIES PRINCIPAL_WRITE_PROPERTIES PRINCIPAL_FULL_METADATA S
PRINCIPAL_READ_PROPERTIES <- PRINCIPAL_WRITE_PROPERTIES PRINCIPAL_FULL_METADATA S
PRINCIPAL_FULL_METADATA PRINCIPAL_MANAGE_GRANTS_ON_SECURABLE PRINCIPAL_MANAGE_GRANTS_FOR_GRANTEE PRINCIPAL_RESET_CREDENTIALS <- S
PRINCIPAL_LIST_GRANTS <- PRINCIPAL_MANAGE_GRANTS_ON_SECURABLE PRINCIPAL_MANAGE_GRANTS_FOR_GRANTEE S
PRINCIPAL_ROLE_CREATE PRINCIPAL_ROLE_DROP PRINCIPAL_ROLE_WRITE_PROPERTIES <- PRINCIPAL_ROLE_FULL_METADATA S
PRINCIPAL_ROLE_LIST <- PRINCIPAL_ROLE_CREATE PRINCIPAL_ROLE_READ_PROPERTIES PRINCIPAL_ROLE_WRITE_PROPERTIES PRINCIPAL_ROLE_FULL_METADATA S
PRINCIPAL_ROLE_READ_PROPERTIES <- PRINCIPAL_ROLE_WRITE_PROPERTIES PRINCIPAL_ROLE_FULL_METADATA S
PRINCIPAL_ROLE_FULL_METADATA PRINCIPAL_ROLE_MANAGE_GRANTS_ON_SECURABLE PRINCIPAL_ROLE_MANAGE_GRANTS_FOR_GRANTEE <- S
PRINCIPAL_ROLE_LIST_GRANTS <- PRINCIPAL_ROLE_MANAGE_GRANTS_ON_SECURABLE PRINCIPAL_ROLE_MANAGE_GRANTS_FOR_GRANTEE S
CATALOG_ROLE_CREATE CATALOG_ROLE_DROP CATALOG_ROLE_WRITE_PROPERTIES <- CATALOG_ROLE_FULL_METADATA A
CATALOG_ROLE_LIST <- CATALOG_ROLE_CREATE CATALOG_ROLE_READ_PROPERTIES CATALOG_ROLE_WRITE_PROPERTIES CATALOG_ROLE_FULL_METADATA A
CATALOG_ROLE_READ_PROPERTIES <- CATALOG_ROLE_WRITE_PROPERTIES CATALOG_ROLE_FULL_METADATA A
CATALOG_ROLE_FULL_METADATA CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE CATALOG_ROLE_MANAGE_GRANTS_FOR_GRANTEE <- A
CATALOG_ROLE_LIST_GRANTS <- CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE CATALOG_ROLE_MANAGE_GRANTS_FOR_GRANTEE A
CATALOG_LIST_GRANTS <- CATALOG_MANAGE_GRANTS_ON_SECURABLE A
NAMESPACE_LIST_GRANTS <- NAMESPACE_MANAGE_GRANTS_ON_SECURABLE A
TABLE_LIST_GRANTS <- TABLE_MANAGE_GRANTS_ON_SECURABLE A
VIEW_LIST_GRANTS <- VIEW_MANAGE_GRANTS_ON_SECURABLE A
CATALOG_MANAGE_GRANTS_ON_SECURABLE NAMESPACE_MANAGE_GRANTS_ON_SECURABLE TABLE_MANAGE_GRANTS_ON_SECURABLE VIEW_MANAGE_GRANTS_ON_SECURABLE POLICY_MANAGE_GRANTS_ON_SECURABLE <- A
POLICY_CREATE POLICY_DROP POLICY_WRITE <- POLICY_FULL_METADATA M C
POLICY_READ <- POLICY_WRITE POLICY_FULL_METADATA M C
POLICY_LIST <- POLICY_CREATE POLICY_READ POLICY_WRITE POLICY_FULL_METADATA M C
POLICY_FULL_METADATA POLICY_ATTACH POLICY_DETACH CATALOG_ATTACH_POLICY NAMESPACE_ATTACH_POLICY TABLE_ATTACH_POLICY CATALOG_DETACH_POLICY NAMESPACE_DETACH_POLICY TABLE_DETACH_POLICY <- M C`

// departures are the cells that Polaris has not: held, wanted. There nobody but a principal itself rotates its secret.
var departures = map[[2]string]bool{{"SERVICE_MANAGE_ACCESS", "PRINCIPAL_ROTATE_CREDENTIALS"}: true}

// Every other cell of the matrix, privilege by privilege, is as in Polaris.
func TestTable_IsPolaris(t *testing.T) {
	names := strings.Fields(polarisNames)
	if len(names) != 102 {
		t.Fatalf("%d names are written down, Polaris has 102", len(names))
	}
	short := map[string]string{
		"M": "CATALOG_MANAGE_METADATA", "C": "CATALOG_MANAGE_CONTENT", "A": "CATALOG_MANAGE_ACCESS", "S": "SERVICE_MANAGE_ACCESS",
	}
	want := map[[2]string]bool{}
	for line := range strings.Lines(strings.TrimSpace(polarisRelation)) {
		wanted, held, _ := strings.Cut(line, " <- ")
		for _, w := range strings.Fields(wanted) {
			if !slices.Contains(names, w) {
				t.Errorf("%s is not a name of Polaris'", w)
			}
			for _, h := range strings.Fields(held) {
				if long, ok := short[h]; ok {
					h = long
				}
				want[[2]string{h, w}] = true
			}
		}
	}
	for _, h := range names {
		for _, w := range names {
			if !Known(Privilege(w)) {
				t.Fatalf("the table lacks %s", w)
			}
			if got := Implies(Privilege(h), Privilege(w)); got != (h == w || want[[2]string{h, w}] || departures[[2]string{h, w}]) {
				t.Errorf("Implies(%s, %s) = %v, which is not so in Polaris", h, w, got)
			}
		}
	}
	for _, row := range Rows() {
		if row.Name == PrincipalImpersonate || row.Name == AuditRead {
			continue // ours: Polaris has nobody act for another, and no audit
		}
		if !slices.Contains(names, string(row.Name)) && row.Means == nil {
			t.Errorf("%s is neither Polaris' nor a name from elsewhere", row.Name)
		}
	}
}

// A name from elsewhere contains what it means, all of that, and nothing more.
func TestNames_ContainWhatTheyMean(t *testing.T) {
	for _, n := range named {
		for _, row := range Rows() {
			want := row.Name == n.Name || slices.ContainsFunc(n.Means, func(m Privilege) bool { return Implies(m, row.Name) })
			if got := Implies(n.Name, row.Name); got != want {
				t.Errorf("Implies(%s, %s) = %v, want %v", n.Name, row.Name, got, want)
			}
			if row.Name != n.Name && Implies(row.Name, n.Name) {
				t.Errorf("%s contains %s: it is asked for by what it means, never by its name", row.Name, n.Name)
			}
		}
	}
}

func TestMeant(t *testing.T) {
	for _, c := range []struct {
		p    Privilege
		on   SecurableKind
		want []Privilege
	}{
		{TableReadData, Table, []Privilege{TableReadData}},
		{TableReadData, View, nil},
		{TableCreate, Table, nil},
		{Select, Table, []Privilege{TableReadData}},
		{Select, View, []Privilege{ViewReadProperties}},
		{Select, Namespace, []Privilege{TableReadData, ViewReadProperties}},
		{Select, Root, nil},
		{Insert, Table, []Privilege{TableWriteData}},
		{Delete, Catalog, []Privilege{TableWriteData}},
		{Truncate, View, nil},
		{Ownership, Table, []Privilege{TableFullMetadata, TableWriteData, TableManageGrants}},
		{Ownership, View, []Privilege{ViewFullMetadata, ViewManageGrants}},
		{"POLICY_READ", Table, nil},
		{"NONSENSE", Table, nil},
	} {
		if got := Meant(c.p, c.on); !slices.Equal(got, c.want) {
			t.Errorf("Meant(%s, %s) = %v, want %v", c.p, c.on, got, c.want)
		}
	}
	if Unserved("POLICY_READ") == "" || Unserved(TableReadData) != "" || Unserved("NONSENSE") != "" || Grantable("POLICY_READ", Catalog) {
		t.Error("what is not served is not told from what is")
	}
}

func TestEffective(t *testing.T) {
	if got, want := Effective([]Privilege{TableReadData, TableAddSchema}, Table),
		[]Privilege{TableList, TableReadProperties, TableReadData, TableAddSchema}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := Effective([]Privilege{Select}, View), []Privilege{ViewList, ViewReadProperties, Select}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Effective(nil, Catalog); got != nil {
		t.Errorf("nothing held gives %v", got)
	}
}
