package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Points are named in catalog/commit.go, store/commit.go and the maintenance package; the binary of these tests is
// built with the tag that makes them live.
var commitPoints = []string{
	"commit-before-metadata", "commit-after-metadata", "commit-in-transaction", "commit-after-pointer",
}

var crashBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "catalogd-e2e-")
	if err != nil {
		return "", err
	}
	keep(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "catalogd")
	build := exec.Command("go", "build", "-tags", "crashpoints", "-o", path, "../cmd/catalogd")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build catalogd with crash points: %w\n%s", err, out)
	}
	return path, nil
})

// crashing is a data folder whose server is killed and started again.
type crashing struct {
	t   *testing.T
	dir string
	*server
}

func newCrashing(t *testing.T) *crashing {
	t.Helper()
	dir := tempDir(t)
	c := &crashing{t: t, dir: filepath.Join(dir, "data")}
	t.Cleanup(func() {
		if c.server != nil {
			c.stop()
		}
		os.RemoveAll(dir)
	})
	return c
}

// start starts `dev` on the folder; env are more variables.
func (c *crashing) start(env ...string) {
	c.t.Helper()
	bin, err := crashBinary()
	if err != nil {
		c.t.Fatal(err)
	}
	s := &server{dir: c.dir, log: &bytes.Buffer{}}
	s.cmd = exec.Command(bin, "dev", "--data", c.dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--no-worker")
	s.cmd.Env = append(cleanEnv(), env...)
	s.waitReady(c.t)
	c.server = s
}

func (c *crashing) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// postgresPID is the file whose first line is the pid of the folder's Postgres.
func (c *crashing) postgresPID() string { return filepath.Join(c.dir, "postgres", "postmaster.pid") }

// rest is a minimal client: just enough of the protocol to see statuses and bodies as they are.
type rest struct {
	t     *testing.T
	base  string
	token string
}

func (s *server) rest(t *testing.T) *rest {
	t.Helper()
	id, secret, _ := strings.Cut(s.env["CATALOG_CREDENTIAL"], ":")
	answer, err := http.PostForm(s.env["CATALOG_OAUTH2__SERVER__URI"], url.Values{
		"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}, "scope": {s.env["CATALOG_SCOPE"]}})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&token); err != nil || token.AccessToken == "" {
		t.Fatalf("log in: %s %v", answer.Status, err)
	}
	return &rest{t, s.env["CATALOG_URI"] + "/v1", token.AccessToken}
}

// call gives the status and the body; status 0 when the connection broke.
func (r *rest) call(method, path string, body any) (int, []byte) {
	r.t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			r.t.Fatal(err)
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, r.base+path, in)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, nil
	}
	return answer.StatusCode, raw
}

// loaded is what these tests read of a table.
type loaded struct {
	MetadataLocation string `json:"metadata-location"`
	Metadata         struct {
		UUID      string `json:"table-uuid"`
		Location  string `json:"location"`
		Snapshots []struct {
			ID int64 `json:"snapshot-id"`
		} `json:"snapshots"`
		Refs map[string]struct {
			ID int64 `json:"snapshot-id"`
		} `json:"refs"`
	} `json:"metadata"`
}

func (r *rest) load(table string) loaded {
	r.t.Helper()
	status, raw := r.call("GET", "/dev/namespaces/crash/tables/"+table, nil)
	if status != 200 {
		r.t.Fatalf("load %s: %d %s", table, status, raw)
	}
	var l loaded
	if err := json.Unmarshal(raw, &l); err != nil {
		r.t.Fatal(err)
	}
	path := strings.TrimPrefix(l.MetadataLocation, "file://")
	file, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatalf("the pointer names a missing file: %v", err)
	}
	if !json.Valid(file) {
		r.t.Fatalf("%s is not whole", path)
	}
	return l
}

// appendOf is the commit that adds snapshot id on top of parent (0: the first).
func appendOf(l loaded, id, parent int64) map[string]any {
	snapshot := map[string]any{
		"snapshot-id": id, "sequence-number": id, "timestamp-ms": 1_790_000_000_000 + id, "schema-id": 0,
		"manifest-list": fmt.Sprintf("%s/metadata/snap-%d.avro", l.Metadata.Location, id),
		"summary":       map[string]string{"operation": "append"},
	}
	var before any
	if parent != 0 {
		snapshot["parent-snapshot-id"], before = parent, parent
	}
	return map[string]any{
		"requirements": []any{
			map[string]any{"type": "assert-table-uuid", "uuid": l.Metadata.UUID},
			map[string]any{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": before},
		},
		"updates": []any{
			map[string]any{"action": "add-snapshot", "snapshot": snapshot},
			map[string]any{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id},
		},
	}
}

// The server, then Postgres, is killed at each step of a commit. No acknowledged commit is lost, no pointer names a
// missing file, and the client's repeat of the commit is answered 200 with the snapshot there once.
func TestCrash_Commit(t *testing.T) {
	c := newCrashing(t)
	c.start()
	r := c.rest(t)
	if status, raw := r.call("POST", "/dev/namespaces", map[string]any{"namespace": []string{"crash"}}); status != 200 {
		t.Fatalf("create namespace: %d %s", status, raw)
	}
	schema := map[string]any{"type": "struct", "schema-id": 0, "fields": []any{
		map[string]any{"id": 1, "name": "id", "type": "long", "required": false}}}
	if status, raw := r.call("POST", "/dev/namespaces/crash/tables", map[string]any{"name": "t", "schema": schema}); status != 200 {
		t.Fatalf("create table: %d %s", status, raw)
	}
	c.stop()

	next, head := int64(1), int64(0)
	for _, victim := range []string{"server", "postgres"} {
		for _, point := range commitPoints {
			env := []string{"CATALOGD_CRASH_POINT=" + point}
			if victim == "postgres" {
				env = append(env, "CATALOGD_CRASH_PIDFILE="+c.postgresPID())
			}
			c.start(env...)
			r := c.rest(t)
			change := appendOf(r.load("t"), next, head)
			status, raw := r.call("POST", "/dev/namespaces/crash/tables/t", change)
			if victim == "server" {
				if err := c.cmd.Wait(); !killed(err) {
					t.Fatalf("%s: the server was not killed: %v\n%s", point, err, c.log)
				}
			} else {
				c.kill()
			}

			c.start()
			r = c.rest(t)
			after := r.load("t")
			landed := after.Metadata.Refs["main"].ID == next
			if status == 200 && !landed {
				t.Errorf("%s killed at %s: an acknowledged commit is lost", victim, point)
			}
			if status >= 400 && status < 500 {
				t.Errorf("%s killed at %s: the commit was answered %d %s", victim, point, status, raw)
			}
			again, raw := r.call("POST", "/dev/namespaces/crash/tables/t", change)
			if again != 200 {
				t.Errorf("%s killed at %s: the repeat was answered %d %s", victim, point, again, raw)
			}
			final := r.load("t")
			if n := int64(len(final.Metadata.Snapshots)); n != next || final.Metadata.Refs["main"].ID != next {
				t.Errorf("%s killed at %s: %d snapshots, head %d; wanted %d", victim, point, n, final.Metadata.Refs["main"].ID, next)
			}
			t.Logf("%-8s killed at %-24s first answer %3d, landed %-5v repeat %d", victim, point, status, landed, again)
			head, next = next, next+1
			c.stop()
		}
	}
}

// killed tells whether a process ended by SIGKILL.
func killed(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
