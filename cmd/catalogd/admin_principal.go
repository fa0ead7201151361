package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// principalBody is a principal in Polaris' spelling.
type principalBody struct {
	Name       string            `json:"name"`
	ClientID   string            `json:"clientId,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	Created    int64             `json:"createTimestamp,omitempty"`
	Updated    int64             `json:"lastUpdateTimestamp,omitempty"`
	Version    int64             `json:"entityVersion,omitempty"`
}

var principalVerbs = []*command{
	{name: "create", arguments: "NAME", summary: "make a principal; its secret is shown this once", run: principalCreate},
	{name: "list", summary: "all principals", run: principalList},
	{name: "show", arguments: "NAME", summary: "one principal with its roles", run: principalShow},
	{name: "delete", arguments: "NAME", summary: "delete a principal; its tokens stop working", run: principalDelete},
}

func principalCreate(ctx context.Context, c *call) error {
	fs := c.newFlags()
	k := c.connectionFlags(fs)
	props := pairsFlag{}
	fs.Var(props, "property", "property `key=value`; may be given several times")
	args, err := c.parse(fs, 1, 1)
	if err != nil {
		return err
	}
	a, err := c.connect(ctx, k)
	if err != nil {
		return err
	}
	var answer struct {
		Principal   principalBody `json:"principal"`
		Credentials struct {
			ClientID     string `json:"clientId"`
			ClientSecret string `json:"clientSecret"`
		} `json:"credentials"`
	}
	body := map[string]any{"principal": principalBody{Name: args[0], Properties: props}}
	if err := a.do(ctx, http.MethodPost, []string{"principals"}, body, &answer); err != nil {
		return err
	}
	if k.output == "json" {
		return printJSON(c.Out, answer)
	}
	return printFields(c.Out, [][2]string{
		{"name", answer.Principal.Name}, {"client id", answer.Credentials.ClientID},
		{"client secret", answer.Credentials.ClientSecret + " (not shown again)"},
	})
}

func principalList(ctx context.Context, c *call) error {
	fs := c.newFlags()
	k := c.connectionFlags(fs)
	if _, err := c.parse(fs, 0, 0); err != nil {
		return err
	}
	a, err := c.connect(ctx, k)
	if err != nil {
		return err
	}
	var answer struct {
		Principals []principalBody `json:"principals"`
	}
	if err := a.do(ctx, http.MethodGet, []string{"principals"}, nil, &answer); err != nil {
		return err
	}
	if k.output == "json" {
		return printJSON(c.Out, answer)
	}
	var rows [][]string
	for _, p := range answer.Principals {
		rows = append(rows, []string{p.Name, p.ClientID, millis(p.Created), properties(p.Properties)})
	}
	return printRows(c.Out, []string{"NAME", "CLIENT ID", "CREATED", "PROPERTIES"}, rows)
}

func principalShow(ctx context.Context, c *call) error {
	fs := c.newFlags()
	k := c.connectionFlags(fs)
	args, err := c.parse(fs, 1, 1)
	if err != nil {
		return err
	}
	a, err := c.connect(ctx, k)
	if err != nil {
		return err
	}
	var p principalBody
	if err := a.do(ctx, http.MethodGet, []string{"principals", args[0]}, nil, &p); err != nil {
		return err
	}
	var has struct {
		Roles []roleBody `json:"roles"`
	}
	if err := a.do(ctx, http.MethodGet, []string{"principals", args[0], "principal-roles"}, nil, &has); err != nil {
		return err
	}
	if k.output == "json" {
		return printJSON(c.Out, map[string]any{"principal": p, "roles": has.Roles})
	}
	return printFields(c.Out, [][2]string{
		{"name", p.Name}, {"client id", p.ClientID}, {"roles", roleNames(has.Roles)},
		{"properties", properties(p.Properties)}, {"created", millis(p.Created)}, {"version", fmt.Sprint(p.Version)},
	})
}

func principalDelete(ctx context.Context, c *call) error {
	return c.deleteOne(ctx, "principal", func(_ *connection, name string) []string { return []string{"principals", name} })
}

func roleNames(roles []roleBody) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = r.Name
	}
	return strings.Join(names, " ")
}
