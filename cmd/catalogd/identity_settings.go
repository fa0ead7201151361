package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"catalogd/auth/external"
	"catalogd/internal/fault"
	"catalogd/internal/spelling"
)

// issuerKeys are the keys of an issuer, for the message about one that is none.
var issuerKeys = []string{"url", "audiences", "name_claim", "groups_claim", "name_prefix", "roles", "unknown_groups", "algorithms",
	"jwks_url", "jwks", "ca_file", "create_principals"}

// IssuerConfig is one identity provider, as docs/identity.md explains. References are as given.
type IssuerConfig struct {
	URL              string     `yaml:"url" json:"url"`
	Audiences        []string   `yaml:"audiences" json:"audiences"`
	NameClaim        string     `yaml:"name_claim" json:"name_claim,omitempty"`
	GroupsClaim      string     `yaml:"groups_claim" json:"groups_claim,omitempty"`
	NamePrefix       string     `yaml:"name_prefix" json:"name_prefix,omitempty"`
	Roles            []RoleRule `yaml:"roles" json:"roles,omitempty"`
	UnknownGroups    string     `yaml:"unknown_groups" json:"unknown_groups,omitempty"` // ignore (the default) or refuse
	Algorithms       []string   `yaml:"algorithms" json:"algorithms,omitempty"`
	KeysURL          string     `yaml:"jwks_url" json:"jwks_url,omitempty"`
	KeySet           string     `yaml:"jwks" json:"jwks,omitempty"` // a JWKS, or file: or env: that lead to one
	CAFile           string     `yaml:"ca_file" json:"ca_file,omitempty"`
	CreatePrincipals *bool      `yaml:"create_principals" json:"create_principals,omitempty"` // nil: true
}

// RoleRule turns a group into a principal role: one of Group and Pattern is given.
type RoleRule struct {
	Group   string `yaml:"group" json:"group,omitempty"`
	Pattern string `yaml:"pattern" json:"pattern,omitempty"`
	Role    string `yaml:"role" json:"role"`
}

// issuerList is the setting of a list of issuers: YAML in the file, and the same or JSON as one text elsewhere.
func issuerList(key, help string, field func(*Config) *[]IssuerConfig) setting {
	return setting{key: key, help: help + "; a list in the file, YAML or JSON as one text elsewhere", document: true,
		show: func(c *Config) string {
			if len(*field(c)) == 0 {
				return "[]"
			}
			text, err := json.Marshal(*field(c))
			if err != nil { // texts and lists of them
				panic(err)
			}
			return string(text)
		},
		set: func(c *Config, value string) error {
			issuers, err := parseIssuers(value)
			if err == nil {
				*field(c) = issuers
			}
			return err
		},
	}
}

func parseIssuers(text string) ([]IssuerConfig, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var issuers []IssuerConfig
	err := decoder.Decode(&issuers)
	var wrong *yaml.TypeError
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil
	case errors.As(err, &wrong):
		return nil, errors.New(strings.Join(wrong.Errors, "; ") + nearIssuerKey(wrong.Errors))
	case err != nil:
		return nil, fmt.Errorf("wanted is a list of issuers, each with url and audiences: %w", err)
	}
	return issuers, nil
}

// nearIssuerKey guesses what was meant by a key that an issuer does not have.
func nearIssuerKey(problems []string) string {
	for _, problem := range problems {
		_, rest, found := strings.Cut(problem, "field ")
		if !found {
			continue
		}
		if near := spelling.Nearest(strings.Fields(rest + " ")[0], issuerKeys); near != "" {
			return "; did you mean " + near + "?"
		}
	}
	return ""
}

// issuers makes what verifies the tokens of the configured providers, nil where there are none. It asks nobody anything.
func (c *Config) issuers() ([]external.Config, error) {
	var all []external.Config
	for i, configured := range c.Identity.Issuers {
		key := fmt.Sprintf("identity.issuers[%d]", i)
		e := external.Config{
			URL: configured.URL, Audiences: configured.Audiences, NameClaim: configured.NameClaim, GroupsClaim: configured.GroupsClaim,
			NamePrefix: configured.NamePrefix, Algorithms: configured.Algorithms, KeysURL: configured.KeysURL,
			CreatePrincipals: configured.CreatePrincipals == nil || *configured.CreatePrincipals,
		}
		for _, r := range configured.Roles {
			e.Rules = append(e.Rules, external.Rule(r))
		}
		switch configured.UnknownGroups {
		case "", "ignore":
		case "refuse":
			e.RefuseUnknownGroups = true
		default:
			return nil, &problem{key, fmt.Sprintf("unknown_groups %q is neither ignore nor refuse", configured.UnknownGroups), ""}
		}
		keySet, err := resolveSecret(key+" jwks", configured.KeySet)
		if err != nil {
			return nil, err
		}
		e.KeySet = bytes.TrimSpace([]byte(keySet))
		if configured.CAFile != "" {
			ca, err := readSmallFile(configured.CAFile)
			if err != nil {
				return nil, &problem{key + " ca_file", err.Error(), "name a file of certificates in PEM that the server's user can read"}
			}
			e.CA = []byte(ca)
		}
		all = append(all, e)
	}
	if _, err := external.New(external.Settings{Issuers: all}); err != nil {
		return nil, &problem{"identity.issuers", fault.Message(err), ""}
	}
	return all, nil
}
