package iceio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/goleak"

	"catalogd/internal/fault"
	"catalogd/internal/s3test"
	"catalogd/vending"
	"catalogd/vending/local"
	"catalogd/vending/s3"
)

// weather is a bad network in front of the store. It sees requests to S3; those to the token service go past it.
type weather struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []string // method and query, in order
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
	after  func(r *http.Request, response *http.Response) error // an error cuts the connection
}

func (w *weather) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

func (w *weather) set(before func(http.ResponseWriter, *http.Request) bool, after func(*http.Request, *http.Response) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen, w.before, w.after = nil, before, after
}

func (w *weather) hooks() (func(http.ResponseWriter, *http.Request) bool, func(*http.Request, *http.Response) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.before, w.after
}

// inWeather is a table whose requests go through bad weather.
func inWeather(t *testing.T) (lake, *weather) {
	server := s3test.Start(t)
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	w := &weather{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: func(response *http.Response) error {
			if _, after := w.hooks(); after != nil {
				return after(response.Request, response)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, strings.TrimSpace(r.Method+" "+r.URL.RawQuery))
		w.mu.Unlock()
		if before, _ := w.hooks(); before == nil || !before(rw, r) {
			proxy.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(w.Close)
	l := bucketLake(t, server, s3.New(s3.Config{AWS: server.Config(), Log: slog.New(slog.DiscardHandler)}))
	l.profile.Endpoint, l.profile.STSEndpoint = w.URL, server.Endpoint
	l.store.SetRetryDelayMax(time.Millisecond)
	return l, w
}

// once runs a hook at its first use only.
func once(hook func(r *http.Request, response *http.Response) error) func(*http.Request, *http.Response) error {
	var done sync.Once
	return func(r *http.Request, response *http.Response) (err error) {
		done.Do(func() { err = hook(r, response) })
		return err
	}
}

var errCut = errors.New("the connection is cut")

// A write whose answer got lost has landed: its repeat must not take it for somebody else's file.
func TestMetadata_AnswerLostAfterTheWrite(t *testing.T) {
	l, w := inWeather(t)
	w.set(nil, once(func(r *http.Request, _ *http.Response) error {
		if r.Method != http.MethodPut {
			t.Errorf("the first request is %s", r.Method)
		}
		return errCut
	}))
	at := l.at("metadata/00000-a.metadata.json")
	if err := l.store.WriteMetadata(t.Context(), at, []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if got := w.requests(); len(got) < 3 {
		t.Errorf("the write was not repeated: %v", got)
	}
	if body, _ := l.peek(t, at.Path); body != `{"a":1}` {
		t.Errorf("the file holds %q", body)
	}
}

func TestReads_TakeUpWhereTheConnectionBroke(t *testing.T) {
	l, w := inWeather(t)
	body := content(3 << 20)
	name := l.scope.Location + "/data/x"
	l.plant(t, name, string(body))
	cutHalf := func() func(*http.Request, *http.Response) error {
		return once(func(_ *http.Request, response *http.Response) error {
			response.Body = &cut{response.Body, response.ContentLength / 2}
			return nil
		})
	}
	w.set(nil, cutHalf())
	f, err := l.files(t).Open(name)
	if err != nil {
		t.Fatal(err)
	}
	w.set(nil, cutHalf())
	got := make([]byte, len(body))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, body) {
		t.Errorf("read at: %v", err)
	}
	if n := len(w.requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	w.set(nil, cutHalf())
	if got, err := l.files(t).ReadFile(name); err != nil || !bytes.Equal(got, body) {
		t.Errorf("read file: %d bytes, %v", len(got), err)
	}
	always := func(_ *http.Request, response *http.Response) error {
		response.Body = &cut{response.Body, 10}
		return nil
	}
	w.set(nil, always)
	if _, err := l.files(t).ReadFile(name); !fault.Is(err, fault.Busy) {
		t.Errorf("a connection that always breaks: %v", err)
	}
}

// cut is a body that breaks after some bytes.
type cut struct {
	io.ReadCloser
	left int64
}

func (c *cut) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errCut
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// AWS hides from those who may not list freely whether a name exists: 403 for a missing object is still "missing".
func TestReads_MissingBehind403(t *testing.T) {
	l, w := inWeather(t)
	l.plant(t, l.scope.Location+"/metadata/there", "x")
	w.set(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("list-type") != "" {
			return false
		}
		rw.WriteHeader(http.StatusForbidden)
		if r.Method != http.MethodHead {
			fmt.Fprint(rw, `<Error><Code>AccessDenied</Code></Error>`)
		}
		return true
	}, nil)
	if _, err := l.store.ReadMetadata(t.Context(), l.at("metadata/none")); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("read of a missing file: %v", err)
	}
	if err := l.store.StatMetadata(t.Context(), l.at("metadata/none")); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("stat of a missing file: %v", err)
	}
	if _, err := l.store.ReadMetadata(t.Context(), l.at("metadata/there")); !fault.Is(err, fault.Internal) {
		t.Errorf("read of a file that is there: %v", err)
	}
}

func TestStore_BusyAndRefused(t *testing.T) {
	l, w := inWeather(t)
	for status, want := range map[int]fault.Kind{500: fault.Busy, 503: fault.Busy, 429: fault.Busy, 400: fault.Internal, 403: fault.Internal, 405: fault.Internal} {
		w.set(func(rw http.ResponseWriter, r *http.Request) bool {
			rw.WriteHeader(status)
			fmt.Fprint(rw, `<Error><Code>Code</Code><Message>secret-free</Message></Error>`)
			return true
		}, nil)
		for verb, err := range map[string]error{
			"write":  l.store.WriteMetadata(t.Context(), l.at("metadata/x"), []byte("x")),
			"stat":   l.store.StatMetadata(t.Context(), l.at("metadata/x")),
			"remove": l.files(t).Remove(l.scope.Location + "/x"),
		} {
			if !fault.Is(err, want) {
				t.Errorf("%s at %d: %s, %v", verb, status, fault.KindOf(err), err)
			}
		}
		if got := len(w.requests()); got > 3*4+3 {
			t.Errorf("%d requests at %d", got, status)
		}
	}
}

func TestWriter_PartThatFailsLeavesNothing(t *testing.T) {
	l, w := inWeather(t)
	w.set(func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") != "2" {
			return false
		}
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(rw, `<Error><Code>InvalidPart</Code></Error>`)
		return true
	}, nil)
	name := l.scope.Location + "/data/broken"
	file, err := l.files(t).Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, writeErr := file.Write(content(40 << 20))
	if closeErr := file.Close(); closeErr == nil {
		t.Errorf("write: %v, but close says that the file is whole", writeErr)
	}
	if _, found := l.peek(t, name); found {
		t.Error("there is a file")
	}
	bucket, key, _ := vending.SplitS3(name)
	uploads, err := s3test.Start(t).Client(s3test.Admin).ListMultipartUploads(t.Context(), &awss3.ListMultipartUploadsInput{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range uploads.Uploads {
		if aws.ToString(u.Key) == key {
			t.Error("the upload's parts are still there")
		}
	}
}

// What maintenance reads most costs one request each.
func TestReads_RequestsPerFile(t *testing.T) {
	l, w := inWeather(t)
	for _, c := range []struct {
		size int
		read func(f io.ReaderAt, size int) error
		want int
		what string
	}{
		{100 << 10, wholeFile, 1, "a manifest"},
		{5 << 20, footer, 1, "a data file's footer"},
		{5 << 20, wholeFile, 2, "a small data file"},
		{40 << 20, footer, 1, "a large data file's footer"},
		{40 << 20, wholeFile, 2, "a large data file in one read"},
		{40 << 20, smallReads, 2, "small reads close together"},
	} {
		name := fmt.Sprintf("%s/data/%d", l.scope.Location, c.size)
		l.plant(t, name, string(content(c.size)))
		w.set(nil, nil)
		f, err := l.files(t).Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.read(f, c.size); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		f.Close()
		if got := w.requests(); len(got) != c.want {
			t.Errorf("%s costs %d requests, want %d: %v", c.what, len(got), c.want, got)
		}
	}
}

func wholeFile(f io.ReaderAt, size int) error {
	_, err := f.ReadAt(make([]byte, size), 0)
	return err
}

func footer(f io.ReaderAt, size int) error {
	for _, back := range []int{8, 60 << 10} {
		if _, err := f.ReadAt(make([]byte, back), int64(size-back)); err != nil {
			return err
		}
	}
	return nil
}

func smallReads(f io.ReaderAt, _ int) error {
	for i := range 100 {
		if _, err := f.ReadAt(make([]byte, 1000), int64(1<<20+i*1000)); err != nil {
			return err
		}
	}
	return nil
}

func TestFiles_ContextEnds(t *testing.T) {
	l, _ := inWeather(t)
	l.plant(t, l.scope.Location+"/x", "x")
	ctx, cancel := context.WithCancel(t.Context())
	files, err := l.store.OpenTable(ctx, l.profile, l.scope)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := files.Open(l.scope.Location + "/x"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFolder_WriteLeavesNothingBeside(t *testing.T) {
	l := onFolder(t)
	at := l.at("metadata/00000-a.metadata.json")
	if err := l.store.WriteMetadata(t.Context(), at, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := l.store.WriteMetadata(t.Context(), at, []byte("{}")); err == nil {
		t.Error("a second write of the same bytes is taken")
	}
	path, _ := vending.FilePath(at.Path)
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestFolder_CreateIsForNewNames(t *testing.T) {
	l := onFolder(t)
	l.plant(t, l.scope.Location+"/data/a", "victim")
	if _, err := l.files(t).Create(l.scope.Location + "/data/a"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	if body, _ := l.peek(t, l.scope.Location+"/data/a"); body != "victim" {
		t.Errorf("the file holds %q", body)
	}
}

func TestStore_LeavesNoGoroutines(t *testing.T) {
	before := goleak.IgnoreCurrent()
	store := opened(t, vending.Provider(local.Provider{}), "FILE")
	l := onFolder(t)
	if err := store.WriteMetadata(t.Context(), l.at("metadata/a"), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	// Connections of earlier tests may come about after the first look; a folder has none.
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*Transport).dialConnFor"))
}
