package s3_test

import (
	"strings"
	"testing"

	"catalogd/internal/fault"
	"catalogd/vending"
	"catalogd/vending/s3"
)

func TestValidate_NamesTheField(t *testing.T) {
	p := s3.New(s3.Config{})
	good := vending.Profile{
		StorageType: "S3", RoleARN: "arn:aws:iam::123456789012:role/Warehouse", Region: "eu-central-1",
		AllowedLocations: []string{"s3://warehouse", "s3a://other/base/"},
	}
	for name, profile := range map[string]vending.Profile{
		"plain": good,
		"everything": {
			StorageType: "S3", RoleARN: "arn:aws-us-gov:iam::123456789012:role/p/W", ExternalID: "x", UserARN: "arn:aws:iam::1:user/u", Region: "us-gov-west-1",
			Endpoint: "https://store.example:9000", EndpointInternal: "http://127.0.0.1:9000", STSEndpoint: "https://sts.example/sts", PathStyleAccess: true, SessionSeconds: 900,
		},
		"no token service": {StorageType: "S3", Region: "auto", STSUnavailable: true, Endpoint: "http://[::1]:9000"},
	} {
		if err := p.Validate(profile); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, c := range []struct {
		field  string
		change func(*vending.Profile)
	}{
		{"storageType", func(p *vending.Profile) { p.StorageType = "FILE" }},
		{"roleArn", func(p *vending.Profile) { p.RoleARN = "" }},
		{"roleArn", func(p *vending.Profile) { p.RoleARN = "arn:aws:iam::1:user/x" }},
		{"roleArn", func(p *vending.Profile) { p.STSUnavailable = true }},
		{"region", func(p *vending.Profile) { p.Region = "" }},
		{"region", func(p *vending.Profile) { p.Region = "eu.example/x" }},
		{"sessionSeconds", func(p *vending.Profile) { p.SessionSeconds = 899 }},
		{"sessionSeconds", func(p *vending.Profile) { p.SessionSeconds = 43201 }},
		{"sessionSeconds", func(p *vending.Profile) { p.SessionSeconds = -1 }},
		{"endpoint", func(p *vending.Profile) { p.Endpoint = "store.example:9000" }},
		{"endpoint", func(p *vending.Profile) { p.Endpoint = "ftp://store.example" }},
		{"endpoint", func(p *vending.Profile) { p.Endpoint = "https://user:secret@store.example" }},
		{"endpoint", func(p *vending.Profile) { p.Endpoint = "https://store.example?x" }},
		{"endpoint", func(p *vending.Profile) { p.Endpoint = "http://169.254.169.254" }},
		{"stsEndpoint", func(p *vending.Profile) { p.STSEndpoint = "http://[fe80::1%25eth0]" }},
		{"stsEndpoint", func(p *vending.Profile) { p.STSEndpoint = "http://[fd00:ec2::254]" }},
		{"endpointInternal", func(p *vending.Profile) { p.EndpointInternal = "http://[::ffff:169.254.169.254]" }},
		{"endpointInternal", func(p *vending.Profile) { p.EndpointInternal = "http://0.0.0.0:80" }},
		{"allowedLocations", func(p *vending.Profile) { p.AllowedLocations = []string{"file:///x"} }},
		{"allowedLocations", func(p *vending.Profile) { p.AllowedLocations = []string{"s3://bucket/*"} }},
	} {
		profile := good
		c.change(&profile)
		err := p.Validate(profile)
		if !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), c.field) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", c.field, err)
		}
	}
}
