package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Java engines that may run at once: each takes up to 2 GB, and two cores serve no more.
var jvms = make(chan struct{}, 3)

// installed runs a client's install script and gives the fields of its last line.
func installed(t testing.TB, client string, args ...string) []string {
	t.Helper()
	install := exec.Command(filepath.Join(root(t), "e2e", "clients", client, "install"), args...)
	var errs bytes.Buffer
	install.Stderr = &errs
	out, err := install.Output()
	if err != nil {
		t.Fatalf("install %s: %v\n%s", client, err, tail(errs.String(), 20))
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Fields(ansi.ReplaceAllString(lines[len(lines)-1], ""))
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;]*m")

// javaHome finds a JDK as the scripts do; max may be left out.
func javaHome(t testing.TB, versions ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(root(t), ".ci", "find-java"), versions...).Output()
	if err != nil {
		t.Fatalf("no JDK %s: run make doctor", strings.Join(versions, " to "))
	}
	return strings.TrimSpace(string(out))
}

// engine is one client as the stories call it: the program and what the script that wraps the client needs.
type engine struct {
	name    string
	title   string // as docs/compatibility.md begins its name
	program string // runs the scripts
	env     []string
	uri     string // of its own server, where it has one
	java    bool   // its scripts start a JVM
}

func pyiceberg(t testing.TB) engine {
	return engine{name: "pyiceberg", title: "PyIceberg", program: installed(t, "pyiceberg")[0]}
}

// pyicebergOld is the client of 2023; it only looks at metadata here.
func pyicebergOld(t testing.TB) engine {
	return engine{name: "pyiceberg", title: "PyIceberg 0.5.1", program: installed(t, "pyiceberg", "old")[0]}
}

func duckdb(t testing.TB) engine {
	return engine{name: "duckdb", title: "DuckDB", program: installed(t, "duckdb")[0]}
}

func clickhouse(t testing.TB) engine {
	return engine{name: "clickhouse", title: "ClickHouse", program: installed(t, "clickhouse")[0]}
}

func icebergJS(t testing.TB) engine {
	return engine{name: "iceberg-js", title: "iceberg-js", program: "node", env: []string{"ICEBERG_JS=" + installed(t, "iceberg-js")[0]}}
}

// spark is the new one, spark35 has the Iceberg of 2024.
func spark(t testing.TB) engine   { return sparkOf(t, "4") }
func spark35(t testing.TB) engine { return sparkOf(t, "3.5") }

func sparkOf(t testing.TB, line string) engine {
	fields := installed(t, "spark", line)
	return engine{name: "spark", title: "Spark " + line, program: fields[0], java: true,
		env: []string{"JARS=" + fields[1], "SPARK_LOCAL_IP=127.0.0.1", "JAVA_HOME=" + javaHome(t, "17", "21")}}
}

// run runs a script of this folder against the server, which must end well; it gives what it printed.
func (e engine) run(t testing.TB, s *server, script string, args ...string) string {
	t.Helper()
	out, err := e.attempt(t, s, script, args...)
	if err != nil {
		t.Fatalf("%s %s %v: %v\ncauses:\n%s\n%s\nserver:\n%s", e.name, script, args, err, causes(out), tail(out, 40), tail(s.log.String(), 12))
	}
	return out
}

// causes gives the lines that name an error: a Java client's stack is longer than what is shown of it.
func causes(out string) string {
	var found []string
	for line := range strings.Lines(out) {
		if first := strings.TrimSpace(line); strings.HasPrefix(first, "Caused by") || strings.Contains(first, "Exception: ") && len(found) < 8 {
			found = append(found, first)
		}
	}
	return tail(strings.Join(found, "\n"), 12)
}

// attempt runs a script that may fail.
func (e engine) attempt(t testing.TB, s *server, script string, args ...string) (string, error) {
	t.Helper()
	if e.java {
		jvms <- struct{}{}
		defer func() { <-jvms }()
	}
	ctx, cancel := context.WithTimeout(context.Background(), clientSecondsMax*time.Second)
	defer cancel()
	cmd := e.command(ctx, t, s, script, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (e engine) command(ctx context.Context, t testing.TB, s *server, script string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, e.program, append([]string{filepath.Join(root(t), "e2e", script)}, args...)...)
	cmd.Env = append(cleanEnv(), e.env...)
	cmd.Env = append(cmd.Env, "PYTHONDONTWRITEBYTECODE=1")
	for key, value := range s.env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	cmd.Dir = t.TempDir()
	return cmd
}

// startTrino starts a Trino server with the catalog settings that `catalogd dev` printed, and gives the engine that
// talks to it; more are further lines of the catalog's file.
func startTrino(t *testing.T, s *server, more ...string) engine {
	t.Helper()
	printed, err := os.ReadFile(filepath.Join(s.dir, "clients.txt"))
	if err != nil {
		t.Fatal(err)
	}
	settings := settingsOf(t, string(printed), "Trino (etc/catalog/lake.properties)")
	uri, _, _ := strings.Cut(s.env["CATALOG_URI"], "/api/")
	settings = anyHost.ReplaceAllString(settings, "="+uri+"/api/")
	settings += strings.Join(more, "\n") + "\n"
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	properties := filepath.Join(dir, "iceberg.properties")
	if err := os.WriteFile(properties, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	python := installed(t, "trino")[1]
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	cmd := exec.Command(filepath.Join(root(t), "e2e", "clients", "trino", "start"), port, filepath.Join(dir, "data"), properties)
	startJVM(t, "Trino", trinoStartMax, cmd, func() bool {
		answer, err := http.Get(fmt.Sprintf("http://%s/v1/info", address))
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		var info struct {
			Starting bool `json:"starting"`
		}
		return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(&info) == nil && !info.Starting
	})
	return engine{name: "trino", title: "Trino", program: python, uri: "http://" + address, env: []string{"TRINO_URI=http://" + address}}
}

// startJVM starts a server in Java, waits so long until it is ready, and ends it with the test. The command's variables come beside
// the usual ones.
func startJVM(t *testing.T, title string, most time.Duration, cmd *exec.Cmd, isReady func() bool) {
	t.Helper()
	cmd.Env = append(cleanEnv(), cmd.Env...)
	log := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	jvms <- struct{}{}
	if err := startBound(cmd); err != nil {
		<-jvms
		t.Fatalf("start %s: %v", title, err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(jvmStopMax):
			t.Errorf("%s did not end within %s, and was killed", title, jvmStopMax)
			_ = cmd.Process.Kill()
			<-ended
		}
		<-jvms
		if t.Failed() {
			t.Logf("%s's log:\n%s", title, tail(log.String(), 40))
		}
	})
	awaitUpTo(t, most, title+" answers", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s ended while it started", title)
		default:
		}
		return isReady()
	})
}

// jvmStopMax is how long a server in Java may take to end after SIGTERM.
const jvmStopMax = 2 * time.Minute

// trinoStartMax is how long a Trino may take to start: 20 s of processor time, on machines that have other work.
const trinoStartMax = 10 * time.Minute

// anyHost is the server's address in printed settings.
var anyHost = regexp.MustCompile(`=http://[^/\n]*/api/`)
