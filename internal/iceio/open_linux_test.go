package iceio

import (
	"os"
	"path/filepath"
	"testing"
)

// The short way is open where there is no link, and shut where there is one, but for what the operator named.
func TestOpenWritten_GoesTheShortWay(t *testing.T) {
	top := t.TempDir()
	for _, folder := range []string{"real/ns/t/metadata", "real/elsewhere/metadata"} {
		if err := os.MkdirAll(filepath.Join(top, folder), folderMode); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"named": "real", "real/ns/linked": "t", "real/out": "elsewhere", "real/ns/t/inside": "metadata", "real/ns/t/away": top,
	} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		base  string
		way   []string
		below string
		short bool
	}{
		{"real", []string{"ns", "t"}, "metadata", true},
		{"named", []string{"ns", "t"}, "metadata", true},
		{"real/ns/t", nil, "metadata", true},
		{"real/ns/t/metadata", nil, ".", true},
		{"real", []string{"ns", "linked"}, "metadata", false},
		{"real", []string{"out"}, "metadata", false},
		{"real", []string{"ns", "t"}, "inside", false},
		{"real", []string{"ns", "t"}, "away", false},
		{"real", []string{"ns", "t"}, "../../elsewhere/metadata", false},
		{"real", []string{"ns", "t"}, "../../../named", false},
		{"real", []string{"ns", "none"}, "metadata", false},
	} {
		folder, err := folderTree{base: filepath.Join(top, c.base), below: c.way}.openWritten(c.below)
		if (err == nil) != c.short {
			t.Errorf("%s, %v, %s: %v", c.base, c.way, c.below, err)
		}
		if err != nil {
			continue
		}
		f, err := folder.create("new")
		if err != nil {
			t.Fatalf("%s, %v, %s: %v", c.base, c.way, c.below, err)
		}
		f.Close()
		if _, err := folder.create("new"); !os.IsExist(err) {
			t.Errorf("a file was made twice: %v", err)
		}
		if err := folder.sync(); err != nil {
			t.Error(err)
		}
		if err := folder.remove("new"); err != nil {
			t.Error(err)
		}
		folder.Close()
	}
}
