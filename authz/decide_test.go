package authz

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// The golden files are what a reviewer of a changed privilege reads: what each privilege contains, and where it
// can be granted.
func TestTable_MatchesGoldenMatrix(t *testing.T) {
	for path, got := range map[string]string{
		"testdata/matrix/contains.txt": containsText(), "testdata/matrix/grantable.txt": grantableText(),
		"../docs/privileges.md": privilegesDocument(),
	} {
		if *rewrite {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from the table; run go test ./authz -rewrite and review the difference", path)
		}
	}
}

// privilegesDocument is the table as administrators read it.
func privilegesDocument() string {
	var b strings.Builder
	b.WriteString("# Privileges\n\n" +
		"<!-- Written by `go test ./authz -rewrite` from authz; do not edit. -->\n\n" + jobsText() + "## All of them\n\n" +
		"`catalogd grant create PRIVILEGE -w WAREHOUSE --role ROLE` grants one on the warehouse, with `--namespace a.b` on a namespace,\n" +
		"with `--table a.b.t` on a table, with `--view a.b.v` on a view. It holds for everything below. Who holds a privilege of the last column has this one too.\n" +
		"Privileges on the service are held by principal roles: `catalogd grant create PRIVILEGE --principal-role ROLE`, or over HTTP\n" +
		"`PUT /api/management/v1/principal-roles/{role}/service-privileges/{privilege}`\n" +
		"gives one, but for SERVICE_MANAGE_ACCESS, which the role `service_admin` alone holds.\n\n" +
		"| privilege | can be granted on | lets its holder | contained in |\n| --- | --- | --- | --- |\n")
	for _, row := range Rows() {
		if row.Unserved != "" || row.Means != nil {
			continue
		}
		var on, by []string
		for _, kind := range row.On {
			switch kind {
			case Root:
				on = append(on, "service")
			case Catalog:
				on = append(on, "warehouse")
			default:
				on = append(on, string(kind))
			}
		}
		for _, p := range row.ImpliedBy {
			if rowOf[p].Means == nil {
				by = append(by, string(p))
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", row.Name, strings.Join(on, ", "), row.Meaning, strings.Join(by, ", "))
	}
	return b.String() + namesText() + unservedText()
}

// jobs are what people want to do and what to grant for it, on the table or view itself unless said otherwise.
var jobs = []struct {
	what   string
	grants []Privilege
	note   string
}{
	{"read a table", []Privilege{TableReadData}, "most engines also list: with NAMESPACE_READ_PROPERTIES on the warehouse they can"},
	{"append, update, delete, merge, overwrite; several tables in one transaction", []Privilege{TableWriteData}, "on each table; contains reading and all metadata of the table"},
	{"change columns, partitioning, order or properties, without touching data", []Privilege{TableManageStructure, TableReadProperties}, ""},
	{"create a table, CREATE TABLE AS SELECT", []Privilege{TableCreate, TableWriteData}, "on the namespace; the second one to fill it"},
	{"drop a table", []Privilege{TableDrop}, ""},
	{"drop a table with its files (PURGE; Trino always)", []Privilege{TableDrop, TableWriteData}, ""},
	{"rename a table", []Privilege{TableDrop, TableCreate}, "the first on the table, the second on the namespace that it moves to"},
	{"register a table; have a dropped one back", []Privilege{TableCreate}, "on the namespace"},
	{"register over a table that is there", []Privilege{TableCreate, TableFullMetadata, TableWriteData}, ""},
	{"unregister a table", []Privilege{TableDrop, TableReadProperties}, ""},
	{"list dropped tables", []Privilege{TableReadProperties}, "on the warehouse"},
	{"run maintenance, change its settings, read metrics reports", []Privilege{TableWriteData}, ""},
	{"show maintenance and its jobs", []Privilege{TableReadProperties}, "of a purge: on the namespace"},
	{"query a view", []Privilege{ViewReadProperties, TableReadData}, "the second on the tables below it"},
	{"create, replace, drop a view", []Privilege{ViewCreate, ViewWriteProperties, ViewDrop}, "one each; create on the namespace"},
	{"create a namespace", []Privilege{NamespaceCreate}, "on the warehouse, or on the namespace above"},
	{"do everything with tables and views but grant", []Privilege{CatalogManageContent}, "on the warehouse, or on a namespace"},
	{"read the audit of a warehouse, and all its events", []Privilege{AuditRead}, "on the warehouse"},
	{"grant", []Privilege{TableManageGrants, NamespaceManageGrants, CatalogManageAccess}, "for a table, a namespace, a whole warehouse"},
}

func jobsText() string {
	var b strings.Builder
	b.WriteString("## What to grant for a job\n\n" +
		"A writer needs **TABLE_WRITE_DATA**. A refusal names the narrowest privilege that was missing, for an append TABLE_ADD_SNAPSHOT; that one alone\n" +
		"would let the next step fail, since it gives no credentials for the files. The table has what to grant instead.\n\n" +
		"| to | grant | |\n| --- | --- | --- |\n")
	for _, job := range jobs {
		var names []string
		for _, p := range job.grants {
			names = append(names, string(p))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", job.what, strings.Join(names, ", "), job.note)
	}
	return b.String() + "\n"
}

// What the document says a job's privileges contain, they contain.
func TestTable_WritersAndCreators(t *testing.T) {
	for _, want := range []struct{ held, wanted Privilege }{
		{TableWriteData, TableReadData}, {TableWriteData, TableAddSnapshot}, {TableWriteData, TableSetSnapshotRef},
		{TableWriteData, TableSetProperties}, {TableWriteData, TableReadProperties}, {NamespaceReadProperties, NamespaceList},
		{TableManageStructure, TableAddSchema}, {TableManageStructure, TableSetProperties},
	} {
		if !Implies(want.held, want.wanted) {
			t.Errorf("%s does not contain %s", want.held, want.wanted)
		}
	}
	if Implies(TableAddSnapshot, TableWriteData) || Implies(TableWriteData, TableDrop) || Implies(TableCreate, TableWriteData) {
		t.Error("a narrow privilege contains a wide one")
	}
}

func containsText() string {
	var b strings.Builder
	b.WriteString("# what who holds a privilege may do, besides what the privilege itself names\n")
	for _, held := range Rows() {
		fmt.Fprintf(&b, "%s\n", held.Name)
		for _, wanted := range Rows() {
			if wanted.Name != held.Name && Implies(held.Name, wanted.Name) {
				fmt.Fprintf(&b, "    %s\n", wanted.Name)
			}
		}
	}
	return b.String()
}

func grantableText() string {
	var b strings.Builder
	b.WriteString("# on which kinds of securables a privilege can be granted, and what it means\n")
	for _, row := range Rows() {
		kinds := make([]string, len(row.On))
		for i, k := range row.On {
			kinds[i] = string(k)
		}
		fmt.Fprintf(&b, "%-40s %-30s %s\n", row.Name, strings.Join(kinds, ","), row.Meaning)
	}
	return b.String()
}

func TestTable_IsWellFormed(t *testing.T) {
	seen := map[Privilege]bool{}
	for _, row := range Rows() {
		if seen[row.Name] {
			t.Errorf("%s has two rows", row.Name)
		}
		seen[row.Name] = true
		if row.Meaning == "" || (len(row.On) == 0) != (row.Unserved != "") {
			t.Errorf("%s has no meaning, or neither a kind nor a reason why it has none", row.Name)
		}
		for _, p := range row.ImpliedBy {
			if !Known(p) {
				t.Errorf("%s is implied by %s, which the table does not have", row.Name, p)
			}
			if p == row.Name {
				t.Errorf("%s is implied by itself", row.Name)
			}
		}
	}
}

// Decide looks one step far, so the table must be complete: if a contains b and b contains c, a contains c.
func TestTable_ImplicationIsComplete(t *testing.T) {
	for _, a := range Rows() {
		for _, b := range Rows() {
			if a.Name == b.Name || !Implies(a.Name, b.Name) {
				continue
			}
			if Implies(b.Name, a.Name) {
				t.Errorf("%s and %s imply each other", a.Name, b.Name)
			}
			for _, c := range Rows() {
				if Implies(b.Name, c.Name) && !Implies(a.Name, c.Name) {
					t.Errorf("%s implies %s, which implies %s, but %s does not imply it", a.Name, b.Name, c.Name, a.Name)
				}
			}
		}
	}
}

// What surprised users of other catalogs, pinned.
func TestTable_DataNeedsDataPrivileges(t *testing.T) {
	cases := []struct {
		held, wanted Privilege
		want         bool
	}{
		{CatalogManageMetadata, TableReadData, false},
		{TableFullMetadata, TableReadData, false},
		{CatalogManageContent, TableReadData, true},
		{CatalogManageContent, TableWriteData, true},
		{TableWriteData, TableReadData, true},
		{TableReadData, TableWriteData, false},
		{TableReadData, TableReadProperties, true},
		{TableReadData, TableAddSnapshot, false},
		{TableManageStructure, TableAddSnapshot, false},
		{TableManageStructure, TableSetSnapshotRef, false},
		{TableManageStructure, TableAddSchema, true},
		{CatalogManageAccess, TableReadData, false},
		{CatalogManageAccess, CatalogManageGrants, true},
		{ServiceManageAccess, CatalogCreate, true},
		{ServiceManageAccess, TableList, false},
		{ServiceManageAccess, PrincipalRotateCredentials, true},
		{CatalogManageContent, CatalogDrop, false},
		{"NO_SUCH_PRIVILEGE", TableList, false},
		{TableList, "NO_SUCH_PRIVILEGE", false},
	}
	for _, c := range cases {
		if got := Implies(c.held, c.wanted); got != c.want {
			t.Errorf("Implies(%s, %s) = %v, want %v", c.held, c.wanted, got, c.want)
		}
	}
}

func TestImplying_IsWhoImplies(t *testing.T) {
	for _, wanted := range Rows() {
		all := Implying(wanted.Name)
		for _, held := range Rows() {
			if got := slices.Contains(all, held.Name); got != Implies(held.Name, wanted.Name) {
				t.Errorf("Implying(%s) has %s: %v", wanted.Name, held.Name, got)
			}
		}
	}
	if all := Implying("NO_SUCH_PRIVILEGE"); all != nil {
		t.Errorf("a privilege that does not exist is contained in %v", all)
	}
}

func TestDecide_ReasonNamesPrivilegeAndSecurable(t *testing.T) {
	path := []Securable{
		{Kind: Root, ID: RootID},
		{Kind: Catalog, ID: uuid.New(), Name: "dev"},
		{Kind: Namespace, ID: uuid.New(), Name: "a.b"},
		{Kind: Table, ID: uuid.New(), Name: "a.b.t"},
	}
	refused := Decide(nil, path, TableReadData)
	if want := `missing privilege TABLE_READ_DATA on table "a.b.t"`; refused.Allowed || refused.Reason() != want {
		t.Errorf("refused: %v %q, want %q", refused.Allowed, refused.Reason(), want)
	}
	g := Grant{Privilege: CatalogManageContent, Kind: Catalog, SecurableID: path[1].ID, Role: "catalog_admin"}
	allowed := Decide([]Grant{g}, path, TableReadData)
	want := `TABLE_READ_DATA on table "a.b.t" is held through CATALOG_MANAGE_CONTENT on catalog "dev" (role catalog_admin)`
	if !allowed.Allowed || allowed.Reason() != want || allowed.By != g || allowed.On != path[3] {
		t.Errorf("allowed: %+v, want reason %q", allowed, want)
	}
	if root := Decide(nil, path[:1], CatalogCreate); root.Reason() != "missing privilege CATALOG_CREATE on the service" {
		t.Errorf("on the root: %q", root.Reason())
	}
}

func TestDecide_RefusesWhatItDoesNotKnow(t *testing.T) {
	root := []Securable{{Kind: Root, ID: RootID}}
	all := []Grant{{Privilege: ServiceManageAccess, Kind: Root, SecurableID: RootID}}
	if Decide(all, nil, CatalogCreate).Allowed {
		t.Error("an empty path was allowed")
	}
	unknown := []Grant{{Privilege: "FUTURE", Kind: Root, SecurableID: RootID}}
	if Decide(unknown, root, "FUTURE").Allowed {
		t.Error("a privilege that is not in the table was allowed")
	}
	// A kind is part of what was granted: the root's id on another kind is another securable.
	if Decide([]Grant{{Privilege: ServiceManageAccess, Kind: Catalog, SecurableID: RootID}}, root, CatalogCreate).Allowed {
		t.Error("a grant on another kind with the same id was allowed")
	}
}

// tree draws a small hierarchy and gives the paths of all its securables.
func tree(t *rapid.T) [][]Securable {
	fresh := func(kind SecurableKind) Securable {
		var id uuid.UUID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		return Securable{Kind: kind, ID: id, Name: id.String()}
	}
	root := []Securable{{Kind: Root, ID: RootID}}
	paths := [][]Securable{root}
	for range rapid.IntRange(1, 2).Draw(t, "catalogs") {
		level := slices.Concat(root, []Securable{fresh(Catalog)})
		paths = append(paths, level)
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			level = slices.Concat(level, []Securable{fresh(Namespace)})
			paths = append(paths, level)
			for range rapid.IntRange(0, 2).Draw(t, "tables") {
				paths = append(paths, slices.Concat(level, []Securable{fresh(Table)}))
			}
		}
	}
	return paths
}

func anyPrivilege() *rapid.Generator[Privilege] {
	return rapid.Custom(func(t *rapid.T) Privilege { return rapid.SampledFrom(Rows()).Draw(t, "row").Name })
}

// One grant is allowed exactly on the securable it was made on and on what lies below it.
func TestDecide_GrantHoldsBelowNeverAboveOrBeside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := tree(t)
		at := rapid.SampledFrom(paths).Draw(t, "granted on")
		target := rapid.SampledFrom(paths).Draw(t, "target")
		held, wanted := anyPrivilege().Draw(t, "held"), anyPrivilege().Draw(t, "wanted")
		on := at[len(at)-1]
		d := Decide([]Grant{{Privilege: held, Kind: on.Kind, SecurableID: on.ID}}, target, wanted)
		below := len(target) >= len(at) && slices.Equal(target[:len(at)], at)
		if want := below && Implies(held, wanted); d.Allowed != want {
			t.Fatalf("allowed = %v, want %v: %s", d.Allowed, want, d.Reason())
		}
		if d.Reason() == "" || d.Wanted != wanted {
			t.Fatalf("decision does not explain itself: %+v", d)
		}
	})
}

// Taking grants away never allows more, adding grants never allows less, and their order does not matter.
func TestDecide_IsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := tree(t)
		var grants []Grant
		for range rapid.IntRange(0, 6).Draw(t, "grants") {
			at := rapid.SampledFrom(paths).Draw(t, "on")
			on := at[len(at)-1]
			grants = append(grants, Grant{Privilege: anyPrivilege().Draw(t, "privilege"), Kind: on.Kind, SecurableID: on.ID})
		}
		target, wanted := rapid.SampledFrom(paths).Draw(t, "target"), anyPrivilege().Draw(t, "wanted")
		whole := Decide(grants, target, wanted).Allowed
		kept := grants[:rapid.IntRange(0, len(grants)).Draw(t, "kept")]
		if Decide(kept, target, wanted).Allowed && !whole {
			t.Fatal("fewer grants allowed more")
		}
		if Decide(rapid.Permutation(grants).Draw(t, "shuffled"), target, wanted).Allowed != whole {
			t.Fatal("the order of grants changed the answer")
		}
		if Decide(nil, target, wanted).Allowed {
			t.Fatal("nothing granted, yet allowed")
		}
	})
}

// Acting for others is granted by its own name alone, and never for somebody who could give himself more.
func TestImpersonation_StandsAlone(t *testing.T) {
	for _, row := range Rows() {
		if row.Name != PrincipalImpersonate && (Implies(row.Name, PrincipalImpersonate) || Implies(PrincipalImpersonate, row.Name)) {
			t.Errorf("%s contains acting for others, or is contained in it", row.Name)
		}
		for _, kind := range []SecurableKind{Root, Catalog, Namespace, Table, View} {
			want := kind == Root && Grantable(row.Name, Root) && !strings.HasPrefix(string(row.Name), "CATALOG_")
			if Grantable(row.Name, kind) && AdministersPrincipals([]Grant{{Privilege: row.Name, Kind: kind}}) != want {
				t.Errorf("%s on a %s: administers principals is not %v", row.Name, kind, want)
			}
		}
	}
	if AdministersPrincipals(nil) {
		t.Error("who holds nothing administers principals")
	}
}
