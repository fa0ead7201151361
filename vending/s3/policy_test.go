package s3

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"catalogd/internal/fault"
	"catalogd/vending"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew")

const location = "s3://warehouse-1/base/0191f3a0-5b7e-7c3d-9a51-6f0f2f9b1c55"

func policyOf(t testing.TB, l string, a vending.Access) string {
	t.Helper()
	text, err := policyFor(vending.Scope{Location: l, Access: a}, "aws")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPolicy_Golden(t *testing.T) {
	for name, scope := range map[string]vending.Scope{
		"read":       {Location: location, Access: vending.Read},
		"read-write": {Location: location, Access: vending.ReadWrite},
	} {
		got, err := policyFor(scope, "aws")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".golden")
		if *rewrite {
			if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got+"\n" != string(want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

// objectActions are all that S3 knows of objects, as far as they matter.
var objectActions = []string{
	"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts",
	"s3:GetObjectVersion", "s3:DeleteObjectVersion", "s3:PutObjectAcl", "s3:GetObjectAcl", "s3:PutObjectTagging", "s3:GetObjectTagging",
	"s3:BypassGovernanceRetention", "s3:PutObjectRetention", "s3:RestoreObject",
}

var bucketActions = []string{
	"s3:ListBucketVersions", "s3:ListBucketMultipartUploads", "s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucket", "s3:PutBucketAcl",
	"s3:GetBucketVersioning", "s3:PutBucketVersioning", "s3:PutLifecycleConfiguration",
}

var granted = map[vending.Access]map[string]bool{
	vending.Read: {"s3:GetObject": true},
	vending.ReadWrite: {
		"s3:GetObject": true, "s3:PutObject": true, "s3:DeleteObject": true, "s3:AbortMultipartUpload": true, "s3:ListMultipartUploadParts": true,
	},
}

// keyNear draws keys that a mistake in the policy would let through.
func keyNear(t *rapid.T, prefix string) string {
	trimmed := strings.TrimSuffix(prefix, "/")
	switch rapid.IntRange(0, 8).Draw(t, "near") {
	case 0:
		return prefix + rapid.String().Draw(t, "below")
	case 1:
		return trimmed + rapid.StringN(1, 5, 20).Draw(t, "beside")
	case 2:
		return trimmed
	case 3:
		return strings.ToUpper(prefix) + "x"
	case 4:
		return trimmed[:len(trimmed)-1] + "/x"
	case 5:
		return "x/" + prefix + "x"
	case 6:
		return strings.Replace(prefix, "/", "//", 1) + "x"
	case 7:
		i := strings.LastIndex(trimmed, "/") + 1
		return trimmed[:i] + rapid.StringMatching(`[0-9a-f]{8}`).Draw(t, "other") + "/x"
	}
	return rapid.String().Draw(t, "anything")
}

func canonicalLocation(t *rapid.T) string {
	segment := rapid.StringMatching(`[ -~]{1,30}`)
	parts := rapid.SliceOfN(segment, 1, 4).Draw(t, "segments")
	bucket := rapid.StringMatching(`[a-z0-9][a-z0-9.-]{1,30}[a-z0-9]`).Draw(t, "bucket")
	canonical, err := vending.Canonical("s3://" + bucket + "/" + strings.Join(parts, "/"))
	if err != nil { // no client may choose that: the same with harmless characters
		other := regexp.MustCompile(`[^a-z0-9]`)
		harmless := "s3://" + other.ReplaceAllString(bucket, "x")
		for _, part := range parts {
			harmless += "/" + other.ReplaceAllString(part, "x")
		}
		if canonical, err = vending.Canonical(harmless); err != nil {
			t.Fatal(err)
		}
	}
	return canonical
}

func TestPolicy_AllowsExactlyTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := location
		if rapid.Bool().Draw(t, "chosen by a client") {
			l = canonicalLocation(t)
		}
		access := rapid.SampledFrom([]vending.Access{vending.Read, vending.ReadWrite}).Draw(t, "access")
		partition := rapid.SampledFrom([]string{"aws", "aws-cn", "aws-us-gov"}).Draw(t, "partition")
		text, err := policyFor(vending.Scope{Location: l, Access: access}, partition)
		if err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		for i := range len(text) {
			if text[i] < 0x20 || text[i] > 0x7e {
				t.Fatalf("the policy holds the byte %#x", text[i])
			}
		}
		if len(text) > policyCharactersMax {
			t.Fatalf("%d characters", len(text))
		}
		e := parsePolicy(t, text)
		bucket, prefix, err := place(l)
		if err != nil {
			t.Fatal(err)
		}
		arn := "arn:" + partition + ":s3:::" + bucket
		key := keyNear(t, prefix)
		inside := strings.HasPrefix(key, prefix)
		for _, action := range objectActions {
			want := inside && granted[access][action]
			if got := e.allows(request{action: action, resource: arn + "/" + key}); got != want {
				t.Fatalf("%s on %q with a policy for %q: %v", action, key, prefix, got)
			}
			if e.allows(request{action: action, resource: arn + "x/" + key}) {
				t.Fatalf("%s in another bucket", action)
			}
		}
		list := request{action: "s3:ListBucket", resource: arn, values: map[string]string{"s3:prefix": key}}
		if got := e.allows(list); got != inside {
			t.Fatalf("list %q with a policy for %q: %v", key, prefix, got)
		}
		if e.allows(request{action: "s3:ListBucket", resource: arn}) {
			t.Fatal("list without a prefix")
		}
		if !e.allows(request{action: "s3:GetBucketLocation", resource: arn}) {
			t.Fatal("the bucket's location is refused")
		}
		for _, action := range bucketActions {
			if e.allows(request{action: action, resource: arn, values: map[string]string{"s3:prefix": prefix}}) {
				t.Fatalf("%s is allowed", action)
			}
		}
	})
}

func TestPolicy_RefusesWhatWouldWiden(t *testing.T) {
	for _, l := range []string{
		"", "s3://bucket", "s3://bucket/", "s3://bucket/*", "s3://bucket/a*/b", "s3://bucket/a?", "s3://bucket/${aws:username}", "s3://bucket/a$",
		"s3://bucket/a\"b\n", "s3://bucket/é", "s3://bucket/a\x00", "s3://bucket/a/../b", "s3://bucket//a", "file:///a", "s3://*/a",
	} {
		if text, err := policyFor(vending.Scope{Location: l, Access: vending.Read}, "aws"); err == nil {
			t.Errorf("location %q got the policy %s", l, text)
		}
	}
	if text, err := policyFor(vending.Scope{Location: location}, "aws"); err == nil {
		t.Errorf("no access got the policy %s", text)
	}
}

// C168: whatever a warehouse accepts as a location fits a policy, and what does not fit is refused with its reason.
func TestField_C168_LongLocations(t *testing.T) {
	longest := "s3://" + strings.Repeat("b", 63) + "/"
	longest += strings.Repeat("k", 700-len(longest))
	for _, access := range []vending.Access{vending.Read, vending.ReadWrite} {
		text, err := policyFor(vending.Scope{Location: longest, Access: access}, "aws-us-gov")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s at %d bytes of location: %d characters", access, len(longest), len(text))
	}
	_, err := policyFor(vending.Scope{Location: "s3://bucket/" + strings.Repeat("k", 900), Access: vending.ReadWrite}, "aws")
	if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "at most 700") {
		t.Fatalf("got %v", err)
	}
	t.Logf("a generated location's policy has %d characters", len(policyOf(t, location, vending.ReadWrite)))
}

func TestPartition_FollowsTheRole(t *testing.T) {
	for arn, want := range map[string]string{
		"arn:aws:iam::123456789012:role/x":        "aws",
		"arn:aws-cn:iam::123456789012:role/p/x":   "aws-cn",
		"arn:aws-us-gov:iam::123456789012:role/x": "aws-us-gov",
	} {
		if got, ok := partitionOf(arn); !ok || got != want {
			t.Errorf("partitionOf(%q) = %q, %v", arn, got, ok)
		}
	}
	for _, arn := range []string{"", "role/x", "arn:aws:iam::1:user/x", "arn:aws:sts::1:role/x", "arn::iam::1:role/x", `arn:a":iam::1:role/x`, "arn:aws:iam::1:role/"} {
		if got, ok := partitionOf(arn); ok {
			t.Errorf("partitionOf(%q) = %q", arn, got)
		}
	}
}
