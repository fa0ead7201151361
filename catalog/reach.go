package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// Accesses are the principals that may, and what was asked.
type Accesses struct {
	On   SecurableName
	Who  []Access
	name func(authz.Grant) SecurableName
}

// NameOf names what a grant of the answer is on.
func (a Accesses) NameOf(g HeldGrant) SecurableName { return a.name(g.Grant) }

// WhoCan gives the principals, by name, that may do what the question asks with all their roles. The right to list the
// grants on what it is about is needed; who lacks it does not learn whether it is there.
func (s *Service) WhoCan(ctx context.Context, c Caller, q Question, p Page) (Accesses, error) {
	a, err := q.asked()
	if err != nil {
		return Accesses{}, err
	}
	res, err := s.resolveAsked(ctx, c, a.on)
	if err != nil {
		return Accesses{}, err
	}
	n := need{"who-can", a.what + " " + a.on.String(), grantsSeen[a.on.Kind()]}
	if err := s.require(ctx, c, res, res.Path(), n); err != nil {
		return Accesses{}, err
	}
	if err := a.on.missing(res); err != nil {
		return Accesses{}, err
	}
	query := AccessQuery{}
	if res.Warehouse != nil {
		query.WarehouseID = res.Warehouse.ID
	}
	for _, w := range a.wishes {
		query.Wishes = append(query.Wishes, AccessWish{authz.Implying(w.wanted), pathTo(res.Path(), w.at)})
	}
	who, err := s.Admin.WhoCan(ctx, query, p)
	if err != nil {
		return Accesses{}, fmt.Errorf("find who may %s %s: %w", a.what, a.on, err)
	}
	return Accesses{On: a.on, Who: who, name: res.nameOf}, nil
}

// Reach gives the securables that a principal holds grants on, with all its roles: the service first, then warehouses by
// name, what is further out before what is in it. What it may do there holds for everything below. Everybody may ask for
// himself. Of others, who may list a warehouse's grants sees what is in that warehouse, and who may list principals'
// grants as well sees that of all such warehouses, and of the service.
func (s *Service) Reach(ctx context.Context, c Caller, principal, warehouse string, p Page) ([]Reached, error) {
	who, err := s.subjectOf(ctx, c, principal)
	if err != nil {
		return nil, err
	}
	q := ReachQuery{Of: who.holder(), Limit: p.Limit}
	if err := parseKey(p.After, &q.After); err != nil {
		return nil, err
	}
	n := need{"list-reach", who.name, authz.CatalogRoleListGrants}
	switch {
	case warehouse != "" && who.self:
		res, err := s.resolve(ctx, c, Lookup{Warehouse: warehouse})
		if err != nil {
			return nil, err
		}
		q.WarehouseID = res.Warehouse.ID
	case warehouse != "":
		w, err := s.requireOnWarehouse(ctx, c, warehouse, n)
		if err != nil {
			return nil, err
		}
		q.WarehouseID = w.ID
	case !who.self:
		n.wanted = authz.PrincipalListGrants
		if err := s.requireOnRoot(ctx, c, n); err != nil {
			return nil, err
		}
		q.Viewer, q.ViewerPrivileges = &c.Principal, authz.Implying(authz.CatalogRoleListGrants)
	}
	if err := who.gone(); err != nil || who.id == uuid.Nil {
		return nil, err
	}
	reached, err := s.Admin.Reach(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list what %s can reach: %w", who.name, err)
	}
	return reached, nil
}

// Name names the securable.
func (r Reached) Name() SecurableName {
	name := SecurableName{Warehouse: r.Key.Warehouse, Namespace: r.Key.Namespace}
	switch r.Key.Kind {
	case authz.Table:
		name.Table = r.Key.Name
	case authz.View:
		name.View = r.Key.Name
	}
	return name
}

// Effective gives what the grants let the principal do there and below.
func (r Reached) Effective() []authz.Privilege {
	held := make([]authz.Privilege, len(r.By))
	for i, g := range r.By {
		held[i] = g.Privilege
	}
	return authz.Effective(held, r.Key.Kind)
}

// PageKey spells a place in a list that is not ordered by one name, as a page's token holds it.
func PageKey[K ReachKey | GrantKey | GrantOn](key K) string {
	raw, err := json.Marshal(key)
	if err != nil { // texts: cannot happen
		panic(err)
	}
	return string(raw)
}

// parseKey reads what PageKey spelled; "" is the first page.
func parseKey(text string, key any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), key); err != nil {
		return fault.Wrap(fault.BadRequest, err, "pageToken is not one of this list's")
	}
	return nil
}
