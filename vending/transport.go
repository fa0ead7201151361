package vending

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Limits of connections to endpoints that a warehouse names.
const (
	dialSecondsMax      = 5 * time.Second
	handshakeSecondsMax = 5 * time.Second
	headerSecondsMax    = 30 * time.Second
	idleSecondsMax      = 60 * time.Second
	idleConnectionsMax  = 64 // per host
)

var errForbiddenAddress = errors.New("link-local, multicast and unspecified addresses are refused")

// metadataAddress is where AWS serves instance metadata over IPv6; it is not link-local.
var metadataAddress = netip.MustParseAddr("fd00:ec2::254")

// ForbiddenAddress tells that no endpoint of a warehouse may be there. Clouds hand out their machines' keys at
// link-local addresses: whoever may set an endpoint must not be able to ask there in the server's name.
func ForbiddenAddress(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip == metadataAddress
}

// GuardedClient reaches endpoints that warehouses name: it connects to no forbidden address, whatever a name
// resolves to, and follows no redirect. Make one and share it: it owns a pool of connections.
func GuardedClient() *http.Client {
	dialer := &net.Dialer{Timeout: dialSecondsMax, Control: func(_, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if ForbiddenAddress(target.Addr()) {
			return errForbiddenAddress
		}
		return nil
	}}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: dialer.DialContext, MaxIdleConns: 4 * idleConnectionsMax, MaxIdleConnsPerHost: idleConnectionsMax,
			IdleConnTimeout: idleSecondsMax, ResponseHeaderTimeout: headerSecondsMax, TLSHandshakeTimeout: handshakeSecondsMax,
			ForceAttemptHTTP2: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
