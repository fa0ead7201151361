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

// start starts `dev` on the folder.
func (c *crashing) start() {
	c.t.Helper()
	bin, err := crashBinary()
	if err != nil {
		c.t.Fatal(err)
	}
	s := &server{dir: c.dir, log: &lockedBuffer{}}
	s.cmd = exec.Command(bin, "dev", "--data", c.dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--no-worker")
	// A commit whose database is gone waits for it as long as the server may take to end.
	s.cmd.Env = append(cleanEnv(), "CATALOGD_CRASH_POINT=@"+c.wish(), "CATALOGD_SHUTDOWN_GRACE=2", "CATALOGD_WEBHOOKS_ALLOW_PRIVATE=true")
	s.waitReady(c.t)
	c.server = s
}

// wish is the file that kills, see package crash.
func (c *crashing) wish() string { return filepath.Join(filepath.Dir(c.dir), "wish") }

func (c *crashing) wishFor(point, pidFile string) {
	c.t.Helper()
	if err := os.WriteFile(c.wish(), []byte(point+"\n"+pidFile+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
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
			ID       int64          `json:"snapshot-id"`
			Parent   int64          `json:"parent-snapshot-id"`
			Sequence int64          `json:"sequence-number"`
			Summary  map[string]any `json:"summary"`
		} `json:"snapshots"`
		Refs map[string]struct {
			ID int64 `json:"snapshot-id"`
		} `json:"refs"`
		SnapshotLog []struct {
			ID int64 `json:"snapshot-id"`
		} `json:"snapshot-log"`
		Log []struct {
			File string `json:"metadata-file"`
		} `json:"metadata-log"`
	} `json:"metadata"`
}

func (l loaded) head() int64 { return l.Metadata.Refs["main"].ID }

// look loads NAMESPACE.TABLE.
func (r *rest) look(name string) loaded {
	r.t.Helper()
	namespace, table, _ := strings.Cut(name, ".")
	status, raw := r.call("GET", "/dev/namespaces/"+namespace+"/tables/"+table, nil)
	if status != 200 {
		r.t.Fatalf("load %s: %d %s", name, status, raw)
	}
	var l loaded
	if err := json.Unmarshal(raw, &l); err != nil {
		r.t.Fatal(err)
	}
	return l
}

// load loads a table of the crash tests, whose metadata file must be there.
func (r *rest) load(table string) loaded {
	r.t.Helper()
	l := r.look("crash." + table)
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

// leftovers counts the files of the metadata folder that the table does not name.
func (l loaded) leftovers(t testing.TB) int {
	t.Helper()
	named := map[string]bool{filepath.Base(l.MetadataLocation): true}
	for _, entry := range l.Metadata.Log {
		named[filepath.Base(entry.File)] = true
	}
	files, err := os.ReadDir(filepath.Dir(strings.TrimPrefix(l.MetadataLocation, "file://")))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if !named[f.Name()] {
			n++
		}
	}
	return n
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

// makeTables makes the namespace crash and empty tables in it.
func (r *rest) makeTables(names ...string) {
	r.t.Helper()
	if status, raw := r.call("POST", "/dev/namespaces", map[string]any{"namespace": []string{"crash"}}); status != 200 {
		r.t.Fatalf("create namespace: %d %s", status, raw)
	}
	schema := map[string]any{"type": "struct", "schema-id": 0, "fields": []any{
		map[string]any{"id": 1, "name": "id", "type": "long", "required": false}}}
	for _, name := range names {
		if status, raw := r.call("POST", "/dev/namespaces/crash/tables", map[string]any{"name": name, "schema": schema}); status != 200 {
			r.t.Fatalf("create table: %d %s", status, raw)
		}
	}
}

// commits are commits to tables that each add the next snapshot, one after another, while processes die.
type commits struct {
	t      *testing.T
	tables []string // several: in one transaction
	next   int64
}

// request gives the next commit's path and body; for every table the head is the snapshot before.
func (c *commits) request(r *rest) (path string, body any, done int) {
	var changes []map[string]any
	for _, table := range c.tables {
		change := appendOf(r.load(table), c.next, c.next-1)
		change["identifier"] = map[string]any{"namespace": []string{"crash"}, "name": table}
		changes = append(changes, change)
	}
	if len(changes) == 1 {
		return "/dev/namespaces/crash/tables/" + c.tables[0], changes[0], 200
	}
	return "/dev/transactions/commit", map[string]any{"table-changes": changes}, 204
}

// landed tells whether the snapshot is the head, and whether it is so in all tables.
func (c *commits) landed(r *rest) (landed, all bool) {
	n := 0
	for _, table := range c.tables {
		if r.load(table).head() == c.next {
			n++
		}
	}
	return n > 0, n == len(c.tables) || n == 0
}

func (c *commits) leftovers(r *rest) int {
	n := 0
	for _, table := range c.tables {
		n += r.load(table).leftovers(c.t)
	}
	return n
}

// die sends one commit that meets a death, waits until everything is back, and then holds what is there against what
// was answered; the client's repeat of the commit must be done, with the snapshot there once. It gives the number of
// files left behind, and whether the commit landed.
func (c *commits) die(what string, r *rest, back func() *rest) (int, bool) {
	c.t.Helper()
	path, body, done := c.request(r)
	before := c.leftovers(r)
	status, raw := r.call("POST", path, body)
	r = back()
	landed, all := c.landed(r)
	left := c.leftovers(r) - before
	if !all {
		c.t.Errorf("%s: the transaction landed in one table and not in the other", what)
	}
	switch {
	case status == done && !landed:
		c.t.Errorf("%s: an acknowledged commit is lost", what)
	case status == 503 && landed:
		c.t.Errorf("%s: a commit that landed was answered 503 %s", what, raw)
	case status >= 400 && status < 500:
		c.t.Errorf("%s: the commit was answered %d %s", what, status, raw)
	case status == 500 && !strings.Contains(string(raw), "CommitStateUnknownException"):
		c.t.Errorf("%s: the commit was answered %d %s", what, status, raw)
	}
	again, raw := r.call("POST", path, body)
	if again != done {
		c.t.Errorf("%s: the repeat was answered %d %s", what, again, raw)
	}
	for _, table := range c.tables {
		final := r.load(table)
		if n := int64(len(final.Metadata.Snapshots)); n != c.next || final.head() != c.next {
			c.t.Errorf("%s: %s has %d snapshots, head %d; wanted %d", what, table, n, final.head(), c.next)
		}
	}
	c.t.Logf("%-52s answer %3d, landed %-5v files left %d, repeat %d", what, status, landed, left, again)
	c.next++
	return left, landed
}

// leftBySIGKILL is how many metadata files a server leaves that dies at a point. A commit of one table is on its way as a
// whole in the transaction: the database may still land it, and then nothing is left.
var leftBySIGKILL = map[string]int{
	"commit-before-metadata": 0, "commit-after-metadata": 1, "commit-in-transaction": 1, "commit-after-pointer": 0,
}

// `catalogd dev`, then the Postgres that belongs to it, is killed at each step of a commit. No acknowledged commit is
// lost, no pointer names a missing file, the next start recovers the folder.
func TestCrash_CommitOnDev(t *testing.T) {
	c := newCrashing(t)
	c.start()
	c.rest(t).makeTables("t")
	commits := &commits{t: t, tables: []string{"t"}, next: 1}
	for _, point := range commitPoints {
		c.wishFor(point, "")
		left, landed := commits.die("dev killed at "+point, c.rest(t), func() *rest {
			if err := c.cmd.Wait(); !killed(err) {
				t.Fatalf("%s: the server was not killed: %v\n%s", point, err, c.log)
			}
			c.start()
			return c.rest(t)
		})
		if want := leftBySIGKILL[point]; left != want && !(landed && left == 0) {
			t.Errorf("%s: %d files were left, wanted %d", point, left, want)
		}
	}
	for _, point := range commitPoints {
		c.wishFor(point, c.postgresPID())
		commits.die("dev's Postgres killed at "+point, c.rest(t), func() *rest {
			// A server whose database is gone for good ends by itself, with a word.
			if err := c.cmd.Wait(); err == nil || killed(err) {
				t.Errorf("%s: dev ended with %v after its Postgres had died", point, err)
			}
			c.start()
			return c.rest(t)
		})
	}
}

// A server of several, then the Postgres that serves them all, is killed at each step of a commit and comes back: a
// server that lives meanwhile asks the database what became of the commit.
func TestCrash_CommitOnServe(t *testing.T) {
	l := newLake(t)
	l.rest(t).makeTables("alone", "one", "other")
	for kind, tables := range map[string][]string{"commit": {"alone"}, "transaction": {"one", "other"}} {
		commits := &commits{t: t, tables: tables, next: 1}
		for _, point := range commitPoints {
			for _, victim := range []string{"serve", "Postgres"} {
				watched, pidFile := l.serving, ""
				if victim == "Postgres" {
					watched, pidFile = l.postgres, l.postgresPID
				}
				starts := watched.started()
				r := l.rest(t)
				l.wishFor(point, pidFile)
				left, landed := commits.die(fmt.Sprintf("%s: %s killed at %s", kind, victim, point), r, func() *rest {
					await(t, victim+" is back", func() bool { return watched.started() > starts })
					l.awaitReady()
					return l.rest(t)
				})
				if want := leftBySIGKILL[point]; victim == "serve" && kind == "commit" && left != want && !(landed && left == 0) {
					t.Errorf("%s: %d files were left, wanted %d", point, left, want)
				}
			}
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
