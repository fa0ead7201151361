package catalog

import (
	"testing"

	"github.com/google/uuid"

	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

// A table whose metadata names a class that clients load is not registered; one that had such a property before it was
// refused is still read, and one whose file was changed to steer its readers is not.
func TestSteering_TablesFromBeforeAreRead(t *testing.T) {
	id := uuid.New()
	for name, c := range map[string]struct{ registered, read bool }{
		"comment": {true, true}, "write.location-provider.impl": {false, true}, "s3.endpoint": {false, false}, "io-impl": {false, false},
	} {
		d, err := commit.Parse([]byte(`{"format-version":2,"table-uuid":"` + id.String() + `","location":"s3://bucket/t","last-sequence-number":0,
			"last-updated-ms":1,"last-column-id":1,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[
			{"id":1,"name":"id","required":false,"type":"long"}]}],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],
			"last-partition-id":999,"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"` + name + `":"x"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := checkProperties(d.Properties()); (err == nil) != c.registered || err != nil && !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: registering it: %v", name, err)
		}
		record := TableRecord{UUID: id, Location: "s3://bucket/t"}
		if err := matchesRecord(d, record); (err == nil) != c.read {
			t.Errorf("%s: reading it: %v", name, err)
		}
	}
}
