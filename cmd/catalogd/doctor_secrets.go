package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// namesShownMax bounds the names of one finding.
const namesShownMax = 5

// checkSecrets looks at the keys as they are given: their form, and who else can read their files.
func (d *doctor) checkSecrets() {
	if _, _, err := d.config.secretKeys(); err != nil {
		d.reportError("secrets.key", err, "")
	} else {
		d.report(finding{what: "secrets.key", result: "32 bytes"})
	}
	for _, reference := range append([]string{d.config.Secrets.Key}, d.config.Secrets.PreviousKeys...) {
		path, isFile := strings.CutPrefix(reference, "file:")
		if !isFile {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 {
			d.report(finding{what: "secrets.key", note: true,
				result: fmt.Sprintf("%s has mode %04o: others than its owner can read what all secrets hang on", path, info.Mode().Perm()),
				remedy: "chmod 600 " + path + ", owned by the server's user"})
		}
	}
	if d.config.Secrets.Key == "" && d.config.Database.URL == "" {
		d.report(finding{what: "catalogd dev", note: true, result: "needs neither of both; to check a running one:",
			remedy: "export $(cat catalogd-data/client.env) && CATALOGD_DATABASE_URL=$CATALOGD_DEV_DATABASE_URL " +
				"CATALOGD_SECRETS_KEY=file:catalogd-data/secrets.key CATALOGD_STORAGE_ALLOW_FILE=true catalogd doctor"})
	}
}

// checkRotation tells whether the keys open what is in the database, and who still needs a previous one.
func (d *doctor) checkRotation(ctx context.Context, a *app) {
	ring, err := d.config.ring()
	if err != nil {
		return // reported already
	}
	if err := a.checkKeys(ctx, ring, nil); err != nil {
		d.reportError("signing keys", err, "")
		return
	}
	d.report(finding{what: "signing keys", result: "secrets.key or a previous key opens them"})
	names, err := a.store.PrincipalsOfOtherKeys(ctx, ring.ID())
	switch {
	case err != nil:
		d.reportError("secrets of principals", err, "see database.url")
	case len(names) > 0:
		shown := strings.Join(names[:min(len(names), namesShownMax)], ", ")
		if len(names) > namesShownMax {
			shown += ", …"
		}
		d.report(finding{what: "secrets of principals", note: true,
			result: fmt.Sprintf("%d were made with an earlier secrets.key: %s", len(names), shown),
			remedy: "keep that key in secrets.previous_keys until each has logged in once, or got a new secret"})
	default:
		d.report(finding{what: "secrets of principals", result: "none needs a previous key"})
	}
}
