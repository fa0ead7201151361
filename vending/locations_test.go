package vending_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"catalogd/internal/fault"
	"catalogd/vending"
)

const tableUUID = "0191f3a0-5b7e-7c3d-9a51-6f0f2f9b1c55"

func TestCanonical_OneSpellingOrRefusal(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"s3://bucket/a", "s3://bucket/a"},
		{"s3://bucket/a/", "s3://bucket/a"},
		{"s3a://bucket/a/" + tableUUID, "s3a://bucket/a/" + tableUUID},
		{"s3n://buc.ket_1/a b/c=d+e~f", "s3n://buc.ket_1/a b/c=d+e~f"},
		{"file:/tmp/x", "file:///tmp/x"},
		{"file:///tmp/x/", "file:///tmp/x"},
	} {
		got, err := vending.Canonical(c.in)
		if err != nil || got != c.want {
			t.Errorf("Canonical(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}

func TestCanonical_Refuses(t *testing.T) {
	for _, in := range []string{
		"", "/", "a", "/tmp/x", "bucket/a", "http://h/a", "https://169.254.169.254/latest", "gs://b/a", "S3://bucket/a", "s3:/bucket/a", "s3:bucket/a",
		"s3://", "s3:///a", "s3://bu/a", "s3://bucket", "s3://bucket/", "s3://bucket//", "s3://bucket//a", "s3://bucket/a//",
		"s3://bucket/a//b", "s3://bucket/../a", "s3://bucket/a/..", "s3://bucket/a/.", "s3://bucket/./a", "s3://bucket/a/../b",
		"s3://bucket/%2e%2e/a", "s3://bucket/a%2fb", `s3://bucket/a\b`, "s3://bucket/a?b", "s3://bucket/a#b", "s3://bucket/*", "s3://bucket/a*",
		"s3://bucket/${aws:username}", "s3://bucket/$a", "s3://bucket/a\x00", "s3://bucket/a\nb", "s3://bucket/a\tb", "s3://bucket/a\x7f",
		"s3://bucket/é", "s3://bucket/e\u0301", "s3://bucket/\u202e", "s3://bucket/a /b", "s3://bucket/ a", "s3://bucket/a ", "s3://user@bucket/a",
		"s3://bucket:9000/a", "s3://.bucket/a", "s3://bu..cket/a", "s3://arn:aws:s3:::x/a", "s3://*/a",
		"file:", "file:x", "file://", "file:///", "file:/", "file://host/x", "file:////x", "file:///x/../y", "file:///x//y", "file:///x%2fy",
		"file:///x/" + strings.Repeat("y", 256) + "/z",
		"s3://bucket/" + strings.Repeat("a", 900),
	} {
		got, err := vending.Canonical(in)
		if !fault.Is(err, fault.BadRequest) {
			t.Errorf("Canonical(%q) = %q, %v; want a refusal", in, got, err)
		}
	}
}

func TestCanonicalBase_AcceptsAWholeBucket(t *testing.T) {
	got, err := vending.CanonicalBase("s3://bucket/")
	if err != nil || got != "s3://bucket" {
		t.Errorf("CanonicalBase = %q, %v", got, err)
	}
	for _, in := range []string{"file:///", "s3://bucket//", "s3://"} {
		if _, err := vending.CanonicalBase(in); !fault.Is(err, fault.BadRequest) {
			t.Errorf("CanonicalBase(%q): %v; want a refusal", in, err)
		}
	}
}

func TestWithin_IsSlashTerminatedAndKnowsSchemes(t *testing.T) {
	for _, c := range []struct {
		base, location string
		want           bool
	}{
		{"s3://bucket/t1", "s3://bucket/t1", true},
		{"s3://bucket/t1", "s3://bucket/t1/", true},
		{"s3://bucket/t1", "s3://bucket/t1/data/x.parquet", true},
		{"s3://bucket/t1", "s3a://bucket/t1/x", true},
		{"s3n://bucket/t1", "s3://bucket/t1/x", true},
		{"s3://bucket", "s3://bucket/t1", true},
		{"s3://bucket/t1", "s3://bucket/t1/p=%2F..%2F/é =x+y/z$.parquet", true},
		{"s3://bucket/t1", "s3://bucket/t10", false},
		{"s3://bucket/t1", "s3://bucket/t10/x", false},
		{"s3://bucket/t1", "s3://bucket/t", false},
		{"s3://bucket/t1", "s3://bucket/T1/x", false},
		{"s3://bucket/t1", "s3://other/t1/x", false},
		{"s3://bucket/t1", "s3://bucket/t1/../t2/x", false},
		{"s3://bucket/t1", "s3://bucket/t1/./x", false},
		{"s3://bucket/t1", "s3://bucket/t1/..", false},
		{"s3://bucket/t1", `s3://bucket/t1/..\t2`, false},
		{"s3://bucket/t1", "s3://bucket/t1/x?versionId=1", false},
		{"s3://bucket/t1", "s3://bucket/t1/x#y", false},
		{"s3://bucket/t1", "s3://bucket/t1/a\x00", false},
		{"s3://bucket/t1", "file:///bucket/t1/x", false},
		{"s3://bucket/t1", "bucket/t1/x", false},
		{"file:///w/t1", "file:/w/t1/x", true},
		{"file:/w/t1", "file:///w/t1/x", true},
		{"file:///w/t1", "/w/t1/x", false},
		{"file:///w/t1", "file:///w/t1/../t2", false},
		{"file:///w/t1", "file:///w/t10/x", false},
		{"", "s3://bucket/t1", false},
		{"s3://bucket/*", "s3://bucket/*/x", false},
	} {
		if got := vending.Within(c.base, c.location); got != c.want {
			t.Errorf("Within(%q, %q) = %v; want %v", c.base, c.location, got, c.want)
		}
	}
}

func TestKey_IsOneSpellingForOnePlace(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"s3://bucket/a", "s3://bucket/a/"},
		{"s3a://bucket/a/", "s3://bucket/a/"},
		{"s3n://bucket/A", "s3://bucket/a/"},
		{"s3://bucket", "s3://bucket/"},
		{"file:/tmp/x", "file:///tmp/x/"},
		{"file:///tmp/x", "file:///tmp/x/"},
	} {
		if got := vending.Key(c.in); got != c.want {
			t.Errorf("Key(%q) = %q; want %q", c.in, got, c.want)
		}
	}
}

func TestPlain_IsOneSpellingForOneFile(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"s3a://bucket/t/metadata/v1.metadata.json", "s3://bucket/t/metadata/v1.metadata.json"},
		{"s3n://bucket/t//Metadata/v1", "s3://bucket/t//Metadata/v1"}, // another object than with one slash
		{"file:/w/t/metadata/v1", "file:///w/t/metadata/v1"},
		{"file:///w/t///metadata//v1", "file:///w/t/metadata/v1"},
		{"file:////w/t/metadata/v1", "file:///w/t/metadata/v1"},
		{"gs://x", "gs://x"},
	} {
		if got := vending.Plain(c.in); got != c.want {
			t.Errorf("Plain(%q) = %q; want %q", c.in, got, c.want)
		}
	}
	for _, all := range [][]string{
		{"s3://bucket/t/v1", "s3a://bucket/t/v1", "s3n://bucket/t/v1"}, {"file:///t/v1", "file:/t/v1"}, {"gs://x"},
	} {
		for _, one := range all {
			if got := vending.Spellings(one); !slices.Equal(got, all) {
				t.Errorf("Spellings(%q) = %v", one, got)
			}
		}
	}
}

// anyLocation draws strings near the edge between what is allowed and what is not.
func anyLocation() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		scheme := rapid.SampledFrom([]string{"s3://bucket", "s3a://bucket", "s3n://bucket", "file://", "file:", "s3://"}).Draw(t, "scheme")
		segment := rapid.SampledFrom([]string{"a", "t1", "t10", "..", ".", "", "%2e%2e", "A", "é", "*", "$", "a b", "x?", "\\", tableUUID, "\x00"})
		tail := rapid.SampledFrom([]string{"", "/", "//"}).Draw(t, "tail")
		return scheme + "/" + strings.Join(rapid.SliceOfN(segment, 0, 4).Draw(t, "segments"), "/") + tail
	})
}

func TestCanonical_IsStableAndNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := anyLocation().Draw(t, "location")
		once, err := vending.Canonical(in)
		if err != nil {
			return
		}
		twice, err := vending.Canonical(once)
		if err != nil || twice != once {
			t.Fatalf("Canonical(%q) = %q, but Canonical of that = %q, %v", in, once, twice, err)
		}
		if strings.HasSuffix(once, "/") || strings.Contains(once, "..") || strings.ContainsAny(once, `*?$%#\`) {
			t.Fatalf("Canonical(%q) = %q", in, once)
		}
		if !vending.Within(once, in) || !vending.Within(once, once+"/x") || vending.Within(once, once+"x/y") {
			t.Fatalf("Within disagrees with Canonical on %q", in)
		}
		if vending.Key(in) != vending.Key(once) {
			t.Fatalf("Key(%q) = %q, Key(%q) = %q", in, vending.Key(in), once, vending.Key(once))
		}
	})
}
