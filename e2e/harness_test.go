package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
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
	"time"
)

// Limits of the harness: what takes longer has failed.
const (
	startSecondsMax  = 300
	clientSecondsMax = 1800
)

// server is one running `catalogd dev`.
type server struct {
	dir string
	env map[string]string // client.env
	cmd *exec.Cmd
	s3  *s3store
	log *lockedBuffer
}

// shared holds what several tests use; TestMain stops it.
var shared struct {
	stopping sync.Mutex
	stops    []func()

	mu      sync.Mutex
	servers map[string]*server
	store   *s3store
}

// built is the catalogd under test.
var built struct {
	mu   sync.Mutex
	path string
}

func TestMain(m *testing.M) {
	code := m.Run()
	shared.stopping.Lock()
	for i := len(shared.stops) - 1; i >= 0; i-- {
		shared.stops[i]()
	}
	shared.stopping.Unlock()
	if os.Getenv("CATALOGD_BIN") == "" && built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
	printUntouched()
	os.Exit(code)
}

// keep makes fn run when all tests are over.
func keep(fn func()) {
	shared.stopping.Lock()
	defer shared.stopping.Unlock()
	shared.stops = append(shared.stops, fn)
}

// root is the repository's top folder.
func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tempDir is a folder that the server's database user can reach too.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "catalogd-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// binary gives the catalogd to test: CATALOGD_BIN, else one built here once.
func binary(t testing.TB) string {
	t.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.path != "" {
		return built.path
	}
	if path := os.Getenv("CATALOGD_BIN"); path != "" {
		built.path = path
		return path
	}
	path := filepath.Join(tempDir(t), "catalogd")
	build := exec.Command("go", "build", "-o", path, "./cmd/catalogd")
	build.Dir = root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build catalogd: %v\n%s", err, out)
	}
	built.path = path
	return path
}

// fileServer is the shared server with a `file:` warehouse; s3Server the one on S3. Both are called `dev`.
func fileServer(t testing.TB) *server { return sharedServer(t, "file") }
func s3Server(t testing.TB) *server   { return sharedServer(t, "s3") }

func sharedServer(t testing.TB, kind string) *server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if s := shared.servers[kind]; s != nil {
		return s
	}
	dir := tempDir(t)
	keep(func() { os.RemoveAll(dir) })
	var store *s3store
	if kind == "s3" {
		store = lockedStore(t)
	}
	s := startDev(t, filepath.Join(dir, "data"), store)
	keep(s.stop)
	if shared.servers == nil {
		shared.servers = map[string]*server{}
	}
	shared.servers[kind] = s
	return s
}

// sharedStore is the object store of all tests.
func sharedStore(t testing.TB) *s3store {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return lockedStore(t)
}

// lockedStore is sharedStore for those that hold shared.mu.
func lockedStore(t testing.TB) *s3store {
	t.Helper()
	if shared.store == nil {
		dir := tempDir(t)
		shared.store = startStore(t, dir, "")
		keep(func() { shared.store.stop(); os.RemoveAll(dir) })
	}
	return shared.store
}

// startDev starts `catalogd dev` on a data folder and waits until it says that it is ready.
func startDev(t testing.TB, dir string, store *s3store, args ...string) *server {
	t.Helper()
	args = append([]string{"dev", "--data", dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}, args...)
	env := cleanEnv()
	if store != nil {
		config := store.storageConfig(t)
		args = append(args, "--warehouse-location", store.location(), "--storage-config", config)
		env = append(env, store.serverKeys()...)
	}
	s := &server{dir: dir, s3: store, log: &lockedBuffer{}}
	s.cmd = exec.Command(binary(t), args...)
	s.cmd.Env = env
	s.waitReady(t)
	return s
}

// waitReady starts the command and reads its output until the ready line; the rest is drained for the log.
func (s *server) waitReady(t testing.TB) {
	t.Helper()
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = s.log
	if err := startBound(s.cmd); err != nil {
		t.Fatalf("start catalogd: %v", err)
	}
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "catalogd ready on ") {
				ready <- true
			}
		}
		ready <- false
	}()
	select {
	case ok := <-ready:
		if !ok {
			_ = s.cmd.Wait()
			t.Fatalf("catalogd ended before it was ready:\n%s", s.log)
		}
	case <-time.After(startSecondsMax * time.Second):
		_ = s.cmd.Process.Kill()
		t.Fatalf("catalogd was not ready after %d s:\n%s", startSecondsMax, s.log)
	}
	s.env = readEnv(t, filepath.Join(s.dir, "client.env"))
}

// startBound starts a process that is told to end when this one does, in whatever way: a run that is out of time ends
// without its cleanups. The kernel tells it when the thread ends that started it, so that one stays for good.
func startBound(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			select {}
		}
	}()
	return <-started
}

// startTalking starts a client that is told what to do on its standard input and answers on its standard output. It ends
// with the test, which fails when the client does; problems is what it has complained of.
func startTalking(t *testing.T, cmd *exec.Cmd) (in io.WriteCloser, out io.Reader, problems *lockedBuffer) {
	t.Helper()
	problems = &lockedBuffer{}
	cmd.Stderr = problems
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err = cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := startBound(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", cmd, err, problems)
		}
	})
	return in, out, problems
}

// stop ends the server as an operator would.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// readEnv reads KEY=value lines.
func readEnv(t testing.TB, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, line := range strings.Split(string(raw), "\n") {
		if key, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "="); ok {
			env[key] = value
		}
	}
	return env
}

// cleanEnv is this process's environment without anything that could lend a client or the server foreign rights.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "AWS_") || strings.HasPrefix(kv, "S3_") || strings.HasPrefix(kv, "CATALOG") {
			if !strings.HasPrefix(kv, "CATALOGD_POSTGRES_BIN=") {
				continue
			}
		}
		env = append(env, kv)
	}
	return append(env, "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
}

// s3store is a running object store with STS.
type s3store struct {
	dir string
	env map[string]string
	// watched is held as long as the store is to run: it ends with its closing, which is the collector's when nobody has it.
	watched io.Closer
	// sts overrides the endpoint that the catalog asks for sessions.
	sts string
	// base is the folder of the bucket that the warehouse is in; "" is "e2e".
	base string
	// endpointHidden keeps the store's address from clients.
	endpointHidden bool
	// front, when not "", is what the server and its workers take for the store.
	front string
}

// serverKeys are the server's own keys as the AWS variables hold them: they may assume the role and nothing else.
func (s *s3store) serverKeys() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + s.env["S3_CATALOG_ACCESS_KEY_ID"], "AWS_SECRET_ACCESS_KEY=" + s.env["S3_CATALOG_SECRET_ACCESS_KEY"]}
}

// within gives the store with another base, for a warehouse of its own.
func (s *s3store) within(base string) *s3store {
	other := *s
	other.base = base
	return &other
}

// startStore starts the store of e2e/s3; iam, when not "", is another identity file.
func startStore(t testing.TB, dir, iam string) *s3store {
	t.Helper()
	up := exec.Command(filepath.Join(root(t), "e2e", "s3", "up"), dir)
	up.Env = os.Environ()
	if iam != "" {
		up.Env = append(up.Env, "S3_IAM_FILE="+iam)
	}
	if out, err := up.CombinedOutput(); err != nil {
		t.Fatalf("start the object store: %v\n%s", err, out)
	}
	// The watcher's input ends with this process, in whatever way. A store that was stopped by then is not there for it. In
	// its own group, it gets no interrupt from the terminal.
	watch := exec.Command("bash", "-c", `cat >/dev/null; "$0" "$1"`, filepath.Join(root(t), "e2e", "s3", "down"), dir)
	watch.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := watch.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	return &s3store{dir: dir, env: readEnv(t, filepath.Join(dir, "env")), watched: input}
}

func (s *s3store) stop() {
	_ = exec.Command(filepath.Join("s3", "down"), s.dir).Run()
}

func (s *s3store) folder() string {
	if s.base == "" {
		return "e2e"
	}
	return s.base
}

func (s *s3store) location() string { return "s3://" + s.env["S3_BUCKET"] + "/" + s.folder() }

// bucketURL is the bucket as an address, for clients that want it by hand.
func (s *s3store) bucketURL() string { return s.env["AWS_ENDPOINT_URL"] + "/" + s.env["S3_BUCKET"] }

// storageConfig writes the warehouse's storage configuration.
func (s *s3store) storageConfig(t testing.TB) string {
	t.Helper()
	sts := s.sts
	if sts == "" {
		sts = s.env["S3_STS_ENDPOINT"]
	}
	endpoint := "endpoint"
	if s.endpointHidden {
		endpoint = "endpointInternal"
	}
	config := map[string]any{
		"storageType": "S3", "roleArn": s.env["S3_ROLE_ARN"], "region": s.env["AWS_REGION"],
		endpoint: s.env["AWS_ENDPOINT_URL"], "stsEndpoint": sts, "pathStyleAccess": true,
		"allowedLocations": []string{s.location()},
	}
	if s.front != "" {
		config["endpointInternal"] = s.front
	}
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir, "storage-"+s.folder()+".json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// smokeArgs are the settings that the smoke scripts take on their command lines.
func (s *server) smokeArgs() []string {
	return []string{
		"credential=" + s.env["CATALOG_CREDENTIAL"], "scope=" + s.env["CATALOG_SCOPE"],
		"oauth2-server-uri=" + s.env["CATALOG_OAUTH2__SERVER__URI"],
	}
}

// catalogd runs a command of the binary with the server's client settings.
func (s *server) catalogd(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	cmd.Env = cleanEnv()
	for key, value := range s.env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("catalogd %v: %v\n%s%s", args, err, out, errs.String())
	}
	return string(out)
}

// tail gives the last lines of a text.
func tail(text string, linesMax int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if over := len(lines) - linesMax; over > 0 {
		lines = append([]string{fmt.Sprintf("(%d lines before)", over)}, lines[over:]...)
	}
	return strings.Join(lines, "\n")
}
