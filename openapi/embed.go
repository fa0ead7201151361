// Package openapi holds the OpenAPI documents that this server answers to: the Iceberg REST catalog's, pinned, and our
// own of the management API. Tests compare the endpoint tables with them; the second is served, and the reference is made of it.
package openapi

import "embed"

// Names of the documents in Files.
const (
	IcebergFile    = "iceberg-rest.yaml"
	ManagementFile = "management.yaml"
)

// Files holds the documents.
//
//go:embed *.yaml
var Files embed.FS
