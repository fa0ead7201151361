package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSettings_PrecedenceHoldsForEveryKey gives each key a value at all sets of places and expects the strongest to win and
// to be named as the source.
func TestSettings_PrecedenceHoldsForEveryKey(t *testing.T) {
	values := func(s setting) []string {
		switch {
		case s.toggle:
			return []string{"true", "false", "true"}
		case s.key == "log.level":
			return []string{"debug", "warn", "error"}
		case s.document:
			issuer := `[{"url":"https://%s","audiences":["a"]}]`
			return []string{fmt.Sprintf(issuer, "one"), fmt.Sprintf(issuer, "two"), fmt.Sprintf(issuer, "three")}
		case s.key == "log.format":
			return []string{"json", "text", "json"}
		case s.key == "maintenance.memory" || s.key == "cache.metadata":
			return []string{"64MiB", "65MiB", "1GiB"}
		case s.key == "tokens.rotate_after":
			return []string{"3600", "7200", "0"}
		case s.number:
			return []string{"20", "21", "22"}
		case s.key == "listen" || s.key == "ops_listen":
			return []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}
		case s.key == "trusted_proxies":
			return []string{"10.0.0.0/8", "10.1.0.0/16", "::1/128"}
		case s.key == "tokens.algorithm":
			return []string{"RS256", "EdDSA", "RS256"}
		case s.key == "public_url":
			return []string{"http://a", "http://b", "http://c"}
		default:
			return []string{"one", "two", "three"}
		}
	}
	for _, s := range settings {
		given := values(s)
		for where := range 8 { // a bit for each place that it is given in
			in := inputs{flags: map[string]string{}, fileName: "f.yaml"}
			want, source := s.show(ptr(defaultConfig())), ""
			if where&1 != 0 {
				in.file = fmt.Appendf(nil, "%s: %q\n", s.key, given[0])
				want, source = given[0], "file f.yaml line 1"
			}
			if where&2 != 0 {
				in.environ = []string{envName(s.key) + "=" + given[1]}
				want, source = given[1], "environment "+envName(s.key)
			}
			if where&4 != 0 {
				in.flags[s.key] = given[2]
				want, source = given[2], "flag --"+flagName(s.key)
			}
			c, err := loadConfig(in)
			if err != nil {
				t.Fatalf("%s: %v", s.key, err)
			}
			if got := s.show(&c); got != want || c.sources[s.key] != source {
				t.Fatalf("%s is %q from %q, want %q from %q", s.key, got, c.sources[s.key], want, source)
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestSettings_NamesAreDistinct: two keys must not share a variable or a flag (a_b and a.b would).
func TestSettings_NamesAreDistinct(t *testing.T) {
	seen := map[string]string{}
	for _, s := range settings {
		for _, name := range []string{envName(s.key), flagName(s.key)} {
			if other, twice := seen[name]; twice {
				t.Errorf("%s and %s are both called %s", s.key, other, name)
			}
			seen[name] = s.key
		}
		if slices.Contains(reservedVariables, envName(s.key)) {
			t.Errorf("%s is a client's variable", envName(s.key))
		}
	}
}

// TestConfig_PrintedFormIsReadBack: what --print-config writes is a configuration file of the same values.
func TestConfig_PrintedFormIsReadBack(t *testing.T) {
	first, err := loadConfig(inputs{environ: []string{
		"CATALOGD_DATABASE_URL=file:/run/secrets/url", "CATALOGD_SECRETS_PREVIOUS_KEYS=file:/a,env:B", "CATALOGD_LOG_LEVEL=debug",
		`CATALOGD_IDENTITY_ISSUERS=[{"url":"https://idp/realms/x","audiences":["a","b"],"name_prefix":"k: #1 ","create_principals":false}]`, "CATALOGD_MAINTENANCE_MEMORY=1000000000", "CATALOGD_PUBLIC_URL=https://lake.example/", "CATALOGD_MAINTENANCE_SCRATCH=/tmp/a: b # c",
	}})
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	first.print(&printed)
	second, err := loadConfig(inputs{file: []byte(printed.String()), fileName: "printed"})
	if err != nil {
		t.Fatalf("%v\n%s", err, printed.String())
	}
	for _, s := range settings {
		if a, b := s.show(&first), s.show(&second); a != b {
			t.Errorf("%s: %q was read back as %q", s.key, a, b)
		}
	}
	if first.PublicURL != "https://lake.example" {
		t.Errorf("the slash at the end stayed: %s", first.PublicURL)
	}
}

// A server that asks nobody who he is must be meant, twice where others reach it, and says so.
func TestConfig_OpenServersAreMeantAndLoud(t *testing.T) {
	load := func(flags map[string]string) (Config, error) { return loadConfig(inputs{flags: flags}) }
	c, err := load(map[string]string{"open.principal": "trial"})
	if err != nil || !strings.Contains(strings.Join(c.warnings(), "\n"), "THIS SERVER IS OPEN: open.principal takes requests without a token for those of principal trial") {
		t.Errorf("%v, warned of %q", err, c.warnings())
	}
	for _, reached := range []struct{ key, value, says string }{
		{"listen", "0.0.0.0:8181", "everybody who reaches 0.0.0.0:8181 would be principal trial"},
		{"listen", "[::]:8181", "everybody who reaches [::]:8181"},
		{"listen", ":8181", "everybody who reaches :8181"},
		{"listen", "lake.internal:8181", "everybody who reaches lake.internal:8181"},
		{"public_url", "https://lake.example.com", "everybody who reaches https://lake.example.com"},
		{"trusted_proxies", "127.0.0.1/32", "everybody who reaches its trusted_proxies"},
	} {
		flags := map[string]string{"open.principal": "trial", reached.key: reached.value}
		if _, err := load(flags); err == nil || !strings.Contains(err.Error(), reached.says) {
			t.Errorf("%s=%s: %v", reached.key, reached.value, err)
		}
		flags["open.public"] = "true"
		if c, err := load(flags); err != nil || !strings.Contains(strings.Join(c.warnings(), "\n"), "THIS SERVER IS OPEN") {
			t.Errorf("%s=%s, meant: %v", reached.key, reached.value, err)
		}
	}
	for _, kept := range []string{"127.0.0.1:0", "[::1]:8181", "localhost:8181"} {
		if _, err := load(map[string]string{"open.principal": "trial", "listen": kept, "public_url": "http://" + kept}); err != nil {
			t.Errorf("%s: %v", kept, err)
		}
	}
	c, err = load(map[string]string{"open.public": "true"})
	if err != nil || c.Open.Principal != "" || strings.Contains(strings.Join(c.warnings(), "\n"), "OPEN") {
		t.Errorf("open.public alone opens nothing: %v, %q", err, c.warnings())
	}
}

func TestConfig_UnknownVariablesAreNamedAndReservedOnesAreNot(t *testing.T) {
	environ := []string{
		"CATALOGD_SERVICE_HOST=10.0.0.1", "CATALOGD_PORT=tcp://10.0.0.1", "CATALOGD_LISTENN=hunter2", "CATALOG_URI=http://x", "CATALOGD_EMPTY=",
		"CATALOGD_MANAGEMENT_URL=http://x", "CATALOGD_LOGLEVEL=debug", "CATALOGD_CRASH_POINT=x",
	}
	for _, name := range reservedVariables {
		environ = append(environ, name+"=something")
	}
	c, err := loadConfig(inputs{environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	if want := []unknownVariable{
		{"CATALOGD_CRASH_POINT", ""}, {"CATALOGD_LISTENN", "CATALOGD_LISTEN"}, {"CATALOGD_LOGLEVEL", "CATALOGD_LOG_LEVEL"},
		{"CATALOGD_MANAGEMENT_URL", "CATALOGD_MANAGEMENT_URI"}, {"CATALOGD_PORT", ""}, {"CATALOGD_SERVICE_HOST", ""},
	}; !slices.Equal(c.unknown, want) {
		t.Errorf("named are %v, want %v", c.unknown, want)
	}
	warnings := strings.Join(c.warnings(), "\n")
	if !strings.Contains(warnings, "CATALOGD_LISTENN begins like a setting but is none, and is ignored; did you mean CATALOGD_LISTEN?") ||
		strings.Contains(warnings, "hunter2") || strings.Contains(warnings, "something") {
		t.Errorf("the warnings are:\n%s", warnings)
	}
	if len(c.sources) != 0 {
		t.Errorf("values came from %v", slices.Sorted(maps.Keys(c.sources)))
	}
}

// Whatever the program, its demo and its documents read or name is known: nobody who follows them is warned.
func TestConfig_VariablesThatAreReadAreKnown(t *testing.T) {
	seen := 0
	for _, pattern := range []string{"*.go", "../../internal/pgserver/*.go", "../../demo/*", "../../docs/*.md", "../../README.md", "../../Makefile"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.IsDir() || strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`CATALOGD_[A-Z_]*[A-Z]`).FindAllString(string(text), -1) {
				seen++
				if len(unknownVariables([]string{name + "=x"})) > 0 {
					t.Errorf("%s names %s, of which a server warns", file, name)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d variables were found", seen)
	}
}

func TestMaskSecret(t *testing.T) {
	for value, want := range map[string]string{
		"":                            "",
		"file:/run/secrets/key":       "file:/run/secrets/key",
		"env:DB_URL":                  "env:DB_URL",
		"c2VjcmV0":                    "***",
		"postgres://u:p@h:5/d?a=b":    "postgres://u:***@h:5/d?a=b",
		"postgres://u@h/d":            "postgres://u@h/d",
		"postgres://h/d?password=p":   "***",
		"host=h password=p dbname=d":  "***",
		"postgres://u:p@h/d?x=%zz":    "postgres://u:***@h/d?x=%zz",
		"postgres://u:p%40ss@h/d":     "postgres://u:***@h/d",
		"postgres://user:pa ss@h/d":   "***",
		"postgres://h/d?sslpassword=": "***",
	} {
		if got := maskSecret(value); got != want {
			t.Errorf("maskSecret(%q) = %q, want %q", value, got, want)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "12": 12, "12B": 12, "1KiB": 1024, "256MiB": 256 << 20, "2 GiB": 2 << 30, "3MB": 3e6, "1GB": 1e9, "7KB": 7e3,
	} {
		if got, err := parseBytes(text); err != nil || got != want {
			t.Errorf("parseBytes(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1TiB", "9223372036854775807GiB", "x"} {
		if got, err := parseBytes(text); err == nil {
			t.Errorf("parseBytes(%q) = %d, want a refusal", text, got)
		}
	}
}

// FuzzConfigFile: no file makes the reader panic, and a refusal never repeats a secret.
func FuzzConfigFile(f *testing.F) {
	f.Add("listen: x")
	f.Add("database: {url: 'postgres://u:hunter2@h/d'}\nsecrets:\n  key: hunter2\n")
	f.Add("a: &a [*a]")
	f.Add("? [x]\n: y")
	f.Fuzz(func(t *testing.T, body string) {
		c, err := loadConfig(inputs{file: []byte(body), fileName: "f"})
		if err == nil {
			c.print(new(strings.Builder))
		}
	})
}

// A plain listener on a public address is allowed, because a proxy may stand before it, but never silently.
func TestField_C261_PlainHTTPOnAPublicAddressIsSaid(t *testing.T) {
	for _, c := range []struct {
		listen, ops, public string
		want                int
	}{
		{"127.0.0.1:8181", "127.0.0.1:8182", "", 0},
		{"[::1]:8181", "localhost:8182", "", 0},
		{"0.0.0.0:8181", "127.0.0.1:8182", "", 1},
		{":8181", "127.0.0.1:8182", "", 1},
		{"10.0.0.5:8181", "127.0.0.1:8182", "http://lake.example", 1},
		{"0.0.0.0:8181", "127.0.0.1:8182", "https://lake.example", 0},
		{"0.0.0.0:8181", "0.0.0.0:8182", "", 2},
		{"catalog.internal:8181", "127.0.0.1:8182", "", 1},
	} {
		config := defaultConfig()
		config.Listen, config.OpsListen, config.PublicURL = c.listen, c.ops, c.public
		if got := config.warnings(); len(got) != c.want {
			t.Errorf("%s, %s, %q: %d warnings, want %d: %q", c.listen, c.ops, c.public, len(got), c.want, got)
		}
	}
}
