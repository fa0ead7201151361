package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"catalogd/internal/spelling"
)

// setting is one key of the configuration: the one place that says how it is called, read and shown. The name in
// the file is the key, in the environment CATALOGD_ and the key in capitals with underscores, as a flag the key
// with dashes.
type setting struct {
	key    string
	help   string
	secret bool // file: and env: references are followed, the value is never shown
	list   bool
	toggle bool // a flag without a value means true
	number bool // shown without quotes
	// document: the value is a list of mappings, read and shown as such
	document bool
	show     func(c *Config) string
	set      func(c *Config, value string) error
}

// settings is THE table of keys; order is the order of --print-config. Keys of one section stand together.
var settings = []setting{
	text("listen", "HOST:PORT of the API; port 0 takes a free one", func(c *Config) *string { return &c.Listen }),
	text("ops_listen", "HOST:PORT of /healthz, /readyz and /metrics; keep it private", func(c *Config) *string { return &c.OpsListen }),
	webAddress("public_url", "URL that clients reach the server at, when a proxy stands before it", func(c *Config) *string { return &c.PublicURL }),
	networks("trusted_proxies", "networks (CIDR) of the proxies before the server, whose X-Forwarded-For and Forwarded headers are believed", func(c *Config) *[]netip.Prefix { return &c.TrustedProxies }),
	secret("database.url", "Postgres URL", func(c *Config) *string { return &c.Database.URL }),
	secret("database.direct_url", "Postgres URL that bypasses a pooler, for migrations and notifications", func(c *Config) *string { return &c.Database.DirectURL }),
	toggle("database.migrate", "bring an older schema up to date at start", func(c *Config) *bool { return &c.Database.Migrate }),
	number("database.max_conns", "connections to Postgres at most", func(c *Config) *int { return &c.Database.MaxConns }),
	toggle("database.pooler", "database.url leads through a transaction pooler: prepare no statements", func(c *Config) *bool { return &c.Database.Pooler }),
	secret("secrets.key", "32 bytes in base64 that encrypt secrets at rest", func(c *Config) *string { return &c.Secrets.Key }),
	secrets("secrets.previous_keys", "older keys that still decrypt, for rotation", func(c *Config) *[]string { return &c.Secrets.PreviousKeys }),
	seconds("tokens.ttl", "life of access tokens in seconds", func(c *Config) *time.Duration { return &c.Tokens.TTL }),
	text("tokens.algorithm", "EdDSA or RS256: what new signing keys are for", func(c *Config) *string { return &c.Tokens.Algorithm }),
	seconds("tokens.rotate_after", "age in seconds at which a signing key is succeeded by another by itself; 0: never", func(c *Config) *time.Duration { return &c.Tokens.RotateAfter }),
	issuerList("identity.issuers", "identity providers whose tokens are good here", func(c *Config) *[]IssuerConfig { return &c.Identity.Issuers }),
	text("open.principal", "for trials: whose requests without a token are taken to be; without it they are refused", func(c *Config) *string { return &c.Open.Principal }),
	toggle("open.public", "open.principal holds where others than this machine reach the server, too", func(c *Config) *bool { return &c.Open.Public }),
	toggle("maintenance.embedded", "serve runs a maintenance worker too", func(c *Config) *bool { return &c.Maintenance.Embedded }),
	size("maintenance.memory", "memory of a compaction, for example 192MiB", func(c *Config) *int64 { return &c.Maintenance.Memory }),
	text("maintenance.scratch", "folder of the worker's temporary files", func(c *Config) *string { return &c.Maintenance.Scratch }),
	toggle("storage.allow_file", "warehouses may be folders of the server's own disk", func(c *Config) *bool { return &c.Storage.AllowFile }),
	size("cache.metadata", "memory for tables' metadata, for example 64MiB", func(c *Config) *int64 { return &c.Cache.Metadata }),
	level("log.level", "debug, info, warn or error", func(c *Config) *slog.Level { return &c.Log.Level }),
	text("log.format", "json or text", func(c *Config) *string { return &c.Log.Format }),
	toggle("audit.log", "write each row of the audit to standard output too, as a line of JSON", func(c *Config) *bool { return &c.Audit.Log }),
	toggle("webhooks.allow_private", "webhooks may be at addresses that are not public, and without TLS", func(c *Config) *bool { return &c.Webhooks.AllowPrivate }),
	number("retention.audit", "days that rows of the audit stay; 0: for ever", func(c *Config) *int { return &c.Retention.Audit }),
	number("retention.events", "days that events stay; 0: for ever", func(c *Config) *int { return &c.Retention.Events }),
	number("retention.jobs", "days that finished jobs stay; 0: for ever", func(c *Config) *int { return &c.Retention.Jobs }),
	number("retention.metrics", "days that clients' metrics reports stay; 0: as long as their number allows", func(c *Config) *int { return &c.Retention.Metrics }),
	seconds("shutdown.delay", "seconds that serve stays open after SIGTERM while readiness says no", func(c *Config) *time.Duration { return &c.Shutdown.Delay }),
	seconds("shutdown.grace", "seconds that requests and jobs may go on after SIGTERM", func(c *Config) *time.Duration { return &c.Shutdown.Grace }),
}

// envPrefix begins all our variables.
const envPrefix = "CATALOGD_"

func envName(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func flagName(key string) string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(key)
}

// Variables with our prefix that belong to clients, to `dev` or to tests: nobody warns of them. Those that ask a build for
// crashes are not among them, because an ordinary build does nothing about them.
var reservedVariables = []string{
	"CATALOGD_CONFIG", "CATALOGD_PAT", "CATALOGD_MANAGEMENT_URI", "CATALOGD_DEV_DATABASE_URL", "CATALOGD_OPS_URI",
	"CATALOGD_ROOT_CREDENTIAL", "CATALOGD_POSTGRES_BIN", "CATALOGD_BIN",
}

// inputs are the places that a configuration is read from, weakest first.
type inputs struct {
	file     []byte // content of the configuration file; nil: none
	fileName string
	environ  []string          // NAME=value
	flags    map[string]string // key -> value, only those that were given
}

// loadConfig merges flags over environment over file over defaults, and checks the result.
func loadConfig(in inputs) (Config, error) {
	c := defaultConfig()
	if in.file != nil {
		if err := c.readFile(in.file, in.fileName); err != nil {
			return Config{}, err
		}
	}
	if err := c.readEnvironment(in.environ); err != nil {
		return Config{}, err
	}
	for _, key := range slices.Sorted(maps.Keys(in.flags)) {
		if err := c.set(key, in.flags[key], "flag --"+flagName(key)); err != nil {
			return Config{}, err
		}
	}
	return c, c.validate()
}

func settingOf(key string) (setting, bool) {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key })
	if i < 0 {
		return setting{}, false
	}
	return settings[i], true
}

// set gives one key a value and remembers where it came from.
func (c *Config) set(key, value, source string) error {
	s, known := settingOf(key)
	if !known {
		return unknownKey(key, source)
	}
	if err := s.set(c, value); err != nil {
		return &problem{Key: key + " (" + source + ")", Wrong: err.Error()}
	}
	c.sources[key] = source
	return nil
}

func (c *Config) readEnvironment(environ []string) error {
	byName := make(map[string]string, len(settings))
	for _, s := range settings {
		byName[envName(s.key)] = s.key
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if key, known := byName[name]; known && value != "" {
			if err := c.set(key, value, "environment "+name); err != nil {
				return err
			}
		}
	}
	c.unknown = unknownVariables(environ)
	return nil
}

// unknownVariable is one with our prefix that means nothing to anybody.
type unknownVariable struct {
	name string
	near string // what was probably meant; "" when nothing is like it
}

// warning says it without the value, which may be a secret in the wrong place.
func (v unknownVariable) warning() string {
	text := "the variable " + v.name + " begins like a setting but is none, and is ignored"
	if v.near != "" {
		text += "; did you mean " + v.near + "?"
	}
	return text
}

// unknownVariables gives those of the environment, by name. Kubernetes adds some for a service that is called catalogd, so
// they cannot be an error. An empty variable counts as unset: compose files pass variables on that way.
func unknownVariables(environ []string) []unknownVariable {
	known := make([]string, 0, len(settings)+len(reservedVariables))
	for _, s := range settings {
		known = append(known, strings.TrimPrefix(envName(s.key), envPrefix))
	}
	for _, name := range reservedVariables {
		known = append(known, strings.TrimPrefix(name, envPrefix))
	}
	var all []unknownVariable
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		word, ours := strings.CutPrefix(name, envPrefix)
		if !ours || value == "" || slices.Contains(known, word) {
			continue
		}
		v := unknownVariable{name: name}
		if near := spelling.Nearest(word, known); near != "" {
			v.near = envPrefix + near
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b unknownVariable) int { return strings.Compare(a.name, b.name) })
	return all
}

// warnOfVariables tells whoever types a command of variables that were meant for it and are ignored. Those that are like
// nothing we know are left to the servers' logs: in a pod each command would name the same ones of Kubernetes.
func (c *call) warnOfVariables() {
	for _, v := range unknownVariables(c.Environ) {
		if v.near != "" {
			fmt.Fprintf(c.Err, "%s: %s\n", c.Name, v.warning())
		}
	}
}

func (c *Config) readFile(body []byte, name string) error {
	var document yaml.Node
	if err := yaml.Unmarshal(body, &document); err != nil {
		return fmt.Errorf("configuration file %s: %w", name, err)
	}
	if len(document.Content) == 0 {
		return nil // empty, or comments only
	}
	return c.readMapping(document.Content[0], "", name)
}

func (c *Config) readMapping(node *yaml.Node, prefix, name string) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("configuration file %s, line %d: wanted are keys and values", name, node.Line)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := prefix+node.Content[i].Value, node.Content[i+1]
		source := fmt.Sprintf("file %s line %d", name, node.Content[i].Line)
		if value.Kind == yaml.MappingNode {
			if !isSection(key) {
				return unknownKey(key, source)
			}
			if err := c.readMapping(value, key+".", name); err != nil {
				return err
			}
			continue
		}
		if earlier, twice := c.sources[key]; twice {
			return &problem{Key: key, Wrong: "is given twice: " + earlier + " and " + source}
		}
		if err := c.readLeaf(key, value, source); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) readLeaf(key string, value *yaml.Node, source string) error {
	s, known := settingOf(key)
	switch {
	case !known:
		return unknownKey(key, source)
	case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
		return nil // `key:` with nothing behind it leaves the default
	case value.Kind == yaml.ScalarNode:
		return c.set(key, value.Value, source)
	case value.Kind == yaml.SequenceNode && s.document:
		text, err := yaml.Marshal(value)
		if err != nil {
			return &problem{Key: key + " (" + source + ")", Wrong: err.Error()}
		}
		return c.set(key, string(text), source)
	case value.Kind == yaml.SequenceNode && s.list:
		var items []string
		if err := value.Decode(&items); err != nil {
			return &problem{Key: key + " (" + source + ")", Wrong: "wanted is a list of texts"}
		}
		return c.set(key, strings.Join(items, ","), source)
	default:
		return &problem{Key: key + " (" + source + ")", Wrong: "wanted is one value"}
	}
}

func isSection(key string) bool {
	return slices.ContainsFunc(settings, func(s setting) bool { return strings.HasPrefix(s.key, key+".") })
}

// unknownKey names the key and, when one is near, what was probably meant.
func unknownKey(key, source string) error {
	p := &problem{Key: key, Wrong: "unknown key (" + source + ")"}
	known := make([]string, 0, len(settings))
	for _, s := range settings {
		known = append(known, s.key)
		if section, _, has := strings.Cut(s.key, "."); has && !slices.Contains(known, section) {
			known = append(known, section)
		}
	}
	if near := spelling.Nearest(key, known); near != "" {
		p.Remedy = "did you mean " + near + "?"
	}
	return p
}

// print shows the merged configuration as YAML with the source of each value as its comment; secrets masked.
func (c *Config) print(w io.Writer) {
	section := ""
	for _, s := range settings {
		name, indent := s.key, ""
		if in, rest, has := strings.Cut(s.key, "."); has {
			if in != section {
				fmt.Fprintf(w, "%s:\n", in)
				section = in
			}
			name, indent = rest, "  "
		}
		source := c.sources[s.key]
		if source == "" {
			source = "default"
		}
		fmt.Fprintf(w, "%s%s: %s # %s\n", indent, name, s.printable(c), source)
	}
}

// printable gives the value as YAML.
func (s setting) printable(c *Config) string {
	value := s.show(c)
	if s.toggle || s.number || s.document {
		return value
	}
	if !s.secret {
		return yamlScalar(value)
	}
	if !s.list {
		return yamlScalar(maskSecret(value))
	}
	items := []string{}
	for _, item := range splitList(value) {
		items = append(items, yamlScalar(maskSecret(item)))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func yamlScalar(value string) string {
	body, err := yaml.Marshal(value)
	if err != nil {
		return strconv.Quote(value)
	}
	return strings.Trim(strings.TrimSpace(string(body)), "\n")
}

func splitList(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
