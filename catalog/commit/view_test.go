package commit

import (
	"testing"

	"catalogd/internal/fault"
)

func TestField_C064_DefaultCatalogAndNamespaceSurvive(t *testing.T) {
	version := `{"version-id":9,"timestamp-ms":77,"schema-id":-1,"summary":{"engine-name":"trino","engine-version":"483"},"default-catalog":"lake","default-namespace":["sales","eu.west"],` +
		`"representations":[{"type":"sql","dialect":"trino","sql":"SELECT * FROM orders"}]}`
	v, err := createView(t, viewBody(version))
	if err != nil {
		t.Fatal(err)
	}
	wantViewMember(t, v, keyVersions, `[{"version-id":1,"timestamp-ms":77,"schema-id":0,"summary":{"engine-name":"trino","engine-version":"483"},"default-catalog":"lake","default-namespace":["sales","eu.west"],`+
		`"representations":[{"type":"sql","dialect":"trino","sql":"SELECT * FROM orders"}]}]`)
	v = commitOnView(t, v, `{"action":"add-view-version","view-version":{"version-id":2,"timestamp-ms":78,"schema-id":0,"summary":{},"default-namespace":[],"default-catalog":null,"representations":[{"type":"sql","dialect":"trino","sql":"SELECT 1"}]}}`, useVersion(-1))
	if have := string(v.version(2).text); have != `{"version-id":2,"timestamp-ms":78,"schema-id":0,"summary":{},"default-namespace":[],"representations":[{"type":"sql","dialect":"trino","sql":"SELECT 1"}]}` {
		t.Errorf("version 2 is %s", have)
	}
}

func TestViewRepeatedDialects(t *testing.T) {
	const text = "Invalid view version: Cannot add multiple queries for dialect trino"
	_, err := createView(t, viewBody(viewVersionOf(1, 0, "trino", "select 1", "TRINO", "select 2")))
	wantError(t, err, fault.IllegalArgument, text)
	viewRefused(t, plainView(t), fault.IllegalArgument, text, addVersion(3, 0, "spark", "a", "Trino", "select 1", "trino", "select 2"))
}
