package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits of the administering commands.
const (
	adminRequestTime  = 60 * time.Second
	adminAnswerMax    = 64 << 20
	tokenPath         = "/api/catalog/v1/oauth/tokens"
	managementPath    = "/api/management/v1"
	adminDefaultScope = "PRINCIPAL_ROLE:ALL"
)

// connection says which server a command talks to and as whom: flags, else the variables of a client.env.
type connection struct {
	server, token, credentialFile, warehouse, output string

	argumentsMore int                         // how many arguments may follow those that must be
	checks        []func(args []string) error // of the verb's own, before a server is asked
}

// verbFlags adds flags of a verb's own, and what is to be checked of them.
type verbFlags func(*connection, *flag.FlagSet)

// check has f look at what was given once flags and arguments are read, in the order of the calls; its error ends the verb.
func (k *connection) check(f func(args []string) error) { k.checks = append(k.checks, f) }

// connectionFlags adds what every administering command has.
func (c *call) connectionFlags(fs *flag.FlagSet) *connection {
	k := &connection{}
	fs.StringVar(&k.server, "server", "", "`url` of the server (default: CATALOGD_MANAGEMENT_URI)")
	fs.StringVar(&k.token, "token", "", "access `token` (default: CATALOGD_PAT, else CATALOG_CREDENTIAL is exchanged for one)")
	fs.StringVar(&k.credentialFile, "credential-file", "", "`file` with ID:SECRET to exchange for a token, as bootstrap writes it")
	fs.StringVar(&k.output, "output", "table", "`format`: table or json")
	return k
}

// warehouseFlag adds -w and --warehouse. Only oneWarehouse asks the variable too.
func (k *connection) warehouseFlag(fs *flag.FlagSet, help string) {
	fs.StringVar(&k.warehouse, "warehouse", "", help)
	fs.StringVar(&k.warehouse, "w", "", "the same as --warehouse `name`")
}

const warehouseHelp = "`name` of the warehouse (default: CATALOG_WAREHOUSE)"

// oneWarehouse is for verbs that are about one warehouse: that of -w, else of the environment.
func (c *call) oneWarehouse(k *connection, fs *flag.FlagSet) {
	k.warehouseFlag(fs, warehouseHelp)
	k.check(func([]string) (err error) {
		k.warehouse, err = c.warehouseOf(k)
		return err
	})
}

// warehouseOf gives the warehouse of -w, else of the environment.
func (c *call) warehouseOf(k *connection) (string, error) {
	if name := firstOf(k.warehouse, c.lookup("CATALOG_WAREHOUSE")); name != "" {
		return name, nil
	}
	return "", wrongUsage("no warehouse: give -w NAME or set CATALOG_WAREHOUSE")
}

// roleWarehouse is for roles, where the variable is not consulted: it would silently change what a name means.
func (k *connection) roleWarehouse(fs *flag.FlagSet) {
	k.warehouseFlag(fs, "`name` of the warehouse whose role is meant; without it a principal role is (CATALOG_WAREHOUSE does not count here)")
}

// admin is a client of the management API.
type admin struct {
	base  string // …/api/management/v1
	token string
	// login gets another token where there is a credential for one; nil where a token was given.
	login func(ctx context.Context) error
	http  *http.Client
}

// session is an administering verb under way: its flags and arguments are read, and the server is found.
type session struct {
	*admin
	output, warehouse string // of the flags
	args              []string
}

// begin reads the verb's flags and so many arguments, checks them, and connects.
func (c *call) begin(ctx context.Context, arguments int, more ...verbFlags) (*session, error) {
	fs := c.newFlags()
	k := c.connectionFlags(fs)
	for _, add := range more {
		add(k, fs)
	}
	args, err := c.parse(fs, arguments, arguments+k.argumentsMore)
	if err != nil {
		return nil, err
	}
	for _, check := range k.checks {
		if err := check(args); err != nil {
			return nil, err
		}
	}
	a, err := c.connect(ctx, k)
	if err != nil {
		return nil, err
	}
	return &session{admin: a, output: k.output, warehouse: k.warehouse, args: args}, nil
}

// connect finds the server and a token.
func (c *call) connect(ctx context.Context, k *connection) (*admin, error) {
	if k.output != "table" && k.output != "json" {
		return nil, wrongUsage("--output is %q, wanted is table or json", k.output)
	}
	c.warnOfVariables()
	base := strings.TrimRight(k.server, "/")
	if base == "" {
		base = strings.TrimRight(c.lookup("CATALOGD_MANAGEMENT_URI"), "/")
	}
	if base == "" {
		return nil, wrongUsage("no server: give --server and --token, or load what `catalogd dev` wrote: " +
			"export $(cat catalogd-data/client.env)")
	}
	if u, err := url.Parse(base); err != nil || u.Host == "" {
		return nil, wrongUsage("%q is not the URL of a server: it begins with http:// or https://", base)
	}
	if !strings.HasSuffix(base, managementPath) {
		base += managementPath
	}
	a := &admin{base: base, token: k.token, http: &http.Client{Timeout: adminRequestTime}}
	credential, source := "", "CATALOG_CREDENTIAL"
	switch {
	case a.token != "":
		return a, nil
	case k.credentialFile != "":
		body, err := readSmallFile(k.credentialFile)
		if err != nil {
			return nil, fmt.Errorf("credential: %w", err)
		}
		credential, source = strings.TrimSpace(body), k.credentialFile
	case c.lookup("CATALOGD_PAT") != "":
		a.token = c.lookup("CATALOGD_PAT")
		return a, nil
	default:
		credential = c.lookup("CATALOG_CREDENTIAL")
	}
	if strings.HasPrefix(credential, "catalogd_pat_") { // a credential without an id, which is a token already
		a.token = credential
		return a, nil
	}
	id, secret, found := strings.Cut(credential, ":")
	switch {
	case credential == "" && source == "CATALOG_CREDENTIAL":
		return nil, wrongUsage("no token: give --token or --credential-file, or set CATALOGD_PAT or CATALOG_CREDENTIAL=ID:SECRET")
	case !found || id == "" || secret == "":
		return nil, wrongUsage("%s does not hold ID:SECRET, the client id and the client secret with a colon between", source)
	}
	a.login = func(ctx context.Context) error { return a.exchange(ctx, c, id, secret) }
	return a, a.login(ctx)
}

// exchange makes a client credential into a token.
func (a *admin) exchange(ctx context.Context, c *call, id, secret string) error {
	at := c.lookup("CATALOG_OAUTH2__SERVER__URI")
	if at == "" || !strings.HasPrefix(a.base, strings.TrimSuffix(at, tokenPath)) {
		// Another server was named than the one that the variable belongs to.
		at = strings.TrimSuffix(a.base, managementPath) + tokenPath
	}
	scope := c.lookup("CATALOG_SCOPE")
	if scope == "" {
		scope = adminDefaultScope
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}, "scope": {scope}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := a.send(req, &answer); err != nil {
		return fmt.Errorf("log in as %s: %w", id, err)
	}
	a.token = answer.Token
	return nil
}

// do calls one path below the management API. A nil body sends none; a nil answer ignores what comes.
func (a *admin) do(ctx context.Context, method string, path []string, body, answer any) error {
	return a.call(ctx, method, joinPath(path), body, answer)
}

// pages gets a list page by page and gives each page to take.
func pages[P any](ctx context.Context, a *admin, path []string, query url.Values, take func(page P)) error {
	query.Set("pageToken", "")
	for {
		var raw json.RawMessage
		if err := a.call(ctx, http.MethodGet, joinPath(path)+"?"+query.Encode(), nil, &raw); err != nil {
			return err
		}
		var page P
		var next struct {
			Token string `json:"next-page-token"`
		}
		if err := errors.Join(json.Unmarshal(raw, &page), json.Unmarshal(raw, &next)); err != nil {
			return fmt.Errorf("the answer is not what a catalogd sends: %w", err)
		}
		take(page)
		if next.Token == "" {
			return nil
		}
		query.Set("pageToken", next.Token)
	}
}

// searchFlag adds --search to a verb that lists things by name.
func searchFlag(search *string) func(*connection, *flag.FlagSet) {
	return func(_ *connection, fs *flag.FlagSet) {
		fs.StringVar(search, "search", "", "only names that have this `text` in them")
	}
}

// found is the query of a list that was searched for a text.
func found(search string) url.Values {
	query := url.Values{}
	if search != "" {
		query.Set("nameContains", search)
	}
	return query
}

// call is do for a path that is escaped already, with its query.
func (a *admin) call(ctx context.Context, method, target string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.base+"/"+target, sent)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	return a.send(req, answer)
}

// joinPath escapes each segment; a namespace's levels are joined by the unit separator before.
func joinPath(segments []string) string {
	escaped := make([]string, len(segments))
	for i, s := range segments {
		escaped[i] = url.PathEscape(s)
	}
	return strings.Join(escaped, "/")
}

// refusal is an answer that is not a success, in the server's own words.
type refusal struct {
	Status  int
	Type    string
	Message string
}

func (r *refusal) Error() string {
	if r.Type == "" {
		return fmt.Sprintf("the server answered %d: %s", r.Status, r.Message)
	}
	return fmt.Sprintf("%s (%s, %d)", r.Message, r.Type, r.Status)
}

func (a *admin) send(req *http.Request, answer any) error {
	req.Header.Set("Accept", "application/json")
	res, err := a.http.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) && req.Context().Err() == nil {
			return fmt.Errorf("no answer from %s://%s: %w; %s", req.URL.Scheme, req.URL.Host, wrapped.Err, unansweredRemedy(req.URL, wrapped.Err))
		}
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, adminAnswerMax))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return refusalOf(res.StatusCode, body)
	}
	if answer == nil || len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("the answer of %s is not what a catalogd sends: %w", req.URL.Host, err)
	}
	return nil
}

// unansweredRemedy says what to look at when a server gave no answer.
func unansweredRemedy(at *url.URL, err error) string {
	var record tls.RecordHeaderError
	if at.Scheme == "https" && (errors.As(err, &record) || errors.Is(err, http.ErrSchemeMismatch)) {
		return "the server there speaks plain http: is http:// meant?"
	}
	return "does the server run there?"
}

// refusalOf reads Iceberg's error shape and OAuth's.
func refusalOf(status int, body []byte) error {
	var shape struct {
		Error json.RawMessage `json:"error"`
		Text  string          `json:"error_description"`
	}
	var iceberg struct {
		Message string `json:"message"`
		Type    string `json:"type"`
	}
	if json.Unmarshal(body, &shape) == nil {
		var oauth string
		switch {
		case json.Unmarshal(shape.Error, &iceberg) == nil && iceberg.Message != "":
			return &refusal{Status: status, Type: iceberg.Type, Message: iceberg.Message}
		case json.Unmarshal(shape.Error, &oauth) == nil && oauth != "":
			return &refusal{Status: status, Type: oauth, Message: firstOf(shape.Text, oauth)}
		}
	}
	short := strings.TrimSpace(string(body))
	if len(short) > 200 {
		short = short[:200] + "…"
	}
	short = firstOf(short, http.StatusText(status))
	if status == http.StatusNotFound { // ours are in one of the shapes
		short += "; is it a catalogd? Its API is where `listen` says, not where `ops_listen` does"
	}
	return &refusal{Status: status, Message: short}
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// isRefusal tells whether err is the server's answer with that status.
func isRefusal(err error, status int) bool {
	var r *refusal
	return errors.As(err, &r) && r.Status == status
}
