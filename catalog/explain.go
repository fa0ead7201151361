package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// Limits of answers about access.
const (
	// QuestionsMax bounds one request's questions: each is looked up by itself.
	QuestionsMax = 50
	// ChainsMax bounds the grants that are named for one right: there may be hundreds, and any of them is enough.
	ChainsMax = 10
)

// Self is what a caller may know of itself.
type Self struct {
	Principal auth.Principal
	Client    string   // network address, as the server sees it
	Held      []string // principal roles that it has, by name
	Active    []string // those of them that count with this token
}

// WhoAmI tells a caller who it is to the server.
func (s *Service) WhoAmI(ctx context.Context, c Caller) (Self, error) {
	if _, err := s.resolveRoot(ctx, c); err != nil {
		return Self{}, err
	}
	self := Self{Principal: c.Principal, Client: c.Client}
	holder := Holder{ID: c.Principal.ID, Brought: c.Principal.Roles.Brought}
	held, err := s.Admin.Holdings(ctx, holder, uuid.Nil, []authz.Securable{{Kind: authz.Root, ID: authz.RootID}})
	if err != nil {
		return Self{}, fmt.Errorf("list the roles of %s: %w", c.Principal.Name, err)
	}
	for _, r := range held.Roles {
		self.Held = append(self.Held, r.PrincipalRole)
		if isActive(c.Principal.Roles, r.PrincipalRole) {
			self.Active = append(self.Active, r.PrincipalRole)
		}
	}
	return self, nil
}

// isActive tells whether what comes through a role counts; "" is no role but ownership, which a narrowed token leaves out.
func isActive(scope auth.RoleScope, role string) bool {
	return scope.All || slices.Contains(scope.Names, role)
}

// Why is one grant by which a right is held.
type Why struct {
	Wanted authz.Privilege // what was needed
	Grant  HeldGrant
	On     SecurableName // what the grant is on
}

// Lack is a privilege that would be needed and is not held, and where it could be granted.
type Lack struct {
	Privilege authz.Privilege
	On        SecurableName
}

// Answer says whether, and why or why not.
type Answer struct {
	On      SecurableName // what was decided about: of an operation perhaps what the named thing lies in
	Allowed bool
	Reason  string
	By      []Why    // of what is allowed: all ways that it is held, at most ChainsMax for each privilege
	Missing []Lack   // of what is refused; empty when the thing is not there
	Grants  []string // commands that would give what is missing
}

// subject is whom questions are about.
type subject struct {
	name  string
	id    uuid.UUID // uuid.Nil when there is no such principal
	self  bool
	roles auth.RoleScope
	// shown tells that the asker may know which principals there are, and their roles.
	shown bool
}

// holder is the subject as the store is asked about it.
func (w subject) holder() Holder { return Holder{ID: w.id, Brought: w.roles.Brought} }

// subjectOf finds whom a caller asks about: "" and its own name are itself. Of others it learns whether they exist only
// with the right to list them; what it may ask about them is decided question by question.
func (s *Service) subjectOf(ctx context.Context, c Caller, principal string) (subject, error) {
	res, err := s.resolveRoot(ctx, c)
	if err != nil {
		return subject{}, err
	}
	if principal == "" || principal == c.Principal.Name {
		return subject{name: c.Principal.Name, id: c.Principal.ID, self: true, roles: c.Principal.Roles, shown: true}, nil
	}
	who := subject{name: principal, roles: auth.RoleScope{All: true}, shown: allowed(res, res.Path(), authz.PrincipalListGrants)}
	p, err := s.Admin.FindPrincipal(ctx, principal)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return subject{}, fmt.Errorf("find principal %s: %w", principal, err)
	}
	who.id = p.ID
	return who, nil
}

// gone is what who may know it is told about a principal that is not there.
func (w subject) gone() error {
	if w.id == uuid.Nil && w.shown {
		return fault.New(fault.NotFound, "Principal does not exist: %s", w.name)
	}
	return nil
}

// CanI answers questions about what a principal may do. Everybody may ask about himself, and learns what the operations
// would tell him; that is about the roles that are active in his token. About others, with all their roles, asks who may
// list the grants on what the question is about.
func (s *Service) CanI(ctx context.Context, c Caller, principal string, questions []Question) ([]Answer, error) {
	if len(questions) == 0 || len(questions) > QuestionsMax {
		return nil, fault.New(fault.BadRequest, "%d questions: ask 1 to %d at a time", len(questions), QuestionsMax)
	}
	who, err := s.subjectOf(ctx, c, principal)
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, len(questions))
	for i, q := range questions {
		a, err := q.asked()
		if err != nil {
			return nil, err
		}
		if answers[i], err = s.answer(ctx, c, who, a); err != nil {
			return nil, err
		}
	}
	return answers, who.gone()
}

func (s *Service) answer(ctx context.Context, c Caller, who subject, a asked) (Answer, error) {
	res, err := s.resolveAsked(ctx, c, a.on)
	if fault.Is(err, fault.NoSuchWarehouse) {
		return notThere(a.on, err), nil
	}
	if err != nil {
		return Answer{}, err
	}
	if who.self {
		told, err := s.toldMissing(ctx, c, res, a)
		switch {
		case err != nil:
			return Answer{}, err
		case told:
			return notThere(a.on, nothingNamed(a.on)), nil
		}
	} else {
		n := need{"can-i", who.name + " " + a.what + " " + a.on.String(), grantsSeen[a.on.Kind()]}
		if err := s.require(ctx, c, res, res.Path(), n); err != nil {
			return Answer{}, err
		}
		if missing := a.on.missing(res); missing != nil {
			return notThere(a.on, missing), nil
		}
	}
	warehouse := uuid.Nil
	if res.Warehouse != nil {
		warehouse = res.Warehouse.ID
	}
	held, err := s.Admin.Holdings(ctx, who.holder(), warehouse, res.Path())
	if err != nil {
		return Answer{}, fmt.Errorf("look up what %s holds on %s: %w", who.name, a.on, err)
	}
	return who.explain(a, res, held), nil
}

// resolveAsked resolves what a question is about: the service is no warehouse.
func (s *Service) resolveAsked(ctx context.Context, c Caller, on SecurableName) (Resolution, error) {
	if on.Kind() == authz.Root {
		return s.resolveRoot(ctx, c)
	}
	return s.resolve(ctx, c, on.lookup())
}

// nothingNamed is the refusal of a name that nothing has, as the operations word it.
func nothingNamed(on SecurableName) error {
	id := Identifier{Namespace: on.Namespace, Name: on.Table + on.View}
	switch on.Kind() {
	case authz.Table:
		return KindTable.Missing(id)
	case authz.View:
		return KindView.Missing(id)
	}
	return fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", on.Namespace)
}

func notThere(on SecurableName, why error) Answer { return Answer{On: on, Reason: fault.Message(why)} }

// toldMissing tells whether an operation would answer this caller that the thing is not there. Where it would refuse, and
// so not tell, the answer must not depend on whether it is there.
func (s *Service) toldMissing(ctx context.Context, c Caller, res Resolution, a asked) (bool, error) {
	kind, path, there := a.on.Kind(), res.Path(), a.on.missing(res) == nil
	sees := allowed(res, path, seenBy[kind])
	for _, w := range a.wishes {
		sees = sees || allowed(res, path, w.wanted)
	}
	switch kind {
	case authz.Namespace:
		return !there && sees, nil
	case authz.Table:
		return !there && (sees || res.View != nil && allowed(res, path, authz.ViewList)), nil
	case authz.View:
		if sees {
			return !there, nil
		}
		return s.seesInside(ctx, c, res)
	}
	return false, nil
}

// seenBy is what lets its holder see that something of a kind is there or not.
var seenBy = map[authz.SecurableKind]authz.Privilege{
	authz.Namespace: authz.NamespaceList, authz.Table: authz.TableList, authz.View: authz.ViewList,
}

// explain decides, purely, and says why or why not.
func (w subject) explain(a asked, res Resolution, held Holdings) Answer {
	answer := Answer{On: a.on}
	var active []HeldGrant
	for _, g := range held.Grants {
		if isActive(w.roles, g.PrincipalRole) {
			active = append(active, g)
		}
	}
	var reasons []string
	asleep := map[string]bool{} // roles that the token leaves out and that would help
	for _, wish := range a.wishes {
		if by := why(active, res, wish); len(by) > 0 {
			answer.By = append(answer.By, by...)
			reasons = append(reasons, by[0].String())
			continue
		}
		at, _ := a.on.outer(wish.at)
		answer.Missing = append(answer.Missing, Lack{wish.wanted, at})
		for _, other := range why(held.Grants, res, wish) {
			asleep[other.Grant.PrincipalRole] = true
		}
	}
	if answer.Allowed = len(answer.Missing) == 0; answer.Allowed {
		answer.Reason = strings.Join(reasons, "; ")
		return answer
	}
	answer.By = nil
	answer.Reason = lackText(answer.Missing)
	if len(asleep) > 0 {
		answer.Reason += "; this token is narrowed and leaves out " + rolesText(asleep)
		return answer
	}
	if !w.shown {
		held.Roles = nil
	}
	answer.Grants = remedies(w.name, answer.Missing, held.Roles)
	return answer
}

// why gives the grants by which a wish is met, by the same decision that the operations ask for.
func why(grants []HeldGrant, res Resolution, w wish) []Why {
	path := pathTo(res.Path(), w.at)
	var by []Why
	for _, g := range grants {
		if len(by) < ChainsMax && authz.Decide([]authz.Grant{g.Grant}, path, w.wanted).Allowed {
			by = append(by, Why{w.wanted, g, res.nameOf(g.Grant)})
		}
	}
	return by
}

// pathTo cuts the path behind its last element of the kind; a path without one stays.
func pathTo(path []authz.Securable, kind authz.SecurableKind) []authz.Securable {
	for i, s := range slices.Backward(path) {
		if s.Kind == kind {
			return path[:i+1]
		}
	}
	return path
}

// nameOf names what a grant of the resolution's path is on.
func (r Resolution) nameOf(g authz.Grant) SecurableName {
	if g.Kind == authz.Root {
		return SecurableName{}
	}
	name := SecurableName{Warehouse: r.Warehouse.Name}
	for _, n := range append(slices.Clone(r.Ancestors), orNone(r.Namespace)...) {
		if n.ID == g.SecurableID && g.Kind == authz.Namespace {
			name.Namespace = n.Levels
		}
	}
	switch g.Kind {
	case authz.Table:
		name.Namespace, name.Table = r.Table.Ident.Namespace, r.Table.Ident.Name
	case authz.View:
		name.Namespace, name.View = r.View.Ident.Namespace, r.View.Ident.Name
	}
	return name
}

func orNone(n *NamespaceRecord) []NamespaceRecord {
	if n == nil {
		return nil
	}
	return []NamespaceRecord{*n}
}

// String is one sentence: "principal role analysts has the role reader of warehouse lake, which holds TABLE_READ_DATA on …".
func (w Why) String() string {
	if w.Grant.PrincipalRole == "" {
		return fmt.Sprintf("it owns %s", w.On)
	}
	if w.Grant.CatalogRole == "" {
		return fmt.Sprintf("principal role %s holds %s on %s", w.Grant.PrincipalRole, w.Grant.Privilege, w.On)
	}
	return fmt.Sprintf("principal role %s has the role %s of warehouse %s, which holds %s on %s",
		w.Grant.PrincipalRole, w.Grant.CatalogRole, w.On.Warehouse, w.Grant.Privilege, w.On)
}

func lackText(lacks []Lack) string {
	texts := make([]string, len(lacks))
	for i, l := range lacks {
		texts[i] = fmt.Sprintf("%s is missing on %s", l.Privilege, l.On)
		if l.On.Kind() != authz.Root {
			texts[i] += " or on what it lies in"
		}
	}
	return strings.Join(texts, "; ")
}

func rolesText(roles map[string]bool) string {
	names := make([]string, 0, len(roles))
	for name := range roles {
		if name == "" {
			names = append(names, "what the principal owns") // PRINCIPAL_ROLE:ALL counts it
			continue
		}
		names = append(names, "PRINCIPAL_ROLE:"+name)
	}
	slices.Sort(names)
	return strings.Join(names, " and ") + ", which would allow it"
}
