package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func openFolder(t *testing.T) *devFolder {
	t.Helper()
	d, err := openDevFolder(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

func TestDevFolder_SecondHolderIsRefusedWithTheFirstOnesProcess(t *testing.T) {
	d := openFolder(t)
	_, err := openDevFolder(d.path)
	if err == nil || !strings.Contains(err.Error(), "is in use by another `catalogd dev` (process ") {
		t.Fatalf("the second holder was told: %v", err)
	}
	d.close()
	again, err := openDevFolder(d.path)
	if err != nil {
		t.Fatalf("after the first let go: %v", err)
	}
	again.close()
}

func TestDevFolder_KeyIsMadeOnceAndPrivate(t *testing.T) {
	d := openFolder(t)
	first, err := d.secretKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := decodeKey("secrets.key", first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := d.secretKey()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := decodeKey("secrets.key", second); err != nil || string(again) != string(key) {
		t.Errorf("the second start has another key (%v)", err)
	}
	checkMode(t, d.file(devKeyName))
}

// The file is private even where somebody left a readable one of the same name.
func TestDevFolder_ClientEnvIsPrivateAndReadBack(t *testing.T) {
	d := openFolder(t)
	for _, name := range []string{devEnvName, devEnvName + ".new"} {
		if err := os.WriteFile(d.file(name), []byte("CATALOG_URI=old\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.writeClientEnv([][2]string{{"CATALOG_URI", "http://h"}, {"CATALOG_CREDENTIAL", "root:a=b"}}); err != nil {
		t.Fatal(err)
	}
	checkMode(t, d.file(devEnvName))
	if got := d.clientVariable("CATALOG_CREDENTIAL"); got != "root:a=b" {
		t.Errorf("the credential was read back as %q", got)
	}
	if got := d.clientVariable("CATALOG"); got != "" {
		t.Errorf("a prefix of a name found %q", got)
	}
	if err := d.writeClientEnv([][2]string{{"CATALOG_SCOPE", "two words"}}); err == nil {
		t.Error("a value that `env $(cat client.env)` cannot carry was written")
	}
}

func checkMode(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("%s has mode %o", path, info.Mode().Perm())
	}
}
