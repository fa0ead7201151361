package iceio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"catalogd/internal/fault"
	"catalogd/vending"
)

// Limits of requests to object stores.
const (
	requestTriesMax   = 4
	retryDelayMax     = 2 * time.Second
	removeKeysMax     = 1000 // per request, the protocol's limit
	conditionRacesMax = 3
)

// bucketTree is a table in an object store.
type bucketTree struct {
	client *s3.Client
	bucket string
	prefix string      // slash-terminated
	uri    string      // the table's location, for messages
	kept   atomic.Bool // an object that was removed stays as an old version
}

func (s *Store) bucketTree(provider vending.Provider, profile vending.Profile, scope vending.Scope) (tree, error) {
	bucket, key, ok := vending.SplitS3(scope.Location)
	if !ok || key == "" {
		return nil, fault.New(fault.Internal, "location %q is not below a bucket", scope.Location)
	}
	options := s3.Options{
		Region: profile.Region, UsePathStyle: profile.PathStyleAccess, HTTPClient: s.http,
		Credentials: keys{provider, profile, scope},
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = requestTriesMax, s.retryDelayMax
		}),
		// Many stores refuse the checksums that AWS does not ask for.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	for _, endpoint := range []string{profile.Endpoint, profile.EndpointInternal} {
		if endpoint != "" {
			options.BaseEndpoint = aws.String(endpoint)
		}
	}
	return &bucketTree{client: s3.New(options), bucket: bucket, prefix: strings.Trim(key, "/") + "/", uri: scope.Location}, nil
}

func (t *bucketTree) key(name string) *string { return aws.String(t.prefix + name) }

// write puts the object unless there is one of that name. A first try whose answer got lost makes the second look
// like a clash, so what is there is compared before the clash is believed.
func (t *bucketTree) write(ctx context.Context, name string, body []byte) error {
	for race := 0; ; race++ {
		_, err := t.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &t.bucket, Key: t.key(name), Body: bytes.NewReader(body), IfNoneMatch: aws.String("*"),
			ContentLength: aws.Int64(int64(len(body))), ContentType: aws.String(contentType(name)),
		})
		switch status, code := answered(err); {
		case err == nil:
			return nil
		case status == http.StatusConflict && code == "ConditionalRequestConflict" && race < conditionRacesMax:
			continue
		case status == http.StatusPreconditionFailed:
			there, readErr := t.read(ctx, name, int64(len(body)))
			if readErr == nil && bytes.Equal(there, body) {
				return nil
			}
			return fmt.Errorf("put %s: %w", name, fs.ErrExist)
		default:
			return t.fail(ctx, "put", name, err)
		}
	}
}

func contentType(name string) string {
	if strings.HasSuffix(name, ".json") {
		return "application/json"
	}
	return "application/octet-stream"
}

func (t *bucketTree) read(ctx context.Context, name string, limit int64) ([]byte, error) {
	var body bytes.Buffer
	for try := 1; ; try++ {
		body.Reset()
		out, err := t.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &t.bucket, Key: t.key(name)})
		if err != nil {
			return nil, t.fail(ctx, "get", name, err)
		}
		size := aws.ToInt64(out.ContentLength)
		if size > limit {
			out.Body.Close()
			return nil, tooLarge(t.uri+"/"+name, limit)
		}
		body.Grow(int(size))
		n, err := io.Copy(&body, io.LimitReader(out.Body, limit+1))
		out.Body.Close()
		switch {
		case err != nil && try < requestTriesMax && ctx.Err() == nil:
			continue // the connection broke in the middle
		case err != nil:
			return nil, fault.Wrap(fault.Busy, err, "file %s/%s could not be read to its end", t.uri, name)
		case n > limit:
			return nil, tooLarge(t.uri+"/"+name, limit)
		}
		return body.Bytes(), nil
	}
}

func (t *bucketTree) stat(ctx context.Context, name string) (info, error) {
	out, err := t.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &t.bucket, Key: t.key(name)})
	if err != nil {
		return info{}, t.fail(ctx, "head", name, err)
	}
	return info{name: path.Base(name), size: aws.ToInt64(out.ContentLength), modified: aws.ToTime(out.LastModified)}, nil
}

func (t *bucketTree) remove(ctx context.Context, names []string) ([]string, error) {
	var gone []string
	var failed []error
	for len(names) > 0 {
		batch := names[:min(len(names), removeKeysMax)]
		names = names[len(batch):]
		removed, err := t.removeBatch(ctx, batch)
		gone = append(gone, removed...)
		if err != nil {
			failed = append(failed, err)
		}
	}
	return gone, errors.Join(failed...)
}

func (t *bucketTree) removeBatch(ctx context.Context, names []string) ([]string, error) {
	objects := make([]types.ObjectIdentifier, len(names))
	for i, name := range names {
		objects[i].Key = t.key(name)
	}
	out, err := t.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: &t.bucket, Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(false)},
	})
	if err != nil {
		return nil, t.fail(ctx, "delete", fmt.Sprintf("%s and %d more", names[0], len(names)-1), err)
	}
	for _, d := range out.Deleted {
		if aws.ToBool(d.DeleteMarker) {
			t.kept.Store(true)
			break
		}
	}
	refused := map[string]types.Error{}
	for _, e := range out.Errors {
		if aws.ToString(e.Code) != "NoSuchKey" {
			refused[aws.ToString(e.Key)] = e
		}
	}
	var gone []string
	var first *types.Error
	for _, name := range names {
		if e, is := refused[t.prefix+name]; !is {
			gone = append(gone, name)
		} else if first == nil {
			first = &e
		}
	}
	if first == nil {
		return gone, nil
	}
	return gone, fault.New(fault.Internal, "%d of %d files were not removed; the first is s3://%s/%s: the store says %s %s",
		len(refused), len(names), t.bucket, aws.ToString(first.Key), aws.ToString(first.Code), aws.ToString(first.Message))
}

func (t *bucketTree) walk(ctx context.Context, folder string, visit func(string, info) error) error {
	prefix := t.prefix
	if folder != "" {
		prefix += folder + "/"
	}
	pages := s3.NewListObjectsV2Paginator(t.client, &s3.ListObjectsV2Input{Bucket: &t.bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return t.fail(ctx, "list", folder, err)
		}
		for _, o := range page.Contents {
			name, ok := strings.CutPrefix(aws.ToString(o.Key), t.prefix)
			if !ok || name == "" || strings.HasSuffix(name, "/") {
				continue
			}
			i := info{name: path.Base(name), size: aws.ToInt64(o.Size), modified: aws.ToTime(o.LastModified)}
			if err := visit(name, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare does nothing: object stores have no folders.
func (t *bucketTree) prepare(context.Context, ...string) error { return nil }

// fail gives a store's refusal its meaning. 403 may stand for a missing object, where the store hides which names
// exist; a listing of that one name, which the credentials allow, tells.
func (t *bucketTree) fail(ctx context.Context, verb, name string, err error) error {
	var meant *fault.Error
	if errors.As(err, &meant) {
		return fmt.Errorf("%s %s: %w", verb, name, err) // the keys could not be had
	}
	status, code := answered(err)
	reads := verb == "get" || verb == "head"
	switch {
	case status == http.StatusNotFound && code == "NoSuchBucket":
		return fault.Wrap(fault.Internal, err, "bucket %s does not exist", t.bucket)
	case status == http.StatusNotFound && reads, status == http.StatusForbidden && reads && t.absent(ctx, name):
		return fmt.Errorf("%s %s: %w", verb, name, fs.ErrNotExist)
	case status == http.StatusForbidden:
		return fault.Wrap(fault.Internal, err, "the store refuses to %s %s/%s (%s); check the rights of the warehouse's role", verb, t.uri, name, code)
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		return fault.Wrap(fault.Internal, err, "the store refuses to %s %s/%s (%d %s)", verb, t.uri, name, status, code)
	}
	return fault.Wrap(fault.Busy, err, "the store does not answer to %s %s/%s; try again", verb, t.uri, name)
}

func (t *bucketTree) absent(ctx context.Context, name string) bool {
	out, err := t.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &t.bucket, Prefix: t.key(name), MaxKeys: aws.Int32(1)})
	return err == nil && (len(out.Contents) == 0 || aws.ToString(out.Contents[0].Key) != t.prefix+name)
}

// answered gives the store's status and error code; 0 and "" when it did not answer.
func answered(err error) (status int, code string) {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	return status, code
}
