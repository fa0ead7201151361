package api

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestOrigin_BelievesTrustedProxiesAlone(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:aa::/48")}
	for _, c := range []struct {
		name, peer, forwardedFor, forwarded, address, text string
		none                                               bool // no proxy is trusted
	}{
		{"no proxy", "192.0.2.1:5000", "", "", "192.0.2.1", "192.0.2.1", false},
		{"a stranger's header", "192.0.2.1:5000", "203.0.113.9", "for=203.0.113.9", "192.0.2.1", "192.0.2.1", false},
		{"nobody is trusted", "10.0.0.1:5000", "203.0.113.9", "", "10.0.0.1", "10.0.0.1", true},
		{"one proxy", "10.0.0.1:5000", "203.0.113.9", "", "203.0.113.9", "203.0.113.9", false},
		{"the client wrote the left", "10.0.0.1:5000", "10.9.9.9, 198.51.100.1, 203.0.113.9", "", "203.0.113.9", "203.0.113.9", false},
		{"two proxies", "10.0.0.1:5000", "198.51.100.1, 203.0.113.9, 10.0.0.2", "", "203.0.113.9", "203.0.113.9", false},
		{"all inside", "10.0.0.1:5000", "10.0.0.3, 10.0.0.2", "", "10.0.0.3", "10.0.0.3", false},
		{"the proxy itself", "10.0.0.1:5000", "", "", "10.0.0.1", "10.0.0.1", false},
		{"with ports", "10.0.0.1:5000", "203.0.113.9:443", "", "203.0.113.9", "203.0.113.9", false},
		{"IPv6", "[2001:db8:aa::1]:5000", "2001:db8::7", "", "2001:db8::7", "2001:db8::7", false},
		{"IPv6 with a port", "10.0.0.1:5000", "[2001:db8::7]:443", "", "2001:db8::7", "2001:db8::7", false},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:5000", "::ffff:203.0.113.9", "", "203.0.113.9", "203.0.113.9", false},
		{"Forwarded", "10.0.0.1:5000", "", `for=198.51.100.1, for="[2001:db8::7]:80";proto=https, For=10.0.0.2`, "2001:db8::7", "2001:db8::7", false},
		{"both agree", "10.0.0.1:5000", "203.0.113.9", "for=203.0.113.9", "203.0.113.9", "203.0.113.9", false},
		{"both differ", "10.0.0.1:5000", "203.0.113.9", "for=203.0.113.8", "", "10.0.0.1", false},
		{"a host that looks like an element", "10.0.0.1:5000", "", `for=203.0.113.9;host="a, for=10.0.0.7"`, "203.0.113.9", "203.0.113.9", false},
		{"a host that looks like a pair", "10.0.0.1:5000", "", `host="a;for=10.0.0.7;b=\"";for=203.0.113.9`, "203.0.113.9", "203.0.113.9", false},
		{"a quote that never ends", "10.0.0.1:5000", "", `for="10.0.0.7, for=203.0.113.9`, "", "10.0.0.1", false},
		{"hidden", "10.0.0.1:5000", "", "for=_hidden", "", "10.0.0.1", false},
		{"unknown", "10.0.0.1:5000", "unknown", "", "", "10.0.0.1", false},
		{"unknown behind a proxy", "10.0.0.1:5000", "203.0.113.9, nonsense, 10.0.0.2", "", "", "10.0.0.1", false},
		{"no end of proxies", "10.0.0.1:5000", strings.Repeat("10.0.0.2,", 40) + "10.0.0.2", "", "", "10.0.0.1", false},
		{"as many proxies as are looked at", "10.0.0.1:5000", "203.0.113.9," + strings.Repeat("10.0.0.2,", proxyHopsMax-2) + "10.0.0.2", "", "203.0.113.9", "203.0.113.9", false},
		{"one more", "10.0.0.1:5000", "203.0.113.9," + strings.Repeat("10.0.0.2,", proxyHopsMax-1) + "10.0.0.2", "", "", "10.0.0.1", false},
		{"a long tale to the left", "10.0.0.1:5000", strings.Repeat("10.0.0.2,", 2000) + "203.0.113.9", "", "203.0.113.9", "203.0.113.9", false},
		{"nonsense to the left", "10.0.0.1:5000", "unknown, _x, [, 203.0.113.9", "", "203.0.113.9", "203.0.113.9", false},
		{"a zone", "10.0.0.1:5000", "fe80::1%eth0", "", "fe80::1", "fe80::1", false},
		{"a zone and a port", "10.0.0.1:5000", "[fe80::1%eth0]:80", "", "fe80::1", "fe80::1", false},
		{"a zone on a trusted network", "10.0.0.1:5000", "203.0.113.9, 2001:db8:aa::1%10.0.0.1", "", "203.0.113.9", "203.0.113.9", false},
		{"a mapped one with a zone", "10.0.0.1:5000", "203.0.113.9, ::ffff:10.0.0.2%x", "", "203.0.113.9", "203.0.113.9", false},
		{"a hidden port", "10.0.0.1:5000", "", "for=\"203.0.113.9:_x\"", "203.0.113.9", "203.0.113.9", false},
		{"a hidden port of IPv6", "10.0.0.1:5000", "", "for=\"[2001:db8::7]:_x\"", "2001:db8::7", "2001:db8::7", false},
		{"a hidden port of whatever", "10.0.0.1:5000", "", "for=\"2001:db8::7:_x\"", "", "10.0.0.1", false},
		{"hidden with a port", "10.0.0.1:5000", "", "for=\"_x:80\"", "", "10.0.0.1", false},
		{"unknown behind the last proxy", "10.0.0.1:5000", "", "for=203.0.113.9, for=unknown", "", "10.0.0.1", false},
		{"no such port", "10.0.0.1:5000", "203.0.113.9:65536", "", "", "10.0.0.1", false},
		{"no port", "10.0.0.1:5000", "203.0.113.9:", "", "", "10.0.0.1", false},
		{"half a bracket", "10.0.0.1:5000", "[203.0.113.9", "", "", "10.0.0.1", false},
		{"the other half", "10.0.0.1:5000", "2001:db8::7]", "", "", "10.0.0.1", false},
		{"IPv4 in brackets", "10.0.0.1:5000", "[203.0.113.9]", "", "", "10.0.0.1", false},
		{"octal", "10.0.0.1:5000", "0313.0.113.9", "", "", "10.0.0.1", false},
		{"a network", "10.0.0.1:5000", "203.0.113.0/24", "", "", "10.0.0.1", false},
		{"said twice", "10.0.0.1:5000", "", "for=203.0.113.9;for=203.0.113.8", "", "10.0.0.1", false},
		{"nothing said", "10.0.0.1:5000", "", "for=203.0.113.9, by=10.0.0.2", "", "10.0.0.1", false},
		{"an empty header", "10.0.0.1:5000", " ", "", "", "10.0.0.1", false},
		{"a socket", "@", "203.0.113.9", "", "", "@", false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.peer
		if c.forwardedFor != "" {
			r.Header.Set("X-Forwarded-For", c.forwardedFor)
		}
		if c.forwarded != "" {
			r.Header.Set("Forwarded", c.forwarded)
		}
		proxies := trusted
		if c.none {
			proxies = nil
		}
		var want netip.Addr
		if c.address != "" {
			want = netip.MustParseAddr(c.address)
		}
		if got := originOf(r, proxies); got.address != want || got.text != c.text && !strings.HasSuffix(got.text, c.text) {
			t.Errorf("%s: %+v, want %s", c.name, got, c.address)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "10.0.0.1:5000"
	r.Header["X-Forwarded-For"] = []string{"198.51.100.1", "203.0.113.9"} // a proxy may add a line of its own
	if got := originOf(r, trusted); got.text != "203.0.113.9" {
		t.Errorf("two lines: %+v", got)
	}
}
