package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"catalogd": func() { os.Exit(mainCode()) },
	})
}

// TestScripts runs testdata/*.txt: commands, what they print, their exit codes. The scripts see only the variables
// that they set; what finds programs is passed on.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts in testdata", err)
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"CATALOGD_POSTGRES_BIN", "XDG_CACHE_HOME"} {
				if value := os.Getenv(name); value != "" {
					e.Setenv(name, value)
				}
			}
			return nil
		},
	})
}
