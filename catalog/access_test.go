package catalog_test

import (
	"strings"
	"testing"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// The audit and a refusal name a namespace as it is called, without a dot behind it.
func TestGrant_SubjectsNameWhatIsMeant(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	reader := b.principal("reader", authz.TableReadData, "t")
	a, role := catalog.Namespace{"a"}, catalog.RoleName{Warehouse: "w", Name: "r"}
	for want, target := range map[string]catalog.GrantTarget{
		"TABLE_LIST on namespace a to w/r": {Privilege: authz.TableList, Kind: authz.Namespace, Namespace: a},
		"TABLE_LIST on table a.t to w/r":   {Privilege: authz.TableList, Kind: authz.Table, Namespace: a, Name: "t"},
		"TABLE_LIST on catalog w to w/r":   {Privilege: authz.TableList, Kind: authz.Catalog},
	} {
		err := b.Grant(ctx, reader, role, target)
		wantKind(t, err, fault.Forbidden)
		audits := b.store.Audits()
		if last := audits[len(audits)-1]; last.Subject != want || !strings.Contains(err.Error(), want) {
			t.Errorf("audited is %q, and said %v; want %q", last.Subject, err, want)
		}
	}
}

func TestField_C154_HiddenAndMissingLookTheSame(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	b.mustCreate("mine")
	stranger := b.principal("stranger", authz.TableReadData, "mine")
	lister := b.principal("lister", authz.TableList, "")
	load := func(c catalog.Caller, name string) error {
		_, err := b.LoadTable(ctx, c, catalog.LoadTableRequest{Warehouse: "w", Ident: id(name)})
		return err
	}
	hidden, missing := load(stranger, "t"), load(stranger, "none")
	wantKind(t, hidden, fault.Forbidden)
	wantKind(t, missing, fault.Forbidden)
	if a, c := strings.ReplaceAll(hidden.Error(), "a.t", "X"), strings.ReplaceAll(missing.Error(), "a.none", "X"); a != c {
		t.Errorf("%q differs from %q", a, c)
	}
	wantKind(t, load(lister, "none"), fault.NoSuchTable)
	wantKind(t, load(lister, "t"), fault.Forbidden)
	_, err := b.LoadTable(ctx, stranger, catalog.LoadTableRequest{
		Warehouse: "w", Ident: catalog.Identifier{Namespace: catalog.Namespace{"a", "mine"}, Name: "files"}})
	wantKind(t, err, fault.NoSuchTable)
}

func TestField_C166_CredentialsFollowTheGrant(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	for name, want := range map[string]string{"reader": "read ", "writer": "read-write ", "lister": ""} {
		privilege := map[string]authz.Privilege{
			"reader": authz.TableReadData, "writer": authz.TableWriteData, "lister": authz.TableReadProperties}[name]
		caller := b.principal(name, privilege, "t")
		loaded, err := b.LoadTable(ctx, caller, catalog.LoadTableRequest{Warehouse: "w", Ident: id("t"), Delegated: true})
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			want += table.Document.Location()
		}
		if got := loaded.Config["s3.access-key-id"]; got != want {
			t.Errorf("%s got keys for %q, wanted %q", name, got, want)
		}
		if loaded.Config["s3.region"] != "r" {
			t.Errorf("%s was not told the region", name)
		}
	}
}
