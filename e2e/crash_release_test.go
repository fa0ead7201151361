package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// crashVariables are what package crash reads from the environment.
var crashVariables = []string{"CATALOGD_CRASH_POINT", "CATALOGD_CRASH_LOG", "CATALOGD_CRASH_PIDFILE"}

// The points that die in these tests are those of the source, and all of them.
func TestCrash_EveryPointIsTested(t *testing.T) {
	call := regexp.MustCompile(`crash\.Point\(([^)]*)\)`)
	var inSource []string
	for _, folder := range []string{"api", "auth", "catalog", "cmd", "internal", "maintenance", "store", "vending"} {
		err := filepath.WalkDir(filepath.Join(root(t), folder), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			body, err := os.ReadFile(path)
			for _, found := range call.FindAllStringSubmatch(string(body), -1) {
				inSource = append(inSource, strings.Trim(found[1], `"`))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var tested []string
	for _, point := range allPoints() {
		name, _, _ := strings.Cut(point, ":")
		tested = append(tested, name)
	}
	slices.Sort(inSource)
	slices.Sort(tested)
	if tested = slices.Compact(tested); !slices.Equal(slices.Compact(inSource), tested) {
		t.Errorf("points of the source: %v\npoints of the tests: %v", inSource, tested)
	}
}

// The package's own tests need its tag.
func TestCrash_PointsKill(t *testing.T) {
	test := exec.Command("go", "test", "-tags", "crashpoints", "./internal/crash")
	test.Dir = root(t)
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// An ordinary build holds neither the points nor what steers them; the build of these tests holds both, or the search
// would prove nothing.
func TestCrash_OrdinaryBuildsHaveNoPoints(t *testing.T) {
	ordinary := readFile(t, binary(t))
	path, err := crashBinary()
	if err != nil {
		t.Fatal(err)
	}
	deadly := readFile(t, path)
	words := slices.Clone(crashVariables)
	for _, point := range allPoints() {
		if !strings.Contains(point, ":") {
			words = append(words, point)
		}
	}
	for _, word := range words {
		if bytes.Contains(ordinary, []byte(word)) {
			t.Errorf("the ordinary build holds %q", word)
		}
		if !bytes.Contains(deadly, []byte(word)) {
			t.Errorf("the build with crash points does not hold %q", word)
		}
	}
}

// An ordinary build that is asked to die does its work.
func TestCrash_OrdinaryBuildsIgnoreWishes(t *testing.T) {
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	log := filepath.Join(dir, "points.log")
	s := &server{dir: filepath.Join(dir, "data"), log: &lockedBuffer{}}
	s.cmd = exec.Command(binary(t), "dev", "--data", s.dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--no-worker")
	s.cmd.Env = append(cleanEnv(), "CATALOGD_CRASH_POINT=commit-before-metadata", "CATALOGD_CRASH_LOG="+log)
	s.waitReady(t)
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	r := s.rest(t)
	r.makeTables("t")
	if status, raw := r.call("POST", "/dev/namespaces/crash/tables/t", appendOf(r.load("t"), 1, 0)); status != 200 {
		t.Errorf("the commit was answered %d %s", status, raw)
	}
	if _, err := os.Stat(log); !os.IsNotExist(err) {
		t.Errorf("points were logged: %v", err)
	}
	s.stop() // so that its log is whole
	if !strings.Contains(s.log.String(), "CATALOGD_CRASH_POINT") {
		t.Errorf("nobody is told that the variable means nothing:\n%s", s.log)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
