package catalog

import (
	"strings"
	"testing"

	"catalogd/internal/fault"
)

// Field_C009 and traps 35, 36: whatever would steer a client, alone or behind a prefix, is refused, and the refusal
// says what to do instead.
func TestField_C009_OptionsThatSteerClientsAreRefused(t *testing.T) {
	for _, name := range []string{
		"s3.endpoint", "S3.Endpoint", "s3.secret-access-key", "client.region", "gcs.oauth2.token", "adls.account-name", "header.X-A",
		"io-impl", "py-io-impl", "token", "uri", "credential", "hdfs.host", "signer.uri",
	} {
		for _, prefix := range append([]string{""}, clientPrefixes...) {
			err := checkOptions(map[string]string{prefix + name: "x"})
			if !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), "storageConfigInfo") || !strings.Contains(fault.Message(err), prefix+name) {
				t.Errorf("%s%s: %v", prefix, name, err)
			}
		}
	}
	for _, name := range []string{
		"rest.auth.type", "auth.type", "oauth2-server-uri", "prefix", "warehouse", "namespace-separator", "ssl.cabundle", "catalog-impl",
		"http-client.apache.proxy-endpoint", "HTTP-client.type", "ecs.s3.endpoint", "kms.endpoint", "glue.endpoint", "dynamodb.endpoint",
		"s3tables.endpoint", "jdbc.url", "aws.region", "azure.x",
		"metrics-reporter-impl", "Encryption.KMS-impl", "scope", "table-default.k", "config-default.k",
	} {
		for _, prefix := range []string{prefixConfigDefault, prefixConfigOverride} {
			if err := checkOptions(map[string]string{prefix + name: "x"}); !fault.Is(err, fault.BadRequest) {
				t.Errorf("%s%s: %v", prefix, name, err)
			}
		}
	}
	for _, name := range []string{"write.location-provider.impl", "write.py-location-provider.impl", "Any-Impl"} {
		for _, prefix := range clientPrefixes {
			if err := checkOptions(map[string]string{prefix + name: "x"}); !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), "code") {
				t.Errorf("%s%s: %v", prefix, name, err)
			}
		}
	}
	for _, key := range []string{"\u200bs3.endpoint", "x\r\nSet-Cookie: a", "a\x00", "a\x7f", " a", "a ", "größe", "s3\u2024endpoint", "\xff"} {
		for _, prefix := range clientPrefixes {
			if err := checkOptions(map[string]string{prefix + key: "x"}); !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), "printable") {
				t.Errorf("%s%q: %v", prefix, key, err)
			}
		}
	}
	for name, value := range map[string]string{
		"config-default.": "x", "table-override.": "x", "table-default.write.data.path": "s3://b/x", "view-override.format-version": "2",
		"table-override.format-version": "2", "table-default.format-version": "4", "allowed-format-versions": "4", "verify-metadata-on-load": "yes",
		"case-insensitive-names": "TRUE", "purge-dely-seconds": "86400", "alowed-format-versions": "2", "verify-metadata-onload": "false",
		"case-insensitive-name": "true", "config-defalt.k": "v", "table-overide.k": "v",
	} {
		if err := checkOptions(map[string]string{name: value}); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	for _, versions := range []string{"", ",", "0", "1;2", "2,", "x"} {
		if err := checkOptions(map[string]string{"allowed-format-versions": versions}); !fault.Is(err, fault.BadRequest) {
			t.Errorf("versions %q: %v", versions, err)
		}
	}
	if err := checkOptions(map[string]string{"allowed-format-versions": "1,2", "table-default.format-version": "3"}); !fault.Is(err, fault.BadRequest) {
		t.Errorf("a default that is not allowed: %v", err)
	}
	long := strings.Repeat("x", clientConfigBytesMax)
	if err := checkOptions(map[string]string{"config-default.k": long}); !fault.Is(err, fault.BadRequest) {
		t.Errorf("%d bytes: %v", len(long), err)
	}
	good := map[string]string{
		"owner": long, "config-default.rest-page-size": "100", "config-override.cache-enabled": "false", "table-default.format-version": "2",
		"table-override.write.parquet.compression-codec": "zstd", "view-default.k": "v", "allowed-format-versions": "2, 3,2",
		"case-insensitive-names": "true", "verify-metadata-on-load": "false", "cost-centre": "7", "team.default.k": "v", "purge": "never",
	}
	if err := checkOptions(good); err != nil {
		t.Error(err)
	}
}

// Presets with which no table or view could be made are refused when they are set, with what a create would say.
func TestOptions_PresetsThatBreakEveryCreateAreRefused(t *testing.T) {
	for _, c := range []struct{ name, value, word string }{
		{"write.metadata.compression-codec", "lz77", "must be gzip or none"},
		{"commit.retry.num-retries", "abc", "must be an integer"},
		{"commit.retry.min-wait-ms", "-1", "must be an integer"},
	} {
		for _, prefix := range []string{prefixTableDefault, prefixTableOverride, prefixViewDefault, prefixViewOverride} {
			err := checkOptions(map[string]string{prefix + c.name: c.value})
			if !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), c.word) || !strings.Contains(fault.Message(err), c.name) {
				t.Errorf("%s%s=%s: %v", prefix, c.name, c.value, err)
			}
		}
	}
	for _, bad := range []map[string]string{
		{"view-override.version.history.num-entries": "0"}, {"table-default.encryption.key-id": "k"},
		{"table-default.encryption.key-id": "k", "allowed-format-versions": "1,2"},
	} {
		if err := checkOptions(bad); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	for _, good := range []map[string]string{
		{"table-override.write.metadata.compression-codec": "gzip", "table-default.commit.retry.num-retries": "10"},
		{"table-default.encryption.key-id": "k", "table-default.format-version": "3"},
		{"table-default.write.metadata.metrics.column.id": "none"}, // of tables that have such a column
		{"view-default.version.history.num-entries": "5", "allowed-format-versions": "1"},
	} {
		if err := checkOptions(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
}

func TestTablePresets_VersionOfNewTables(t *testing.T) {
	for _, c := range []struct{ allowed, preset, want string }{
		{"", "", "2"}, {"1", "", "1"}, {"3", "", "3"}, {"1,3", "", "3"}, {"1,2,3", "", "2"}, {"1,3", "1", "1"}, {"", "3", "3"},
	} {
		w := Warehouse{Properties: map[string]string{}}
		if c.allowed != "" {
			w.Properties[propertyFormatVersions] = c.allowed
		}
		if c.preset != "" {
			w.Properties["table-default.format-version"] = c.preset
		}
		if got := w.tablePresets().Defaults[propertyFormatVersion]; got != c.want {
			t.Errorf("allowed %q, preset %q: %s, want %s", c.allowed, c.preset, got, c.want)
		}
	}
}
