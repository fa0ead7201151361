package vendingtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"catalogd/vending"
)

// emptyHash is the SHA-256 of no bytes.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// writeVerbs are all ways to change an object. Each is tried where it must work and where it must not.
func (s suite) writeVerbs() map[string]func(c *s3.Client, key string) error {
	ctx, bucket := s.ctx(), s.Bucket
	return map[string]func(c *s3.Client, key string) error{
		"put": func(c *s3.Client, key string) error { return put(ctx, c, bucket, key, "x") },
		"conditional put": func(c *s3.Client, key string) error {
			_, err := c.PutObject(ctx, &s3.PutObjectInput{
				Bucket: &bucket, Key: aws.String(key + "-new"), Body: strings.NewReader("x"), IfNoneMatch: aws.String("*"),
			})
			return err
		},
		"copy": func(c *s3.Client, key string) error { return copyObject(ctx, c, bucket, mine+"/data/b", key) },
		"multipart": func(c *s3.Client, key string) error {
			out, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
			if err != nil {
				return err
			}
			_, err = c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: &key, UploadId: out.UploadId})
			return err
		},
		"delete": func(c *s3.Client, key string) error { return remove(ctx, c, bucket, key) },
	}
}

func (s suite) levels() {
	read, write := s.vend(vending.Read), s.vend(vending.ReadWrite)
	for name, c := range map[string]*s3.Client{"read": read, "read-write": write} {
		_, err := get(s.ctx(), c, s.Bucket, mine+"/data/a")
		s.allowed(name+": get", err)
		_, err = c.HeadObject(s.ctx(), &s3.HeadObjectInput{Bucket: &s.Bucket, Key: aws.String(mine + "/data/a")})
		s.allowed(name+": head", err)
		_, err = c.GetObject(s.ctx(), &s3.GetObjectInput{Bucket: &s.Bucket, Key: aws.String(mine + "/data/a"), Range: aws.String("bytes=0-1")})
		s.allowed(name+": range", err)
		_, err = list(s.ctx(), c, s.Bucket, aws.String(mine+"/"))
		s.allowed(name+": list", err)
		_, err = c.GetBucketLocation(s.ctx(), &s3.GetBucketLocationInput{Bucket: &s.Bucket})
		s.allowed(name+": bucket's location", err)
	}
	for verb, try := range s.writeVerbs() {
		s.refused("read: "+verb, try(read, mine+"/data/a"))
		s.intact(s.Bucket, mine+"/data/a")
		s.allowed("read-write: "+verb, try(write, mine+"/data/scratch"))
	}
	refused, err := removeMany(s.ctx(), read, s.Bucket, mine+"/data/a")
	if err != nil {
		s.refused("read: multi-delete", err)
	} else if !slices.Equal(refused, []string{mine + "/data/a"}) {
		s.t.Errorf("read: multi-delete refused %v", refused)
	}
	s.intact(s.Bucket, mine+"/data/a")
}

func (s suite) lists() {
	c := s.vend(vending.Read)
	for _, prefix := range []string{mine + "/", mine + "/data/", mine + "/data/a"} {
		names, err := list(s.ctx(), c, s.Bucket, &prefix)
		s.allowed("list "+prefix, err)
		for _, name := range names {
			if !strings.HasPrefix(name, mine+"/") {
				s.t.Errorf("list %s shows %s", prefix, name)
			}
		}
		if len(names) == 0 {
			s.t.Errorf("list %s shows nothing", prefix)
		}
	}
	for _, prefix := range []string{mine, "w/", "w/t", sibling + "/", other + "/", "", "/", "W/T1"} {
		_, err := list(s.ctx(), c, s.Bucket, &prefix)
		s.refused("list "+prefix, err)
	}
	_, err := list(s.ctx(), c, s.Bucket, nil)
	s.refused("list without a prefix", err)
	_, err = list(s.ctx(), c, s.Foreign, aws.String(mine+"/"))
	s.refused("list another bucket", err)
	_, err = c.ListMultipartUploads(s.ctx(), &s3.ListMultipartUploadsInput{Bucket: &s.Bucket, Prefix: aws.String(mine + "/")})
	s.refused("list uploads", err)
	_, err = c.ListObjectVersions(s.ctx(), &s3.ListObjectVersionsInput{Bucket: &s.Bucket, Prefix: aws.String(mine + "/")})
	s.refused("list versions", err)
	_, err = c.ListBuckets(s.ctx(), &s3.ListBucketsInput{})
	if out, e := c.ListBuckets(s.ctx(), &s3.ListBucketsInput{}); err == nil && e == nil && len(out.Buckets) > 0 {
		s.t.Errorf("list buckets shows %d", len(out.Buckets))
	}
}

func (s suite) outside() {
	c := s.vend(vending.ReadWrite)
	for _, key := range []string{sibling + "/data/v", other + "/data/v", "w/t1x", "root", mine} {
		_, err := get(s.ctx(), c, s.Bucket, key)
		s.refused("get "+key, err)
		for verb, try := range s.writeVerbs() {
			if verb == "conditional put" {
				continue
			}
			s.refused(verb+" "+key, try(c, key))
			s.intact(s.Bucket, key)
		}
		s.refused("conditional put "+key, s.writeVerbs()["conditional put"](c, key))
		s.absent(s.Bucket, key+"-new")
	}
	_, err := get(s.ctx(), c, s.Bucket, other+"/data/none")
	s.refused("get of a name that does not exist", err)
	_, err = get(s.ctx(), c, s.Foreign, mine+"/data/a")
	s.refused("get from another bucket", err)
	s.refused("put into another bucket", put(s.ctx(), c, s.Foreign, mine+"/data/a", "x"))
	s.intact(s.Foreign, mine+"/data/a")
	// The other way round: the sibling's keys do not reach this table.
	theirs := s.Client(s.credentials(s.Provider, sibling, vending.ReadWrite))
	_, err = get(s.ctx(), theirs, s.Bucket, sibling+"/data/v")
	s.allowed("the sibling's own get", err)
	s.refused("the sibling's put", put(s.ctx(), theirs, s.Bucket, mine+"/data/a", "x"))
}

func (s suite) copies() {
	c := s.vend(vending.ReadWrite)
	s.allowed("copy inside", copyObject(s.ctx(), c, s.Bucket, mine+"/data/a", mine+"/data/copy"))
	s.refused("copy from another table", copyObject(s.ctx(), c, s.Bucket, other+"/data/v", mine+"/data/stolen"))
	s.absent(s.Bucket, mine+"/data/stolen")
	s.refused("copy to another table", copyObject(s.ctx(), c, s.Bucket, mine+"/data/a", other+"/data/planted"))
	s.absent(s.Bucket, other+"/data/planted")
	key := mine + "/data/parts"
	out, err := c.CreateMultipartUpload(s.ctx(), &s3.CreateMultipartUploadInput{Bucket: &s.Bucket, Key: &key})
	s.must(err)
	from := func(source string) error {
		_, err := c.UploadPartCopy(s.ctx(), &s3.UploadPartCopyInput{
			Bucket: &s.Bucket, Key: &key, UploadId: out.UploadId, PartNumber: aws.Int32(1), CopySource: aws.String(s.Bucket + "/" + source),
		})
		return err
	}
	s.allowed("part copied from inside", from(mine+"/data/a"))
	s.refused("part copied from another table", from(other+"/data/v"))
}

func (s suite) deletesPerKey() {
	c := s.vend(vending.ReadWrite)
	refused, err := removeMany(s.ctx(), c, s.Bucket, mine+"/data/a", other+"/data/v", sibling+"/data/v")
	if err != nil {
		s.refused("multi-delete across tables", err) // whole requests are refused by some stores
	} else {
		slices.Sort(refused)
		if want := []string{sibling + "/data/v", other + "/data/v"}; !slices.Equal(refused, want) {
			s.t.Errorf("refused keys are %v, want %v", refused, want)
		}
		s.absent(s.Bucket, mine+"/data/a")
	}
	s.intact(s.Bucket, other+"/data/v")
	s.intact(s.Bucket, sibling+"/data/v")
	refused, err = removeMany(s.ctx(), c, s.Bucket, mine+"/data/b")
	if err != nil || len(refused) != 0 {
		s.t.Errorf("multi-delete inside: %v, %v", refused, err)
	}
}

func (s suite) multipart() {
	c, key := s.vend(vending.ReadWrite), mine+"/data/large"
	begin := func(client *s3.Client, key string) (*string, error) {
		out, err := client.CreateMultipartUpload(s.ctx(), &s3.CreateMultipartUploadInput{Bucket: &s.Bucket, Key: &key})
		if err != nil {
			return nil, err
		}
		return out.UploadId, nil
	}
	send := func(key string, id *string, number int32, body []byte) (*string, error) {
		out, err := c.UploadPart(s.ctx(), &s3.UploadPartInput{Bucket: &s.Bucket, Key: &key, UploadId: id, PartNumber: &number, Body: bytes.NewReader(body)})
		if err != nil {
			return nil, err
		}
		return out.ETag, nil
	}
	id, err := begin(c, key)
	s.must(err)
	first, err := send(key, id, 1, part)
	s.allowed("first part", err)
	second, err := send(key, id, 2, []byte("end"))
	s.allowed("last part", err)
	_, err = c.ListParts(s.ctx(), &s3.ListPartsInput{Bucket: &s.Bucket, Key: &key, UploadId: id})
	s.allowed("list parts", err)
	_, err = c.CompleteMultipartUpload(s.ctx(), &s3.CompleteMultipartUploadInput{Bucket: &s.Bucket, Key: &key, UploadId: id, MultipartUpload: &types.CompletedMultipartUpload{
		Parts: []types.CompletedPart{{ETag: first, PartNumber: aws.Int32(1)}, {ETag: second, PartNumber: aws.Int32(2)}},
	}})
	s.allowed("complete", err)

	_, err = begin(c, other+"/data/large")
	s.refused("begin in another table", err)
	theirs, err := begin(s.Admin, other+"/data/large")
	s.must(err)
	_, err = send(other+"/data/large", theirs, 1, []byte("x"))
	s.refused("part of another table's upload", err)
	_, err = c.ListParts(s.ctx(), &s3.ListPartsInput{Bucket: &s.Bucket, Key: aws.String(other + "/data/large"), UploadId: theirs})
	s.refused("list another table's parts", err)
	_, err = c.AbortMultipartUpload(s.ctx(), &s3.AbortMultipartUploadInput{Bucket: &s.Bucket, Key: aws.String(other + "/data/large"), UploadId: theirs})
	s.refused("abort another table's upload", err)
	if _, err = send(key, theirs, 1, []byte("x")); err == nil {
		s.t.Error("another table's upload id is taken with a key of this table")
	}
}

func (s suite) presigned() {
	signer := s3.NewPresignClient(s.vend(vending.ReadWrite))
	for key, want := range map[string]int{mine + "/data/a": http.StatusOK, other + "/data/v": http.StatusForbidden} {
		signed, err := signer.PresignGetObject(s.ctx(), &s3.GetObjectInput{Bucket: &s.Bucket, Key: &key})
		s.must(err)
		if got := s.status(http.MethodGet, signed.URL, signed.SignedHeader); got != want {
			s.t.Errorf("presigned get of %s: %d, want %d", key, got, want)
		}
	}
	signed, err := signer.PresignPutObject(s.ctx(), &s3.PutObjectInput{Bucket: &s.Bucket, Key: aws.String(other + "/data/v")})
	s.must(err)
	if got := s.status(http.MethodPut, signed.URL, signed.SignedHeader); got != http.StatusForbidden {
		s.t.Errorf("presigned put into another table: %d", got)
	}
	s.intact(s.Bucket, other+"/data/v")
}

func (s suite) status(method, url string, header http.Header) int {
	request, err := http.NewRequestWithContext(s.ctx(), method, url, nil)
	s.must(err)
	for name, values := range header {
		if name != "Host" {
			request.Header[name] = values
		}
	}
	response, err := http.DefaultClient.Do(request)
	s.must(err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	s.must(err)
	return response.StatusCode
}

// pathTricks sends raw paths that begin with the table's prefix and mean another place to a careless reader.
func (s suite) pathTricks() {
	c := s.credentials(s.Provider, mine, vending.ReadWrite)
	raw := func(path string) int {
		request, err := http.NewRequestWithContext(s.ctx(), http.MethodGet, s.Profile.Endpoint, nil)
		s.must(err)
		request.URL.Opaque = "//" + request.URL.Host + "/" + s.Bucket + "/" + path
		request.Header.Set("X-Amz-Content-Sha256", emptyHash)
		signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
		s.must(signer.SignHTTP(s.ctx(), aws.Credentials{
			AccessKeyID: c.Config["s3.access-key-id"], SecretAccessKey: c.Config["s3.secret-access-key"], SessionToken: c.Config["s3.session-token"],
		}, request, emptyHash, "s3", s.Profile.Region, time.Now()))
		response, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(request)
		s.must(err)
		defer response.Body.Close()
		return response.StatusCode
	}
	if got := raw(mine + "/data/a"); got != http.StatusOK {
		s.t.Errorf("the plain path: %d", got)
	}
	for _, path := range []string{
		mine + "/../t2/data/v", mine + "/%2e%2e/t2/data/v", mine + "/..%2ft2%2fdata%2fv", mine + "/%2E%2E%2Ft2/data/v",
		"w/t1%2f..%2ft2/data/v", mine + "/./../t2/data/v", mine + "//../../t2/data/v", mine + "%00/../t2/data/v", mine + `/..\t2\data\v`,
	} {
		if got := raw(path); got == http.StatusOK {
			s.t.Errorf("%s is answered %d", path, got)
		}
	}
}

func (s suite) bucket() {
	c, key := s.vend(vending.ReadWrite), aws.String(mine+"/data/a")
	_, err := c.GetBucketPolicy(s.ctx(), &s3.GetBucketPolicyInput{Bucket: &s.Bucket})
	s.refused("read the bucket's policy", err)
	_, err = c.PutBucketPolicy(s.ctx(), &s3.PutBucketPolicyInput{Bucket: &s.Bucket, Policy: aws.String(`{"Version":"2012-10-17","Statement":[]}`)})
	s.refused("set the bucket's policy", err)
	_, err = c.PutObjectAcl(s.ctx(), &s3.PutObjectAclInput{Bucket: &s.Bucket, Key: key, ACL: types.ObjectCannedACLPublicRead})
	s.refused("open an object to all", err)
	_, err = c.PutObjectTagging(s.ctx(), &s3.PutObjectTaggingInput{Bucket: &s.Bucket, Key: key, Tagging: &types.Tagging{TagSet: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}})
	s.refused("tag an object", err)
	_, err = c.PutBucketVersioning(s.ctx(), &s3.PutBucketVersioningInput{Bucket: &s.Bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusSuspended}})
	s.refused("set versioning", err)
	_, err = c.DeleteBucket(s.ctx(), &s3.DeleteBucketInput{Bucket: &s.Bucket})
	s.refused("delete the bucket", err)
	_, err = c.CreateBucket(s.ctx(), &s3.CreateBucketInput{Bucket: aws.String(s.Bucket + "-x")})
	s.refused("make a bucket", err)
}

func (s suite) tokens() {
	mineKeys, theirs := s.credentials(s.Provider, mine, vending.ReadWrite), s.credentials(s.Provider, other, vending.ReadWrite)
	try := func(change map[string]string) error {
		changed := vending.Credentials{Config: map[string]string{}}
		for k, v := range mineKeys.Config {
			changed.Config[k] = v
		}
		for k, v := range change {
			changed.Config[k] = v
		}
		_, err := get(s.ctx(), s.Client(changed), s.Bucket, mine+"/data/a")
		return err
	}
	s.allowed("whole keys", try(nil))
	s.refused("no token", try(map[string]string{"s3.session-token": ""}))
	s.refused("another session's token", try(map[string]string{"s3.session-token": theirs.Config["s3.session-token"]}))
	s.refused("another session's secret", try(map[string]string{"s3.secret-access-key": theirs.Config["s3.secret-access-key"]}))
	token := []byte(mineKeys.Config["s3.session-token"])
	token[len(token)/2] ^= 1
	s.refused("a token with one bit turned", try(map[string]string{"s3.session-token": string(token)}))
}

func (s suite) assumesAgain() {
	vended := s.credentials(s.Provider, mine, vending.ReadWrite)
	wide := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:*"],"Resource":["*"]}]}`
	for what, policy := range map[string]*string{"without a policy": nil, "with a wide policy": &wide} {
		_, err := s.STS(vended).AssumeRole(s.ctx(), &sts.AssumeRoleInput{
			RoleArn: &s.Profile.RoleARN, RoleSessionName: aws.String("again"), Policy: policy, DurationSeconds: aws.Int32(900),
		})
		s.refused("assume the role again "+what, err)
	}
	_, err := s.STS(vended).GetSessionToken(s.ctx(), &sts.GetSessionTokenInput{})
	if err == nil {
		s.t.Error("a session token is given to a session")
	}
	_, err = s.STS(vended).GetFederationToken(s.ctx(), &sts.GetFederationTokenInput{Name: aws.String("again"), Policy: &wide})
	if err == nil {
		s.t.Error("a federation token is given to a session")
	}
}

// expires waits for the end of a short session; it polls, for only the store knows its clock.
func (s suite) expires() {
	vended := s.credentials(s.Short, mine, vending.Read)
	client := s.Client(vended)
	_, err := get(s.ctx(), client, s.Bucket, mine+"/data/a")
	s.allowed("a fresh session", err)
	ctx, cancel := context.WithDeadline(s.ctx(), time.Now().Add(30*time.Second))
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			s.t.Fatal("the session does not end")
		case <-tick.C:
			_, err = get(ctx, client, s.Bucket, mine+"/data/a")
		}
	}
	s.refused("a session that has ended", err)
	if left := time.Until(vended.ExpiresAt); left > 2*time.Second {
		s.t.Errorf("the session ended %s before its time", left)
	}
	// A new session for the same scope works: it was the end of the old one that refused.
	_, err = get(s.ctx(), s.Client(s.credentials(s.Short, mine, vending.Read)), s.Bucket, mine+"/data/a")
	s.allowed("the next session", err)
}
