package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const waitMax = 5 * time.Minute // for a second of work, on machines that have much other work

// helperEnvironment makes the test's program a helper process that starts a server and is killed.
const helperEnvironment = "CATALOGD_TEST_PGSERVER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnvironment); dir != "" {
		s, err := Start(context.Background(), Options{Dir: dir})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Printf("%d %s\n", s.PID(), s.URL())
		<-s.Done() // until somebody kills us
		return
	}
	os.Exit(m.Run())
}

// newDir gives a folder that every user reaches; t.TempDir's is closed to others.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "catalogd-pgserver-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitMax)
	defer cancel()
	s, err := Start(ctx, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func query(t *testing.T, url, statement string) string {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(context.Background())
	rows, err := connection.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(values, ",")
}

func TestServer_KeepsItsDataAndSecretsOverAStop(t *testing.T) {
	dir := newDir(t)
	s := start(t, dir)
	query(t, s.URL(), "CREATE TABLE kept AS SELECT 'once'::text AS word")
	if got := query(t, s.URL(), "SELECT rolsuper::text || current_database() FROM pg_roles WHERE rolname = current_user"); got != "falsecatalogd" {
		t.Errorf("superuser and database: %s", got)
	}
	for setting, want := range map[string]string{
		"listen_addresses": "127.0.0.1", "fsync": "on", "password_encryption": "scram-sha-256",
	} {
		if got := query(t, s.URL(), "SELECT current_setting('"+setting+"')"); got != want {
			t.Errorf("%s is %q", setting, got)
		}
	}
	if _, err := pgx.Connect(t.Context(), strings.Replace(s.URL(), s.password, "wrong", 1)); err == nil {
		t.Error("any password opens it")
	}
	if info, err := os.Stat(filepath.Join(dir, passwordName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("password file: %v, %v", info.Mode(), err)
	}
	stop(t, s)
	select {
	case <-s.Done():
	default:
		t.Error("stopped, but not done")
	}
	stop(t, s) // again is no error
	again := start(t, dir)
	if got := query(t, again.URL(), "SELECT word FROM kept"); got != "once" {
		t.Errorf("kept %q", got)
	}
}

func TestStart_RefusesAFolderInUse(t *testing.T) {
	dir := newDir(t)
	s := start(t, dir)
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("got %v", err)
	}
	if got := query(t, s.URL(), "SELECT 'alive'"); got != "alive" {
		t.Errorf("the first server is %s", got)
	}
}

// TestStart_AfterKill kills a process that runs a server and starts anew on its folder.
func TestStart_AfterKill(t *testing.T) {
	dir := newDir(t)
	helper := exec.Command(os.Args[0])
	helper.Env = append(os.Environ(), helperEnvironment+"="+dir)
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var url string
	if _, err := fmt.Fscan(out, &pid, &url); err != nil {
		t.Fatal(err)
	}
	query(t, url, "CREATE TABLE kept AS SELECT 'once'::text AS word")
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait() // killed, as it should be
	s := start(t, dir)
	if s.PID() == pid {
		t.Error("the old Postgres was kept")
	}
	if connection, err := pgx.Connect(t.Context(), url); err == nil {
		connection.Close(t.Context())
		t.Error("the old Postgres still answers")
	}
	if got := query(t, s.URL(), "SELECT word FROM kept"); got != "once" {
		t.Errorf("kept %q", got)
	}
}

// TestStart_EndsAnOrphan finds a Postgres that nobody owns any more and that did not end with its owner.
func TestStart_EndsAnOrphan(t *testing.T) {
	dir := newDir(t)
	orphan := start(t, dir)
	query(t, orphan.URL(), "CREATE TABLE kept AS SELECT 'once'::text AS word")
	orphan.lock.Close()
	s := start(t, dir)
	select {
	case <-orphan.Done():
	default:
		t.Fatal("two servers on one folder")
	}
	if got := query(t, s.URL(), "SELECT word FROM kept"); got != "once" {
		t.Errorf("kept %q", got)
	}
}

// TestStart_AfterPostgresWasKilled: the postmaster is gone at once, its children a moment later.
func TestStart_AfterPostgresWasKilled(t *testing.T) {
	dir := newDir(t)
	s := start(t, dir)
	query(t, s.URL(), "CREATE TABLE kept AS SELECT 'once'::text AS word")
	s.process.signal(syscall.SIGKILL)
	<-s.Done()
	stop(t, s)
	if got := query(t, start(t, dir).URL(), "SELECT word FROM kept"); got != "once" {
		t.Errorf("kept %q", got)
	}
}

func TestStart_PidFileOfSomebodyElse(t *testing.T) {
	dir := newDir(t)
	s := start(t, dir)
	stop(t, s)
	stale := strconv.Itoa(os.Getpid()) + "\n" + s.cluster + "\n1\n1\n\n127.0.0.1\n\nready\n"
	if err := os.WriteFile(filepath.Join(s.cluster, "postmaster.pid"), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir) // and we are still alive
}

func TestStart_AfterAHalfMadeCluster(t *testing.T) {
	dir := newDir(t)
	if err := os.MkdirAll(filepath.Join(dir, clusterName+".new", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	if _, err := os.Stat(filepath.Join(dir, clusterName+".new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half-made cluster is there: %v", err)
	}
}

// TestStart_InAFolderThatOthersCannotReach uses a closed folder with a name longer than a socket's path may be.
func TestStart_InAFolderThatOthersCannotReach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40), "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := start(t, dir)
	query(t, s.URL(), "CREATE TABLE kept AS SELECT 'once'::text AS word")
	note, err := os.ReadFile(filepath.Join(dir, noteName))
	if os.Geteuid() != 0 {
		if err == nil {
			t.Errorf("an ordinary user's cluster is at %s", note)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(s.cluster) }) // before the stop of the second server, which is why it is stopped below
	if !strings.HasPrefix(s.cluster, sharedRoot+"/") || strings.TrimSpace(string(note)) != s.cluster {
		t.Errorf("the cluster is at %s, the note says %s", s.cluster, note)
	}
	stop(t, s)
	again := start(t, dir)
	if got := query(t, again.URL(), "SELECT word FROM kept"); got != "once" {
		t.Errorf("kept %q", got)
	}
	stop(t, again)
	// A folder that was removed and made anew begins anew.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	fresh := start(t, dir)
	if got := query(t, fresh.URL(), "SELECT count(*)::text FROM pg_tables WHERE tablename = 'kept'"); got != "0" {
		t.Error("the new folder has the old one's tables")
	}
	stop(t, fresh)
}

func TestStart_ClusterOfAnotherRelease(t *testing.T) {
	dir := newDir(t)
	if err := os.MkdirAll(filepath.Join(dir, clusterName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, clusterName, "PG_VERSION"), []byte("99\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "99") {
		t.Fatalf("got %v, want a refusal that names Postgres 99", err)
	}
}

func TestStart_SaysWhereTheLogIs(t *testing.T) {
	dir := newDir(t)
	s := start(t, dir)
	stop(t, s)
	if err := os.Remove(filepath.Join(s.cluster, "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), logName) {
		t.Fatalf("got %v, want an error that names the log", err)
	}
}

func TestReachableBin_CopiesWhatOthersCannotReach(t *testing.T) {
	closed := filepath.Join(t.TempDir(), "postgres-18.6.3") // t.TempDir is closed to others
	for _, file := range []string{"bin/postgres", "lib/libpq.so.5", "share/postgres.bki"} {
		path := filepath.Join(closed, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(file), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("libpq.so.5", filepath.Join(closed, "lib", "libpq.so")); err != nil {
		t.Fatal(err)
	}
	who, err := runAs()
	if err != nil {
		t.Fatal(err)
	}
	found := installation{bin: filepath.Join(closed, "bin"), major: 18}
	bin, err := reachableBin(found, who)
	if err != nil {
		t.Fatal(err)
	}
	if !who.other {
		if bin != found.bin {
			t.Errorf("copied to %s without need", bin)
		}
		return
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(bin)) })
	if !who.reaches(bin) {
		t.Errorf("%s cannot reach %s either", who.name, bin)
	}
	for _, file := range []string{"bin/postgres", "lib/libpq.so", "share/postgres.bki"} {
		info, err := os.Stat(filepath.Join(filepath.Dir(bin), file))
		if err != nil || info.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("%s: %v", file, err)
		}
	}
	if again, err := reachableBin(found, who); err != nil || again != bin {
		t.Errorf("the second time: %s, %v", again, err)
	}
}
