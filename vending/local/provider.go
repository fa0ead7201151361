// Package local is for warehouses on the server's own file system. Nothing can be vended there: whoever reads the
// files needs the file system's permissions.
package local

import (
	"context"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// StorageType is the profile's word for this storage.
const StorageType = "FILE"

// Provider serves file: locations.
type Provider struct{}

var _ vending.Provider = Provider{}

// Validate refuses settings that only object stores have, and locations that are not absolute file URIs.
func (Provider) Validate(p vending.Profile) error {
	if p.StorageType != StorageType {
		return fault.New(fault.BadRequest, "storageType is %q; this storage is %q", p.StorageType, StorageType)
	}
	for field, value := range map[string]string{
		"roleArn": p.RoleARN, "externalId": p.ExternalID, "userArn": p.UserARN, "region": p.Region,
		"endpoint": p.Endpoint, "endpointInternal": p.EndpointInternal, "stsEndpoint": p.STSEndpoint,
	} {
		if value != "" {
			return fault.New(fault.BadRequest, "%s has no meaning for storageType FILE; leave it out", field)
		}
	}
	for _, location := range p.AllowedLocations {
		canonical, err := vending.CanonicalBase(location)
		if err != nil {
			return fault.New(fault.BadRequest, "allowedLocations: %s", fault.Message(err))
		}
		if _, ok := vending.FilePath(canonical); !ok {
			return fault.New(fault.BadRequest, "allowedLocations: %q is not a file: location", location)
		}
	}
	return nil
}

// CanVend is false.
func (Provider) CanVend(vending.Profile) bool { return false }

// Vend refuses.
func (Provider) Vend(context.Context, vending.Profile, vending.Scope) (vending.Credentials, error) {
	return vending.Credentials{}, fault.New(fault.Unsupported, "a file: warehouse has no credentials to vend")
}

// ClientConfig is empty: clients find files by their paths.
func (Provider) ClientConfig(vending.Profile) map[string]string { return map[string]string{} }
