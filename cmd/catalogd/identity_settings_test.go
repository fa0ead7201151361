package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"catalogd/internal/oidctest"
)

const issuerFile = `
identity:
  issuers:
    - url: https://sso.example.com/realms/data
      audiences: [catalogd]
      groups_claim: realm_access.roles
      name_prefix: "kc:"
      roles:
        - {group: admins, role: lake_admins}
        - {pattern: "lake-(.+)", role: "$1"}
      unknown_groups: refuse
      algorithms: [RS256]
      create_principals: false
    - url: http://127.0.0.1:9/
      audiences: [a, b]
`

func TestIssuers_AreReadFromTheFile(t *testing.T) {
	c, err := loadConfig(inputs{file: []byte(issuerFile), fileName: "f.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.issuers()
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if first := all[0]; first.URL != "https://sso.example.com/realms/data" || first.NamePrefix != "kc:" || !first.RefuseUnknownGroups ||
		first.CreatePrincipals || len(first.Rules) != 2 || first.Rules[1].Pattern != "lake-(.+)" || first.Algorithms[0] != "RS256" {
		t.Errorf("the first issuer is %+v", first)
	}
	if second := all[1]; second.URL != "http://127.0.0.1:9/" || !second.CreatePrincipals || len(second.Audiences) != 2 {
		t.Errorf("the second issuer is %+v", second)
	}
}

func TestIssuers_MistakesAreNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	for text, want := range map[string]string{
		`[{url: "https://idp"}]`:                                               "audiences is empty",
		`[{url: "https://idp", audience: [a]}]`:                                "did you mean audiences?",
		`[{url: "http://idp", audiences: [a]}]`:                                "must be https",
		`[{url: "https://idp", audiences: [a], algorithms: [HS256]}]`:          "HS256",
		`[{url: "https://idp", audiences: a}]`:                                 "cannot unmarshal",
		`{url: "https://idp"}`:                                                 "cannot unmarshal",
		`[{url: "https://idp", audiences: [a], unknown_groups: x}]`:            "neither ignore nor refuse",
		`[{url: "https://idp", audiences: [a], jwks: "file:` + missing + `"}]`: missing,
		`[{url: "https://idp", audiences: [a], ca_file: "` + missing + `"}]`:   missing,
	} {
		_, err := loadConfig(inputs{environ: []string{envName("identity.issuers") + "=" + text}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "identity.issuers") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The keys of a provider that cannot be asked may be given, in the file or beside it.
func TestIssuers_KeysMayBeGiven(t *testing.T) {
	idp := oidctest.New(t, "ES256")
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(path, idp.KeySet(), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig(inputs{environ: []string{envName("identity.issuers") + `=[{url: "https://kubernetes.default.svc", audiences: [a], jwks: "file:` + path + `"}]`}})
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.issuers()
	if err != nil || !bytes.Equal(all[0].KeySet, bytes.TrimSpace(idp.KeySet())) {
		t.Errorf("%s, %v", all[0].KeySet, err)
	}
}

func TestDoctor_AsksIssuers(t *testing.T) {
	idp := oidctest.New(t, "ES256")
	gone := oidctest.New(t, "ES256")
	gone.Answer(oidctest.DiscoveryPath, nil)
	c := defaultConfig()
	c.Identity.Issuers = []IssuerConfig{{URL: idp.URL, Audiences: []string{"a"}}, {URL: gone.URL + "/realms/none", Audiences: []string{"a"}}}
	var out bytes.Buffer
	d := &doctor{config: c, out: &out}
	d.checkIssuers(t.Context())
	if text := out.String(); d.failed != 1 || d.checks != 2 || !strings.Contains(text, idp.URL+": 1 keys") ||
		!strings.Contains(text, gone.URL+"/realms/none"+oidctest.DiscoveryPath+" answers 404") {
		t.Errorf("%d of %d failed:\n%s", d.failed, d.checks, text)
	}
}
