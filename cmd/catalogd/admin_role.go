package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
)

// roleBody is a principal role or a catalog role in Polaris' spelling.
type roleBody struct {
	Name       string            `json:"name"`
	Properties map[string]string `json:"properties,omitempty"`
	Created    int64             `json:"createTimestamp,omitempty"`
	Updated    int64             `json:"lastUpdateTimestamp,omitempty"`
	Version    int64             `json:"entityVersion,omitempty"`
}

// Without -w these are principal roles; with -w WAREHOUSE the roles of that warehouse, which hold privileges. The
// variable CATALOG_WAREHOUSE is not consulted here: it would silently change what a name means.
var roleVerbs = []*command{
	{name: "create", arguments: "NAME", summary: "make a principal role; with -w a role of a warehouse", run: roleCreate},
	{name: "list", summary: "all principal roles; with -w those of a warehouse", run: roleList},
	{name: "show", arguments: "NAME", summary: "one role", run: roleShow},
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
	props := pairsFlag{}
	s, err := c.begin(ctx, 1, (*connection).roleWarehouse, props.propertyFlag)
	if err != nil {
		return err
	}
	wrapper := "principalRole"
	if s.warehouse != "" {
		wrapper = "catalogRole"
	}
	body := map[string]any{wrapper: roleBody{Name: s.args[0], Properties: props}}
	if err := s.do(ctx, http.MethodPost, rolePath(s.warehouse), body, nil); err != nil {
		return err
	}
	return c.printRole(ctx, s)
}

func roleList(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 0, (*connection).roleWarehouse)
	if err != nil {
		return err
	}
	var answer struct {
		Roles []roleBody `json:"roles"`
	}
	if err := s.do(ctx, http.MethodGet, rolePath(s.warehouse), nil, &answer); err != nil {
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
	return c.printRole(ctx, s)
}

// printRole shows the role that the argument names.
func (c *call) printRole(ctx context.Context, s *session) error {
	var r roleBody
	if err := s.do(ctx, http.MethodGet, append(rolePath(s.warehouse), s.args[0]), nil, &r); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, r)
	}
	return printFields(c.Out, [][2]string{
		{"name", r.Name}, {"warehouse", s.warehouse}, {"properties", properties(r.Properties)},
		{"created", millis(r.Created)}, {"version", fmt.Sprint(r.Version)},
	})
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
