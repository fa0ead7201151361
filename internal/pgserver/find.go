package pgserver

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// BinEnvironment names the directory that holds initdb, pg_ctl and postgres; it wins over every other place.
const BinEnvironment = "CATALOGD_POSTGRES_BIN"

// majorMin is the oldest Postgres that the schema is written for.
const majorMin = 15

// remedy ends every message about missing binaries.
const remedy = "install it (Debian, Ubuntu: apt-get install postgresql), or run `make postgres`, " +
	"or set " + BinEnvironment + " to the directory that holds initdb, pg_ctl and postgres"

// programs are what a directory must hold to count.
var programs = []string{"initdb", "pg_ctl", "postgres"}

// installation is one directory of Postgres binaries.
type installation struct {
	bin   string // absolute, links resolved: initdb finds its share folder beside it
	major int
}

// Find gives the directory of the Postgres binaries that Start uses for a new cluster: the one that
// CATALOGD_POSTGRES_BIN names, else the first on PATH, else the newest under /usr/lib/postgresql, else the newest in
// the cache folder. The error says what to do.
func Find() (string, error) {
	found, err := findMajor(0)
	if err != nil {
		return "", err
	}
	return found.bin, nil
}

// findMajor is Find for a cluster that exists already and that only one major release can open; 0 means any.
func findMajor(major int) (installation, error) {
	if named := os.Getenv(BinEnvironment); named != "" {
		found, err := inspect(named)
		if err != nil {
			return installation{}, fmt.Errorf("%s=%s: %w; %s", BinEnvironment, named, err, remedy)
		}
		if major != 0 && found.major != major {
			return installation{}, fmt.Errorf("%s=%s holds Postgres %d, but the data folder was made by Postgres %d: name that one, or remove the folder to begin anew",
				BinEnvironment, named, found.major, major)
		}
		return found, nil
	}
	var rejected []string
	for _, dir := range candidates() {
		found, err := inspect(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			rejected = append(rejected, fmt.Sprintf("%s: %v", dir, err))
		case major != 0 && found.major != major:
			rejected = append(rejected, fmt.Sprintf("%s: Postgres %d", dir, found.major))
		default:
			return found, nil
		}
	}
	wanted := fmt.Sprintf("Postgres %d or newer", majorMin)
	if major != 0 {
		wanted = fmt.Sprintf("Postgres %d, which made the data folder,", major)
	}
	note := ""
	if len(rejected) > 0 {
		note = " (passed over: " + strings.Join(rejected, "; ") + ")"
	}
	return installation{}, fmt.Errorf("no %s found%s: %s", wanted, note, remedy)
}

// candidates lists the places to look into, in order of preference.
func candidates() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		// A PATH folder often holds only links to the real one; initdb wants the real one.
		if target, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres")); err == nil {
			dirs = append(dirs, filepath.Dir(target))
		}
	}
	dirs = append(dirs, newestFirst("/usr/lib/postgresql/*/bin")...)
	if cache, err := cacheFolder(); err == nil {
		dirs = append(dirs, newestFirst(filepath.Join(cache, "postgres-*", "bin"))...)
	}
	return dirs
}

// cacheFolder is where `make postgres` puts the binaries that need no system package.
func cacheFolder() (string, error) {
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "catalogd"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home folder: %w", err)
	}
	return filepath.Join(home, ".cache", "catalogd"), nil
}

// newestFirst expands the pattern and sorts by the numbers in the version's folder name.
func newestFirst(pattern string) []string {
	dirs, _ := filepath.Glob(pattern) // the only error is a bad pattern, and the patterns are ours
	sort.SliceStable(dirs, func(i, j int) bool {
		return newer(versionNumbers(dirs[i]), versionNumbers(dirs[j]))
	})
	return dirs
}

func newer(a, b []int) bool {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return a[i] > b[i]
		}
	}
	return len(a) > len(b)
}

// versionNumbers reads 18, 6, 3 from …/postgres-18.6.3/bin.
func versionNumbers(binDir string) []int {
	name := filepath.Base(filepath.Dir(binDir))
	var numbers []int
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' }) {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// inspect tells whether the directory holds real Postgres programs, new enough. Scripts are refused: a wrapper
// changes users, adds flags or picks a version by itself, and then neither ownership nor signals are as we expect.
func inspect(dir string) (installation, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return installation{}, err
	}
	target, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return installation{}, err
	}
	dir = filepath.Dir(target)
	for _, program := range programs {
		path := filepath.Join(dir, program)
		if _, err := exec.LookPath(path); err != nil {
			return installation{}, err
		}
		script, err := isScript(path)
		if err != nil {
			return installation{}, err
		}
		if script {
			return installation{}, fmt.Errorf("%s is a script, not the program itself", program)
		}
	}
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return installation{}, fmt.Errorf("ask postgres for its version: %w", err)
	}
	major, err := majorOf(string(out))
	if err != nil {
		return installation{}, err
	}
	if major < majorMin {
		return installation{}, fmt.Errorf("this is Postgres %d; %d or newer is needed", major, majorMin)
	}
	return installation{bin: dir, major: major}, nil
}

// majorOf reads 15 from "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)".
func majorOf(text string) (int, error) {
	_, after, ok := strings.Cut(text, "(PostgreSQL) ")
	if !ok {
		return 0, fmt.Errorf("cannot read the version from %q", strings.TrimSpace(text))
	}
	digits := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 0 {
		digits = len(after)
	}
	major, err := strconv.Atoi(after[:digits])
	if err != nil {
		return 0, fmt.Errorf("cannot read the version from %q", strings.TrimSpace(text))
	}
	return major, nil
}

func isScript(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := bufio.NewReader(f).Peek(2)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return string(head) == "#!", nil
}
