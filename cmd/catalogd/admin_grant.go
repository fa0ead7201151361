package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"catalogd/authz"
	"catalogd/internal/spelling"
)

// privilegesNearMax bounds suggestions; a word that is in more names says too little.
const privilegesNearMax = 8

// grantBody is a grant in Polaris' spelling.
type grantBody struct {
	Type      string   `json:"type"` // catalog, namespace, table, view; of the command's own: root, the service
	Privilege string   `json:"privilege"`
	Namespace []string `json:"namespace,omitempty"`
	Table     string   `json:"tableName,omitempty"`
	View      string   `json:"viewName,omitempty"`
}

var grantVerbs = []*command{
	{name: "create", arguments: "PRIVILEGE", summary: "grant a privilege to a warehouse's role, or with --principal-role one on the service", run: grantCreate},
	{name: "apply", arguments: "FILE", summary: "make many grants and take many back, all or none: a JSON file, or - for standard input", run: grantApply},
	{name: "list", summary: "what a warehouse's role (--role) or a principal role holds, or who holds what on a warehouse, namespace, table or view", run: grantList},
	{name: "delete", arguments: "PRIVILEGE", summary: "take a privilege away", run: grantDelete},
	{name: "owner", summary: "who owns a warehouse, namespace, table or view", run: ownerShow},
	{name: "set-owner", arguments: "[PRINCIPAL]", summary: "hand it to another principal, or with --nobody to nobody", run: ownerSet},
	{name: "explain", arguments: "PRINCIPAL PRIVILEGE|OPERATION [TABLE]", summary: "why somebody may do something, or why not and what would give it", run: grantExplain},
	{name: "who-can", arguments: "PRIVILEGE|OPERATION [TABLE]", summary: "who may do something, and by which grants", run: grantWhoCan},
	{name: "reach", arguments: "PRINCIPAL", summary: "everything that somebody holds grants on", run: grantReach},
}

func grantCreate(ctx context.Context, c *call) error {
	return c.changeGrant(ctx, func(a *admin, g roleGrant) error {
		return g.send(ctx, a, http.MethodPut)
	}, "granted", "to")
}

// grantDelete takes a grant away. The API answers the same whether there was one, as Polaris does; who types a
// command wants to know, and above all whether the role still may: hence the lists before and after.
func grantDelete(ctx context.Context, c *call) error {
	return c.changeGrant(ctx, func(a *admin, g roleGrant) error {
		before, err := g.list(ctx, a)
		if err != nil {
			return err
		}
		// Polaris revokes by POST, because a DELETE may not have a body.
		if err := g.send(ctx, a, http.MethodPost); err != nil {
			return err
		}
		after, err := g.list(ctx, a)
		if err != nil {
			return err
		}
		still := g.stillHeld(after)
		if len(after) == len(before) {
			return fmt.Errorf("%s on %s was not granted to %s, nothing changed%s", g.Privilege, g.on(g.warehouse), g.role, still)
		}
		if still != "" {
			fmt.Fprintf(c.Err, "%s: %s may still do it%s\n", c.Name, g.role, still)
		}
		return nil
	}, "revoked", "from")
}

// onTheService is the type of a grant that a principal role holds, on the service.
const onTheService = string(authz.Root)

// roleGrant is a grant with the role that has it or is to have it: a warehouse's, or of one on the service a principal role.
type roleGrant struct {
	grantBody
	warehouse, role string
}

func (g roleGrant) path() []string {
	if g.Type == onTheService {
		return []string{"principal-roles", g.role, "service-privileges"}
	}
	return []string{"catalogs", g.warehouse, "catalog-roles", g.role, "grants"}
}

// send adds (PUT) or revokes (POST) it.
func (g roleGrant) send(ctx context.Context, a *admin, method string) error {
	path, body := g.path(), any(map[string]any{"grant": g.grantBody})
	if g.Type == onTheService {
		path, body = append(path, g.Privilege), nil
		if method == http.MethodPost {
			method = http.MethodDelete
		}
	}
	err := a.do(ctx, method, path, body, nil)
	if near := nearPrivileges(g.grantBody); isRefusal(err, http.StatusBadRequest) && near != "" {
		return fmt.Errorf("%w; %s; docs/privileges.md has all", err, near)
	}
	return err
}

// list gives all that the role holds.
func (g roleGrant) list(ctx context.Context, a *admin) ([]grantBody, error) {
	var answer struct {
		Grants     []grantBody `json:"grants"`
		Privileges []string    `json:"privileges"` // on the service
	}
	err := a.do(ctx, http.MethodGet, g.path(), nil, &answer)
	for _, p := range answer.Privileges {
		answer.Grants = append(answer.Grants, grantBody{Type: onTheService, Privilege: p})
	}
	return answer.Grants, err
}

// stillHeld names the grants among held that give the role the privilege nevertheless: the same further up, or one that
// contains it. "" when there is none.
func (g roleGrant) stillHeld(held []grantBody) string {
	var by []string
	for _, h := range held {
		if h.covers(g.grantBody) && authz.Implies(authz.Privilege(h.Privilege), authz.Privilege(g.Privilege)) {
			by = append(by, h.Privilege+" on "+h.on(g.warehouse))
		}
	}
	if len(by) == 0 {
		return ""
	}
	return "; it holds by " + strings.Join(by, " and ")
}

// covers tells whether what g is on is what other is on, or contains it.
func (g grantBody) covers(other grantBody) bool {
	switch g.Type {
	case "catalog", onTheService:
		return true
	case "namespace":
		return len(g.Namespace) <= len(other.Namespace) && slices.Equal(g.Namespace, other.Namespace[:len(g.Namespace)])
	}
	return g.Type == other.Type && slices.Equal(g.Namespace, other.Namespace) && g.Table == other.Table && g.View == other.View
}

// changeGrant reads which grant is meant, changes it and says so: "granted X on Y to Z".
func (c *call) changeGrant(ctx context.Context, change func(a *admin, g roleGrant) error, done, direction string) error {
	var grant roleGrant
	s, err := c.begin(ctx, 1, placeFlags(&grant.grantBody), c.granteeFlags(&grant), func(k *connection, _ *flag.FlagSet) {
		k.check(func([]string) error {
			if grant.role == "" {
				return wrongUsage("--role is missing")
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	grant.Privilege, grant.warehouse = s.args[0], s.warehouse
	if err := change(s.admin, grant); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]any{"grant": grant.grantBody, "state": done})
	}
	fmt.Fprintf(c.Out, "%s %s on %s %s %s\n", done, grant.Privilege, grant.on(s.warehouse), direction, grant.role)
	return nil
}

// placeFlags add the flags that say what a grant is on, and put that into g: nothing is the warehouse.
func placeFlags(g *grantBody) verbFlags {
	return func(k *connection, fs *flag.FlagSet) {
		var namespace, table, view string
		fs.StringVar(&namespace, "namespace", "", "on this namespace: `a.b` or a JSON list; with --table or --view its namespace")
		fs.StringVar(&table, "table", "", "on this table: `ns.table`, or its name when --namespace is given")
		fs.StringVar(&view, "view", "", "on this view: `ns.view`, or its name when --namespace is given")
		k.check(func([]string) (err error) {
			g.Type = "catalog"
			switch {
			case table != "" && view != "":
				return wrongUsage("a grant is on a table or on a view: give --table or --view")
			case table != "":
				g.Type = "table"
				g.Namespace, g.Table, err = tableName(table, namespace)
			case view != "":
				g.Type = "view"
				g.Namespace, g.View, err = tableName(view, namespace)
			case namespace != "":
				g.Type = "namespace"
				g.Namespace, err = namespaceLevels(namespace)
			}
			return err
		})
	}
}

// query names the place to the management API.
func (g grantBody) query() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{"namespace": namespaceSegment(g.Namespace), "table": g.Table, "view": g.View} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// granteeFlags say whose grants are meant: a warehouse's role's, or with --principal-role a principal role's on the service. They
// come behind placeFlags.
func (c *call) granteeFlags(g *roleGrant) verbFlags {
	return func(k *connection, fs *flag.FlagSet) {
		var holder string
		k.warehouseFlag(fs, warehouseHelp)
		fs.StringVar(&g.role, "role", "", "`name` of the warehouse's role")
		fs.StringVar(&holder, "principal-role", "", "`name` of a principal role: what it holds on the service, whatever the warehouse")
		k.check(func([]string) (err error) {
			if holder == "" {
				k.warehouse, err = c.warehouseOf(k)
				return err
			}
			if g.role != "" || k.warehouse != "" || g.Type != string(authz.Catalog) {
				return wrongUsage("--principal-role is about the service: give no --role, warehouse, namespace, table or view")
			}
			g.Type, g.role = onTheService, holder
			return nil
		})
	}
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
	if near := spelling.Nearest(word, all); near != "" {
		return "did you mean " + near + "?"
	}
	if len(with) == 0 || len(with) > privilegesNearMax {
		return ""
	}
	return "there are " + strings.Join(with, ", ")
}

// on names what a grant is on; no two securables alike.
func (g grantBody) on(warehouse string) string {
	switch g.Type {
	case "catalog":
		return "warehouse " + warehouse
	case onTheService:
		return "the service"
	}
	return g.Type + " " + dottedName(g.Namespace, g.Table+g.View)
}

func grantList(ctx context.Context, c *call) error {
	var of roleGrant
	s, err := c.begin(ctx, 0, placeFlags(&of.grantBody), c.granteeFlags(&of), func(k *connection, _ *flag.FlagSet) {
		k.check(func([]string) error {
			if of.role != "" && of.Type != "catalog" && of.Type != onTheService {
				return wrongUsage("give --role, or where the grants are, not both")
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	of.warehouse = s.warehouse
	if of.role == "" {
		return c.listGrantsOn(ctx, s, of.grantBody)
	}
	grants, err := of.list(ctx, s.admin)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]any{"grants": grants})
	}
	var rows [][]string
	for _, g := range grants {
		rows = append(rows, []string{g.Privilege, g.on(s.warehouse)})
	}
	return printRows(c.Out, []string{"PRIVILEGE", "ON"}, rows)
}

// listGrantsOn shows who holds what on a place.
func (c *call) listGrantsOn(ctx context.Context, s *session, on grantBody) error {
	type grantee struct {
		Role      string `json:"catalogRole"`
		Privilege string `json:"privilege"`
	}
	type list struct {
		Grants []grantee `json:"grants"`
	}
	answer := list{[]grantee{}}
	err := pages(ctx, s.admin, []string{"catalogs", s.warehouse, "grants"}, on.query(), func(page list) {
		answer.Grants = append(answer.Grants, page.Grants...)
	})
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	var rows [][]string
	for _, g := range answer.Grants {
		rows = append(rows, []string{g.Role, g.Privilege, on.on(s.warehouse)})
	}
	return printRows(c.Out, []string{"ROLE", "PRIVILEGE", "ON"}, rows)
}
