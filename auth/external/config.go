package external

import (
	"crypto/x509"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"catalogd/internal/fault"
)

// Limits of what is configured.
const (
	issuersMax      = 64
	audiencesMax    = 32
	rulesMax        = 200
	patternBytesMax = 256
	nameClaimUsual  = "preferred_username"
)

// The signature algorithms that a provider may be allowed. Symmetric ones are not among them: everybody who can check such
// a token can make one.
var signatures = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// signaturesUsual are allowed where nothing is said.
var signaturesUsual = []string{"RS256", "PS256", "ES256", "EdDSA"}

// Config is one identity provider.
type Config struct {
	URL       string   // "iss" of its tokens, to the letter
	Audiences []string // a token must be meant for one of them
	// NameClaim has the principal's name, GroupsClaim a text or a list of texts; both may lie deeper: realm_access.roles.
	// A token without the claim of the name is called by its subject. No GroupsClaim: tokens bring no roles.
	NameClaim   string
	GroupsClaim string
	NamePrefix  string // before the names of this provider's principals
	// Rules turn groups into principal roles; without any, a group is a role's name, which is good for an issuer that is the only one.
	Rules []Rule
	// RefuseUnknownGroups refuses a token with a group that no rule has.
	RefuseUnknownGroups bool
	Algorithms          []string // nil: RS256, PS256, ES256, EdDSA
	// Keys come from KeySet, else from KeysURL, else from where the provider's discovery document says.
	KeySet  []byte // JWKS
	KeysURL string
	CA      []byte // PEM: who signs its certificate, beside the system's
	// CreatePrincipals makes a principal at a subject's first token.
	CreatePrincipals bool
}

// Rule turns a group into a principal role. One of Group and Pattern is given.
type Rule struct {
	Group   string
	Pattern string // a regular expression for the whole group
	Role    string // with a Pattern it may refer to its parts: $1, ${name}
}

// compiled is a Config that was checked.
type compiled struct {
	Config
	roots    *x509.CertPool
	patterns []*regexp.Regexp // as Rules; nil for exact ones
}

func compile(c Config) (*compiled, error) {
	if err := checkURL("url", c.URL); err != nil {
		return nil, err
	}
	refuse := func(format string, args ...any) error {
		return fault.New(fault.IllegalArgument, "issuer "+c.URL+": "+format, args...)
	}
	if c.NameClaim == "" {
		c.NameClaim = nameClaimUsual
	}
	if len(c.Algorithms) == 0 {
		c.Algorithms = signaturesUsual
	}
	for _, name := range c.Algorithms {
		if !slices.Contains(signatures, name) {
			return nil, refuse("algorithm %q is not allowed; %s are", name, strings.Join(signatures, ", "))
		}
	}
	switch {
	case len(c.Audiences) == 0 || slices.Contains(c.Audiences, ""):
		return nil, refuse("audiences is empty: without it a token that was made for any other application would be good here")
	case len(c.Audiences) > audiencesMax:
		return nil, refuse("%d audiences; at most %d are allowed", len(c.Audiences), audiencesMax)
	case len(c.Rules) > rulesMax:
		return nil, refuse("%d rules for roles; at most %d are allowed", len(c.Rules), rulesMax)
	case len(c.KeySet) > 0 && c.KeysURL != "":
		return nil, refuse("jwks and jwks_url are both given")
	case len(c.Rules) > 0 && c.GroupsClaim == "":
		return nil, refuse("there are rules for roles and no groups_claim")
	}
	if c.KeysURL != "" {
		if err := checkURL("jwks_url", c.KeysURL); err != nil {
			return nil, refuse("%s", fault.Message(err))
		}
	}
	k := &compiled{Config: c}
	if len(c.CA) > 0 {
		var err error
		if k.roots, err = x509.SystemCertPool(); err != nil {
			k.roots = x509.NewCertPool()
		}
		if !k.roots.AppendCertsFromPEM(c.CA) {
			return nil, refuse("ca_file has no certificate in PEM")
		}
	}
	for _, r := range c.Rules {
		pattern, err := r.compile()
		if err != nil {
			return nil, refuse("%s", fault.Message(err))
		}
		k.patterns = append(k.patterns, pattern)
	}
	return k, nil
}

func (r Rule) compile() (*regexp.Regexp, error) {
	switch {
	case r.Role == "":
		return nil, fault.New(fault.IllegalArgument, "a rule for roles names no role")
	case (r.Group == "") == (r.Pattern == ""):
		return nil, fault.New(fault.IllegalArgument, "the rule for role %s must have either group or pattern", r.Role)
	case r.Pattern == "":
		return nil, nil
	case len(r.Pattern) > patternBytesMax:
		return nil, fault.New(fault.IllegalArgument, "a pattern is %d bytes long; at most %d are allowed", len(r.Pattern), patternBytesMax)
	}
	pattern, err := regexp.Compile("^(?:" + r.Pattern + ")$")
	if err != nil {
		return nil, fault.Wrap(fault.IllegalArgument, err, "pattern %q is no regular expression", r.Pattern)
	}
	return pattern, nil
}

// checkURL wants https: whoever can change an answer on its way decides whose tokens are good. Only this machine itself may
// be asked without.
func checkURL(what, address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "":
		return fault.New(fault.IllegalArgument, "%s %q is no URL of a server", what, address)
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u):
		return nil
	}
	return fault.New(fault.IllegalArgument, "%s %q must be https", what, address)
}

func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// clockSkewMax is how far a provider's clock may be ahead of ours.
const clockSkewMax = 5 * time.Minute
