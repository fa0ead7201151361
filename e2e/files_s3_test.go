package e2e

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// client is S3 as the store's administrator sees it.
func (s *s3store) client() *s3.Client {
	return s3.New(s3.Options{
		Region: s.env["AWS_REGION"], BaseEndpoint: aws.String(s.env["AWS_ENDPOINT_URL"]), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(s.env["AWS_ACCESS_KEY_ID"], s.env["AWS_SECRET_ACCESS_KEY"], ""),
	})
}

// inBucket gives the store with another bucket, made for a warehouse of its own.
func (s *s3store) inBucket(t testing.TB, bucket string) *s3store {
	t.Helper()
	if _, err := s.client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
		t.Fatal(err)
	}
	other := s.within(bucket)
	other.env = maps.Clone(s.env)
	other.env["S3_BUCKET"] = bucket
	return other
}

// objects gives the keys below a location, in order.
func (s *s3store) objects(t testing.TB, location string) []string {
	t.Helper()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(location, "s3://"), "/")
	var keys []string
	pages := s3.NewListObjectsV2Paginator(s.client(), &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: aws.String(key + "/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			keys = append(keys, *o.Key)
		}
	}
	return keys
}

// put writes an object by its URI.
func (s *s3store) put(t testing.TB, uri, body string) {
	t.Helper()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(uri, "s3://"), "/")
	_, err := s.client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(body)})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *s3store) get(t testing.TB, uri string) string {
	t.Helper()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(uri, "s3://"), "/")
	out, err := s.client().GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A table on an object store is dropped without purge, given up, and comes back from its metadata file, under another
// name, in the place of a table that is there, and as it was before its last append: each time row for row.
func TestStory_RegisterOnS3(t *testing.T) {
	store := sharedStore(t).within("registered")
	l, py := newLakeOn(t, store), pyiceberg(t)
	r := l.rest(t)
	run := func(args ...string) string { return py.run(t, l.server, "stories/crash_tables.py", args...) }
	rows := func(out string) (all []string) {
		for _, fields := range linesWith(out, "rows") {
			all = append(all, strings.Join(fields[1:], " "))
		}
		return all
	}
	register := func(want int, name, file, more string) []byte {
		t.Helper()
		status, raw := r.call("POST", "/dev/namespaces/crash/register", map[string]any{"name": name, "metadata-location": file, "overwrite": more == "overwrite"})
		if status != want {
			t.Errorf("register %s from %s %s: %d %s", name, file, more, status, raw)
		}
		return raw
	}
	before := rows(run("make:t:1:2", "rows:t0"))
	older := r.look("crash.t0")
	after := rows(run("append:t:1:2", "rows:t0"))
	newer := r.look("crash.t0")
	if len(before) != 1 || len(after) != 1 || before[0] == after[0] {
		t.Fatalf("rows before the append %q, after it %q", before, after)
	}
	files := store.objects(t, newer.Metadata.Location)

	back := rows(run("drop:t:1", "register:back:"+newer.MetadataLocation, "rows:back"))
	if !slices.Equal(back, after) {
		t.Errorf("after a drop it came back with %q, had %q", back, after)
	}
	register(409, "back", newer.MetadataLocation, "")
	register(200, "back", older.MetadataLocation, "overwrite")
	if now := rows(run("rows:back")); !slices.Equal(now, before) {
		t.Errorf("as it was before its last append: %q, wanted %q", now, before)
	}
	register(200, "back", newer.MetadataLocation, "overwrite")
	if status, raw := r.call("POST", "/dev/namespaces/crash/tables/back/unregister", nil); status != 200 {
		t.Fatalf("unregister: %d %s", status, raw)
	}
	if now := rows(run("register:again:"+newer.MetadataLocation, "rows:again")); !slices.Equal(now, after) {
		t.Errorf("after it was given up it came back with %q, had %q", now, after)
	}
	if now := store.objects(t, newer.Metadata.Location); !slices.Equal(now, files) {
		t.Errorf("files before %q\nand after %q", files, now)
	}

	// What lies elsewhere, or says that it does, is refused, whatever keys the server has.
	text := store.get(t, newer.MetadataLocation)
	bucket := "s3://" + store.env["S3_BUCKET"]
	foreign := bucket + "/elsewhere/t/metadata/00000-a.metadata.json"
	store.put(t, foreign, strings.ReplaceAll(text, newer.Metadata.Location, bucket+"/elsewhere/t"))
	inside := store.location() + "/forged/metadata/00000-a.metadata.json"
	store.put(t, inside, strings.ReplaceAll(text, newer.Metadata.Location, bucket+"/elsewhere/t"))
	for _, file := range []string{foreign, inside} {
		if raw := register(403, "stolen", file, ""); !strings.Contains(string(raw), "ForbiddenException") || strings.Contains(string(raw), "table-uuid") {
			t.Errorf("the refusal of %s says %s", file, raw)
		}
	}
	register(404, "none", store.location()+"/forged/metadata/none.metadata.json", "")
}

// storeFront stands before the store for the server and its workers. It can refuse to delete.
type storeFront struct {
	store *s3store
	// mode is "", or "busy": every deletion is answered 503, or a part of the keys that are refused.
	mode    atomic.Value
	deletes atomic.Int64
}

func newStoreFront(t testing.TB, store *s3store) *storeFront {
	t.Helper()
	f := &storeFront{store: store}
	f.mode.Store("")
	target, err := url.Parse(store.env["AWS_ENDPOINT_URL"])
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deletion := r.Method == http.MethodPost && r.URL.Query().Has("delete")
		mode, _ := f.mode.Load().(string)
		if !deletion || mode == "" {
			proxy.ServeHTTP(w, r)
			return
		}
		f.deletes.Add(1)
		f.refuse(w, r, mode)
	}))
	t.Cleanup(server.Close)
	store.front = server.URL
	return f
}

// refuse answers a deletion: of keys that hold the mode's part nothing, of the others what the store says.
func (f *storeFront) refuse(w http.ResponseWriter, r *http.Request, mode string) {
	w.Header().Set("Content-Type", "application/xml")
	if mode == "busy" {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
		return
	}
	var asked struct {
		Keys []string `xml:"Object>Key"`
	}
	if err := xml.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type entry struct{ Key, Code, Message string }
	answer := struct {
		XMLName xml.Name `xml:"DeleteResult"`
		Deleted []entry  `xml:"Deleted"`
		Error   []entry  `xml:"Error"`
	}{}
	for _, key := range asked.Keys {
		if strings.Contains(key, mode) {
			answer.Error = append(answer.Error, entry{key, "AccessDenied", "Access Denied because of object protection."})
			continue
		}
		bucket := strings.Trim(r.URL.Path, "/")
		if _, err := f.store.client().DeleteObject(context.WithoutCancel(r.Context()), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key}); err != nil {
			answer.Error = append(answer.Error, entry{key, "InternalError", err.Error()})
			continue
		}
		answer.Deleted = append(answer.Deleted, entry{Key: key})
	}
	_ = xml.NewEncoder(w).Encode(answer)
}

// A purge meets a store that is too busy, then one that refuses some of the files. It fails with the reason, the number of
// files that are gone and the command that goes on; what is left is what it did not say. When the cause is mended, that
// command removes the rest, and says that the bucket keeps old versions.
func TestStory_PurgeOnAStoreThatRefuses(t *testing.T) {
	store := sharedStore(t).inBucket(t, "warehouse-versions")
	if _, err := store.client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{Bucket: aws.String("warehouse-versions"),
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled}}); err != nil {
		t.Fatal(err)
	}
	front := newStoreFront(t, store)
	l, py := newLakeOn(t, store), pyiceberg(t)
	r := l.rest(t)
	py.run(t, l.server, "stories/crash_tables.py", "make:purged:1:3", "make:kept:1:1")
	location, kept := r.look("crash.purged0").Metadata.Location, r.look("crash.kept0").Metadata.Location
	files, others := store.objects(t, location), store.objects(t, kept)
	py.run(t, l.server, "stories/crash_tables.py", "purge:purged:1")
	id := query[string](l, `SELECT id::text FROM jobs WHERE kind = 'purge'`)[0]

	worker := l.startWorker("")
	front.mode.Store("busy")
	attempts := func(n int) maintained {
		t.Helper()
		var job maintained
		await(t, fmt.Sprintf("attempt %d has failed", n), func() bool {
			var ok bool
			job, ok = l.job(r, id)
			return ok && job.Attempts == n && (job.State == "failed" || job.State == "queued" && job.Reason.Code != "")
		})
		return job
	}
	job := attempts(1)
	if job.State != "queued" || !strings.Contains(job.Reason.Message, "does not answer") {
		t.Errorf("after a busy store: %+v", job)
	}
	if now := store.objects(t, location); !slices.Equal(now, files) {
		t.Errorf("%d of %d files are left", len(now), len(files))
	}
	front.mode.Store("snap-")
	query[string](l, `UPDATE jobs SET not_before = now(), attempts = 7 WHERE id = $1 RETURNING id::text`, id)
	job = attempts(8)
	left := store.objects(t, location)
	if job.State != "failed" || !strings.Contains(job.Reason.Message, "AccessDenied") || !strings.Contains(job.Reason.Message, "snap-") ||
		!strings.Contains(job.Reason.Message, fmt.Sprintf("; %d files were removed before that", len(files)-len(left))) {
		t.Errorf("%d of %d files are left; the job ended as %+v", len(left), len(files), job)
	}
	if len(left) == len(files) || len(left) == 0 {
		t.Errorf("%d of %d files are left", len(left), len(files))
	}
	if out := l.run("maintenance", "jobs", "-w", "dev", "--state", "failed"); !strings.Contains(out, id) || !strings.Contains(out, "AccessDenied") {
		t.Errorf("the list of failed jobs: %s", out)
	}

	front.mode.Store("")
	out := l.run("maintenance", "retry", id, "--wait", "--output", "json")
	if !strings.Contains(out, fmt.Sprintf(`"%d files were removed; the store keeps old versions`, len(files))) {
		t.Errorf("begun again: %s", out)
	}
	if left := store.objects(t, location); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	if now := store.objects(t, kept); !slices.Equal(now, others) {
		t.Errorf("the neighbour had %q and has %q", others, now)
	}
	if front.deletes.Load() < 2 {
		t.Errorf("%d deletions went through the front", front.deletes.Load())
	}
	_ = worker.cmd.Process.Kill()
	t.Logf("%d files, %d left when it failed; %s", len(files), len(left), job.Reason.Message)
}
