// Package s3test runs the S3 and STS store of e2e/s3 for the tests of one process: one store, started at the first
// use, with its data in a temporary folder. A test's own keys and the machine's are hidden from it, so that nothing
// passes on foreign credentials.
package s3test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"catalogd/vending"
)

// Region is the store's.
const Region = "us-east-1"

// RoleARN is the one role; it reaches the buckets `warehouse` and `warehouse-*`.
const RoleARN = "arn:aws:iam::000000000000:role/Vending"

// Keys of the store's two principals: Admin may do everything, Catalog may only assume the role.
var (
	Admin   = aws.Credentials{AccessKeyID: "admin", SecretAccessKey: "adminadmin"}
	Catalog = aws.Credentials{AccessKeyID: "catalogkey", SecretAccessKey: "catalogsecret"}
)

// Store is a running store.
type Store struct {
	Endpoint string // with scheme, for S3 and STS
}

var shared struct {
	once  sync.Once
	store *Store
	err   error
	watch *exec.Cmd
	stdin io.Closer
}

// Run runs a package's tests and stops the store that they started; TestMain calls it.
func Run(m *testing.M) int {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "AWS_") {
			os.Unsetenv(name)
		}
	}
	os.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	os.Setenv("AWS_CONFIG_FILE", os.DevNull)
	os.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	code := m.Run()
	if shared.watch != nil {
		shared.stdin.Close()
		if err := shared.watch.Wait(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "s3test: the store did not stop:", err)
			code = 1
		}
	}
	return code
}

// Start gives the process' store. The test fails when it cannot run; it never skips.
func Start(t testing.TB) *Store {
	t.Helper()
	shared.once.Do(func() { shared.store, shared.err = start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.store
}

func start() (*Store, error) {
	_, file, _, _ := runtime.Caller(0)
	scripts := filepath.Join(filepath.Dir(file), "..", "..", "e2e", "s3")
	if out, err := exec.Command(filepath.Join(scripts, "build"), "--check").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the store is not built: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	dir, err := os.MkdirTemp("", "s3test")
	if err != nil {
		return nil, err
	}
	// The watcher stops the store and removes its data when this process ends, in whatever way: its input ends then.
	watch := exec.Command("bash", "-c", `cat >/dev/null; "$0" "$1"; status=$?; rm -rf "$1"; exit $status`, filepath.Join(scripts, "down"), dir)
	watch.Stderr = os.Stderr
	watch.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal is not for it
	stdin, err := watch.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := watch.Start(); err != nil {
		return nil, err
	}
	shared.watch, shared.stdin = watch, stdin
	if out, err := exec.Command(filepath.Join(scripts, "up"), dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the store does not start: %w\n%s", err, out)
	}
	port, err := os.ReadFile(filepath.Join(dir, "port"))
	if err != nil {
		return nil, err
	}
	return &Store{Endpoint: "http://127.0.0.1:" + strings.TrimSpace(string(port))}, nil
}

// Bucket makes a bucket inside the role's reach; nothing of another test is in it.
func (s *Store) Bucket(t testing.TB) string { return s.bucket(t, "warehouse-") }

// ForeignBucket makes a bucket that the role does not reach.
func (s *Store) ForeignBucket(t testing.TB) string { return s.bucket(t, "foreign-") }

func (s *Store) bucket(t testing.TB, prefix string) string {
	t.Helper()
	random := make([]byte, 8)
	rand.Read(random) //nolint:errcheck // never fails
	name := prefix + hex.EncodeToString(random)
	if _, err := s.Client(Admin).CreateBucket(context.Background(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatalf("make bucket %s: %v", name, err)
	}
	return name
}

// Client is S3 as the holder of keys sees it, without retries.
func (s *Store) Client(keys aws.Credentials) *s3.Client {
	return s3.New(s3.Options{
		Region: Region, BaseEndpoint: &s.Endpoint, UsePathStyle: true, RetryMaxAttempts: 1, Credentials: provider(keys),
	})
}

// STS is the token service as the holder of keys sees it.
func (s *Store) STS(keys aws.Credentials) *sts.Client {
	return sts.New(sts.Options{Region: Region, BaseEndpoint: &s.Endpoint, RetryMaxAttempts: 1, Credentials: provider(keys)})
}

// Config is the server's own identity at this store.
func (s *Store) Config() aws.Config {
	return aws.Config{Region: Region, Credentials: provider(Catalog)}
}

// Profile is a warehouse's way to this store.
func (s *Store) Profile() vending.Profile {
	return vending.Profile{StorageType: "S3", RoleARN: RoleARN, Region: Region, Endpoint: s.Endpoint, PathStyleAccess: true}
}

// KeysOf gives vended credentials as the SDK takes them.
func KeysOf(c vending.Credentials) aws.Credentials {
	return aws.Credentials{
		AccessKeyID: c.Config["s3.access-key-id"], SecretAccessKey: c.Config["s3.secret-access-key"],
		SessionToken: c.Config["s3.session-token"],
	}
}

// Keys gives keys as a provider of the SDK.
func Keys(keys aws.Credentials) aws.CredentialsProvider { return provider(keys) }

// Put writes an object by its URI.
func Put(ctx context.Context, c *s3.Client, uri, body string) error {
	bucket, key, ok := vending.SplitS3(uri)
	if !ok {
		return fmt.Errorf("%q is no S3 URI", uri)
	}
	_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body)})
	return err
}

// Get reads an object by its URI; found tells whether there is one.
func Get(ctx context.Context, c *s3.Client, uri string) (body string, found bool, err error) {
	bucket, key, ok := vending.SplitS3(uri)
	if !ok {
		return "", false, fmt.Errorf("%q is no S3 URI", uri)
	}
	out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	var missing *types.NoSuchKey
	if errors.As(err, &missing) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	defer out.Body.Close()
	all, err := io.ReadAll(out.Body)
	return string(all), true, err
}

func provider(keys aws.Credentials) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken)
}
