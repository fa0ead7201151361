package maintenance_test

import (
	"os"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"catalogd/maintenance"
)

// A file of a table that is gone does not come back by trying again: its name is said at once.
func TestMissing_FileIsNamedAtOnce(t *testing.T) {
	for kind, pick := range map[string]func(t *testing.T, s *table.Snapshot) string{
		"manifest list": func(_ *testing.T, s *table.Snapshot) string { return s.ManifestList },
		"manifest": func(t *testing.T, s *table.Snapshot) string {
			manifests, err := s.Manifests(rawFS{})
			if err != nil {
				t.Fatal(err)
			}
			return manifests[0].FilePath()
		},
		"data file": func(t *testing.T, s *table.Snapshot) string {
			manifests, err := s.Manifests(rawFS{})
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range manifests[0].Entries(rawFS{}, false) {
				if err != nil {
					t.Fatal(err)
				}
				return e.DataFile().FilePath()
			}
			t.Fatal("no file")
			return ""
		},
	} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			tt := b.enabledTable("t")
			gone := pick(t, tt.load().CurrentSnapshot())
			if err := os.Remove(bare(gone)); err != nil {
				t.Fatal(err)
			}
			before := len(b.filesBelow(tt.load().Location()))
			got := tt.run(b.worker(nil))
			expectState(t, got, maintenance.Refused, maintenance.CodeMissingFile)
			if got.Attempts != 1 || !strings.Contains(got.Reason.Message, gone) || !strings.Contains(got.Reason.Message, "reads the table fails too") {
				t.Errorf("attempt %d: %s", got.Attempts, got.Reason.Message)
			}
			if after := len(b.filesBelow(tt.load().Location())); after != before {
				t.Errorf("%d files, before %d", after, before)
			}
		})
	}
}
