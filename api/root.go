package api

import "net/http"

// RootEndpoint answers "/": where people land who opened the server's address in a browser.
func RootEndpoint() Endpoint {
	return Endpoint{
		Method: http.MethodGet, Pattern: "/", Operation: "show-root", Access: Public,
		Handler: func(w http.ResponseWriter, r *http.Request) error {
			return JSON(w, r, http.StatusOK, map[string]string{
				"name":       "catalogd",
				"catalog":    CatalogBase,
				"management": ManagementBase + "/v1",
				"reference":  ManagementBase + "/docs",
				"help":       "this is an Iceberg REST catalog: set a client's uri to this server's address followed by " + CatalogBase,
			})
		},
	}
}
