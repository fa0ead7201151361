// Package manage is the management API: Apache Polaris' calls with Polaris' payloads and statuses, so that its command
// line and its users' scripts work, and our own beside them (openapi/management.yaml describes both). It decodes,
// calls one operation of the domain and encodes. Polaris says catalog for what the domain calls a warehouse.
package manage

import (
	"net/http"
	"sync/atomic"
	"time"

	"catalogd/api"
	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
)

// Config is what the routes need.
type Config struct {
	Service     *catalog.Service
	Maintenance *maintenance.Operations
	// Cursors seals the cursors of the audit and the events; all servers have the same.
	Cursors *auth.Ring
	// Stopping ends the requests that wait for events when it is closed; nil: nothing does.
	Stopping <-chan struct{}
}

// handlers has one method for each route.
type handlers struct {
	service  *catalog.Service
	cursors  *auth.Ring
	stopping <-chan struct{}
	waiters  atomic.Int32 // requests that wait for events
}

const (
	manageV1          = api.ManagementBase + "/v1"
	catalogRoute      = "/catalogs/{catalog}"
	principalRoute    = "/principals/{principal}"
	roleRoute         = "/principal-roles/{role}"
	catalogRolesRoute = catalogRoute + "/catalog-roles"
	catalogRoleRoute  = catalogRolesRoute + "/{catalogRole}"
	holderRoute       = roleRoute + "/catalog-roles/{catalog}"
)

// Endpoints gives all rows of the management API.
func Endpoints(c Config) []api.Endpoint {
	h := &handlers{service: c.Service, cursors: c.Cursors, stopping: c.Stopping}
	rows := h.warehouseRows()
	rows = append(rows, h.principalRows()...)
	rows = append(rows, h.tokenRows()...)
	rows = append(rows, h.roleRows()...)
	rows = append(rows, h.memberRows()...)
	rows = append(rows, h.grantRows()...)
	rows = append(rows, h.serviceGrantRows()...)
	rows = append(rows, h.accessRows()...)
	rows = append(rows, h.metricsRows()...)
	rows = append(rows, h.keyRows()...)
	rows = append(rows, h.identityRows()...)
	rows = append(rows, h.policyRows()...)
	rows = append(rows, h.recordRows()...)
	rows = append(rows, h.webhookRows()...)
	return append(rows, MaintenanceEndpoints(c.Maintenance)...)
}

func row(method, route, operation string, handler api.HandlerFunc) api.Endpoint {
	return api.Endpoint{Method: method, Pattern: manageV1 + route, Operation: operation, Handler: handler}
}

// param reads one name of the path and notes for the log line what the request is about.
func param(r *http.Request, name string) (string, error) {
	value, err := api.Param(r, name)
	if err == nil {
		api.Annotate(r, "", value)
	}
	return value, err
}

// params reads several names of the path in order.
func params(r *http.Request, names ...string) ([]string, error) {
	values := make([]string, len(names))
	for i, name := range names {
		value, err := param(r, name)
		if err != nil {
			return nil, err
		}
		values[i] = value
	}
	return values, nil
}

// created answers 201 without a body, as Polaris does for assignments and grants.
func created(w http.ResponseWriter) error {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusCreated)
	return nil
}

// entity are the fields that all answers have. Times are milliseconds.
type entity struct {
	Properties map[string]string `json:"properties"`
	CreatedAt  int64             `json:"createTimestamp"`
	UpdatedAt  int64             `json:"lastUpdateTimestamp"`
	Version    int64             `json:"entityVersion"`
}

func newEntity(properties map[string]string, createdAt, updatedAt time.Time, version int64) entity {
	if properties == nil {
		properties = map[string]string{}
	}
	return entity{Properties: properties, CreatedAt: createdAt.UnixMilli(), UpdatedAt: updatedAt.UnixMilli(), Version: version}
}

// updateBody is what PUT takes of every entity.
type updateBody struct {
	Version    *int64            `json:"currentEntityVersion"`
	Properties map[string]string `json:"properties"`
}

func (b updateBody) update() (catalog.Update, error) {
	if b.Version == nil {
		return catalog.Update{}, fault.New(fault.BadRequest, "currentEntityVersion is missing: send the entityVersion that was read")
	}
	return catalog.Update{Version: *b.Version, Properties: b.Properties}, nil
}

// missing says that a part of the body is not there.
func missing(field string) error {
	return fault.New(fault.BadRequest, "%s is missing in the request body", field)
}
