package vending_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"catalogd/vending"
)

func TestForbiddenAddress(t *testing.T) {
	for address, want := range map[string]bool{
		"169.254.169.254": true, "169.254.170.2": true, "::ffff:169.254.169.254": true, "fe80::1%eth0": true, "fd00:ec2::254": true,
		"0.0.0.0": true, "::": true, "224.0.0.1": true, "ff02::1": true,
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "192.0.2.1": false, "2001:db8::1": false, "fd00::1": false,
	} {
		if got := vending.ForbiddenAddress(netip.MustParseAddr(address)); got != want {
			t.Errorf("ForbiddenAddress(%s) = %v", address, got)
		}
	}
}

func TestGuardedClient_NeitherRedirectsNorLinkLocal(t *testing.T) {
	client := vending.GuardedClient()
	defer client.CloseIdleConnections()
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer target.Close()
	first := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusFound))
	defer first.Close()
	response, err := client.Get(first.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusFound {
		t.Errorf("got %d", response.StatusCode)
	}
	if response, err := client.Get("http://169.254.169.254/latest/meta-data/"); err == nil {
		response.Body.Close()
		t.Error("a link-local address was reached")
	}
}
