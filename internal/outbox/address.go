package outbox

import (
	"net/netip"
	"syscall"
)

// unreachable are addresses that are nobody's on the public network, or lead back into one that is not public.
var unreachable = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // a cloud's own services for the machines in it
	// Of version 6 only what is given out at all, and of that not what holds an address of version 4 or is for documents.
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// given is what of version 6 is given out.
var given = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// isPublic tells whether an address is one on the public network.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || a.Is6() && !given.Contains(a) {
		return false
	}
	for _, p := range unreachable {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// errPrivate is for an address that webhooks may not be at. It does not name it: what a name means inside a network is
// nothing for who may only give the name.
type errPrivate struct{}

func (errPrivate) Error() string {
	return "the receiver is not at a public address (the setting webhooks.allow_private allows it)"
}

// onlyPublic is asked with the very address that is about to be connected to, after names are resolved: a name that
// means something else at the second look gains nothing.
func onlyPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(at.Addr()) {
		return errPrivate{}
	}
	return nil
}
