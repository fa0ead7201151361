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
	{name: "add-key", arguments: "NAME", summary: "register a public key that a principal signs in with", run: principalAddKey},
	{name: "list-keys", arguments: "NAME", summary: "the public keys of a principal", run: principalListKeys},
	{name: "remove-key", arguments: "NAME KEY", summary: "take a public key from a principal; tokens that it obtained end", run: principalRemoveKey},
	{name: "add-identity", arguments: "NAME", summary: "let a subject of an identity provider be a principal", run: principalAddIdentity},
	{name: "list-identities", arguments: "NAME", summary: "the identity providers' subjects that are a principal", run: principalListIdentities},
	{name: "remove-identity", arguments: "NAME", summary: "end that a subject is a principal; its tokens end", run: principalRemoveIdentity},
	{name: "rotate", arguments: "NAME", summary: "give yourself, or as its administrator a principal, a new secret, shown this once; the old one ends", run: principalRotate},
	{name: "reset", arguments: "NAME", summary: "the same as its administrator alone; over HTTP also to a chosen secret", run: principalReset},
	{name: "delete", arguments: "NAME", summary: "delete a principal; its tokens stop working", run: principalDelete},
}

func principalCreate(ctx context.Context, c *call) error {
	props := pairsFlag{}
	return c.newSecret(ctx, func(name string) secretRequest {
		return secretRequest{[]string{"principals"}, map[string]any{"principal": principalBody{Name: name, Properties: props}}}
	}, props.propertyFlag)
}

func principalRotate(ctx context.Context, c *call) error {
	return c.newSecret(ctx, func(name string) secretRequest {
		return secretRequest{path: []string{"principals", name, "rotate"}}
	})
}

func principalReset(ctx context.Context, c *call) error {
	return c.newSecret(ctx, func(name string) secretRequest {
		return secretRequest{path: []string{"principals", name, "reset"}}
	})
}

func principalList(ctx context.Context, c *call) error {
	var search string
	s, err := c.begin(ctx, 0, searchFlag(&search))
	if err != nil {
		return err
	}
	type list struct {
		Principals []principalBody `json:"principals"`
	}
	answer := list{[]principalBody{}}
	err = pages(ctx, s.admin, []string{"principals"}, found(search), func(page list) {
		answer.Principals = append(answer.Principals, page.Principals...)
	})
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	var rows [][]string
	for _, p := range answer.Principals {
		rows = append(rows, []string{p.Name, p.ClientID, millis(p.Created), properties(p.Properties)})
	}
	return printRows(c.Out, []string{"NAME", "CLIENT ID", "CREATED", "PROPERTIES"}, rows)
}

func principalShow(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 1)
	if err != nil {
		return err
	}
	var p principalBody
	if err := s.do(ctx, http.MethodGet, []string{"principals", s.args[0]}, nil, &p); err != nil {
		return err
	}
	var has struct {
		Roles []roleBody `json:"roles"`
	}
	if err := s.do(ctx, http.MethodGet, []string{"principals", s.args[0], "principal-roles"}, nil, &has); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]any{"principal": p, "roles": has.Roles})
	}
	return printFields(c.Out, [][2]string{
		{"name", p.Name}, {"client id", p.ClientID}, {"roles", roleNames(has.Roles)},
		{"properties", properties(p.Properties)}, {"created", millis(p.Created)}, {"version", fmt.Sprint(p.Version)},
	})
}

func principalDelete(ctx context.Context, c *call) error {
	return c.deleteOne(ctx, "principal", func(s *session) []string { return []string{"principals", s.args[0]} })
}

func roleNames(roles []roleBody) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = r.Name
	}
	return strings.Join(names, " ")
}
