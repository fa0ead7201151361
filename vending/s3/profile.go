package s3

import (
	"net/netip"
	"net/url"
	"strings"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// StorageType is the profile's word for this storage.
const StorageType = "S3"

// Lives of sessions in seconds, as the token service allows them.
const (
	sessionSecondsMin = 900
	sessionSecondsMax = 43200
)

// Validate refuses a profile that cannot work.
func (p *Provider) Validate(profile vending.Profile) error {
	if profile.StorageType != StorageType {
		return fault.New(fault.BadRequest, "storageType is %q; this storage is %q", profile.StorageType, StorageType)
	}
	if err := validateRole(profile); err != nil {
		return err
	}
	if !validRegion(profile.Region) {
		return fault.New(fault.BadRequest, "region is %q; it must be a region's name such as us-east-1 (any will do where the store has none)", profile.Region)
	}
	for field, endpoint := range map[string]string{
		"endpoint": profile.Endpoint, "endpointInternal": profile.EndpointInternal, "stsEndpoint": profile.STSEndpoint,
	} {
		if err := validateEndpoint(field, endpoint); err != nil {
			return err
		}
	}
	for _, location := range profile.AllowedLocations {
		canonical, err := vending.CanonicalBase(location)
		if err != nil {
			return fault.New(fault.BadRequest, "allowedLocations: %s", fault.Message(err))
		}
		if _, _, ok := vending.SplitS3(canonical); !ok {
			return fault.New(fault.BadRequest, "allowedLocations: %q is not an S3 location", location)
		}
	}
	return nil
}

func validateRole(profile vending.Profile) error {
	if profile.STSUnavailable {
		if profile.RoleARN != "" {
			return fault.New(fault.BadRequest, "roleArn is set although stsUnavailable says that no role can be assumed; leave one out")
		}
		return nil
	}
	if _, ok := partitionOf(profile.RoleARN); !ok {
		return fault.New(fault.BadRequest,
			"roleArn is %q; it must name the role to assume, as arn:aws:iam::ACCOUNT:role/NAME (or set stsUnavailable, then nothing is vended)",
			profile.RoleARN)
	}
	s := profile.SessionSeconds
	if s != 0 && (s < sessionSecondsMin || s > sessionSecondsMax) {
		return fault.New(fault.BadRequest, "sessionSeconds is %d; it must lie between %d and %d", s, sessionSecondsMin, sessionSecondsMax)
	}
	return nil
}

func validRegion(region string) bool {
	if region == "" || len(region) > 64 {
		return false
	}
	for i := range len(region) {
		c := region[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// validateEndpoint refuses what is not the plain base of a server, and addresses at which clouds hand out their
// machines' keys: whoever may set an endpoint must not be able to ask there in the server's name.
func validateEndpoint(field, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fault.New(fault.BadRequest, "%s must be http://host:port or https://host:port", field)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(endpoint, "?#") {
		return fault.New(fault.BadRequest, "%s must hold no user, query or fragment", field)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && vending.ForbiddenAddress(ip) {
		return fault.New(fault.BadRequest, "%s is %q; link-local and unspecified addresses are refused", field, endpoint)
	}
	return nil
}

// CanVend tells whether sessions can be made.
func (p *Provider) CanVend(profile vending.Profile) bool {
	return profile.StorageType == StorageType && !profile.STSUnavailable && profile.RoleARN != ""
}

// ClientConfig gives region, endpoint and path style under every name that clients read.
func (p *Provider) ClientConfig(profile vending.Profile) map[string]string {
	config := map[string]string{
		"client.region":        profile.Region,
		"s3.region":            profile.Region,
		"s3.path-style-access": "false",
	}
	if profile.PathStyleAccess {
		config["s3.path-style-access"] = "true"
	}
	if profile.Endpoint != "" {
		config["s3.endpoint"] = profile.Endpoint
		if !profile.PathStyleAccess {
			// PyIceberg takes path style as soon as there is an endpoint, unless it is told so.
			config["s3.force-virtual-addressing"] = "true"
		}
	}
	return config
}
