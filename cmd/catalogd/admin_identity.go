package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// identityBody is a subject of an identity provider that is a principal.
type identityBody struct {
	Issuer   string     `json:"issuer"`
	Subject  string     `json:"subject"`
	LinkedAt *time.Time `json:"linkedAt,omitempty"`
}

// identityFlags adds --issuer and --subject, which must be given.
func (b *identityBody) identityFlags(k *connection, fs *flag.FlagSet) {
	fs.StringVar(&b.Issuer, "issuer", "", "`url` of the identity provider, as its tokens say it (iss)")
	fs.StringVar(&b.Subject, "subject", "", "whom the provider means: the `sub` of its tokens")
	k.check(func([]string) error {
		if b.Issuer == "" || b.Subject == "" {
			return wrongUsage("--issuer and --subject are both needed")
		}
		return nil
	})
}

func principalAddIdentity(ctx context.Context, c *call) error {
	var identity identityBody
	s, err := c.begin(ctx, 1, identity.identityFlags)
	if err != nil {
		return err
	}
	if err := s.do(ctx, http.MethodPost, []string{"principals", s.args[0], "identities"}, identity, &identity); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, identity)
	}
	return printFields(c.Out, [][2]string{{"principal", s.args[0]}, {"issuer", identity.Issuer}, {"subject", identity.Subject}})
}

func principalListIdentities(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 1)
	if err != nil {
		return err
	}
	var answer struct {
		Identities []identityBody `json:"identities"`
	}
	if err := s.do(ctx, http.MethodGet, []string{"principals", s.args[0], "identities"}, nil, &answer); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	var rows [][]string
	for _, i := range answer.Identities {
		rows = append(rows, []string{i.Issuer, i.Subject, shortTime(i.LinkedAt)})
	}
	return printRows(c.Out, []string{"ISSUER", "SUBJECT", "SINCE"}, rows)
}

func principalRemoveIdentity(ctx context.Context, c *call) error {
	var identity identityBody
	s, err := c.begin(ctx, 1, identity.identityFlags)
	if err != nil {
		return err
	}
	query := url.Values{"issuer": {identity.Issuer}, "subject": {identity.Subject}}
	target := joinPath([]string{"principals", s.args[0], "identities"}) + "?" + query.Encode()
	if err := s.call(ctx, http.MethodDelete, target, nil, nil); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]any{"identity": identity, "state": "removed"})
	}
	fmt.Fprintf(c.Out, "removed subject %s of %s from %s\n", identity.Subject, identity.Issuer, s.args[0])
	return nil
}
