package commit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "metadata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParse_GoodFixturesKeepTheirText(t *testing.T) {
	for _, name := range []string{
		"TableMetadataPartitionStatisticsFiles.json", "TableMetadataStatisticsFiles.json", "TableMetadataV1Valid.json",
		"TableMetadataV2Valid.json", "TableMetadataV2ValidMinimal.json", "TableMetadataV3ValidMinimal.json",
	} {
		t.Run(name, func(t *testing.T) {
			raw := fixture(t, name)
			d, err := Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(d.JSON(), raw) {
				t.Error("the text changed")
			}
			r, err := DecodeRequest([]byte(`{"requirements":[],"updates":[]}`))
			if err != nil {
				t.Fatal(err)
			}
			next, changed, err := Apply(d, r, Stamp{})
			if err != nil || changed || next != d {
				t.Errorf("Apply of nothing: changed %v, error %v", changed, err)
			}
		})
	}
}

func TestParse_BrokenFixturesNameTheField(t *testing.T) {
	for name, field := range map[string]string{
		"TableMetadataUnsupportedVersion.json":       "format-version",
		"TableMetadataV1MissingSchemaType.json":      `"type"`,
		"TableMetadataV2CurrentSchemaNotFound.json":  "current-schema-id",
		"TableMetadataV2MissingLastPartitionId.json": "last-partition-id",
		"TableMetadataV2MissingPartitionSpecs.json":  "partition-specs",
		"TableMetadataV2MissingSchemas.json":         `"schemas"`,
		"TableMetadataV2MissingSortOrder.json":       "sort-orders",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(fixture(t, name))
			if !fault.Is(err, fault.Validation) || !strings.Contains(err.Error(), field) {
				t.Errorf("error %v of kind %q, want Validation naming %s", err, fault.KindOf(err), field)
			}
		})
	}
}
