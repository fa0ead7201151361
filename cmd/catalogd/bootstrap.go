package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/internal/telemetry"
)

// rootVariable fixes the root credential of bootstrap and dev.
const rootVariable = "CATALOGD_ROOT_CREDENTIAL"

// parseCredential reads ID:SECRET.
func parseCredential(text string) (catalog.Credential, error) {
	id, secret, found := strings.Cut(text, ":")
	if !found || id == "" || secret == "" || strings.ContainsAny(text, " \t\r\n") {
		return catalog.Credential{}, &problem{rootVariable, "is not ID:SECRET", "both without blanks, the secret of 24 characters or more"}
	}
	return catalog.Credential{ClientID: id, Secret: auth.Secret(secret)}, nil
}

func runBootstrap(ctx context.Context, c *call) error {
	path := ""
	config, err := c.configured(func(fs *flag.FlagSet) {
		fs.StringVar(&path, "credential-file", "", "`file` that a new root credential is written to, mode 0600")
	})
	if err != nil {
		return err
	}
	fixed := c.lookup(rootVariable)
	if fixed == "" && path == "" && !c.Terminal {
		return wrongUsage("a new secret would go nowhere: give --credential-file, set %s, or run it on a terminal", rootVariable)
	}
	a, err := newApp(ctx, config, telemetry.NewLogger(c.Err, config.Log.Level, config.Log.Format))
	if err != nil {
		return err
	}
	defer a.close()
	made, err := a.bootstrap(ctx, fixed, "")
	if err != nil {
		return err
	}
	switch {
	case made.Created:
		fmt.Fprintf(c.Out, "principal %s: created\n", catalog.RootPrincipal)
	case made.Rotated:
		fmt.Fprintf(c.Out, "principal %s: its credential was changed\n", catalog.RootPrincipal)
	default:
		fmt.Fprintf(c.Out, "principal %s: there already, nothing changed\n", catalog.RootPrincipal)
		c.sayNotWritten(path)
		return nil
	}
	text := made.Credential.ClientID + ":" + made.Credential.Secret.Reveal()
	if path != "" {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			return fmt.Errorf("the root principal was made, but its credential could not be kept: %w; run bootstrap with %s to set another", err, rootVariable)
		}
		fmt.Fprintf(c.Out, "credential: %s\n", path)
	} else if fixed == "" {
		fmt.Fprintf(c.Out, "credential: %s (not shown again)\n", text)
	}
	return nil
}

// sayNotWritten says that a credential file is not there although the command ends well: root has a secret, which nobody
// can be shown again. Bootstrap at every start of a machine without a disk of its own is no failure.
func (c *call) sayNotWritten(path string) {
	if path == "" {
		return
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return
	}
	fmt.Fprintf(c.Err, "%s: %s was not written: the secret of %s cannot be shown again; set another with %s=ID:SECRET, "+
		"or as an administrator by `catalogd principal reset %[3]s`\n", c.Name, path, catalog.RootPrincipal, rootVariable)
}

// bootstrap makes the first principal and its role. fixed is a credential that must hold afterwards ("": none is
// asked for); known is one that an earlier run made and that may still be right ("": whatever is stored stays).
func (a *app) bootstrap(ctx context.Context, fixed, known string) (catalog.Bootstrapped, error) {
	b := catalog.Bootstrap{Accounts: a.store}
	if fixed != "" {
		credential, err := parseCredential(fixed)
		if err != nil {
			return catalog.Bootstrapped{}, err
		}
		b.Chosen = credential
	}
	if credential, err := parseCredential(known); err == nil {
		b.Known = credential
	}
	made, err := a.service.Bootstrap(ctx, b)
	if fixed != "" && fault.Is(err, fault.BadRequest) {
		return made, &problem{rootVariable, fault.Message(err), ""}
	}
	return made, err
}
