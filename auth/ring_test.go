package auth_test

import (
	"bytes"
	"testing"

	"catalogd/auth"
)

// A cursor is good for its kind alone, on every server with the key, also after a rotation; and nobody can make one.
func TestRing_Cursors(t *testing.T) {
	old, fresh := auth.NewRingKey(), auth.NewRingKey()
	first, err := auth.NewRing(old)
	if err != nil {
		t.Fatal(err)
	}
	both, err := auth.NewRing(fresh, old)
	if err != nil {
		t.Fatal(err)
	}
	other, err := auth.NewRing(fresh)
	if err != nil {
		t.Fatal(err)
	}
	sealed := first.SealCursor("events:", 42)
	if again := first.SealCursor("events:", 1<<62); bytes.Equal(sealed, first.SealCursor("events:", 42)) || len(again) != len(sealed) {
		t.Error("a cursor tells its number by how it looks")
	}
	for _, r := range []*auth.Ring{first, both} {
		if n, ok := r.OpenCursor("events:", sealed); n != 42 || !ok {
			t.Errorf("opened %d, %v", n, ok)
		}
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	moved := first.Seal(auth.Place{Table: "cursors", Row: "events:"}, make([]byte, 8))
	for name, blob := range map[string][]byte{"changed": changed, "short": sealed[:20], "empty": nil, "sealed for the database": moved} {
		if _, ok := first.OpenCursor("events:", blob); ok {
			t.Errorf("one that is %s is opened", name)
		}
	}
	if _, ok := first.OpenCursor("oldest:", sealed); ok {
		t.Error("one of another kind is opened")
	}
	if _, ok := other.OpenCursor("events:", sealed); ok {
		t.Error("one of another key is opened")
	}
	if _, err := first.Open(auth.Place{Table: "cursors", Row: "events:"}, sealed); err == nil {
		t.Error("a cursor is opened as a secret")
	}
}
