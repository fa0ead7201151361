package e2e

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

const crashViews = "/dev/namespaces/crash/views"

// viewText gives a view's answer as text, "" when there is none. Its pointer must name a whole file.
func (r *rest) viewText(name string) string {
	r.t.Helper()
	status, raw := r.call("GET", crashViews+"/"+name, nil)
	if status == 404 {
		return ""
	}
	var l loaded
	if err := json.Unmarshal(raw, &l); status != 200 || err != nil {
		r.t.Fatalf("load view %s: %d %s", name, status, raw)
	}
	file, err := os.Open(strings.TrimPrefix(l.MetadataLocation, "file://"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file) // as Java writes views
	if err != nil {
		r.t.Fatalf("%s: %v", l.MetadataLocation, err)
	}
	if text, err := io.ReadAll(unpacked); err != nil || !json.Valid(text) {
		r.t.Fatalf("the pointer of view %s names %s: %v", name, l.MetadataLocation, err)
	}
	return string(raw)
}

// The server is killed at each step of a view's creation and of its replacement. What was acknowledged is there, what was
// not is there whole or not at all, and the client's repeat ends with it there once.
func TestCrash_ViewsOnDev(t *testing.T) {
	c := newCrashing(t)
	c.start()
	c.rest(t).makeTables()
	die := func(point, path string, body any) (*rest, int) {
		c.wishFor(point, "")
		status, _ := c.rest(t).call("POST", path, body)
		if err := c.cmd.Wait(); !killed(err) {
			t.Fatalf("%s: the server was not killed: %v\n%s", point, err, c.log)
		}
		c.start()
		return c.rest(t), status
	}
	for i, point := range commitPoints {
		name := fmt.Sprintf("v%d", i)
		r, status := die(point, crashViews, goodView(name))
		there := r.viewText(name) != ""
		if status == 200 && !there || there != (point == "commit-after-pointer") {
			t.Errorf("create killed at %s: answer %d, there %v", point, status, there)
		}
		want := map[bool]int{false: 200, true: 409}[there]
		if again, raw := r.call("POST", crashViews, goodView(name)); again != want {
			t.Errorf("create killed at %s, there %v: its repeat was answered %d %s", point, there, again, raw)
		}

		sql := fmt.Sprintf("SELECT %d AS id", 1000+i)
		version := goodView(name)["view-version"].(object)
		version["representations"].(list)[0].(object)["sql"] = sql
		replace := object{"updates": list{object{"action": "add-view-version", "view-version": version},
			object{"action": "set-current-view-version", "view-version-id": -1}}}
		r, status = die(point, crashViews+"/"+name, replace)
		landed := strings.Contains(r.viewText(name), sql)
		onItsWay := point == "commit-in-transaction" // as a whole: the database may still land it
		if status == 200 && !landed || landed != (point == "commit-after-pointer") && !onItsWay {
			t.Errorf("replace killed at %s: answer %d, landed %v", point, status, landed)
		}
		again, raw := r.call("POST", crashViews+"/"+name, replace)
		if text := r.viewText(name); again != 200 || strings.Count(text, sql) != 1 || !strings.Contains(text, `"current-version-id":2`) {
			t.Errorf("replace killed at %s: its repeat was answered %d %s; the view is %s", point, again, raw, text)
		}
	}
}
