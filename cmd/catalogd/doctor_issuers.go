package main

import (
	"context"
	"fmt"

	"catalogd/auth/external"
)

// checkIssuers asks each identity provider for its keys, as the server will.
func (d *doctor) checkIssuers(ctx context.Context) {
	configured, err := d.config.issuers()
	if err != nil {
		d.reportError("identity.issuers", err, "")
		return
	}
	issuers, err := external.New(external.Settings{Issuers: configured})
	if err != nil { // the same was checked above
		d.reportError("identity.issuers", err, "")
		return
	}
	defer issuers.Close()
	issuers.Read(ctx)
	for i, s := range issuers.States() {
		f := finding{what: "issuer", result: fmt.Sprintf("%s: %d keys", s.URL, s.Keys)}
		if len(configured[i].KeySet) > 0 {
			f.result += ", given in the configuration: they are not asked for again"
		}
		if s.Problem != "" {
			f.result = s.Problem
			f.remedy = "correct identity.issuers; if the provider is merely down, the server starts without it and asks again each minute"
		}
		d.report(f)
	}
}
