package commit

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"catalogd/internal/fault"
)

// fixtureRefusals says what is wrong with the broken fixtures: the message must name it. Every other fixture is good.
var fixtureRefusals = map[string]string{
	"TableMetadataUnsupportedVersion.json":       `format-version 42`,
	"TableMetadataV1MissingSchemaType.json":      `field "type" must be "struct"`,
	"TableMetadataV2CurrentSchemaNotFound.json":  `current-schema-id 2 is not in schemas`,
	"TableMetadataV2MissingLastPartitionId.json": `"last-partition-id"`,
	"TableMetadataV2MissingPartitionSpecs.json":  `"partition-specs"`,
	"TableMetadataV2MissingSchemas.json":         `"schemas"`,
	"TableMetadataV2MissingSortOrder.json":       `"sort-orders"`,
	"ViewMetadataInvalidCurrentSchema.json":      `schema-id 1234 of the current version 2 is not in schemas`,
	"ViewMetadataInvalidCurrentVersion.json":     `current-version-id 1234 is not in versions`,
	"ViewMetadataMissingCurrentVersion.json":     `"current-version-id"`,
	"ViewMetadataMissingLocation.json":           `"location"`,
}

// metadataFixtures gives the names of all fixtures that match.
func metadataFixtures(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "metadata", pattern))
	if err != nil || len(paths) < 6 {
		t.Fatalf("%d fixtures, %v", len(paths), err)
	}
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	return names
}

// TestFixturesOfTables reads Iceberg's own table documents: the good ones come out of a commit that does nothing as
// they were, and out of one that sets a property with that alone changed; the broken ones are refused by name.
func TestFixturesOfTables(t *testing.T) {
	for _, name := range metadataFixtures(t, "TableMetadata*.json") {
		t.Run(name, func(t *testing.T) {
			raw := fixture(t, name)
			d, err := Parse(raw)
			if refusal := fixtureRefusals[name]; refusal != "" {
				wantError(t, err, fault.Validation, refusal)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(d.JSON(), raw) {
				t.Error("reading changed the text")
			}
			unchanged(t, d)
			next := commitOn(t, d, setKept)
			// v1's schemas, specs and orders are written out, as is main where only current-snapshot-id said it: newer readers look there.
			added := []string{
				keyProperties, keyMetadataLog, keyRefs, keyUUID, keySchemas, keyCurrentSchema, keySpecs, keyDefaultSpec,
				keyLastPartition, keyOrders, keyDefaultOrder,
			}
			wantOnlyChanged(t, d.members, next.members, added, keyProperties, keyMetadataLog, keyLastUpdated)
		})
	}
}

// TestFixturesOfViews is the same for view documents.
func TestFixturesOfViews(t *testing.T) {
	for _, name := range metadataFixtures(t, "*ViewMetadata*.json") {
		t.Run(name, func(t *testing.T) {
			raw := fixture(t, name)
			v, err := ParseView(raw)
			if refusal := fixtureRefusals[name]; refusal != "" {
				wantError(t, err, fault.Validation, refusal)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(v.JSON(), raw) {
				t.Error("reading changed the text")
			}
			viewUnchanged(t, v)
			wantOnlyChanged(t, v.members, commitOnView(t, v, setKept).members, nil, keyProperties)
		})
	}
}

const setKept = `{"action":"set-properties","updates":{"kept":"true"}}`

// wantOnlyChanged holds the members of a document against those before a commit: all of them are there, in their
// order and letter by letter, but for the changed ones; what is new is among the added.
func wantOnlyChanged(t *testing.T, before, after object, added []string, changed ...string) {
	t.Helper()
	for _, m := range before {
		have := after.raw(string(m.name))
		if !bytes.Equal(have, m.value) && !contains(changed, m.name) {
			t.Errorf("%s became %s", m.name, have)
		}
	}
	for i, m := range after {
		if i < len(before) && !bytes.Equal(m.name, before[i].name) {
			t.Errorf("member %d is %s, was %s", i, m.name, before[i].name)
		}
		if before.raw(string(m.name)) == nil && !slices.Contains(added, string(m.name)) {
			t.Errorf("%s is new", m.name)
		}
	}
}

// TestFixturesAreAllThere fails when a broken fixture was lost, which nothing else would notice.
func TestFixturesAreAllThere(t *testing.T) {
	for name := range fixtureRefusals {
		if _, err := os.Stat(filepath.Join("testdata", "metadata", name)); err != nil {
			t.Error(err)
		}
	}
}
