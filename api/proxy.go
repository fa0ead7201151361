package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// proxyHopsMax bounds the proxies that a request may tell of.
const proxyHopsMax = 32

// origin is where a request comes from.
type origin struct {
	address netip.Addr // zero when nobody who is believed says so
	text    string     // for the log and the audit: the address, else what the peer is called
}

// originOf finds a request's client. Headers are believed as far as trusted proxies wrote them: the client is the last
// one in the chain, seen from here, that is not trusted itself. Whoever sends requests can write whatever stands to the left
// of that. Where proxies do not say, or two headers differ, the address is not known, so that no network policy lets it in.
func originOf(r *http.Request, trusted []netip.Prefix) origin {
	peer := peerOf(r)
	if !isTrusted(trusted, peer.address) {
		return peer
	}
	forwardedFor, forwarded := splitHeader(r.Header["X-Forwarded-For"]), forwardedNodes(r.Header["Forwarded"])
	unknown := origin{text: peer.text}
	first, known := clientIn(forwardedFor, trusted, peer.address)
	second, knownToo := clientIn(forwarded, trusted, peer.address)
	switch {
	case !known || !knownToo:
		return unknown
	case len(forwarded) == 0:
	case len(forwardedFor) == 0:
		first = second
	case first != second:
		return unknown
	}
	return origin{address: first, text: first.String()}
}

func peerOf(r *http.Request) origin {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return origin{text: host}
	}
	return origin{address: address.Unmap().WithZone(""), text: host}
}

func isTrusted(trusted []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(trusted, func(n netip.Prefix) bool { return n.Contains(address) })
}

// clientIn walks from the proxy that is nearest to the server away from it. Without hops the peer asks for itself.
func clientIn(hops []string, trusted []netip.Prefix, peer netip.Addr) (netip.Addr, bool) {
	client := peer
	for i, hop := range slices.Backward(hops) {
		if len(hops)-i > proxyHopsMax {
			return netip.Addr{}, false
		}
		address, ok := hopAddress(hop)
		if !ok {
			return netip.Addr{}, false
		}
		if client = address; !isTrusted(trusted, address) {
			break
		}
	}
	return client, true
}

// hopAddress reads an address with or without a port: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1]:80. The port may be hidden
// (RFC 7239: 192.0.2.1:_x); an address that is hidden (_x) or unknown is none.
func hopAddress(hop string) (netip.Addr, bool) {
	if at := strings.LastIndex(hop, ":_"); at >= 0 && !strings.ContainsAny(hop[at:], `]" `) {
		hop = hop[:at]
		if strings.Contains(hop, ":") && !strings.HasPrefix(hop, "[") {
			return netip.Addr{}, false // of IPv6 there is no telling where it ends
		}
	}
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	if inner, ok := strings.CutPrefix(hop, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok || !strings.Contains(inner, ":") {
			return netip.Addr{}, false
		}
		hop = inner
	}
	address, err := netip.ParseAddr(hop)
	return address.Unmap().WithZone(""), err == nil
}

func splitHeader(lines []string) (parts []string) {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			parts = append(parts, strings.TrimSpace(part))
		}
	}
	return parts
}

// forwardedNodes gives the nodes of Forwarded's elements (RFC 7239).
func forwardedNodes(lines []string) (nodes []string) {
	for _, line := range lines {
		for _, element := range splitQuoted(line, ',') {
			nodes = append(nodes, forwardedNode(element))
		}
	}
	return nodes
}

// forwardedNode gives the node of an element's for=, "" when it has none or says it twice.
func forwardedNode(element string) (node string) {
	said := false
	for _, pair := range splitQuoted(element, ';') {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if !strings.EqualFold(name, "for") {
			continue
		}
		if said {
			return ""
		}
		if said, node = true, value; len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
			node = value[1 : len(value)-1]
		}
	}
	return node
}

// splitQuoted splits where the separator stands outside of quotes: inside of them is what clients choose, such as the host, which
// must not look like an element of its own. With a quote that never ends nothing is split off.
func splitQuoted(text string, separator byte) (parts []string) {
	begin, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == separator && !quoted:
			parts, begin = append(parts, text[begin:i]), i+1
		}
	}
	if quoted {
		return []string{""}
	}
	return append(parts, text[begin:])
}
