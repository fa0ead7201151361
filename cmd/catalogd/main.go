// Command catalogd is the whole catalog in one binary: the server, its maintenance worker, a complete
// environment for a laptop (dev), and the command line that administers a server over its management API.
// It is the only package that knows every other; it reads the configuration and hands values down.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// Exit codes of every command.
const (
	exitOK     = 0
	exitFailed = 1 // refused or failed
	exitUsage  = 2 // the command line itself is wrong
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command and gives its exit code. The first SIGINT or SIGTERM cancels the context, which asks
// for an orderly end; after it signals have their default effect, so that a second one ends the process at once.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, &call{
		Args:     os.Args[1:],
		Environ:  os.Environ(),
		Out:      os.Stdout,
		Err:      os.Stderr,
		Terminal: term.IsTerminal(int(os.Stdout.Fd())),
	})
}

// commands is the table of everything that the binary does.
var commands = []*command{
	{name: "dev", summary: "everything in one process for a laptop, CI or a demo: private Postgres, server, worker", run: runDev},
	{name: "serve", summary: "the server", run: runServe},
	{name: "worker", summary: "the maintenance worker alone, on as many machines as wanted", run: runWorker},
	{name: "migrate", summary: "bring the database schema up to date", run: runMigrate},
	{name: "bootstrap", summary: "make the first principal and its roles (idempotent)", run: runBootstrap},
	{name: "doctor", summary: "check everything the server depends on, each with a remedy", run: runDoctor},
	{name: "warehouse", summary: "create, list, show, update and delete warehouses", verbs: warehouseVerbs},
	{name: "principal", summary: "create, list, show and delete principals", verbs: principalVerbs},
	{name: "token", summary: "personal access tokens: create, list, rotate, revoke", verbs: tokenVerbs},
	{name: "network-policy", summary: "networks that requests may come from: show, set", verbs: networkVerbs},
	{name: "signing-key", summary: "keys that tokens are signed with: list, rotate", verbs: signingKeyVerbs},
	{name: "role", summary: "roles: create, list, show, delete, assign, revoke", verbs: roleVerbs},
	{name: "grant", summary: "privileges of a warehouse's roles: create, list, delete; explain, who-can, reach", verbs: grantVerbs},
	{name: "whoami", summary: "who the server takes you for: principal, roles, token", run: runWhoami},
	{name: "maintenance", summary: "run, set and show the maintenance of a table", verbs: maintenanceVerbs},
	{name: "audit", summary: "who did what, and who was refused what: list, with --follow as it comes", verbs: auditVerbs},
	{name: "events", summary: "what has changed, the oldest first; --follow shows it as it comes", run: runEvents},
	{name: "webhook", summary: "where events are sent: create, list, show, enable, disable, redeliver, test, delete", verbs: webhookVerbs},
	{name: "version", summary: "version, commit and Go version", run: runVersion},
}
