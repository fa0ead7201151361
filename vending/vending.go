// Package vending makes storage credentials that reach one table and nothing else. This package has only the
// words; each storage has a folder of its own that holds its SDK. Scopes become session policies in pure functions.
package vending

import (
	"cmp"
	"context"
	"log/slog"
	"time"
)

// Profile is how a warehouse reaches its storage: Polaris' storageConfigInfo as far as this server uses it.
type Profile struct {
	StorageType      string   `json:"storageType"` // S3 or FILE
	AllowedLocations []string `json:"allowedLocations,omitempty"`
	RoleARN          string   `json:"roleArn,omitempty"`
	ExternalID       string   `json:"externalId,omitempty"`
	UserARN          string   `json:"userArn,omitempty"`
	Region           string   `json:"region,omitempty"`
	Endpoint         string   `json:"endpoint,omitempty"`         // what clients are told
	EndpointInternal string   `json:"endpointInternal,omitempty"` // what the server itself uses; default Endpoint
	STSEndpoint      string   `json:"stsEndpoint,omitempty"`      // default Endpoint, else AWS
	STSUnavailable   bool     `json:"stsUnavailable,omitempty"`
	PathStyleAccess  bool     `json:"pathStyleAccess,omitempty"`
	// SessionSeconds is the life of vended credentials; 0 means SessionSecondsDefault.
	SessionSeconds int `json:"sessionSeconds,omitempty"`
}

// SessionSecondsDefault is the life of vended credentials where the warehouse says nothing.
const SessionSecondsDefault = 3600

// Access is how far credentials reach.
type Access string

// The levels of access. None means that nothing is vended at all.
const (
	None      Access = ""
	Read      Access = "read"
	ReadWrite Access = "read-write"
)

// Scope says what credentials are for. Location is a table's own location without a trailing slash.
type Scope struct {
	Warehouse string // id of the warehouse; part of every cache key
	Named     string // the warehouse's name, for messages
	Table     string // id of the table
	Principal string // name of the caller; part of the session's name, hashed
	Location  string
	Access    Access
}

// WarehouseName is what people call the warehouse: its name, or its id where the name was not given.
func (s Scope) WarehouseName() string { return cmp.Or(s.Named, s.Warehouse) }

// Credentials are temporary keys for one scope, in the spelling of Iceberg's client properties.
type Credentials struct {
	Prefix    string            // the scope's location with one trailing slash
	Config    map[string]string // s3.access-key-id and so on; secrets inside
	ExpiresAt time.Time
}

// String hides everything.
func (Credentials) String() string { return "***" }

// LogValue hides everything.
func (Credentials) LogValue() slog.Value { return slog.StringValue("***") }

// Provider vends for one kind of storage.
type Provider interface {
	// Validate refuses a profile that cannot work: fault.BadRequest that names the field.
	Validate(p Profile) error
	// CanVend tells whether Vend may be called for the profile (false for FILE, and for S3 without STS).
	CanVend(p Profile) bool
	// Vend makes credentials for the scope, never wider. It makes one call to the store's token service at most
	// and answers from a cache while half of the life is left. fault.Busy when the token service does not answer.
	Vend(ctx context.Context, p Profile, s Scope) (Credentials, error)
	// ClientConfig gives what a client may always know: region, endpoint, path style. No secrets.
	ClientConfig(p Profile) map[string]string
}

// FilePlace is one file of a table and what is needed to reach it: the scope is narrowed to the table before the
// file is touched, for the server's own reads and writes as for a client's.
type FilePlace struct {
	Profile Profile
	Scope   Scope
	Path    string // absolute URI
}
