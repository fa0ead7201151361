package main

import (
	"catalogd/api"
	"catalogd/api/manage"
)

// manageEndpoints are the rows of the management API.
func (a *app) manageEndpoints() []api.Endpoint { return manage.MaintenanceEndpoints(a.operations()) }
