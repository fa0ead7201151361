package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/maintenance/layout"
)

// Config is everything that a server, a worker and the commands that open Postgres can be told. It is read here and
// nowhere else: other packages receive values. settings.go has the table of keys.
type Config struct {
	Listen    string // address of the API
	OpsListen string // address of health and metrics; never a public one
	PublicURL string // what clients are told behind a proxy, without a trailing slash; "" derives it from Listen

	// TrustedProxies are networks of proxies that say where requests come from.
	TrustedProxies []netip.Prefix

	Database    DatabaseConfig
	Secrets     SecretsConfig
	Tokens      TokensConfig
	Identity    IdentityConfig
	Open        OpenConfig
	Maintenance MaintenanceConfig
	Storage     StorageConfig
	Cache       CacheConfig
	Log         LogConfig
	Audit       AuditConfig
	Webhooks    WebhooksConfig
	Retention   RetentionConfig
	Shutdown    ShutdownConfig

	auditTo io.Writer // where the lines of the audit go, when there are any

	sources map[string]string // key -> where its value came from; a key that is missing has its default
	unknown []unknownVariable // worth a warning
}

// DatabaseConfig says how Postgres is reached. URLs are as given: maybe file: or env: references.
type DatabaseConfig struct {
	URL       string
	DirectURL string // for migrations and LISTEN when URL leads through a pooler; "" means URL
	Migrate   bool
	MaxConns  int
	Pooler    bool // URL leads through a transaction pooler: no prepared statements
}

// SecretsConfig has the keys that secrets at rest are encrypted with: base64 of 32 bytes, or references.
type SecretsConfig struct {
	Key          string
	PreviousKeys []string
}

// TokensConfig is about access tokens.
type TokensConfig struct {
	TTL         time.Duration
	Algorithm   string        // of new signing keys: auth.AlgorithmEdDSA or auth.AlgorithmRS256
	RotateAfter time.Duration // age at which a signing key is succeeded by itself; 0: never
}

// IdentityConfig is about who else may say who somebody is.
type IdentityConfig struct {
	Issuers []IssuerConfig
}

// OpenConfig opens a server to everybody, for trials.
type OpenConfig struct {
	Principal string // whose requests without a token are taken to be; "": they are refused
	Public    bool   // also where others than this machine reach the server
}

// CacheConfig bounds what is kept in memory.
type CacheConfig struct {
	Metadata int64 // bytes of metadata documents
}

// MaintenanceConfig is about the worker.
type MaintenanceConfig struct {
	Embedded bool   // serve runs a worker too
	Memory   int64  // bytes a compaction may hold in memory
	Scratch  string // folder of sort runs; "" means the system's temporary folder
}

// StorageConfig is about the kinds of storage that warehouses may use.
type StorageConfig struct {
	AllowFile bool // file: warehouses: a server that shares its disk with its clients
}

// LogConfig is about the log on standard error.
type LogConfig struct {
	Level  slog.Level
	Format string // json or text
}

// AuditConfig is about the audit beside its table.
type AuditConfig struct {
	Log bool // a line on standard output for each row
}

// WebhooksConfig is about where events are sent.
type WebhooksConfig struct {
	AllowPrivate bool // receivers in networks that are not public, and such without TLS
}

// RetentionConfig says how many days records stay; 0 keeps them for ever.
type RetentionConfig struct {
	Audit, Events, Jobs, Metrics int
}

// ShutdownConfig is about the end of a server.
type ShutdownConfig struct {
	Delay time.Duration // how long a server is open after SIGTERM while readiness says no; a balancer learns of it meanwhile
	Grace time.Duration // how long requests and jobs may go on after that
}

// Bounds of settings; docs/operations.md promises them.
const (
	secretKeyBytes     = 32
	tokenTTLMin        = 10 * time.Second
	tokenTTLMax        = 24 * time.Hour
	databaseConnsMin   = 2
	databaseConnsMax   = 1000
	metadataCacheMin   = 1 << 20
	metadataCacheMax   = 64 << 30
	workerMemoryMin    = 64 << 20
	shutdownGraceMax   = 10 * time.Minute
	shutdownDelayMax   = 10 * time.Minute
	secretFileBytesMax = 64 << 10
	retentionDaysMax   = 36500
)

// defaultConfig is the configuration of somebody who sets nothing.
func defaultConfig() Config {
	return Config{
		Listen:      "127.0.0.1:8181",
		OpsListen:   "127.0.0.1:8182",
		Database:    DatabaseConfig{MaxConns: 16},
		Tokens:      TokensConfig{TTL: time.Hour, Algorithm: auth.AlgorithmEdDSA},
		Maintenance: MaintenanceConfig{Embedded: true, Memory: layout.MemoryBytesDefault},
		Cache:       CacheConfig{Metadata: 64 << 20},
		Log:         LogConfig{Level: slog.LevelInfo, Format: "json"},
		Retention:   RetentionConfig{Audit: 400, Events: 30, Jobs: 90, Metrics: 30},
		Shutdown:    ShutdownConfig{Grace: 30 * time.Second},
		sources:     map[string]string{},
	}
}

// problem is a refusal to start that names the key, what is wrong and what to do.
type problem struct {
	Key    string
	Wrong  string
	Remedy string
}

func (p *problem) Error() string {
	text := p.Key + ": " + p.Wrong
	if p.Remedy != "" {
		text += "; " + p.Remedy
	}
	return text
}

// validate checks what can be checked without touching anything. All problems are reported at once.
func (c *Config) validate() error {
	var all []error
	add := func(key, wrong, remedy string) { all = append(all, &problem{Key: key, Wrong: wrong, Remedy: remedy}) }
	for key, address := range map[string]string{"listen": c.Listen, "ops_listen": c.OpsListen} {
		if _, _, err := net.SplitHostPort(address); err != nil {
			add(key, fmt.Sprintf("%q is not HOST:PORT", address), "")
		}
	}
	if authz.Open && !onLoopback(c.Listen) {
		add("listen", "this build checks nobody and serves loopback alone", "build it without the tag openbench")
	}
	if public := c.reachedFrom(); c.Open.Principal != "" && public != "" && !c.Open.Public {
		add("open.principal", fmt.Sprintf("everybody who reaches %s would be principal %s, without any token", public, c.Open.Principal),
			"listen on 127.0.0.1 without a proxy before it, leave open.principal away, or say open.public: true if it is meant")
	}
	if c.PublicURL != "" {
		u, err := url.Parse(c.PublicURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" {
			add("public_url", fmt.Sprintf("%q is not an http or https URL", c.PublicURL), "")
		}
	}
	if c.Tokens.TTL < tokenTTLMin || c.Tokens.TTL > tokenTTLMax {
		add("tokens.ttl", fmt.Sprintf("%d is outside %d to %d seconds",
			int(c.Tokens.TTL.Seconds()), int(tokenTTLMin.Seconds()), int(tokenTTLMax.Seconds())), "")
	}
	if c.Tokens.Algorithm != auth.AlgorithmEdDSA && c.Tokens.Algorithm != auth.AlgorithmRS256 {
		add("tokens.algorithm", fmt.Sprintf("%q is neither %s nor %s", c.Tokens.Algorithm, auth.AlgorithmEdDSA, auth.AlgorithmRS256), "")
	}
	if c.Tokens.RotateAfter != 0 && c.Tokens.RotateAfter < auth.KeyRotationMin {
		add("tokens.rotate_after", fmt.Sprintf("a key cannot be succeeded before it is %d seconds old", int(auth.KeyRotationMin.Seconds())), "0 turns it off")
	}
	if c.Database.MaxConns < databaseConnsMin || c.Database.MaxConns > databaseConnsMax {
		add("database.max_conns", fmt.Sprintf("%d is outside %d to %d", c.Database.MaxConns, databaseConnsMin, databaseConnsMax), "")
	}
	if c.Maintenance.Memory < workerMemoryMin {
		add("maintenance.memory", fmt.Sprintf("%d bytes are too few", c.Maintenance.Memory), "give 64MiB at least")
	}
	if c.Cache.Metadata < metadataCacheMin || c.Cache.Metadata > metadataCacheMax {
		add("cache.metadata", formatBytes(c.Cache.Metadata)+" is outside 1MiB to 64GiB", "")
	}
	if _, err := c.issuers(); err != nil {
		all = append(all, err)
	}
	if c.Log.Format != "json" && c.Log.Format != "text" {
		add("log.format", fmt.Sprintf("%q is neither json nor text", c.Log.Format), "")
	}
	for key, days := range map[string]int{
		"retention.audit": c.Retention.Audit, "retention.events": c.Retention.Events, "retention.jobs": c.Retention.Jobs, "retention.metrics": c.Retention.Metrics,
	} {
		if days < 0 || days > retentionDaysMax {
			add(key, fmt.Sprintf("%d is outside 0 to %d days", days, retentionDaysMax), "")
		}
	}
	if c.Shutdown.Delay < 0 || c.Shutdown.Delay > shutdownDelayMax {
		add("shutdown.delay", fmt.Sprintf("outside 0 to %d seconds", int(shutdownDelayMax.Seconds())), "")
	}
	if c.Shutdown.Grace < 0 || c.Shutdown.Grace > shutdownGraceMax {
		add("shutdown.grace", fmt.Sprintf("outside 0 to %d seconds", int(shutdownGraceMax.Seconds())), "")
	}
	return errors.Join(all...)
}

// warnings are what a configuration says that is allowed but rarely meant.
func (c *Config) warnings() []string {
	var all []string
	for _, v := range c.unknown {
		all = append(all, v.warning())
	}
	if !onLoopback(c.Listen) && !strings.HasPrefix(c.PublicURL, "https://") {
		all = append(all, "listen is "+c.Listen+": secrets and tokens cross the network in the clear unless a proxy with TLS "+
			"stands before this server; name it by public_url: https://…")
	}
	if c.Open.Principal != "" {
		all = append(all, "THIS SERVER IS OPEN: open.principal takes requests without a token for those of principal "+c.Open.Principal+
			", with all its rights; leave it away for anything but a trial")
	}
	if !onLoopback(c.OpsListen) {
		all = append(all, "ops_listen is "+c.OpsListen+": health and metrics ask nobody who they are; keep that address private")
	}
	return all
}

// reachedFrom names that by which others than this machine reach the server, directly or by a proxy; "" when the configuration knows
// of nothing.
func (c *Config) reachedFrom() string {
	u, err := url.Parse(c.PublicURL)
	switch {
	case !onLoopback(c.Listen):
		return c.Listen
	case c.PublicURL != "" && (err != nil || !onLoopback(net.JoinHostPort(u.Hostname(), "0"))):
		return c.PublicURL
	case len(c.TrustedProxies) > 0:
		return "its trusted_proxies"
	}
	return ""
}

// onLoopback tells whether an address can be reached from this machine alone. A name that is no address counts as
// public: what it means is decided elsewhere.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// databaseURL gives the connection string of the pool, and the one of migrations.
func (c *Config) databaseURL() (pooled, direct string, err error) {
	if c.Database.URL == "" {
		return "", "", &problem{"database.url", "is not set", "give a Postgres URL in the configuration file, in " +
			envName("database.url") + " or by --database-url, for example postgres://catalogd@db.internal/catalogd"}
	}
	if pooled, err = resolveSecret("database.url", c.Database.URL); err != nil {
		return "", "", err
	}
	if c.Database.DirectURL == "" {
		return pooled, pooled, nil
	}
	direct, err = resolveSecret("database.direct_url", c.Database.DirectURL)
	return pooled, direct, err
}

// secretKeys gives the key that encrypts, and those that only decrypt.
func (c *Config) secretKeys() (current []byte, previous [][]byte, err error) {
	if c.Secrets.Key == "" {
		return nil, nil, &problem{"secrets.key", "is not set", "give 32 random bytes in base64 as file:PATH or env:NAME " +
			"(head -c 32 /dev/urandom | base64 makes one), in the configuration file, in " + envName("secrets.key") +
			" or by --secrets-key; keep it: what is encrypted with it is lost without it"}
	}
	if current, err = decodeKey("secrets.key", c.Secrets.Key); err != nil {
		return nil, nil, err
	}
	for _, reference := range c.Secrets.PreviousKeys {
		key, err := decodeKey("secrets.previous_keys", reference)
		if err != nil {
			return nil, nil, err
		}
		previous = append(previous, key)
	}
	return current, previous, nil
}

// decodeKey resolves a reference and decodes it. The message never has the value.
func decodeKey(key, reference string) ([]byte, error) {
	text, err := resolveSecret(key, reference)
	if err != nil {
		return nil, err
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if raw, err := encoding.DecodeString(text); err == nil {
			if len(raw) != secretKeyBytes {
				return nil, &problem{key, fmt.Sprintf("has %d bytes, wanted are %d", len(raw), secretKeyBytes),
					"head -c 32 /dev/urandom | base64 makes a good one"}
			}
			return raw, nil
		}
	}
	return nil, &problem{key, "is not base64", "wanted are 32 bytes in base64, or file:PATH or env:NAME that lead to them"}
}

// resolveSecret follows file:PATH and env:NAME, one step. Anything else is the secret itself.
func resolveSecret(key, value string) (string, error) {
	if path, found := strings.CutPrefix(value, "file:"); found {
		body, err := readSmallFile(path)
		if err != nil {
			return "", &problem{key, err.Error(), "the server's user must be able to read that file"}
		}
		value = strings.TrimRight(body, "\r\n")
		if value == "" {
			return "", &problem{key, "the file " + path + " is empty", ""}
		}
		return value, nil
	}
	if name, found := strings.CutPrefix(value, "env:"); found {
		if value = os.Getenv(name); value == "" {
			return "", &problem{key, "the variable " + name + " that it names is not set", ""}
		}
	}
	return value, nil
}

func readSmallFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.Size() > secretFileBytesMax {
		return "", fmt.Errorf("the file %s has %d bytes, more than a secret has", path, info.Size())
	}
	body, err := os.ReadFile(path)
	return string(body), err
}

// maskSecret makes a value printable: references stay, passwords of URLs and everything else become ***.
func maskSecret(value string) string {
	if value == "" || strings.HasPrefix(value, "file:") || strings.HasPrefix(value, "env:") {
		return value
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Query().Has("password") || u.Query().Has("sslpassword") {
		return "***"
	}
	if _, has := u.User.Password(); has {
		// Redacted would write xxxxx; the rest of the output says ***.
		return u.Scheme + "://" + url.PathEscape(u.User.Username()) + ":***@" + u.Host + u.RequestURI()
	}
	return value
}
