// Package api is the HTTP plumbing: it turns a table of endpoints into a server and knows none of them. It owns what
// every route shares: routing on the escaped path, request ids, limits, authentication, errors, the log line and the
// metrics of a request. What a route does is api/rest's and api/manage's.
package api

import (
	"net/http"
	"time"
)

// Access says who may call an endpoint. Whether the caller may do what it asks is decided by the operation behind it.
type Access int

// The kinds of access. The zero value is the safe one.
const (
	SignedIn Access = iota
	Public
)

// HandlerFunc answers one request. An error that it gives is rendered by the error table; it must not have written
// anything then.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Endpoint is one row of the endpoint table.
type Endpoint struct {
	Method string
	// Pattern is the absolute path as chi spells it: "/api/catalog/v1/{prefix}/namespaces". What lies under
	// CatalogBase+"/v1/" is served under all aliases of the base too.
	Pattern string
	// Operation is the name in logs, metrics and audit: verb-noun in lower case, "commit-table". One row, one name.
	Operation string
	Access    Access
	// BodyBytesMax bounds the request's body; 0 means BodyBytesDefault.
	BodyBytesMax int64
	// Deadline bounds the whole request; 0 means DeadlineDefault.
	Deadline time.Duration
	Handler  HandlerFunc
}

// CatalogBase is where the Iceberg REST catalog lives: clients get it as their "uri".
const CatalogBase = "/api/catalog"

// ManagementBase is where the management API lives.
const ManagementBase = "/api/management"

// catalogAliases are other bases of the same catalog routes: what other catalogs' users have in their settings.
var catalogAliases = []string{"", "/catalog", "/polaris/api/catalog", "/iceberg"}

// Limits of requests. Endpoints may say otherwise in their rows.
const (
	BodyBytesDefault = 1 << 20
	// BodyBytesCommit is for commits: one may remove thousands of snapshots or bring a wide schema.
	BodyBytesCommit = 64 << 20
	DeadlineDefault = 60 * time.Second
)
