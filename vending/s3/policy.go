package s3

import (
	"encoding/json"
	"strings"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// policyCharactersMax is the token service's limit for an inline session policy.
const policyCharactersMax = 2048

// Actions on objects. Writers delete what they abort or leave empty, and upload in parts.
var (
	readActions  = []string{"s3:GetObject"}
	writeActions = []string{
		"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts",
	}
)

type policyDocument struct {
	Version   string
	Statement []statement
}

type statement struct {
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string][]string `json:",omitempty"`
}

// policyFor gives the session policy of a scope: objects below the location, slash-terminated, and their listing. It
// is pure. The bucket's location stands alone, for a condition on the prefix would never match it.
func policyFor(s vending.Scope, partition string) (string, error) {
	bucket, prefix, err := place(s.Location)
	if err != nil {
		return "", err
	}
	var actions []string
	switch s.Access {
	case vending.Read:
		actions = readActions
	case vending.ReadWrite:
		actions = writeActions
	default:
		return "", fault.New(fault.Internal, "no policy gives access %q", s.Access)
	}
	arn := "arn:" + partition + ":s3:::" + bucket
	document := policyDocument{Version: "2012-10-17", Statement: []statement{
		{Effect: "Allow", Action: actions, Resource: []string{arn + "/" + prefix + "*"}},
		{
			Effect: "Allow", Action: []string{"s3:ListBucket"}, Resource: []string{arn},
			Condition: map[string]map[string][]string{"StringLike": {"s3:prefix": {prefix + "*"}}},
		},
		{Effect: "Allow", Action: []string{"s3:GetBucketLocation"}, Resource: []string{arn}},
	}}
	return encode(document)
}

// place gives bucket and slash-terminated prefix of a location that is fit for a policy: wildcards and variables
// would widen it, and no store that we know understands escapes for them.
func place(location string) (bucket, prefix string, err error) {
	canonical, err := vending.Canonical(location)
	if err != nil {
		return "", "", fault.Wrap(fault.Internal, err, "no credentials can be made for location %q", location)
	}
	bucket, key, ok := vending.SplitS3(canonical)
	if !ok || key == "" {
		return "", "", fault.New(fault.Internal, "no credentials can be made for location %q: it is not below an S3 bucket", location)
	}
	return bucket, key + "/", nil
}

func encode(document policyDocument) (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return "", fault.Wrap(fault.Internal, err, "the session policy cannot be written")
	}
	policy := strings.TrimSuffix(text.String(), "\n")
	if len(policy) > policyCharactersMax {
		return "", fault.New(fault.Internal, "the session policy is %d characters long; at most %d are allowed", len(policy), policyCharactersMax)
	}
	return policy, nil
}

// partitionOf gives the partition of a role's ARN; the policy's resources must be of the same.
func partitionOf(roleARN string) (string, bool) {
	parts := strings.SplitN(roleARN, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "iam" || !strings.HasPrefix(parts[5], "role/") || len(parts[5]) < 6 {
		return "", false
	}
	partition := parts[1]
	for i := range len(partition) {
		if c := partition[i]; c != '-' && (c < 'a' || c > 'z') {
			return "", false
		}
	}
	return partition, partition != ""
}
