package s3

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// evaluator is a strict reading of the policy language, for the store of our tests is lax where it matters here: it
// matches resources without regard to case and knows no escapes. What this evaluator does not know matches nothing.
type evaluator struct {
	Version   string
	Statement []struct {
		Effect    string
		Action    []string
		Resource  []string
		Condition map[string]map[string][]string
	}
}

// request is one thing that somebody wants to do.
type request struct {
	action   string
	resource string
	values   map[string]string // of condition keys
}

// fatal is testing's and rapid's T.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

func parsePolicy(t fatal, text string) evaluator {
	t.Helper()
	var e evaluator
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		t.Fatalf("the policy is not what the evaluator reads: %v\n%s", err, text)
	}
	if e.Version != "2012-10-17" {
		t.Fatalf("version %q has no policy variables", e.Version)
	}
	return e
}

// allows is Deny first, then Allow, else no.
func (e evaluator) allows(r request) bool {
	allowed := false
	for _, s := range e.Statement {
		applies := slices.ContainsFunc(s.Action, func(p string) bool { return matches(strings.ToLower(p), strings.ToLower(r.action)) }) &&
			slices.ContainsFunc(s.Resource, func(p string) bool { return matches(p, r.resource) }) &&
			holds(s.Condition, r.values)
		switch {
		case applies && s.Effect == "Deny":
			return false
		case applies && s.Effect == "Allow":
			allowed = true
		}
	}
	return allowed
}

func holds(condition map[string]map[string][]string, values map[string]string) bool {
	for operator, keys := range condition {
		for key, patterns := range keys {
			value, present := values[key]
			if !present {
				return false
			}
			switch operator {
			case "StringLike":
				if !slices.ContainsFunc(patterns, func(p string) bool { return matches(p, value) }) {
					return false
				}
			case "StringEquals":
				if !slices.Contains(patterns, value) {
					return false
				}
			default:
				return false
			}
		}
	}
	return true
}

// matches knows `*`, `?` and the escapes `${*}`, `${?}`, `${$}`; any other variable matches nothing.
func matches(pattern, text string) bool {
	for len(pattern) > 0 {
		switch {
		case pattern[0] == '*':
			for i := 0; i <= len(text); i++ {
				if matches(pattern[1:], text[i:]) {
					return true
				}
			}
			return false
		case strings.HasPrefix(pattern, "${"):
			if len(pattern) < 4 || pattern[3] != '}' || !strings.ContainsRune("*?$", rune(pattern[2])) {
				return false
			}
			if text == "" || text[0] != pattern[2] {
				return false
			}
			pattern, text = pattern[4:], text[1:]
		case text == "":
			return false
		case pattern[0] == '?' || pattern[0] == text[0]:
			pattern, text = pattern[1:], text[1:]
		default:
			return false
		}
	}
	return text == ""
}

func TestEvaluator_ReadsPoliciesStrictly(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a/*", "a/", true}, {"a/*", "a/b/c", true}, {"a/*", "a", false}, {"a/*", "A/b", false}, {"a?c", "abc", true}, {"a?c", "ac", false},
		{"a${*}c", "a*c", true}, {"a${*}c", "abc", false}, {"a${?}", "a?", true}, {"a${$}", "a$", true}, {"${aws:username}", "x", false}, {"*", "", true},
	} {
		if got := matches(c.pattern, c.text); got != c.want {
			t.Errorf("matches(%q, %q) = %v", c.pattern, c.text, got)
		}
	}
	e := parsePolicy(t, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:*"],"Resource":["*"]},{"Effect":"Deny","Action":["s3:PutObject"],"Resource":["x"]}]}`)
	if !e.allows(request{action: "s3:GetObject", resource: "x"}) || e.allows(request{action: "s3:PutObject", resource: "x"}) {
		t.Error("a deny does not win")
	}
}
