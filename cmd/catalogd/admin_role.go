package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// roleBody is a principal role or a catalog role in Polaris' spelling.
type roleBody struct {
	Name       string            `json:"name"`
	Properties map[string]string `json:"properties,omitempty"`
	Created    int64             `json:"createTimestamp,omitempty"`
	Updated    int64             `json:"lastUpdateTimestamp,omitempty"`
	Version    int64             `json:"entityVersion,omitempty"`
	Federated  bool              `json:"federated,omitempty"`
	Holders    []string          `json:"holders,omitempty"` // of the command's own
}

// Without -w these are principal roles; with -w WAREHOUSE the roles of that warehouse, which hold privileges. The
// variable CATALOG_WAREHOUSE is not consulted here: it would silently change what a name means.
var roleVerbs = []*command{
	{name: "create", arguments: "NAME", summary: "make a principal role; with -w a role of a warehouse", run: roleCreate},
	{name: "list", summary: "all principal roles; with -w those of a warehouse", run: roleList},
	{name: "show", arguments: "NAME", summary: "one role, and who has it", run: roleShow},
	{name: "delete", arguments: "NAME", summary: "delete a role", run: roleDelete},
	{name: "assign", arguments: "NAME", summary: "give a principal role to a principal; with -w a warehouse's role to a principal role", run: roleAssign},
	{name: "revoke", arguments: "NAME", summary: "the opposite of assign", run: roleRevoke},
}

// rolePath is the collection that a role is in.
func rolePath(warehouse string) []string {
	if warehouse == "" {
		return []string{"principal-roles"}
	}
	return []string{"catalogs", warehouse, "catalog-roles"}
}

func roleCreate(ctx context.Context, c *call) error {
	props, federated := pairsFlag{}, false
	s, err := c.begin(ctx, 1, (*connection).roleWarehouse, props.propertyFlag, func(_ *connection, fs *flag.FlagSet) {
		fs.BoolVar(&federated, "federated", false, "its members come from the identity provider; nobody is given it by hand")
	})
	if err != nil {
		return err
	}
	wrapper := "principalRole"
	if s.warehouse != "" {
		wrapper = "catalogRole"
		if federated {
			return wrongUsage("--federated is for principal roles: -w names a warehouse's")
		}
	}
	body := map[string]any{wrapper: roleBody{Name: s.args[0], Properties: props, Federated: federated}}
	if err := s.do(ctx, http.MethodPost, rolePath(s.warehouse), body, nil); err != nil {
		return err
	}
	return c.printRole(ctx, s)
}

func roleList(ctx context.Context, c *call) error {
	var search string
	s, err := c.begin(ctx, 0, (*connection).roleWarehouse, searchFlag(&search))
	if err != nil {
		return err
	}
	answer, err := rolesAt(ctx, s.admin, rolePath(s.warehouse), found(search))
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	var rows [][]string
	for _, r := range answer.Roles {
		rows = append(rows, []string{r.Name, millis(r.Created), properties(r.Properties)})
	}
	return printRows(c.Out, []string{"NAME", "CREATED", "PROPERTIES"}, rows)
}

func roleShow(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 1, (*connection).roleWarehouse)
	if err != nil {
		return err
	}
	holders, err := roleHolders(ctx, s)
	if err != nil {
		return err
	}
	return c.printRole(ctx, s, holders...)
}

// roleAnswer is an answer with roles.
type roleAnswer struct {
	Roles []roleBody `json:"roles"`
}

// rolesAt gets a whole list of roles.
func rolesAt(ctx context.Context, a *admin, path []string, query url.Values) (roleAnswer, error) {
	answer := roleAnswer{[]roleBody{}}
	err := pages(ctx, a, path, query, func(page roleAnswer) { answer.Roles = append(answer.Roles, page.Roles...) })
	return answer, err
}

// roleHolders gives the names of who has the role that the argument names: principals have principal roles, and these have
// a warehouse's. A caller who may not list them is told so in their place.
func roleHolders(ctx context.Context, s *session) ([]string, error) {
	names := []string{}
	var err error
	if path := append(rolePath(s.warehouse), s.args[0]); s.warehouse != "" {
		var holders roleAnswer
		holders, err = rolesAt(ctx, s.admin, append(path, "principal-roles"), url.Values{})
		for _, r := range holders.Roles {
			names = append(names, r.Name)
		}
	} else {
		type list struct {
			Principals []principalBody `json:"principals"`
		}
		err = pages(ctx, s.admin, append(path, "principals"), url.Values{}, func(page list) {
			for _, p := range page.Principals {
				names = append(names, p.Name)
			}
		})
	}
	if isRefusal(err, http.StatusForbidden) {
		return []string{"(" + err.Error() + ")"}, nil
	}
	return names, err
}

// printRole shows the role that the argument names, with its holders where they were asked for.
func (c *call) printRole(ctx context.Context, s *session, holders ...string) error {
	var r roleBody
	if err := s.do(ctx, http.MethodGet, append(rolePath(s.warehouse), s.args[0]), nil, &r); err != nil {
		return err
	}
	r.Holders = holders
	if s.output == "json" {
		return printJSON(c.Out, r)
	}
	fields := [][2]string{
		{"name", r.Name}, {"warehouse", s.warehouse}, {"properties", properties(r.Properties)},
		{"created", millis(r.Created)}, {"version", fmt.Sprint(r.Version)},
	}
	if holders != nil {
		fields = append(fields, [2]string{"held by", strings.Join(holders, " ")})
	}
	return printFields(c.Out, fields)
}

func roleDelete(ctx context.Context, c *call) error {
	return c.deleteOne(ctx, "role", func(s *session) []string { return append(rolePath(s.warehouse), s.args[0]) }, (*connection).roleWarehouse)
}

func roleAssign(ctx context.Context, c *call) error { return c.changeMember(ctx, true) }

func roleRevoke(ctx context.Context, c *call) error { return c.changeMember(ctx, false) }

func (c *call) changeMember(ctx context.Context, assign bool) error {
	var principal, holder, wrapper, who string
	var path []string
	s, err := c.begin(ctx, 1, (*connection).roleWarehouse, func(k *connection, fs *flag.FlagSet) {
		fs.StringVar(&principal, "principal", "", "`name` of the principal (for a principal role)")
		fs.StringVar(&holder, "principal-role", "", "`name` of the principal role (for a warehouse's role, with -w)")
		k.check(func([]string) error {
			switch {
			case k.warehouse == "" && principal != "" && holder == "":
				path, wrapper, who = []string{"principals", principal, "principal-roles"}, "principalRole", principal
			case k.warehouse != "" && holder != "" && principal == "":
				path, wrapper, who = []string{"principal-roles", holder, "catalog-roles", k.warehouse}, "catalogRole", holder
			default:
				return wrongUsage("give --principal NAME for a principal role, or -w WAREHOUSE and --principal-role NAME for a warehouse's role")
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	role, state := s.args[0], "revoked"
	if assign {
		state = "assigned"
		err = s.do(ctx, http.MethodPut, path, map[string]any{wrapper: roleBody{Name: role}}, nil)
	} else {
		err = s.do(ctx, http.MethodDelete, append(path, role), nil, nil)
	}
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]string{"role": role, "holder": who, "state": state})
	}
	fmt.Fprintf(c.Out, "%s role %s: %s\n", state, role, who)
	return nil
}
