//go:build !crashpoints

package crash

import "testing"

// TestPoint_IsAbsentFromOrdinaryBuilds reaches a point that the environment asks for and lives.
func TestPoint_IsAbsentFromOrdinaryBuilds(t *testing.T) {
	t.Setenv("CATALOGD_CRASH_POINT", "here")
	Point("here")
	if Enabled {
		t.Fatal("an ordinary build has crash points")
	}
}
