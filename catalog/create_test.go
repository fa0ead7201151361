package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

func TestStage_TakesNoNameAndCommitsOnce(t *testing.T) {
	b := newBench(t)
	staged, err := b.create("t", `,"stage-create":true`)
	if err != nil || staged.MetadataLocation != "" || staged.Credentials == nil {
		t.Fatalf("staged: %v, %q", err, staged.MetadataLocation)
	}
	if len(b.files.Files()) != 0 {
		t.Errorf("a staged create wrote %v", b.files.Files())
	}
	creds, err := b.LoadCredentials(ctx, system, "w", id("t"))
	if err != nil || len(creds) != 1 || !strings.HasPrefix(creds[0].Prefix, staged.Document.Location()) {
		t.Errorf("credentials of a staged create: %v, %v", creds, err)
	}
	create := b.decode(fmt.Sprintf(`{"requirements":[{"type":"assert-create"}],"updates":[
		{"action":"assign-uuid","uuid":%q},{"action":"upgrade-format-version","format-version":2},
		{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","type":"long","required":false}]}},
		{"action":"set-current-schema","schema-id":-1},{"action":"add-spec","spec":{"spec-id":0,"fields":[]}},
		{"action":"set-default-spec","spec-id":-1},{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},
		{"action":"set-default-sort-order","sort-order-id":-1},{"action":"set-location","location":%q}]}`,
		staged.Document.UUID(), staged.Document.Location()))
	for range 2 { // the second is the repeat of a landed commit
		if err := b.commitAs(system, "t", create); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.load("t").Document; got.UUID() != staged.Document.UUID() || got.Location() != staged.Document.Location() {
		t.Errorf("committed as %s at %s", got.UUID(), got.Location())
	}
	wantKind(t, b.DropNamespace(ctx, system, "w", catalog.Namespace{"a"}), fault.NamespaceNotEmpty)
}

func TestField_C021_StagedCreateDoesNotHoldANamespace(t *testing.T) {
	b := newBench(t)
	if _, err := b.create("t", `,"stage-create":true`); err != nil {
		t.Fatal(err)
	}
	if err := b.DropNamespace(ctx, system, "w", catalog.Namespace{"a"}); err != nil {
		t.Error(err)
	}
}
