package local_test

import (
	"strings"
	"testing"

	"catalogd/internal/fault"
	"catalogd/vending"
	"catalogd/vending/local"
)

func TestValidate_FilesOnly(t *testing.T) {
	var p local.Provider
	if err := p.Validate(vending.Profile{StorageType: "FILE", AllowedLocations: []string{"file:///tmp", "file:/var/data/"}}); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		field   string
		profile vending.Profile
	}{
		{"storageType", vending.Profile{StorageType: "S3"}},
		{"roleArn", vending.Profile{StorageType: "FILE", RoleARN: "arn:aws:iam::1:role/x"}},
		{"endpoint", vending.Profile{StorageType: "FILE", Endpoint: "http://x"}},
		{"allowedLocations", vending.Profile{StorageType: "FILE", AllowedLocations: []string{"s3://bucket/x"}}},
		{"allowedLocations", vending.Profile{StorageType: "FILE", AllowedLocations: []string{"file:///"}}},
		{"allowedLocations", vending.Profile{StorageType: "FILE", AllowedLocations: []string{"relative"}}},
	} {
		if err := p.Validate(c.profile); !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), c.field) {
			t.Errorf("%s: got %v", c.field, err)
		}
	}
}

func TestVend_Nothing(t *testing.T) {
	var p local.Provider
	profile := vending.Profile{StorageType: "FILE"}
	if p.CanVend(profile) || len(p.ClientConfig(profile)) != 0 {
		t.Error("a file: warehouse vends")
	}
	if _, err := p.Vend(t.Context(), profile, vending.Scope{}); !fault.Is(err, fault.Unsupported) {
		t.Errorf("got %v", err)
	}
}
