package pgserver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	body, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, body, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFind_GivesPrograms(t *testing.T) {
	bin, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestFind_NamedDirectoryWinsOrFails(t *testing.T) {
	bin, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(BinEnvironment, bin)
	if got, err := Find(); err != nil || got != bin {
		t.Errorf("got %s, %v", got, err)
	}
	t.Setenv(BinEnvironment, t.TempDir())
	if _, err := Find(); err == nil || !strings.Contains(err.Error(), BinEnvironment) {
		t.Errorf("an empty directory was taken, or the error %v does not name the variable", err)
	}
}

func TestFind_SaysWhatToDo(t *testing.T) {
	t.Setenv(BinEnvironment, "")
	_, err := findMajor(99)
	if err == nil {
		t.Fatal("found a Postgres 99")
	}
	for _, part := range []string{"Postgres 99", "apt-get install postgresql", "make postgres", BinEnvironment} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestInspect_FollowsLinksAndRefusesScripts(t *testing.T) {
	real, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	links := t.TempDir()
	for _, name := range programs {
		if err := os.Symlink(filepath.Join(real, name), filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := inspect(links); err != nil || got.bin != real {
		t.Errorf("got %+v, %v; want %s", got, err, real)
	}
	scripts := t.TempDir()
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(scripts, name), []byte("#!/bin/sh\nexec /opt/postgres/bin/"+name+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := inspect(scripts); err == nil || !strings.Contains(err.Error(), "script") {
		t.Errorf("scripts: %v", err)
	}
	lonely := t.TempDir()
	copyProgram(t, filepath.Join(real, "postgres"), filepath.Join(lonely, "postgres"))
	if _, err := inspect(lonely); err == nil {
		t.Error("a directory without initdb was taken")
	}
}

func TestCandidates_CacheComesLast(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	for _, version := range []string{"18.6.3", "9.6", "18.10", "17.2"} {
		if err := os.MkdirAll(filepath.Join(cache, "catalogd", "postgres-"+version, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, dir := range candidates() {
		if strings.HasPrefix(dir, cache) {
			got = append(got, filepath.Base(filepath.Dir(dir)))
		} else if len(got) > 0 {
			t.Errorf("%s comes after the cache", dir)
		}
	}
	if want := []string{"postgres-18.10", "postgres-18.6.3", "postgres-17.2", "postgres-9.6"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestMajorOf(t *testing.T) {
	for text, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n": 15,
		"postgres (PostgreSQL) 18.6\n":                           18,
		"postgres (PostgreSQL) 19devel\n":                        19,
		"postgres (PostgreSQL) 9.6.24\n":                         9,
		"postgres (PostgreSQL) 16":                               16,
		"psql 15":                                                0,
		"postgres (PostgreSQL) devel":                            0,
	} {
		got, err := majorOf(text)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
