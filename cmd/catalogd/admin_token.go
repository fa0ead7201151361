package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

var tokenVerbs = []*command{
	{name: "create", arguments: "NAME", summary: "make a personal access token; its text is shown this once", run: tokenCreate},
	{name: "list", summary: "personal access tokens, with their end and last use", run: tokenList},
	{name: "rotate", arguments: "NAME", summary: "give a personal access token another text, shown this once", run: tokenRotate},
	{name: "revoke", arguments: "[NAME]", summary: "end a personal access token, an access token, or all access tokens", run: tokenRevoke},
}

var networkVerbs = []*command{
	{name: "show", summary: "networks that requests of everybody, or of a principal, may come from", run: networkShow},
	{name: "set", summary: "replace them; without any the policy is taken away", run: networkSet},
}

// tokenBody is a personal access token as the server shows it.
type tokenBody struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Roles     []string `json:"roles"`
	Networks  []string `json:"networks"`
	CreatedBy string   `json:"createdBy"`
	CreatedAt int64    `json:"createTimestamp"`
	RotatedAt int64    `json:"rotateTimestamp,omitempty"`
	ExpiresAt int64    `json:"expireTimestamp"`
	Overlap   int64    `json:"overlapTimestamp,omitempty"`
	LastUse   *struct {
		At      int64  `json:"timestamp"`
		Address string `json:"address"`
		Client  string `json:"client"`
	} `json:"lastUse,omitempty"`
}

type tokenAnswer struct {
	Token  tokenBody `json:"token"`
	Secret string    `json:"secret,omitempty"`
	File   string    `json:"token_file,omitempty"`
}

// principalFlag adds --principal; "" is the caller.
func principalFlag(fs *flag.FlagSet) *string {
	return fs.String("principal", "", "`name` of the principal (default: yourself)")
}

// principalPath gives the path of a principal; without a name the caller's.
func (s *session) principalPath(ctx context.Context, name string) ([]string, error) {
	if name == "" {
		var self struct {
			Name string `json:"name"`
		}
		if err := s.do(ctx, http.MethodGet, []string{"whoami"}, nil, &self); err != nil {
			return nil, err
		}
		name = self.Name
	}
	return []string{"principals", name}, nil
}

func (s *session) tokens(ctx context.Context, of []string) (answer struct {
	Tokens []tokenBody `json:"tokens"`
}, err error) {
	err = s.do(ctx, http.MethodGet, below(of, "tokens"), nil, &answer)
	return answer, err
}

func below(path []string, more ...string) []string {
	return append(path[:len(path):len(path)], more...)
}

// findToken finds a token by its name or its id.
func (s *session) findToken(ctx context.Context, of []string, named string) (tokenBody, error) {
	all, err := s.tokens(ctx, of)
	if err != nil {
		return tokenBody{}, err
	}
	for _, t := range all.Tokens {
		if t.Name == named || t.ID == named {
			return t, nil
		}
	}
	return tokenBody{}, fmt.Errorf("%s has no personal access token %q; `catalogd token list` shows all", of[1], named)
}

// newToken asks for a token's text, and shows it or writes it to a file. ask gives the path and the body.
func (c *call) newToken(ctx context.Context, ask func(s *session, of []string) ([]string, any, error), more ...verbFlags) error {
	var principal *string
	var path string
	s, err := c.begin(ctx, 1, append(more, func(_ *connection, fs *flag.FlagSet) {
		principal = principalFlag(fs)
		fs.StringVar(&path, "write-token", "", "`file` that the text is written to, mode 0600, instead of being shown")
	})...)
	if err != nil {
		return err
	}
	of, err := s.principalPath(ctx, *principal)
	if err != nil {
		return err
	}
	kept, err := openCredentialFile(path)
	if err != nil {
		return err
	}
	defer kept.abandon()
	at, body, err := ask(s, of)
	if err != nil {
		return err
	}
	var answer tokenAnswer
	if err := s.do(ctx, http.MethodPost, at, body, &answer); err != nil {
		return err
	}
	if path != "" {
		if err = kept.write(answer.Secret); err != nil {
			// The server does not tell it again.
			err = fmt.Errorf("the text is shown, because it could not be written: %w", err)
		} else {
			answer.Secret, answer.File = "", path
		}
	}
	return errors.Join(err, c.printToken(s.output, answer))
}

func (c *call) printToken(output string, a tokenAnswer) error {
	if output == "json" {
		return printJSON(c.Out, a)
	}
	text := a.Secret + " (not shown again)"
	if a.File != "" {
		text = a.File
	}
	return printFields(c.Out, [][2]string{
		{"name", a.Token.Name}, {"id", a.Token.ID}, {"roles", orAll(a.Token.Roles)}, {"networks", orAll(a.Token.Networks)},
		{"expires", millis(a.Token.ExpiresAt)}, {"old text until", millis(a.Token.Overlap)}, {"token", text},
	})
}

func orAll(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, " ")
}

func tokenCreate(ctx context.Context, c *call) error {
	var roles, networks stringList
	body := map[string]any{}
	return c.newToken(ctx, func(s *session, of []string) ([]string, any, error) {
		body["name"], body["roles"], body["networks"] = s.args[0], roles, networks
		return below(of, "tokens"), body, nil
	}, func(_ *connection, fs *flag.FlagSet) {
		fs.Var(&roles, "role", "`role` of the principal that it is narrowed to; may be given several times (default: all)")
		fs.Var(&networks, "network", "`CIDR` that it may be used from; may be given several times (default: all)")
		numberInBody(fs, body, "expiresInDays", "days", "`days` to its end (default: 30; 1 to 365)")
	})
}

func tokenRotate(ctx context.Context, c *call) error {
	body := map[string]any{}
	return c.newToken(ctx, func(s *session, of []string) ([]string, any, error) {
		t, err := s.findToken(ctx, of, s.args[0])
		return below(of, "tokens", t.ID, "rotate"), body, err
	}, func(_ *connection, fs *flag.FlagSet) {
		numberInBody(fs, body, "overlapHours", "overlap-hours", "`hours` for which the old text stays good (default: it ends at once; at most 168)")
		numberInBody(fs, body, "expiresInDays", "days", "`days` to a new end (default: the end stays; 1 to 365)")
	})
}

// numberInBody adds a flag whose number stands in a request's body under a name when it is given, and not else.
func numberInBody(fs *flag.FlagSet, body map[string]any, name, flagName, help string) {
	fs.Func(flagName, help, func(value string) error {
		n, err := strconv.Atoi(value)
		if err != nil {
			return errors.New("not a whole number")
		}
		body[name] = n
		return nil
	})
}

func tokenList(ctx context.Context, c *call) error {
	var principal *string
	s, err := c.begin(ctx, 0, func(_ *connection, fs *flag.FlagSet) { principal = principalFlag(fs) })
	if err != nil {
		return err
	}
	of, err := s.principalPath(ctx, *principal)
	if err != nil {
		return err
	}
	all, err := s.tokens(ctx, of)
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, all)
	}
	var rows [][]string
	for _, t := range all.Tokens {
		used, from, client := "", "", ""
		if t.LastUse != nil {
			used, from, client = millis(t.LastUse.At), t.LastUse.Address, t.LastUse.Client
		}
		rows = append(rows, []string{t.Name, t.ID, orAll(t.Roles), orAll(t.Networks), millis(t.ExpiresAt), used, from, client})
	}
	return printRows(c.Out, []string{"NAME", "ID", "ROLES", "NETWORKS", "EXPIRES", "LAST USED", "FROM", "BY"}, rows)
}

// tokenRevoke ends one personal access token, or with --access-tokens or --token-id access tokens.
func tokenRevoke(ctx context.Context, c *call) error {
	var principal, id *string
	var all, personal *bool
	s, err := c.begin(ctx, 0, func(k *connection, fs *flag.FlagSet) {
		k.argumentsMore = 1
		principal = principalFlag(fs)
		id = fs.String("token-id", "", "end the access token of this `id`, which is in the audit")
		all = fs.Bool("access-tokens", false, "end all access tokens that were issued so far")
		personal = fs.Bool("all", false, "end all access tokens and all personal access tokens")
		k.check(func(args []string) error {
			if wanted := len(args) + count(*id != "") + count(*all) + count(*personal); wanted != 1 {
				return wrongUsage("give the NAME of a personal access token, or one of --token-id, --access-tokens and --all")
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	of, err := s.principalPath(ctx, *principal)
	if err != nil {
		return err
	}
	what := "the access tokens of " + of[1]
	if len(s.args) == 1 {
		t, err := s.findToken(ctx, of, s.args[0])
		if err == nil {
			err = s.do(ctx, http.MethodDelete, below(of, "tokens", t.ID), nil, nil)
		}
		if err != nil {
			return err
		}
		what = "the token " + t.Name + " of " + of[1]
	} else {
		body := map[string]any{"tokenId": *id, "personalAccessTokens": *personal}
		if err := s.do(ctx, http.MethodPost, below(of, "revoke-tokens"), body, nil); err != nil {
			return err
		}
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]string{"revoked": what})
	}
	fmt.Fprintf(c.Out, "revoked: %s\n", what)
	return nil
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// networkBody is a policy.
type networkBody struct {
	Allowed stringList `json:"allowed"`
	Blocked stringList `json:"blocked"`
	LockOut bool       `json:"lockOut,omitempty"`
}

func networkPath(principal string) []string {
	if principal == "" {
		return []string{"network-policy"}
	}
	return []string{"principals", principal, "network-policy"}
}

func networkFlag(fs *flag.FlagSet) *string {
	return fs.String("principal", "", "`name` of the principal (default: the policy for everybody)")
}

func networkShow(ctx context.Context, c *call) error {
	var principal *string
	s, err := c.begin(ctx, 0, func(_ *connection, fs *flag.FlagSet) { principal = networkFlag(fs) })
	if err != nil {
		return err
	}
	var answer networkBody
	if err := s.do(ctx, http.MethodGet, networkPath(*principal), nil, &answer); err != nil {
		return err
	}
	return c.printNetworks(s.output, answer)
}

func networkSet(ctx context.Context, c *call) error {
	var principal *string
	wanted := networkBody{Allowed: stringList{}, Blocked: stringList{}}
	s, err := c.begin(ctx, 0, func(_ *connection, fs *flag.FlagSet) {
		principal = networkFlag(fs)
		fs.Var(&wanted.Allowed, "allow", "`CIDR` that requests may come from; may be given several times (default: all)")
		fs.Var(&wanted.Blocked, "block", "`CIDR` that they may not come from, which wins; may be given several times")
		fs.BoolVar(&wanted.LockOut, "lock-out", false, "set it even though it keeps this very command's address out")
	})
	if err != nil {
		return err
	}
	var answer networkBody
	if err := s.do(ctx, http.MethodPut, networkPath(*principal), wanted, &answer); err != nil {
		return err
	}
	return c.printNetworks(s.output, answer)
}

func (c *call) printNetworks(output string, p networkBody) error {
	if output == "json" {
		return printJSON(c.Out, p)
	}
	return printFields(c.Out, [][2]string{{"allowed", orAll(p.Allowed)}, {"blocked", strings.Join(p.Blocked, " ")}})
}
