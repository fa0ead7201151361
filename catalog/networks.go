package catalog

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// parseNetworks reads networks in CIDR; an address alone is a network of its own.
func parseNetworks(what string, texts []string) (networks []netip.Prefix, err error) {
	if len(texts) > auth.NetworksMax {
		return nil, fault.New(fault.BadRequest, "%s has %d entries; at most %d are allowed", what, len(texts), auth.NetworksMax)
	}
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); single == nil {
			address = address.Unmap().WithZone("")
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil || network.Addr().Is4In6() {
			return nil, fault.New(fault.BadRequest, "%s: %q is no network such as 10.0.0.0/8 or 2001:db8::/32", what, text)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

// NetworkPolicyDraft is a policy as somebody wants it. Networks are CIDR; both lists empty take the policy away.
type NetworkPolicyDraft struct {
	Allowed, Blocked []string
	// LockOut says that the caller knows that the policy keeps its own request's address out.
	LockOut bool
}

// FindNetworkPolicy gives a principal's policy, or with "" the server's; everybody may ask for its own.
func (s *Service) FindNetworkPolicy(ctx context.Context, c Caller, principal string) (auth.NetworkPolicy, error) {
	id, err := s.networkSubject(ctx, c, principal, "load-network-policy", authz.PrincipalReadProperties)
	if err != nil {
		return auth.NetworkPolicy{}, err
	}
	p, err := s.Admin.FindNetworkPolicy(ctx, id)
	if err != nil {
		return p, fmt.Errorf("find the network policy of %s: %w", nameOr(principal, "the server"), err)
	}
	return p, nil
}

func (s *Service) networkSubject(ctx context.Context, c Caller, principal, operation string, wanted authz.Privilege) (uuid.UUID, error) {
	if principal == "" {
		return uuid.Nil, s.requireOnRoot(ctx, c, need{operation, "the server", authz.ServiceManageAccess})
	}
	p, err := s.principalForSelfToo(ctx, c, need{operation, principal, wanted})
	return p.ID, err
}

// SetNetworkPolicy replaces a principal's policy, or with "" the server's. A policy that a principal could lift itself would
// protect nothing, so it takes SERVICE_MANAGE_ACCESS. One that keeps out the very request that sets it is refused unless
// the caller says that it is meant.
func (s *Service) SetNetworkPolicy(ctx context.Context, c Caller, principal string, d NetworkPolicyDraft) (auth.NetworkPolicy, error) {
	n := need{"set-network-policy", nameOr(principal, "the server"), authz.ServiceManageAccess}
	if err := s.requireOnRoot(ctx, c, n); err != nil {
		return auth.NetworkPolicy{}, err
	}
	var p auth.NetworkPolicy
	var err error
	if p.Allowed, err = parseNetworks("allowed", d.Allowed); err != nil {
		return p, err
	}
	if p.Blocked, err = parseNetworks("blocked", d.Blocked); err != nil {
		return p, err
	}
	id := uuid.Nil
	if principal != "" {
		found, err := s.Admin.FindPrincipal(ctx, principal)
		if err != nil {
			return p, fmt.Errorf("find principal %s: %w", principal, err)
		}
		id = found.ID
	}
	own := id == uuid.Nil || id == c.Principal.ID
	if own && !d.LockOut && !p.Admits(c.Principal.Address) {
		return p, fault.New(fault.IllegalArgument, "this policy would keep you out: your request comes from %s; allow that address, "+
			"or say lockOut (--lock-out) if it is meant", nameOr(c.Client, "an address that is not known"))
	}
	f := s.fact(c, n.operation, n.subject, uuid.Nil, id)
	f.Details = map[string]any{"allowed": len(p.Allowed), "blocked": len(p.Blocked)}
	if err := s.Admin.SetNetworkPolicy(ctx, id, p, f); err != nil {
		return p, fmt.Errorf("set the network policy of %s: %w", n.subject, err)
	}
	return p, nil
}

func nameOr(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}
