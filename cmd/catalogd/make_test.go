package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMake_BuildWithoutGoSaysHowToGetIt: the first command of a newcomer names what is missing, as make doctor does.
func TestMake_BuildWithoutGoSaysHowToGetIt(t *testing.T) {
	tools := t.TempDir()
	for _, name := range []string{"bash", "make", "git", "sed", "mkdir", "dirname", "date", "env"} {
		at, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(at, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(tools, "make"), "build")
	cmd.Dir, cmd.Env = "../..", []string{"PATH=" + tools, "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "missing  go ") || !strings.Contains(string(out), "to get it: ") {
		t.Errorf("%v: %s", err, out)
	}
	if strings.Contains(string(out), "first build") {
		t.Errorf("a build began: %s", out)
	}
}

// TestMake_HelpListsWhatMayBeAskedFor: each target with an explanation, those of the clients too.
func TestMake_HelpListsWhatMayBeAskedFor(t *testing.T) {
	cmd := exec.Command("make", "--no-print-directory", "help")
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, target := range []string{"build", "test", "first-query", "compatibility", "trino", "spark", "clickhouse", "pyiceberg", "duckdb", "rck", "iceberg-js"} {
		if !regexp.MustCompile(`(?m)^  make ` + target + ` +\S`).Match(out) {
			t.Errorf("make help does not list %s:\n%s", target, out)
		}
	}
}
