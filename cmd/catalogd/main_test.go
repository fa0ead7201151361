package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"catalogd/internal/pgserver/pgtest"
	"catalogd/store"
)

// readyMax is how long a started server may take; a first start makes a Postgres cluster.
const readyMax = 5 * time.Minute

// withPostgres gives the package's tests a Postgres of their own.
type withPostgres struct{ *testing.M }

func (m withPostgres) Run() int { return pgtest.Run(m.M, store.Migrate) }

func TestMain(m *testing.M) {
	testscript.Main(withPostgres{m}, map[string]func(){
		"catalogd": func() { os.Exit(mainCode()) },
	})
}

// TestScripts runs testdata/*.txt: commands, what they print, their exit codes. The scripts see only the variables
// that they set; what finds Postgres is passed on. Beside testscript's own commands there are
//
//	server start ARG...       runs catalogd in the background until it says that it is ready
//	server stop SIGNAL        ends it; after TERM it must end with 0
//	loadenv FILE              takes over a client.env
//	rest METHOD PATH [BODY]   calls the catalog as root and prints the answer; fails on a refusal
//	sql STATEMENT             changes rows of a dev server's database
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts in testdata", err)
	}
	// Postgres runs as another user when we are root, and must be able to reach the scripts' folders.
	root, err := os.MkdirTemp("", "catalogd-scripts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		WorkdirRoot:         root,
		RequireExplicitExec: true,
		Setup:               setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server": serverCommand, "loadenv": loadenvCommand, "rest": restCommand, "sql": sqlCommand,
		},
	})
}

func setupScript(e *testscript.Env) error {
	for _, name := range []string{"CATALOGD_POSTGRES_BIN", "XDG_CACHE_HOME"} {
		if value := os.Getenv(name); value != "" {
			e.Setenv(name, value)
		}
	}
	if home, err := os.UserHomeDir(); err == nil && os.Getenv("XDG_CACHE_HOME") == "" {
		e.Setenv("XDG_CACHE_HOME", filepath.Join(home, ".cache"))
	}
	e.Values["servers"] = &[]*scriptServer{}
	return nil
}

// scriptServer is a catalogd in the background of a script.
type scriptServer struct {
	cmd  *exec.Cmd
	done chan error // its end, then closed
}

// end ends a server that a script left running, orderly, so that its Postgres does not outlive the script's folder.
func (s *scriptServer) end() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(readyMax):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

func serverCommand(ts *testscript.TestScript, neg bool, args []string) {
	running := ts.Value("servers").(*[]*scriptServer)
	switch {
	case len(args) > 1 && args[0] == "start" && !neg:
		s := startScriptServer(ts, args[1:])
		*running = append(*running, s)
		ts.Defer(s.end)
	case len(args) == 2 && args[0] == "stop" && !neg && len(*running) > 0:
		last := len(*running) - 1
		s := (*running)[last]
		*running = (*running)[:last]
		signal := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}[args[1]]
		ts.Check(s.cmd.Process.Signal(signal))
		select {
		case err := <-s.done:
			if args[1] != "KILL" && err != nil {
				ts.Fatalf("the server ended with %v", err)
			}
		case <-time.After(readyMax):
			ts.Fatalf("the server does not end")
		}
	default:
		ts.Fatalf("usage: server start ARG... | server stop TERM|INT|KILL")
	}
}

// startScriptServer waits for the ready line; output till then goes to server.out, all of it to server.all when the server has
// ended, and errors to server.err.
func startScriptServer(ts *testscript.TestScript, args []string) *scriptServer {
	self, err := os.Executable()
	ts.Check(err)
	cmd := exec.Command(self, args...)
	cmd.Args[0] = "catalogd" // testscript.Main goes by this name
	cmd.Dir = ts.MkAbs(".")
	for _, name := range append([]string{"PATH", "HOME", "XDG_CACHE_HOME", "CATALOGD_POSTGRES_BIN", "TMPDIR"}, scriptVariables...) {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	logs, err := os.Create(ts.MkAbs("server.err"))
	ts.Check(err)
	cmd.Stderr = logs
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s := &scriptServer{cmd: cmd, done: make(chan error, 1)}
	ready := make(chan []byte, 1) // what was printed till then
	var printed bytes.Buffer
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			printed.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), " ready") {
				break
			}
		}
		ready <- bytes.Clone(printed.Bytes())
		for lines.Scan() {
			printed.WriteString(lines.Text() + "\n")
		}
		if err := os.WriteFile(ts.MkAbs("server.all"), printed.Bytes(), 0o644); err != nil {
			logs.WriteString(err.Error())
		}
		s.done <- cmd.Wait()
		close(s.done)
		logs.Close()
	}()
	select {
	case begun := <-ready:
		ts.Check(os.WriteFile(ts.MkAbs("server.out"), begun, 0o644))
		if !bytes.Contains(begun, []byte(" ready")) {
			body, _ := os.ReadFile(ts.MkAbs("server.err"))
			ts.Fatalf("the server ended before it was ready: %s", body)
		}
	case <-time.After(readyMax):
		_ = cmd.Process.Kill()
		ts.Fatalf("the server was not ready in time")
	}
	return s
}

// scriptVariables are what scripts may set for a server.
var scriptVariables = []string{
	"CATALOGD_ROOT_CREDENTIAL", "CATALOGD_DATABASE_URL", "CATALOGD_SECRETS_KEY", "CATALOGD_STORAGE_ALLOW_FILE", "CATALOGD_AUDIT_LOG",
}

func loadenvCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: loadenv FILE")
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found {
			ts.Fatalf("%q is not KEY=value", line)
		}
		ts.Setenv(name, value)
	}
}

// sqlCommand changes the database of a `dev` server behind its back, for what no command makes happen soon.
func sqlCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sql STATEMENT")
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyMax)
	defer cancel()
	db, err := pgx.Connect(ctx, ts.Getenv("CATALOGD_DEV_DATABASE_URL"))
	ts.Check(err)
	defer db.Close(ctx)
	tag, err := db.Exec(ctx, args[0])
	ts.Check(err)
	if tag.RowsAffected() == 0 {
		ts.Fatalf("%s: no row", args[0])
	}
}

func restCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: rest METHOD PATH [BODY]")
	}
	token := tokenOf(ts)
	body := strings.Join(args[2:], "")
	req, err := http.NewRequest(args[0], ts.Getenv("CATALOG_URI")+args[1], strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	text := bodyText(res)
	fmt.Fprintln(ts.Stdout(), text)
	if refused := res.StatusCode >= 300; refused != neg {
		ts.Fatalf("%s %s: %d %s", args[0], args[1], res.StatusCode, text)
	}
}

// tokenOf signs in as the script's client would, which asks again when the server is busy.
func tokenOf(ts *testscript.TestScript) string {
	id, secret, _ := strings.Cut(ts.Getenv("CATALOG_CREDENTIAL"), ":")
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}, "scope": {ts.Getenv("CATALOG_SCOPE")},
	}
	for range 5 {
		res, err := http.PostForm(ts.Getenv("CATALOG_OAUTH2__SERVER__URI"), form)
		ts.Check(err)
		if text := bodyText(res); res.StatusCode == http.StatusOK {
			return field(text, "access_token")
		} else if res.StatusCode != http.StatusServiceUnavailable {
			ts.Fatalf("sign in as %s: %d %s", id, res.StatusCode, text)
		}
	}
	ts.Fatalf("sign in as %s: the server stays busy", id)
	return ""
}

func bodyText(res *http.Response) string {
	defer res.Body.Close()
	var b bytes.Buffer
	_, _ = b.ReadFrom(res.Body)
	return b.String()
}

// field reads a text field out of JSON.
func field(text, name string) string {
	_, after, _ := strings.Cut(text, `"`+name+`":"`)
	value, _, _ := strings.Cut(after, `"`)
	return value
}

// TestScripts_CoverEveryCommand: a command or verb that no script runs has no test of its exit codes.
func TestScripts_CoverEveryCommand(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(body)
	}
	uses := func(words ...string) bool {
		line := strings.Join(slices.Clone(words), " ")
		return strings.Contains(all.String(), "catalogd "+line) || strings.Contains(all.String(), "server start "+line)
	}
	for _, k := range commands {
		if k.verbs == nil && !uses(k.name) {
			t.Errorf("no script runs `catalogd %s`", k.name)
		}
		for _, verb := range k.verbs {
			if !uses(k.name, verb.name) {
				t.Errorf("no script runs `catalogd %s %s`", k.name, verb.name)
			}
		}
	}
}
