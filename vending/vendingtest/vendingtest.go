// Package vendingtest attacks vended credentials. One suite for every object store: what the scope names works, and
// everything beside it is refused and leaves no trace. Each refusal has a twin that succeeds by the same code, so a
// broken request cannot pass for a refused one.
package vendingtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"catalogd/vending"
)

// Fixture is a provider with a real store behind it.
type Fixture struct {
	Provider vending.Provider
	// Short gives sessions that end by themselves within seconds.
	Short   vending.Provider
	Profile vending.Profile
	Bucket  string // empty, inside the role's reach
	Foreign string // another bucket
	Admin   *s3.Client
	// Client and STS are the store as the holder of credentials sees it, without retries.
	Client func(vending.Credentials) *s3.Client
	STS    func(vending.Credentials) *sts.Client
}

// Tables of the suite. The second one's name begins with the first's.
const (
	mine    = "w/t1"
	sibling = "w/t10"
	other   = "w/t2"
)

// suite is a fixture within one test.
type suite struct {
	Fixture
	t *testing.T
}

// Levels: readers read, writers write and delete, nobody does more.
func Levels(t *testing.T, f Fixture) { run(t, f, suite.levels) }

// Lists: the table's own prefix with its slash, nothing shorter.
func Lists(t *testing.T, f Fixture) { run(t, f, suite.lists) }

// Attacks: everything that somebody with a table's keys may try beside the table.
func Attacks(t *testing.T, f Fixture) {
	for name, test := range map[string]func(suite){
		"Outside": suite.outside, "Copy": suite.copies, "DeleteObjects": suite.deletesPerKey, "Multipart": suite.multipart,
		"Presigned": suite.presigned, "PathTricks": suite.pathTricks, "Bucket": suite.bucket, "Tokens": suite.tokens,
		"AssumeAgain": suite.assumesAgain,
	} {
		t.Run(name, func(t *testing.T) { run(t, f, test) })
	}
}

// Expiry: a session ends at the time that it names.
func Expiry(t *testing.T, f Fixture) { run(t, f, suite.expires) }

func run(t *testing.T, f Fixture, test func(suite)) {
	t.Helper()
	s := suite{f, t}
	for _, key := range []string{mine + "/data/a", mine + "/data/b", sibling + "/data/v", other + "/data/v", "w/t1x", "root", mine} {
		s.plant(f.Bucket, key)
	}
	s.plant(f.Foreign, mine+"/data/a")
	test(s)
}

func (s suite) ctx() context.Context { return s.t.Context() }

func (s suite) vend(access vending.Access) *s3.Client {
	s.t.Helper()
	return s.Client(s.credentials(s.Provider, mine, access))
}

func (s suite) credentials(p vending.Provider, table string, access vending.Access) vending.Credentials {
	s.t.Helper()
	c, err := p.Vend(s.ctx(), s.Profile, vending.Scope{
		Warehouse: "warehouse", Table: table, Principal: s.t.Name(), Location: "s3://" + s.Bucket + "/" + table, Access: access,
	})
	if err != nil {
		s.t.Fatalf("vend: %v", err)
	}
	return c
}

func (s suite) plant(bucket, key string) { s.must(put(s.ctx(), s.Admin, bucket, key, "victim")) }

func (s suite) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// intact fails unless the victim is there as it was planted.
func (s suite) intact(bucket, key string) {
	s.t.Helper()
	body, err := get(s.ctx(), s.Admin, bucket, key)
	if err != nil || body != "victim" {
		s.t.Errorf("victim %s/%s is %q, %v", bucket, key, body, err)
	}
}

// absent fails when there is an object of that name.
func (s suite) absent(bucket, key string) {
	s.t.Helper()
	if body, err := get(s.ctx(), s.Admin, bucket, key); err == nil {
		s.t.Errorf("%s/%s was written: %q", bucket, key, body)
	}
}

func (s suite) allowed(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("%s is refused: %v", what, err)
	}
}

// refused wants the store's refusal, not any error. A token that has ended is 400 on AWS.
func (s suite) refused(what string, err error) {
	s.t.Helper()
	var response *smithyhttp.ResponseError
	if !errors.As(err, &response) {
		s.t.Errorf("%s: the store did not refuse: %v", what, err)
		return
	}
	var api smithy.APIError
	status := response.HTTPStatusCode()
	ended := status == http.StatusBadRequest && errors.As(err, &api) && (api.ErrorCode() == "ExpiredToken" || api.ErrorCode() == "InvalidToken")
	if status != http.StatusForbidden && !ended {
		s.t.Errorf("%s: got %v, want 403", what, err)
	}
}

func put(ctx context.Context, c *s3.Client, bucket, key, body string) error {
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body)})
	return err
}

func get(ctx context.Context, c *s3.Client, bucket, key string) (string, error) {
	out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return "", err
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	return string(body), err
}

func remove(ctx context.Context, c *s3.Client, bucket, key string) error {
	_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	return err
}

func list(ctx context.Context, c *s3.Client, bucket string, prefix *string) ([]string, error) {
	out, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: prefix})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range out.Contents {
		names = append(names, *o.Key)
	}
	return names, nil
}

func copyObject(ctx context.Context, c *s3.Client, bucket, from, to string) error {
	_, err := c.CopyObject(ctx, &s3.CopyObjectInput{Bucket: &bucket, Key: &to, CopySource: aws.String(bucket + "/" + from)})
	return err
}

func removeMany(ctx context.Context, c *s3.Client, bucket string, keys ...string) (refused []string, err error) {
	var objects []types.ObjectIdentifier
	for _, key := range keys {
		objects = append(objects, types.ObjectIdentifier{Key: &key})
	}
	out, err := c.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket, Delete: &types.Delete{Objects: objects}})
	if err != nil {
		return nil, err
	}
	for _, e := range out.Errors {
		refused = append(refused, aws.ToString(e.Key))
	}
	return refused, nil
}

// part is of the smallest size that a part may have which is not the last.
var part = bytes.Repeat([]byte{'p'}, 5<<20)
