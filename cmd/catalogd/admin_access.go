package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"catalogd/authz"
)

// runWhoami shows who the server takes the caller for.
func runWhoami(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 0)
	if err != nil {
		return err
	}
	var self struct {
		Name   string   `json:"name"`
		ID     string   `json:"id"`
		Active []string `json:"activeRoles"`
		Held   []string `json:"heldRoles"`
		Token  struct {
			ID        string `json:"id"`
			ExpiresAt string `json:"expiresAt,omitempty"`
			AllRoles  bool   `json:"allRoles"`
		} `json:"token"`
		Client  string `json:"clientAddress"`
		Issuer  string `json:"issuer,omitempty"`
		Subject string `json:"subject,omitempty"`
		Actor   string `json:"actor,omitempty"`
	}
	if err := s.do(ctx, http.MethodGet, []string{"whoami"}, nil, &self); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, self)
	}
	idle := slices.DeleteFunc(slices.Clone(self.Held), func(role string) bool { return slices.Contains(self.Active, role) })
	fields := [][2]string{
		{"principal", self.Name}, {"id", self.ID}, {"roles", strings.Join(self.Active, " ")},
		{"not in this token", strings.Join(idle, " ")}, {"token", self.Token.ID}, {"expires", self.Token.ExpiresAt}, {"address", self.Client},
	}
	if self.Issuer != "" {
		fields = append(fields, [2]string{"issuer", self.Issuer}, [2]string{"subject", self.Subject})
	}
	if self.Actor != "" {
		fields = append(fields, [2]string{"acted for by", self.Actor})
	}
	return printFields(c.Out, fields)
}

// securable names what a question is about; the zero value is the service.
type securable struct {
	Type      string   `json:"type,omitempty"`
	Catalog   string   `json:"catalog,omitempty"`
	Namespace []string `json:"namespace,omitempty"`
	Table     string   `json:"table,omitempty"`
	View      string   `json:"view,omitempty"`
}

// String is as a grant's: "table iot.t"; with the warehouse's name for a warehouse only.
func (s securable) String() string {
	if s.Type == "root" {
		return "the service"
	}
	return grantBody{Type: s.Type, Namespace: s.Namespace, Table: s.Table, View: s.View}.on(s.Catalog)
}

// chain is one way by which a principal has a right.
type chain struct {
	Needed        string    `json:"needed,omitempty"`
	PrincipalRole string    `json:"principalRole"`
	CatalogRole   string    `json:"catalogRole,omitempty"`
	Privilege     string    `json:"privilege"`
	On            securable `json:"on"`
}

// through is the roles, outermost first.
func (h chain) through() string {
	switch {
	case h.PrincipalRole == "":
		return "(owner)"
	case h.CatalogRole == "":
		return h.PrincipalRole
	}
	return h.PrincipalRole + " > " + h.CatalogRole
}

// subjectFlags are the flags that say what a question is about; the table may be an argument too.
type subjectFlags struct{ namespace, table, view string }

func newSubjectFlags(fs *flag.FlagSet) *subjectFlags {
	f := &subjectFlags{}
	fs.StringVar(&f.namespace, "namespace", "", "about this namespace: `a.b` or a JSON list; with a table or a view its namespace")
	fs.StringVar(&f.table, "table", "", "about this table: `ns.table`, the same as the last argument")
	fs.StringVar(&f.view, "view", "", "about this view: `ns.view`, or its name when --namespace is given")
	return f
}

// read gives the securable: the table of the argument or the flags, else the view, the namespace, or the warehouse. The
// warehouse is not asked for where the question is about the service.
func (f *subjectFlags) read(c *call, k *connection, argument []string, what string) (s securable, err error) {
	if len(argument) > 0 {
		if f.table != "" {
			return s, wrongUsage("the table is given twice: %s and --table %s", argument[0], f.table)
		}
		f.table = argument[0]
	}
	if f.table != "" && f.view != "" {
		return s, wrongUsage("a question is about a table or about a view: give TABLE or --view")
	}
	if onService(what) {
		if f.table+f.view+f.namespace != "" {
			return s, wrongUsage("%s is about the service: give no table, view or namespace", what)
		}
		return s, nil
	}
	switch {
	case f.table != "":
		s.Namespace, s.Table, err = tableName(f.table, f.namespace)
	case f.view != "":
		s.Namespace, s.View, err = tableName(f.view, f.namespace)
	case f.namespace != "":
		s.Namespace, err = namespaceLevels(f.namespace)
	}
	if err != nil {
		return s, err
	}
	if isPrivilege(what) {
		s.Catalog, err = c.warehouseOf(k)
		return s, err
	}
	// An operation may be about the service; the server knows which are.
	s.Catalog = firstOf(k.warehouse, c.lookup("CATALOG_WAREHOUSE"))
	if s.Catalog == "" && len(s.Namespace) > 0 {
		_, err = c.warehouseOf(k)
	}
	return s, err
}

// beginQuestion is begin for a question: so many arguments, the last being what it is about, and perhaps the table.
func (c *call) beginQuestion(ctx context.Context, arguments int) (s *session, on securable, err error) {
	s, err = c.begin(ctx, arguments, func(k *connection, fs *flag.FlagSet) {
		k.argumentsMore = 1
		k.warehouseFlag(fs, warehouseHelp)
		flags := newSubjectFlags(fs)
		k.check(func(args []string) (err error) {
			on, err = flags.read(c, k, args[arguments:], args[arguments-1])
			return err
		})
	})
	return s, on, err
}

// isPrivilege tells privileges, which are in upper case, from operations.
func isPrivilege(word string) bool { return !strings.ContainsFunc(word, unicode.IsLower) }

// onService tells that a privilege can be held on the service alone.
func onService(what string) bool {
	return slices.Equal(authz.Kinds(authz.Privilege(what)), []authz.SecurableKind{authz.Root})
}

// asked adds the privilege or the operation to a question.
func asked(what string, put func(key, value string)) {
	if isPrivilege(what) {
		put("privilege", what)
	} else {
		put("operation", what)
	}
}

// explained is the server's answer to one question.
type explained struct {
	Privilege string    `json:"privilege,omitempty"`
	Operation string    `json:"operation,omitempty"`
	On        securable `json:"securable"`
	Allowed   bool      `json:"allowed"`
	Reason    string    `json:"reason"`
	By        []chain   `json:"by"`
	Missing   []struct {
		Privilege string    `json:"privilege"`
		On        securable `json:"on"`
	} `json:"missing"`
	Commands []string `json:"commands"`
}

// grantExplain answers why somebody may do something, or why not and what would help. Who may not ends with 1.
func grantExplain(ctx context.Context, c *call) error {
	s, on, err := c.beginQuestion(ctx, 2)
	if err != nil {
		return err
	}
	principal, what := s.args[0], s.args[1]
	question := map[string]any{"securable": on}
	asked(what, func(key, value string) { question[key] = value })
	var answer struct {
		Principal string      `json:"principal"`
		Answers   []explained `json:"answers"`
	}
	err = s.do(ctx, http.MethodPost, []string{"can-i"}, map[string]any{"principal": principal, "questions": []any{question}}, &answer)
	if err != nil {
		return nearer(err, what, on)
	}
	if len(answer.Answers) != 1 {
		return fmt.Errorf("the server gave %d answers to one question", len(answer.Answers))
	}
	if err := c.printExplained(s.output, principal, what, answer.Answers[0]); err != nil {
		return err
	}
	if !answer.Answers[0].Allowed {
		return errFailedShown
	}
	return nil
}

// nearer adds to a refusal of a privilege's name the names that are like it.
func nearer(err error, what string, on securable) error {
	kind := "catalog"
	switch {
	case on.Table != "":
		kind = "table"
	case on.View != "":
		kind = "view"
	case len(on.Namespace) > 0:
		kind = "namespace"
	}
	if near := nearPrivileges(grantBody{Type: kind, Privilege: what}); isRefusal(err, http.StatusBadRequest) && near != "" {
		return fmt.Errorf("%w; %s; docs/privileges.md has all", err, near)
	}
	return err
}

func (c *call) printExplained(output, principal, what string, e explained) error {
	if output == "json" {
		return printJSON(c.Out, struct {
			Principal string `json:"principal"`
			explained
		}{principal, e})
	}
	verdict := "yes"
	if !e.Allowed {
		verdict = "no"
	}
	fmt.Fprintf(c.Out, "%s: %s %s on %s\n", verdict, principal, what, e.On)
	if !e.Allowed {
		fmt.Fprintf(c.Out, "  %s\n", e.Reason)
		if len(e.Commands) > 0 {
			fmt.Fprintln(c.Out, "this would give it:")
		}
		for _, command := range e.Commands {
			fmt.Fprintf(c.Out, "  %s\n", command)
		}
		return nil
	}
	var rows [][]string
	for _, h := range e.By {
		rows = append(rows, []string{h.Needed, h.through(), h.Privilege, h.On.String()})
	}
	return printRows(c.Out, []string{"NEEDED", "ROLES", "GRANTED", "ON"}, rows)
}

// grantWhoCan lists the principals that may do something, each with the grants by which.
func grantWhoCan(ctx context.Context, c *call) error {
	s, on, err := c.beginQuestion(ctx, 1)
	if err != nil {
		return err
	}
	query := url.Values{}
	asked(s.args[0], query.Set)
	for key, value := range map[string]string{
		"catalog": on.Catalog, "namespace": namespaceSegment(on.Namespace), "table": on.Table, "view": on.View,
	} {
		if value != "" {
			query.Set(key, value)
		}
	}
	type access struct {
		Principal string  `json:"principal"`
		By        []chain `json:"by"`
	}
	var who []access
	err = pages(ctx, s.admin, []string{"who-can"}, query, func(page struct {
		Principals []access `json:"principals"`
	}) {
		who = append(who, page.Principals...)
	})
	if err != nil {
		return nearer(err, s.args[0], on)
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]any{"principals": listOf(who)})
	}
	var rows [][]string
	for _, one := range who {
		for _, h := range one.By {
			rows = append(rows, []string{one.Principal, h.through(), h.Privilege, h.On.String()})
		}
	}
	return printRows(c.Out, []string{"PRINCIPAL", "ROLES", "GRANTED", "ON"}, rows)
}

// grantReach lists what a principal holds grants on.
func grantReach(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 1, func(k *connection, fs *flag.FlagSet) {
		k.warehouseFlag(fs, "in this warehouse only: its `name` (CATALOG_WAREHOUSE does not count here)")
	})
	if err != nil {
		return err
	}
	query := url.Values{}
	if s.warehouse != "" {
		query.Set("catalog", s.warehouse)
	}
	type reached struct {
		On         securable `json:"securable"`
		Privileges []string  `json:"privileges"`
		By         []chain   `json:"by"`
	}
	var all []reached
	err = pages(ctx, s.admin, []string{"principals", s.args[0], "reach"}, query, func(page struct {
		Securables []reached `json:"securables"`
	}) {
		all = append(all, page.Securables...)
	})
	if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]any{"principal": s.args[0], "securables": listOf(all)})
	}
	var rows [][]string
	for _, one := range all {
		for _, h := range one.By {
			rows = append(rows, []string{one.On.Catalog, one.On.String(), h.Privilege, h.through()})
		}
	}
	return printRows(c.Out, []string{"WAREHOUSE", "ON", "GRANTED", "ROLES"}, rows)
}

func listOf[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}
