package catalog

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// Who learns what: an existing thing that the caller may use is answered; a missing thing is 404 for callers who may
// list its parent (or hold the wanted right there), else 403, which is also the answer for an existing thing that the
// caller has no right on. So without rights a missing and a hidden thing look the same.

// resolve reads what a request names and refuses callers whose token does not count any more and warehouses that never
// were.
func (s *Service) resolve(ctx context.Context, c Caller, l Lookup) (Resolution, error) {
	l.Principal = c.Principal
	res, err := s.Store.Resolve(ctx, l)
	if err != nil {
		return Resolution{}, fmt.Errorf("resolve %s %s.%s: %w", l.Warehouse, l.Namespace, l.Table, err)
	}
	if err := s.admitActor(ctx, c, res.Grants); err != nil {
		return Resolution{}, err
	}
	return s.admit(c, l, res)
}

// admitCaller judges whether the caller's token counts, and keeps who showed none from being an administrator: what he did as one
// would last longer than the server is open.
func (s *Service) admitCaller(c Caller, state *auth.CallerState, held []authz.Grant) error {
	if err := state.Admit(c.Principal, s.Now()); err != nil {
		return err
	}
	if c.Principal.Anonymous && authz.Administers(held) {
		return fault.New(fault.Unauthenticated, "this server is open to everybody as principal %q, and that one has rights over principals, "+
			"roles or the service: sign in, or open the server as a principal without such rights (open.principal)", c.Principal.Name)
	}
	return nil
}

// admitActor judges who acts for the caller, as it was judged when the token was made: what it showed must count, it must still be
// allowed to act for others, and the caller, who holds the grants, must have no rights over principals. An answer that is kept as all
// others are decides.
func (s *Service) admitActor(ctx context.Context, c Caller, held []authz.Grant) error {
	if !c.Principal.ActsByRight() || authz.Open {
		return nil
	}
	actor := c.Principal.Actor.Shown
	actor.Address = c.Principal.Address
	res, err := s.Store.Resolve(ctx, Lookup{Principal: actor})
	if err != nil {
		return fmt.Errorf("resolve what %s may do, who acts for %s: %w", actor.Name, c.Principal.Name, err)
	}
	now := s.Now()
	if err := res.Caller.Admit(actor, now); err != nil {
		return fmt.Errorf("%s, who acts for %s: %w", actor.Name, c.Principal.Name, err)
	}
	switch {
	case !actor.ExpiresAt.IsZero() && !now.Before(actor.ExpiresAt):
		return fault.New(fault.Unauthenticated, "the identity provider's token of %s, who acts for %s, has ended", actor.Name, c.Principal.Name)
	case !allowed(res, (Resolution{}).Path(), authz.PrincipalImpersonate):
		return fault.New(fault.Unauthenticated, "principal %s may not act for others any more", actor.Name)
	case authz.AdministersPrincipals(held):
		return fault.New(fault.Unauthenticated, "principal %s has rights over principals by now, and nobody may act for such a one", c.Principal.Name)
	}
	return nil
}

// admit gives a resolution with what the server itself may do, or refuses it as resolve does.
func (s *Service) admit(c Caller, l Lookup, res Resolution) (Resolution, error) {
	if err := s.admitCaller(c, res.Caller, res.Grants); err != nil {
		return Resolution{}, err
	}
	if c.Principal.Kind == auth.System {
		res.Grants = append(res.Grants, authz.Grant{
			Privilege: authz.CatalogManageContent, Kind: authz.Root, SecurableID: authz.RootID, Role: "system",
		})
	}
	if res.Warehouse == nil {
		return Resolution{}, fault.New(fault.NoSuchWarehouse, "Warehouse does not exist: %s", l.Warehouse)
	}
	res.Grants = append(res.Grants, res.owned(c.Principal)...)
	return res, nil
}

// need is one right that an operation wants.
type need struct {
	operation string
	subject   string
	wanted    authz.Privilege
}

// require decides over the path and, on refusal, leaves an audit row.
func (s *Service) require(ctx context.Context, c Caller, res Resolution, path []authz.Securable, n need) error {
	d := authz.Decide(res.Grants, path, n.wanted)
	if d.Allowed {
		return nil
	}
	return s.refuse(ctx, c, res, n, d)
}

// refuse leaves an audit row of a decision that refuses, and gives the refusal.
func (s *Service) refuse(ctx context.Context, c Caller, res Resolution, n need, d authz.Decision) error {
	denial := Denial{Reason: d.Reason(), On: d.On, Privilege: n.wanted}
	if res.Warehouse != nil {
		denial.Warehouse = res.Warehouse.ID
	}
	return s.refuseAs(ctx, c, n, denial)
}

// refuseBecause is refuse for another reason than a decision; on is the zero value where no securable is to blame.
func (s *Service) refuseBecause(ctx context.Context, c Caller, n need, on authz.Securable, reason string) error {
	return s.refuseAs(ctx, c, n, Denial{On: on, Reason: reason})
}

// refuseAs leaves a denial that says why; who was refused what is filled in here.
func (s *Service) refuseAs(ctx context.Context, c Caller, n need, denial Denial) error {
	denial.At, denial.Caller, denial.Operation, denial.Subject = s.Now(), c, n.operation, n.subject
	s.recordDenial(ctx, denial)
	where := "on it or on what it lies in"
	if denial.On.Kind == authz.Root {
		where = "on the service"
	}
	return fault.New(fault.Forbidden, "Principal %q may not %s %s: %s is missing %s",
		c.Principal.Name, n.operation, n.subject, n.wanted, where)
}

// RecordLoginDenial writes an audit row for a refused login or exchange. Whose client id was given, or whom a token names, is its
// subject: nobody has proven to be that. Who acts for others and was refused is its principal.
func (s *Service) RecordLoginDenial(ctx context.Context, d auth.LoginDenial) {
	c := Caller{Principal: d.Actor, RequestID: d.RequestID, UserAgent: d.UserAgent}
	if d.Address.IsValid() {
		c.Client = d.Address.String()
	}
	s.recordDenial(ctx, Denial{At: d.At, Caller: c, Operation: "issue-token", Subject: d.Principal, Reason: d.Reason})
}

// allowed is Decide for questions whose refusal is not an error.
func allowed(res Resolution, path []authz.Securable, wanted authz.Privilege) bool {
	return authz.Decide(res.Grants, path, wanted).Allowed
}

// parentPath is the path without its last element; the root alone stays.
func parentPath(path []authz.Securable) []authz.Securable {
	if len(path) < 2 {
		return path
	}
	return path[:len(path)-1]
}

// resolveNamespace finds a namespace for an operation. missing is what a missing one is called.
func (s *Service) resolveNamespace(ctx context.Context, c Caller, warehouse string, ns Namespace, n need) (Resolution, error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse, Namespace: ns})
	if err != nil {
		return res, err
	}
	return res, s.namespaceIn(ctx, c, res, ns, n)
}

// namespaceIn requires a right on the namespace that a resolution was asked for.
func (s *Service) namespaceIn(ctx context.Context, c Caller, res Resolution, ns Namespace, n need) error {
	if res.Namespace != nil {
		return s.require(ctx, c, res, res.Path(), n)
	}
	if allowed(res, res.Path(), n.wanted) || allowed(res, res.Path(), authz.NamespaceList) {
		return fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", ns)
	}
	return s.refuse(ctx, c, res, n, authz.Decide(res.Grants, res.Path(), n.wanted))
}

// resolveTable finds a table for an operation. A missing namespace is a missing table here: clients probe metadata
// tables as `ns.table.files` and want NoSuchTableException.
func (s *Service) resolveTable(ctx context.Context, c Caller, warehouse string, id Identifier, n need) (Resolution, error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse, Namespace: id.Namespace, Table: id.Name})
	if err != nil {
		return res, err
	}
	if res.Table != nil {
		return res, s.require(ctx, c, res, res.Path(), n)
	}
	missing := KindTable.Missing(id)
	if allowed(res, res.Path(), n.wanted) || allowed(res, res.Path(), authz.TableList) {
		return res, missing
	}
	if res.View != nil && allowed(res, res.Path(), authz.ViewList) { // engines ask for the table first
		return res, missing
	}
	if res.Namespace == nil && len(id.Namespace) > 1 && s.seesTable(ctx, c, warehouse, id.Namespace) {
		return res, missing
	}
	return res, s.refuse(ctx, c, res, n, authz.Decide(res.Grants, res.Path(), n.wanted))
}

// resolveView finds a view for an operation. Engines ask for views by the names of tables and of nothing all day, also
// for users who have no right on views, and a refusal ends their statement. So the name of a view that the caller may not
// even list is missing, as a table's name and a free one are, to who may see anything in the namespace; to everybody else
// all three are refused.
func (s *Service) resolveView(ctx context.Context, c Caller, warehouse string, id Identifier, n need) (Resolution, error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse, Namespace: id.Namespace, Table: id.Name})
	if err != nil {
		return res, err
	}
	path := res.Path()
	sees := allowed(res, path, n.wanted) || allowed(res, path, authz.ViewList)
	if res.View != nil && sees {
		return res, s.require(ctx, c, res, path, n)
	}
	if !sees {
		if sees, err = s.seesInside(ctx, c, res); err != nil {
			return res, err
		}
	}
	if sees || res.Namespace == nil && len(id.Namespace) > 1 && s.seesTable(ctx, c, warehouse, id.Namespace) {
		return res, KindView.Missing(id)
	}
	return res, s.refuse(ctx, c, res, n, authz.Decide(res.Grants, path, n.wanted))
}

// seesTable tells whether the levels name a table that the caller may load: then a probe for one of its metadata
// tables is answered 404 even for somebody who may see nothing else.
func (s *Service) seesTable(ctx context.Context, c Caller, warehouse string, levels Namespace) bool {
	last := len(levels) - 1
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse, Namespace: levels[:last], Table: levels[last]})
	return err == nil && res.Table != nil && allowed(res, res.Path(), authz.TableReadProperties)
}

// AuthorizeTable resolves a table and requires one privilege on it. Operations outside this package that work on a
// table (maintenance settings, jobs) enter through it.
func (s *Service) AuthorizeTable(
	ctx context.Context, c Caller, warehouse string, id Identifier, wanted authz.Privilege,
) (Warehouse, TableRecord, error) {
	res, err := s.resolveTable(ctx, c, warehouse, id, need{"maintain", id.String(), wanted})
	if err != nil {
		return Warehouse{}, TableRecord{}, err
	}
	return *res.Warehouse, *res.Table, nil
}

// AuthorizePlace requires a privilege on a namespace or, where that is gone, on what it was in; without a namespace, on
// the warehouse. It gives the warehouse.
func (s *Service) AuthorizePlace(ctx context.Context, c Caller, warehouse string, ns Namespace, wanted authz.Privilege) (Warehouse, error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse, Namespace: ns})
	if err != nil {
		return Warehouse{}, err
	}
	subject := ns.String()
	if len(ns) == 0 {
		subject = "warehouse " + warehouse
	}
	if err := s.require(ctx, c, res, res.Path(), need{"maintain", subject, wanted}); err != nil {
		return Warehouse{}, err
	}
	return *res.Warehouse, nil
}

// fact begins the record of a mutation.
func (s *Service) fact(c Caller, operation, subject string, warehouse, securable uuid.UUID) Fact {
	return Fact{
		ID: newID(), At: s.Now(), Caller: c, Operation: operation, Subject: subject,
		Warehouse: warehouse, Securable: securable,
	}
}

// newID gives a time-ordered UUID, so that index pages fill in order.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
