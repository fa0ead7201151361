package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"catalogd/authz"
)

// privilegesNearMax bounds suggestions; a word that is in more names says too little.
const privilegesNearMax = 8

// grantBody is a grant in Polaris' spelling.
type grantBody struct {
	Type      string   `json:"type"` // catalog, namespace, table
	Privilege string   `json:"privilege"`
	Namespace []string `json:"namespace,omitempty"`
	Table     string   `json:"tableName,omitempty"`
	View      string   `json:"viewName,omitempty"`
}

var grantVerbs = []*command{
	{name: "create", arguments: "PRIVILEGE", summary: "grant a privilege to a warehouse's role", run: grantCreate},
	{name: "list", summary: "privileges of a warehouse's role", run: grantList},
	{name: "delete", arguments: "PRIVILEGE", summary: "take a privilege away", run: grantDelete},
}

func grantCreate(ctx context.Context, c *call) error {
	return c.changeGrant(ctx, http.MethodPut, "granted")
}

// Polaris revokes by POST, because a DELETE may not have a body.
func grantDelete(ctx context.Context, c *call) error {
	return c.changeGrant(ctx, http.MethodPost, "revoked")
}

// warehouseOf gives the warehouse of -w, else of the environment.
func (c *call) warehouseOf(k *connection) (string, error) {
	if name := firstOf(k.warehouse, c.lookup("CATALOG_WAREHOUSE")); name != "" {
		return name, nil
	}
	return "", wrongUsage("no warehouse: give -w NAME or set CATALOG_WAREHOUSE")
}

func (c *call) changeGrant(ctx context.Context, method, done string) error {
	fs := c.newFlags()
	k := c.connectionFlags(fs)
	k.warehouseFlag(fs)
	role := fs.String("role", "", "`name` of the warehouse's role")
	namespace := fs.String("namespace", "", "on this namespace: `a.b` or a JSON list; with --table or --view its namespace")
	table := fs.String("table", "", "on this table: `ns.table`, or its name when --namespace is given")
	view := fs.String("view", "", "on this view: `ns.view`, or its name when --namespace is given")
	args, err := c.parse(fs, 1, 1)
	if err != nil {
		return err
	}
	if *role == "" {
		return wrongUsage("--role is missing")
	}
	if *table != "" && *view != "" {
		return wrongUsage("a grant is on a table or on a view: give --table or --view")
	}
	warehouse, err := c.warehouseOf(k)
	if err != nil {
		return err
	}
	grant := grantBody{Type: "catalog", Privilege: args[0]}
	switch {
	case *table != "":
		grant.Type = "table"
		grant.Namespace, grant.Table, err = tableName(*table, *namespace)
	case *view != "":
		grant.Type = "view"
		grant.Namespace, grant.View, err = tableName(*view, *namespace)
	case *namespace != "":
		grant.Type = "namespace"
		grant.Namespace, err = namespaceLevels(*namespace)
	}
	if err != nil {
		return err
	}
	a, err := c.connect(ctx, k)
	if err != nil {
		return err
	}
	path := []string{"catalogs", warehouse, "catalog-roles", *role, "grants"}
	if err := a.do(ctx, method, path, map[string]any{"grant": grant}, nil); err != nil {
		if near := nearPrivileges(grant); isRefusal(err, http.StatusBadRequest) && near != "" {
			return fmt.Errorf("%w; %s; docs/privileges.md has all", err, near)
		}
		return err
	}
	if k.output == "json" {
		return printJSON(c.Out, map[string]any{"grant": grant, "state": done})
	}
	fmt.Fprintf(c.Out, "%s %s on %s to %s\n", done, grant.Privilege, grant.on(warehouse), *role)
	return nil
}

// nearPrivileges suggests names for one that does not exist: those that have the word in them and can be granted
// there, else the one that is spelled most like it. "" for a privilege that exists, or like no other.
func nearPrivileges(g grantBody) string {
	word := strings.ToUpper(g.Privilege)
	if authz.Known(authz.Privilege(g.Privilege)) || word == "" {
		return ""
	}
	var all, with []string
	for _, row := range authz.Rows() {
		if !slices.Contains(row.On, authz.SecurableKind(g.Type)) {
			continue
		}
		all = append(all, string(row.Name))
		if strings.Contains(string(row.Name), word) {
			with = append(with, string(row.Name))
		}
	}
	if near := nearest(word, all); near != "" {
		return "did you mean " + near + "?"
	}
	if len(with) == 0 || len(with) > privilegesNearMax {
		return ""
	}
	return "there are " + strings.Join(with, ", ")
}

// on names what a grant is on.
func (g grantBody) on(warehouse string) string {
	if g.Type == "catalog" {
		return "warehouse " + warehouse
	}
	return strings.TrimRight(g.Type+" "+strings.Join(g.Namespace, ".")+"."+g.Table+g.View, ".")
}

func grantList(ctx context.Context, c *call) error {
	fs := c.newFlags()
	k := c.connectionFlags(fs)
	k.warehouseFlag(fs)
	role := fs.String("role", "", "`name` of the warehouse's role")
	if _, err := c.parse(fs, 0, 0); err != nil {
		return err
	}
	if *role == "" {
		return wrongUsage("--role is missing")
	}
	warehouse, err := c.warehouseOf(k)
	if err != nil {
		return err
	}
	a, err := c.connect(ctx, k)
	if err != nil {
		return err
	}
	var answer struct {
		Grants []grantBody `json:"grants"`
	}
	if err := a.do(ctx, http.MethodGet, []string{"catalogs", warehouse, "catalog-roles", *role, "grants"}, nil, &answer); err != nil {
		return err
	}
	if k.output == "json" {
		return printJSON(c.Out, answer)
	}
	var rows [][]string
	for _, g := range answer.Grants {
		rows = append(rows, []string{g.Privilege, g.on(warehouse)})
	}
	return printRows(c.Out, []string{"PRIVILEGE", "ON"}, rows)
}
