package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"catalogd/internal/pgserver"
)

// awaitEvery spaces the looks at something that will be there soon; awaitMax is how long soon may be.
const (
	awaitEvery = 50 * time.Millisecond
	awaitMax   = 300 * time.Second
)

// await asks until yes, and fails the test when the answer stays no.
func await(t testing.TB, what string, yes func() bool) {
	t.Helper()
	awaitUpTo(t, awaitMax, what, yes)
}

func awaitUpTo(t testing.TB, most time.Duration, what string, yes func() bool) {
	t.Helper()
	ticker := time.NewTicker(awaitEvery)
	defer ticker.Stop()
	deadline := time.After(most)
	for !yes() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("%s: not within %s", what, most)
		}
	}
}

// watched is a process that is started again whenever it ends, as an init system does, until it is stopped.
type watched struct {
	make func() *exec.Cmd

	mu       sync.Mutex
	pid      int
	stopping bool
	starts   int
	done     chan struct{}
}

// watch starts the process; adopted, when not nil, is one that runs already and that somebody else waits for.
func watch(t testing.TB, adopted <-chan struct{}, pid int, command func() *exec.Cmd) *watched {
	w := &watched{make: command, pid: pid, done: make(chan struct{})}
	go func() {
		// The kernel sends the signal for a parent's death when this thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(w.done)
		if adopted != nil {
			<-adopted
		}
		for w.next(t) {
		}
	}()
	t.Cleanup(w.stop)
	return w
}

// next runs the process once; false when it is not to run again.
func (w *watched) next(t testing.TB) bool {
	w.mu.Lock()
	if w.stopping {
		w.mu.Unlock()
		return false
	}
	cmd := w.make()
	err := cmd.Start()
	if err == nil {
		w.pid = cmd.Process.Pid
		w.starts++
	}
	w.mu.Unlock()
	if err != nil {
		t.Errorf("start %s again: %v", cmd.Path, err)
		return false
	}
	_ = cmd.Wait()
	return true
}

// started counts the starts that happened here.
func (w *watched) started() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starts
}

func (w *watched) stop() {
	w.mu.Lock()
	if !w.stopping && w.pid > 0 {
		w.stopping = true
		_ = syscall.Kill(w.pid, syscall.SIGINT)
	}
	w.mu.Unlock()
	<-w.done
}

// lake is the product as a company runs it: a Postgres of its own, `catalogd serve` and `catalogd worker` as separate
// processes, and something that starts again what has died. All binaries can be killed at points.
type lake struct {
	t    testing.TB
	bin  string
	dir  string
	wish string // the file that kills, see package crash
	env  []string
	*server

	postgres    *watched
	postgresPID string // file
	serving     *watched
	servingPID  string // file
	ops         string
	db          *pgx.Conn
	url         string
}

func newLake(t testing.TB) *lake { return newLakeOn(t, nil) }

// newLakeOn is newLake whose warehouse is on an object store; nil: in a folder.
func newLakeOn(t testing.TB, store *s3store) *lake {
	t.Helper()
	bin, err := crashBinary()
	if err != nil {
		t.Fatal(err)
	}
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := &lake{t: t, bin: bin, dir: dir, wish: filepath.Join(dir, "wish"), servingPID: filepath.Join(dir, "serve.pid"),
		server: &server{dir: dir, log: &lockedBuffer{}}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the servers' log:\n%s", tail(l.server.log.String(), 40))
		}
	})
	l.startPostgres()
	key := make([]byte, 32)
	rand.Read(key)
	keyFile := filepath.Join(dir, "secrets.key")
	if err := os.WriteFile(keyFile, []byte(base64.StdEncoding.EncodeToString(key)), 0o600); err != nil {
		t.Fatal(err)
	}
	const credential = "root:e2e-root-secret-of-32-characters"
	l.env = append(cleanEnv(), "CATALOGD_DATABASE_URL="+l.url, "CATALOGD_SECRETS_KEY=file:"+keyFile,
		"CATALOGD_STORAGE_ALLOW_FILE=true", "CATALOGD_MAINTENANCE_EMBEDDED=false", "CATALOGD_LOG_FORMAT=text",
		"CATALOGD_ROOT_CREDENTIAL="+credential, "CATALOGD_CRASH_POINT=@"+l.wish)
	warehouse := []string{"warehouse", "create", "dev", "--location", "file://" + filepath.Join(dir, "warehouse")}
	if store != nil {
		l.server.s3 = store
		l.env = append(l.env, store.serverKeys()...)
		warehouse = []string{"warehouse", "create", "dev", "--location", store.location(), "--storage-config", store.storageConfig(t)}
	}
	l.run("migrate")
	l.run("bootstrap")
	l.startServing(credential)
	l.run(warehouse...)
	return l
}

// startPostgres starts a Postgres that comes back on the same port.
func (l *lake) startPostgres() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startSecondsMax*time.Second)
	defer cancel()
	first, err := pgserver.Start(ctx, pgserver.Options{Dir: filepath.Join(l.dir, "pg")})
	if err != nil {
		l.t.Fatal(err)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", first.PID()))
	if err != nil {
		l.t.Fatal(err)
	}
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	owner, err := os.Stat(fmt.Sprintf("/proc/%d", first.PID()))
	if err != nil {
		l.t.Fatal(err)
	}
	who := owner.Sys().(*syscall.Stat_t)
	l.url = first.URL()
	for i, arg := range args {
		if arg == "-D" {
			l.postgresPID = filepath.Join(args[i+1], "postmaster.pid")
		}
	}
	// What was written is in the kernel's hands and outlives the process; a disk that loses it is not what is tested.
	args = append(args, "-c", "fsync=off")
	l.postgres = watch(l.t, first.Done(), first.PID(), func() *exec.Cmd {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=" + filepath.Dir(args[0]) + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.Uid, Gid: who.Gid}
		}
		return cmd
	})
}

// startServing starts the server on a port that stays over its deaths, and waits until it is ready.
func (l *lake) startServing(credential string) {
	l.t.Helper()
	api, ops := freeAddress(l.t), freeAddress(l.t)
	base := "http://" + api
	l.ops = "http://" + ops
	l.server.env = map[string]string{
		"CATALOG_URI": base + "/api/catalog", "CATALOG_WAREHOUSE": "dev", "CATALOG_CREDENTIAL": credential,
		"CATALOG_SCOPE": "PRINCIPAL_ROLE:ALL", "CATALOG_OAUTH2__SERVER__URI": base + "/api/catalog/v1/oauth/tokens",
		"CATALOGD_MANAGEMENT_URI": base + "/api/management/v1",
	}
	log := l.server.log
	l.serving = watch(l.t, nil, 0, func() *exec.Cmd {
		// The shell leaves its pid, which the server then has, where a point finds it.
		cmd := exec.Command("sh", "-c", `echo $$ >"$0" && exec "$@"`, l.servingPID, l.bin, "serve", "--listen", api, "--ops-listen", ops)
		cmd.Env, cmd.Stderr = l.env, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return cmd
	})
	l.awaitReady()
}

// lockedBuffer takes the log of processes that follow each other.
type lockedBuffer struct {
	mu sync.Mutex
	to bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.to.Write(p)
}

// String gives what has been written so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.to.String()
}

// Ports of servers whose address must be known before they listen. They are below those that systems give to outgoing
// connections, one of which could take such a port before its server does, or while the server is dead; and below those of
// the object stores.
const freePortMin, freePortsMax = 10000, 10000

func freeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", freePortMin+mathrand.IntN(freePortsMax)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no free port was found")
	return ""
}

// awaitReady waits until the server says that it and the database are ready.
func (l *lake) awaitReady() {
	l.t.Helper()
	await(l.t, "the server is ready", func() bool {
		answer, err := http.Get(l.ops + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode == http.StatusOK
	})
}

// run runs a command of the binary to its end.
func (l *lake) run(args ...string) string {
	l.t.Helper()
	cmd := l.command(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		l.t.Fatalf("catalogd %v: %v\n%s%s", args, err, out, errs.String())
	}
	return string(out)
}

func (l *lake) command(args ...string) *exec.Cmd {
	cmd := exec.Command(l.bin, args...)
	cmd.Env = slices.Clone(l.env)
	for key, value := range l.server.env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	return cmd
}

// wishFor makes the next process that reaches the point kill the process of a pid file, or itself ("").
func (l *lake) wishFor(point, pidFile string) {
	l.t.Helper()
	if err := os.WriteFile(l.wish+".new", []byte(point+"\n"+pidFile+"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(l.wish+".new", l.wish); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lake) wishGranted() bool {
	_, err := os.Stat(l.wish)
	return os.IsNotExist(err)
}

// worker is a running `catalogd worker`.
type worker struct {
	cmd *exec.Cmd
	log *lockedBuffer
}

// startWorker starts a worker process. point, when not "", is where it is to die; else it listens to wishes.
func (l *lake) startWorker(point string) *worker {
	l.t.Helper()
	w := &worker{cmd: exec.Command(l.bin, "worker", "--ops-listen", "127.0.0.1:0"), log: &lockedBuffer{}}
	w.cmd.Env = append(slices.Clone(l.env), "CATALOGD_MAINTENANCE_SCRATCH="+filepath.Join(l.dir, "scratch"))
	if point != "" {
		w.cmd.Env = append(w.cmd.Env, "CATALOGD_CRASH_POINT="+point)
	}
	w.cmd.Stdout, w.cmd.Stderr = w.log, w.log
	if err := w.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	return w
}

// wait gives how the worker ended, within the time that a start and a small job may take.
func (w *worker) wait(t testing.TB) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- w.cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(awaitMax):
		_ = w.cmd.Process.Kill()
		<-ended
		t.Fatalf("the worker did not end:\n%s", tail(w.log.String(), 30))
		return nil
	}
}

// query reads rows of the database, over a connection that is made anew when it was cut.
func query[T any](l *lake, sql string, args ...any) []T {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), awaitMax)
	defer cancel()
	var out []T
	await(l.t, "the database answers", func() bool {
		if l.db == nil || l.db.IsClosed() {
			conn, err := pgx.Connect(ctx, l.url+"&search_path=catalogd")
			if err != nil {
				return false
			}
			l.db = conn
			l.t.Cleanup(func() { _ = conn.Close(context.Background()) })
		}
		rows, err := l.db.Query(ctx, sql, args...)
		if err == nil {
			out, err = pgx.CollectRows(rows, pgx.RowTo[T])
		}
		if err != nil && !l.db.IsClosed() {
			l.t.Fatalf("%s: %v", sql, err)
		}
		return err == nil
	})
	return out
}

// maintained is a table's job as the management API shows it.
type maintained struct {
	jobAnswer
	Attempts int    `json:"attempts"`
	Worker   string `json:"worker"`
}

// enqueue asks for a compaction of a table of the namespace crash.
func (l *lake) enqueue(r *rest, table string) string {
	l.t.Helper()
	manage := &rest{r.t, l.server.env["CATALOGD_MANAGEMENT_URI"], r.token}
	status, raw := manage.call("POST",
		"/catalogs/dev/namespaces/crash/tables/"+table+"/maintenance/run", map[string]any{"job": "compaction"})
	var job maintained
	if err := json.Unmarshal(raw, &job); err != nil || status != 200 {
		l.t.Fatalf("run maintenance of %s: %d %s", table, status, raw)
	}
	return job.JobID
}

// job asks the server for a job; false when the server does not answer now.
func (l *lake) job(r *rest, id string) (maintained, bool) {
	l.t.Helper()
	manage := &rest{r.t, l.server.env["CATALOGD_MANAGEMENT_URI"], r.token}
	status, raw := manage.call("GET", "/maintenance/jobs/"+id, nil)
	var job maintained
	if status == 0 || status >= 500 {
		return job, false
	}
	if err := json.Unmarshal(raw, &job); err != nil || status != 200 {
		l.t.Fatalf("load job %s: %d %s", id, status, raw)
	}
	return job, true
}

// linesWith gives the fields of the output's lines that begin with a word.
func linesWith(out, word string) [][]string {
	var found [][]string
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 0 && f[0] == word {
			found = append(found, f[1:])
		}
	}
	return found
}
