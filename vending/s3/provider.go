// Package s3 vends sessions of an S3 store's token service: AssumeRole with an inline policy for one table.
package s3

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// Limits of the provider.
const (
	assumeSecondsMax = 15 * time.Second // for one call to the token service, its retry included
	assumeTriesMax   = 2
	sessionsMax      = 8192 // in the cache
)

// Config is what New needs.
type Config struct {
	// AWS has the server's own identity: it may assume the warehouses' roles. Its HTTP client is used to find that
	// identity, never to reach an endpoint of a profile.
	AWS aws.Config
	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: slog.Default()
	// OmitDuration leaves the life of sessions to the store. For tests of expiry: the test store gives 3 seconds then.
	OmitDuration bool
}

// Provider vends for S3 and for stores that speak its protocol. It is safe for concurrent use.
type Provider struct {
	aws          aws.Config
	now          func() time.Time
	log          *slog.Logger
	omitDuration bool
	http         *http.Client
	sessions     *sessions
}

var _ vending.Provider = (*Provider)(nil)

// New makes a provider.
func New(c Config) *Provider {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Provider{
		aws: c.AWS, now: c.Now, log: c.Log, omitDuration: c.OmitDuration,
		http: vending.GuardedClient(), sessions: newSessions(sessionsMax, c.Now),
	}
}

// Close lets go of idle connections.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Vend makes a session for the scope. It never calls the token service without a policy.
func (p *Provider) Vend(ctx context.Context, profile vending.Profile, s vending.Scope) (vending.Credentials, error) {
	if !p.CanVend(profile) {
		return vending.Credentials{}, fault.New(fault.Unsupported, "warehouse %s vends no credentials", s.WarehouseName())
	}
	partition, ok := partitionOf(profile.RoleARN)
	if !ok {
		return vending.Credentials{}, fault.New(fault.Internal, "warehouse %s has roleArn %q, which names no role", s.WarehouseName(), profile.RoleARN)
	}
	policy, err := policyFor(s, partition)
	if err != nil {
		return vending.Credentials{}, err
	}
	key, err := sessionKey(profile, s)
	if err != nil {
		return vending.Credentials{}, err
	}
	return p.sessions.load(ctx, key, func(ctx context.Context) (session, error) {
		return p.assume(ctx, profile, s, policy)
	})
}

// OwnCredentials gives the server's own keys, for warehouses whose store has no token service. The caller must check
// every path itself, for no store will; they are never given to a client.
func (p *Provider) OwnCredentials(ctx context.Context, profile vending.Profile, s vending.Scope) (vending.Credentials, error) {
	if !profile.STSUnavailable {
		return vending.Credentials{}, fault.New(fault.Internal, "warehouse %s has a token service; the server's own keys are not used there", s.WarehouseName())
	}
	if _, _, err := place(s.Location); err != nil {
		return vending.Credentials{}, err
	}
	own, err := p.identity(ctx)
	if err != nil {
		return vending.Credentials{}, err
	}
	c := p.credentials(profile, s, aws.Credentials{
		AccessKeyID: own.AccessKeyID, SecretAccessKey: own.SecretAccessKey, SessionToken: own.SessionToken,
	})
	if own.CanExpire {
		c.ExpiresAt = own.Expires
	}
	return c, nil
}

func (p *Provider) identity(ctx context.Context) (aws.Credentials, error) {
	const remedy = "the server has no AWS keys of its own; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give its machine a role"
	if p.aws.Credentials == nil {
		return aws.Credentials{}, fault.New(fault.Internal, remedy)
	}
	own, err := p.aws.Credentials.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, fault.Wrap(fault.Internal, err, remedy)
	}
	return own, nil
}

func (p *Provider) assume(ctx context.Context, profile vending.Profile, s vending.Scope, policy string) (session, error) {
	ctx, cancel := context.WithTimeout(ctx, assumeSecondsMax)
	defer cancel()
	if _, err := p.identity(ctx); err != nil {
		return session{}, err
	}
	name := sessionName(s)
	input := &sts.AssumeRoleInput{RoleArn: &profile.RoleARN, RoleSessionName: &name, Policy: &policy}
	if profile.ExternalID != "" {
		input.ExternalId = &profile.ExternalID
	}
	if !p.omitDuration {
		input.DurationSeconds = aws.Int32(int32(sessionSeconds(profile)))
	}
	asked := p.now()
	out, err := p.client(profile).AssumeRole(ctx, input)
	if err != nil {
		return session{}, assumeError(err, profile, s)
	}
	c := out.Credentials
	if c == nil || c.AccessKeyId == nil || c.SecretAccessKey == nil || c.SessionToken == nil || c.Expiration == nil {
		return session{}, fault.New(fault.Internal, "the token service of warehouse %s answered without keys", s.WarehouseName())
	}
	// CloudTrail and the store's own logs know the session's name only; this line joins them with the audit.
	p.log.InfoContext(ctx, "vended", "session", name, "warehouse", s.Warehouse, "table", s.Table, "principal", s.Principal,
		"access", string(s.Access), "expires", c.Expiration.UTC(), "policy_percent", aws.ToInt32(out.PackedPolicySize))
	return session{asked: asked, credentials: p.credentials(profile, s, aws.Credentials{
		AccessKeyID: *c.AccessKeyId, SecretAccessKey: *c.SecretAccessKey, SessionToken: *c.SessionToken,
		CanExpire: true, Expires: *c.Expiration,
	})}, nil
}

func (p *Provider) client(profile vending.Profile) *sts.Client {
	return sts.New(sts.Options{
		Region: profile.Region, BaseEndpoint: stsEndpoint(profile), Credentials: p.aws.Credentials,
		HTTPClient: p.http, RetryMaxAttempts: assumeTriesMax,
	})
}

// stsEndpoint gives where the token service is; nil means AWS' own for the region.
func stsEndpoint(profile vending.Profile) *string {
	for _, endpoint := range []string{profile.STSEndpoint, profile.EndpointInternal, profile.Endpoint} {
		if endpoint != "" {
			return &endpoint
		}
	}
	return nil
}

func (p *Provider) credentials(profile vending.Profile, s vending.Scope, keys aws.Credentials) vending.Credentials {
	c := vending.Credentials{Prefix: s.Location + "/", Config: p.ClientConfig(profile)}
	c.Config["s3.access-key-id"] = keys.AccessKeyID
	c.Config["s3.secret-access-key"] = keys.SecretAccessKey
	if keys.SessionToken != "" {
		c.Config["s3.session-token"] = keys.SessionToken
	}
	if keys.CanExpire {
		c.ExpiresAt = keys.Expires
		c.Config["s3.session-token-expires-at-ms"] = strconv.FormatInt(keys.Expires.UnixMilli(), 10)
	}
	return c
}

func sessionSeconds(profile vending.Profile) int {
	if profile.SessionSeconds == 0 {
		return vending.SessionSecondsDefault
	}
	return profile.SessionSeconds
}

// sessionName is what the store's owner sees. Names of principals and tables go in as hashes: they may hold anything.
func sessionName(s vending.Scope) string {
	random := make([]byte, 6)
	rand.Read(random) //nolint:errcheck // never fails: the runtime aborts instead
	return "cat-" + short(s.Principal) + "-" + short(s.Table) + "-" + hex.EncodeToString(random)
}

func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// sessionKey covers everything that shapes a session, the caller included.
func sessionKey(profile vending.Profile, s vending.Scope) (string, error) {
	text, err := json.Marshal([]any{profile, s})
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "the storage profile of warehouse %s cannot be encoded", s.WarehouseName())
	}
	sum := sha256.Sum256(text)
	return string(sum[:]), nil
}
