package e2e

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Sessions of this test's store live this long; the job runs for several lives.
const (
	sessionSeconds = 15
	longJobSeconds = 3 * sessionSeconds
)

// shortSessions is a token service in front of the store's own: it drops the caller's duration, so that sessions get
// the store's default life, and counts what it hands out.
type shortSessions struct {
	client *sts.Client
	issued atomic.Int64
}

func (s *shortSessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.PostForm.Get("Action") != "AssumeRole" || r.PostForm.Get("DurationSeconds") == "" {
		http.Error(w, "AssumeRole with a duration is all that is served here", http.StatusBadRequest)
		return
	}
	out, err := s.client.AssumeRole(r.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String(r.PostForm.Get("RoleArn")), RoleSessionName: aws.String(r.PostForm.Get("RoleSessionName")),
		Policy: aws.String(r.PostForm.Get("Policy")),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	s.issued.Add(1)
	type result struct {
		XMLName  xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ AssumeRoleResponse"`
		Key      string   `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
		Secret   string   `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
		Token    string   `xml:"AssumeRoleResult>Credentials>SessionToken"`
		Until    string   `xml:"AssumeRoleResult>Credentials>Expiration"`
		RoleUser string   `xml:"AssumeRoleResult>AssumedRoleUser>Arn"`
	}
	w.Header().Set("Content-Type", "text/xml")
	_ = xml.NewEncoder(w).Encode(result{
		Key: *out.Credentials.AccessKeyId, Secret: *out.Credentials.SecretAccessKey, Token: *out.Credentials.SessionToken,
		Until: out.Credentials.Expiration.UTC().Format(time.RFC3339), RoleUser: r.PostForm.Get("RoleArn"),
	})
}

// A Spark session outlives several lives of its credentials; answers of 304 are among what it gets.
func TestStory_SparkOutlivesItsCredentials(t *testing.T) {
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	iam, err := os.ReadFile(filepath.Join(root(t), "e2e", "s3", "iam.json"))
	if err != nil {
		t.Fatal(err)
	}
	short := strings.Replace(string(iam), `"tokenDuration": "3s"`, fmt.Sprintf(`"tokenDuration": "%ds"`, sessionSeconds), 1)
	if short == string(iam) {
		t.Fatal("iam.json has no tokenDuration of 3s any more")
	}
	iamFile := filepath.Join(dir, "iam.json")
	if err := os.WriteFile(iamFile, []byte(short), 0o600); err != nil {
		t.Fatal(err)
	}
	store := startStore(t, filepath.Join(dir, "s3"), iamFile)
	t.Cleanup(store.stop)

	service := &shortSessions{client: sts.New(sts.Options{
		BaseEndpoint: aws.String(store.env["S3_STS_ENDPOINT"]), Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(
			store.env["S3_CATALOG_ACCESS_KEY_ID"], store.env["S3_CATALOG_SECRET_ACCESS_KEY"], ""),
	})}
	front := httptest.NewServer(service)
	t.Cleanup(front.Close)
	store.sts = front.URL

	s := startDev(t, filepath.Join(dir, "data"), store)
	t.Cleanup(s.stop)
	sp := spark(t)
	sp.env = append(sp.env, "SPARK_IO=org.apache.iceberg.aws.s3.S3FileIO")
	out := sp.run(t, s, "stories/long_spark.py", "long.job", fmt.Sprint(longJobSeconds))
	if !strings.Contains(out, "inserts ") {
		t.Fatal(tail(out, 60))
	}
	s.stop()
	unchanged := strings.Count(s.log.String(), "status=304") + strings.Count(s.log.String(), `"status":304`)
	if unchanged == 0 {
		t.Errorf("no load was answered 304, so the story does not show what it should")
	}
	lives := longJobSeconds / sessionSeconds
	if got := service.issued.Load(); got < int64(lives) {
		t.Errorf("%d sessions were made for a job of %d lives", got, lives)
	}
	t.Logf("%s over %d lives; %d sessions; %d answers of 304", lastLine(out), lives, service.issued.Load(), unchanged)
}

// The store of this test refuses what has expired, or the story above would show nothing.
func TestStore_SessionsEnd(t *testing.T) {
	store := sharedStore(t)
	client := sts.New(sts.Options{
		BaseEndpoint: aws.String(store.env["S3_STS_ENDPOINT"]), Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(
			store.env["S3_CATALOG_ACCESS_KEY_ID"], store.env["S3_CATALOG_SECRET_ACCESS_KEY"], ""),
	})
	out, err := client.AssumeRole(context.Background(), &sts.AssumeRoleInput{
		RoleArn: aws.String(store.env["S3_ROLE_ARN"]), RoleSessionName: aws.String("short"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if life := time.Until(*out.Credentials.Expiration); life > 5*time.Second {
		t.Errorf("a session without a duration lives %s here, wanted 3 s", life)
	}
}
