package main

import "catalogd/api"

// manageEndpoints are the rows of the management API.
func (a *app) manageEndpoints() []api.Endpoint { return nil }
