package spelling

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"listen", "log.level", "storage.allow_file"}
	for word, want := range map[string]string{"listn": "listen", "lsiten": "listen", "log.levle": "log.level", "storage": "", "": "", "x": ""} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"purge-dely", "purge-delay", 1}, {"kitten", "sitting", 3}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
