// Package rest is the Iceberg REST catalog's protocol over the domain: it decodes requests, calls one operation of
// catalog.Service and encodes the answer in the shapes and with the spelling of the specification
// (openapi/iceberg-rest.yaml). What is right or allowed is the domain's to say.
package rest

import (
	"net/http"
	"strings"
	"time"

	"catalogd/api"
	"catalogd/catalog"
)

// Config is what the routes need.
type Config struct {
	Service *catalog.Service
	// Tokens answers POST /v1/oauth/tokens.
	Tokens api.HandlerFunc
	// Revocations answers POST /v1/oauth/revoke.
	Revocations api.HandlerFunc
	Keys        KeySet
	// PublicURL is the address under which clients reach the server, without a path; "" means the address that a
	// request itself named.
	PublicURL string
}

// Limits of single routes.
const (
	metricsBytesMax  = 8 << 20 // scan reports repeat the whole filter
	createBytesMax   = 16 << 20
	tokenBytesMax    = 64 << 10
	tokenDeadline    = 10 * time.Second
	commitDeadline   = 2 * time.Minute // until writing has begun; that has catalog.commitAfterWriteMax on top
	metricsDeadline  = 10 * time.Second
	namespaceRoute   = "/{prefix}/namespaces/{namespace}"
	tableRoute       = namespaceRoute + "/tables/{table}"
	viewRoute        = namespaceRoute + "/views/{view}"
	catalogV1        = api.CatalogBase + "/v1"
	prefixedTemplate = "/v1/{prefix}/"
)

// handlers has one method for each route.
type handlers struct {
	Config
	announced []string
}

// Endpoints gives all rows: what is served, and what the specification knows but this server refuses by name.
func Endpoints(c Config) []api.Endpoint {
	h := &handlers{Config: c}
	served := h.served()
	h.announced = templatesOf(served)
	return append(append(served, h.wellKnown()...), h.unserved()...)
}

// served are the routes that do something. /v1/config announces exactly these.
func (h *handlers) served() []api.Endpoint {
	const get, head, post, del = http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete
	return v1(
		api.Endpoint{Method: get, Pattern: "/config", Operation: "load-config", Handler: h.loadConfig},
		api.Endpoint{Method: post, Pattern: "/oauth/tokens", Operation: "issue-token", Access: api.Public,
			BodyBytesMax: tokenBytesMax, Deadline: tokenDeadline, Handler: h.Tokens},
		api.Endpoint{Method: post, Pattern: "/oauth/revoke", Operation: "revoke-token", Access: api.Public,
			BodyBytesMax: tokenBytesMax, Deadline: tokenDeadline, Handler: h.Revocations},

		api.Endpoint{Method: get, Pattern: "/{prefix}/namespaces", Operation: "list-namespaces", Handler: h.listNamespaces},
		api.Endpoint{Method: post, Pattern: "/{prefix}/namespaces", Operation: "create-namespace", Handler: h.createNamespace},
		api.Endpoint{Method: get, Pattern: namespaceRoute, Operation: "load-namespace", Handler: h.loadNamespace},
		api.Endpoint{Method: head, Pattern: namespaceRoute, Operation: "namespace-exists", Handler: h.namespaceExists},
		api.Endpoint{Method: del, Pattern: namespaceRoute, Operation: "drop-namespace", Handler: h.dropNamespace},
		api.Endpoint{Method: post, Pattern: namespaceRoute + "/properties", Operation: "update-namespace",
			Handler: h.updateNamespace},

		api.Endpoint{Method: get, Pattern: namespaceRoute + "/tables", Operation: "list-tables", Handler: h.listTables},
		api.Endpoint{Method: post, Pattern: namespaceRoute + "/tables", Operation: "create-table",
			BodyBytesMax: createBytesMax, Deadline: commitDeadline, Handler: h.createTable},
		api.Endpoint{Method: post, Pattern: namespaceRoute + "/register", Operation: "register-table", Deadline: commitDeadline,
			Handler: h.registerTable},
		api.Endpoint{Method: get, Pattern: tableRoute, Operation: "load-table", Handler: h.loadTable},
		api.Endpoint{Method: head, Pattern: tableRoute, Operation: "table-exists", Handler: h.tableExists},
		api.Endpoint{Method: post, Pattern: tableRoute, Operation: "commit-table",
			BodyBytesMax: api.BodyBytesCommit, Deadline: commitDeadline, Handler: h.commitTable},
		api.Endpoint{Method: del, Pattern: tableRoute, Operation: "drop-table", Handler: h.dropTable},
		api.Endpoint{Method: post, Pattern: namespaceRoute + "/register-view", Operation: "register-view", Deadline: commitDeadline,
			Handler: h.registerView},
		api.Endpoint{Method: post, Pattern: tableRoute + "/unregister", Operation: "unregister-table", Handler: h.unregisterTable},
		api.Endpoint{Method: get, Pattern: tableRoute + "/credentials", Operation: "load-credentials",
			Handler: h.loadCredentials},
		api.Endpoint{Method: post, Pattern: tableRoute + "/metrics", Operation: "report-metrics",
			BodyBytesMax: metricsBytesMax, Deadline: metricsDeadline, Handler: h.reportMetrics},
		api.Endpoint{Method: post, Pattern: "/{prefix}/tables/rename", Operation: "rename-table", Handler: h.renameTable},
		api.Endpoint{Method: post, Pattern: "/{prefix}/transactions/commit", Operation: "commit-transaction",
			BodyBytesMax: api.BodyBytesCommit, Deadline: commitDeadline, Handler: h.commitTransaction},

		api.Endpoint{Method: get, Pattern: namespaceRoute + "/views", Operation: "list-views", Handler: h.listViews},
		api.Endpoint{Method: post, Pattern: namespaceRoute + "/views", Operation: "create-view",
			BodyBytesMax: createBytesMax, Deadline: commitDeadline, Handler: h.createView},
		api.Endpoint{Method: get, Pattern: viewRoute, Operation: "load-view", Handler: h.loadView},
		api.Endpoint{Method: head, Pattern: viewRoute, Operation: "view-exists", Handler: h.viewExists},
		api.Endpoint{Method: post, Pattern: viewRoute, Operation: "replace-view",
			BodyBytesMax: createBytesMax, Deadline: commitDeadline, Handler: h.replaceView},
		api.Endpoint{Method: del, Pattern: viewRoute, Operation: "drop-view", Handler: h.dropView},
		api.Endpoint{Method: post, Pattern: "/{prefix}/views/rename", Operation: "rename-view", Handler: h.renameView},
	)
}

// v1 puts the catalog's base before the patterns.
func v1(endpoints ...api.Endpoint) []api.Endpoint {
	for i := range endpoints {
		endpoints[i].Pattern = catalogV1 + endpoints[i].Pattern
	}
	return endpoints
}

// templatesOf gives "METHOD /v1/{prefix}/..." as the specification spells it, for the routes below a warehouse; config
// and tokens are there before a client can ask.
func templatesOf(endpoints []api.Endpoint) []string {
	templates := []string{}
	for _, e := range endpoints {
		template := strings.TrimPrefix(e.Pattern, api.CatalogBase)
		if strings.HasPrefix(template, prefixedTemplate) {
			templates = append(templates, e.Method+" "+template)
		}
	}
	return templates
}
