package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Iceberg's REST compatibility kit against a server of its own each time, since it leaves a namespace behind. Tests that
// cannot pass are named with their reasons in e2e/clients/rck/known-*.txt, and must then fail.

// The client and the server share the disk, and the kit asks for locations under file:/tmp.
func TestKit_OnFile(t *testing.T) {
	t.Parallel()
	takeKitFolders(t)
	runKit(t, "kit", "REST compatibility kit", "file", startKitServer(t, nil, "/tmp"),
		"rck.requires-namespace-create=true", "rck.supports-names-with-dot=true")
}

// takeKitFolders lets one run of this machine at a time have the folders that the kit writes to: whoever ends takes them
// away, and with them what another run has in them.
func takeKitFolders(t *testing.T) {
	t.Helper()
	turn, err := os.Open("/tmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { turn.Close() }) // last of all
	if err := flock(turn); err != nil {
		t.Fatalf("wait for the kit's folders: %v", err)
	}
	for _, folder := range []string{"/tmp/ns", "/tmp/newdb"} { // in which a second user's run could not write
		if _, err := os.Stat(folder); os.IsNotExist(err) {
			t.Cleanup(func() { os.RemoveAll(folder) })
		}
	}
}

// flock waits for the lock of a file or folder, which ends with the file's closing or the process.
func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return err
		}
	}
}

// The client has no right on the bucket. Tests that ask for locations under file:/tmp cannot pass here, and are known; for
// what they test the subclass asks for folders of the bucket.
func TestKit_OnS3(t *testing.T) {
	t.Parallel()
	store := sharedStore(t).within("kit-itself")
	runKit(t, "kit", "REST compatibility kit", "S3", startKitServer(t, store),
		"rck.requires-namespace-create=true", "rck.supports-names-with-dot=true",
		"header.X-Iceberg-Access-Delegation=vended-credentials", s3FileIO)
}

// What the kit leaves off: nested namespaces, and slashes in names.
func TestKit_OwnSubclassOnFile(t *testing.T) {
	t.Parallel()
	asked := t.TempDir()
	runKit(t, "own", "catalogd's subclass of its tests", "file", startKitServer(t, nil, asked), "test-location=file:"+asked)
}

// The subclass asks for folders of the bucket where the kit asks for file:/tmp, and so can check that it gets them.
func TestKit_OwnSubclassOnS3(t *testing.T) {
	t.Parallel()
	store := sharedStore(t).within("kit")
	runKit(t, "own", "catalogd's subclass of its tests", "S3", startKitServer(t, store),
		"test-location="+store.location()+"/asked", "header.X-Iceberg-Access-Delegation=vended-credentials", s3FileIO)
}

// startKitServer starts a server whose tables may be in the store, or in an allowed folder too.
func startKitServer(t *testing.T, store *s3store, allowed ...string) *server {
	t.Helper()
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	var args []string
	for _, folder := range allowed {
		args = append(args, "--allowed-location", "file://"+folder)
	}
	s := startDev(t, filepath.Join(dir, "data"), store, args...)
	t.Cleanup(s.stop)
	return s
}

// kitCounts is how the script ends.
var kitCounts = regexp.MustCompile(`(?m)^(\d+) passed, (\d+) failed, (\d+) skipped, (\d+) known$`)

func runKit(t *testing.T, part, suite, warehouse string, s *server, settings ...string) {
	t.Helper()
	jvms <- struct{}{}
	defer func() { <-jvms }()
	s = recorded(t, s, suite)
	folder := filepath.Join(root(t), "e2e", "clients", "rck")
	reports := t.TempDir()
	args := append([]string{part, s.env["CATALOG_URI"], "--reports", reports, "--known", filepath.Join(folder, "known-"+part+"-"+warehouse+".txt"),
		"warehouse=" + s.env["CATALOG_WAREHOUSE"]}, append(s.smokeArgs(), settings...)...)
	ctx, cancel := context.WithTimeout(context.Background(), clientSecondsMax*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(folder, "run"), args...)
	cmd.Env = cleanEnv()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	found := kitCounts.FindStringSubmatch(out.String())
	if err != nil || found == nil {
		console, _ := os.ReadFile(filepath.Join(reports, "console.txt"))
		t.Fatalf("%s: %v\n%s\nconsole:\n%s\nserver:\n%s", suite, err, out.String(), tail(string(console), 20), tail(s.log.String(), 20))
	}
	t.Logf("%s on %s:\n%s", suite, warehouse, out.String())
	counts := map[string]int{}
	for i, name := range []string{"passed", "failed", "skipped", "known"} {
		n, err := strconv.Atoi(found[i+1])
		if err != nil {
			t.Fatal(err)
		}
		counts[name] = n
	}
	counted(t, suite+" "+kitVersion(t), warehouse, counts)
}

// kitVersion is the one of the Iceberg whose tests run.
func kitVersion(t *testing.T) string {
	t.Helper()
	classpath := installed(t, "rck")[0]
	return strings.TrimPrefix(filepath.Base(filepath.Dir(classpath)), "rck-")
}
