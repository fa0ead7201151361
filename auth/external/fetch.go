package external

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"catalogd/internal/fault"
)

// Limits of one question to a provider.
const (
	fetchTimeMax    = 5 * time.Second
	fetchBytesMax   = 1 << 20
	redirectsMax    = 3
	shownBytesMax   = 100 // of an answer, in a message
	discoverySuffix = "/.well-known/openid-configuration"
)

// discovery is what we read of a provider's own description.
type discovery struct {
	Issuer  string `json:"issuer"`
	KeysURL string `json:"jwks_uri"`
}

// errElsewhere ends a redirect to another server: what this one is trusted with is not that one's.
var errElsewhere = errors.New("it redirects to another server, which is not followed")

func newClient(c *compiled) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots}
	return &http.Client{
		Transport: transport, Timeout: fetchTimeMax,
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			first := via[0].URL
			switch {
			case next.URL.Host != first.Host || next.URL.Scheme != first.Scheme:
				return errElsewhere
			case len(via) > redirectsMax:
				return errors.New("it redirects again and again")
			}
			return nil
		},
	}
}

// discover asks the provider where its keys are. The message of a refusal has the address and what was found there.
func discover(ctx context.Context, client *http.Client, c *compiled) (keysURL string, err error) {
	address := strings.TrimRight(c.URL, "/") + discoverySuffix
	var found discovery
	if err := fetchJSON(ctx, client, address, &found); err != nil {
		return "", err
	}
	switch {
	case found.Issuer == "":
		return "", fault.New(fault.Busy, "GET %s answers JSON without an issuer: is it the address of an OpenID provider?", address)
	case found.Issuer != c.URL && strings.TrimRight(found.Issuer, "/") == strings.TrimRight(c.URL, "/"):
		return "", fault.New(fault.Busy, "GET %s says that the issuer is %q, and %q is configured: they differ in the slash at the end; "+
			"write it as the provider does", address, shown([]byte(found.Issuer)), c.URL)
	case found.Issuer != c.URL:
		return "", fault.New(fault.Busy, "GET %s says that the issuer is %q, and %q is configured", address, shown([]byte(found.Issuer)), c.URL)
	}
	if err := checkURL("jwks_uri", found.KeysURL); err != nil {
		return "", fault.New(fault.Busy, "GET %s: %s", address, fault.Message(err))
	}
	own, _ := url.Parse(c.URL)
	if keys, _ := url.Parse(found.KeysURL); keys.Scheme != "https" && !isLoopback(own) {
		return "", fault.New(fault.Busy, "GET %s: jwks_uri %q must be https", address, found.KeysURL)
	}
	return found.KeysURL, nil
}

// fetchJSON reads a small JSON document.
func fetchJSON(ctx context.Context, client *http.Client, address string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeMax)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fault.Wrap(fault.Busy, err, "GET %s", address)
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return fault.Wrap(fault.Busy, err, "GET %s: %s", address, reason(err))
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, fetchBytesMax+1))
	if err != nil {
		return fault.Wrap(fault.Busy, err, "GET %s: the answer ended early", address)
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case len(body) > fetchBytesMax:
		return fault.New(fault.Busy, "GET %s answers more than %d bytes", address, fetchBytesMax)
	case res.StatusCode != http.StatusOK:
		return fault.New(fault.Busy, "GET %s answers %d: %s", address, res.StatusCode, shown(body))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fault.Wrap(fault.Busy, err, "GET %s answers %s, which is no JSON: %s", address, kind, shown(body))
	}
	return nil
}

// reason is the part of a client's error that helps, without the address, which stands before it.
func reason(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		if wrapped.Timeout() {
			return "no answer within " + fetchTimeMax.String()
		}
		return wrapped.Err.Error()
	}
	return err.Error()
}

// shown is the beginning of an answer, fit for a log.
func shown(body []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), 4*shownBytesMax)]), "?")), " ")
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, text)
	if len(text) > shownBytesMax {
		return text[:shownBytesMax] + "..."
	}
	return text
}
