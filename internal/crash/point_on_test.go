//go:build crashpoints

package crash

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// TestPoint_KillsAtTheNthHit runs itself as a child that passes the point three times.
func TestPoint_KillsAtTheNthHit(t *testing.T) {
	if os.Getenv("CRASH_CHILD") != "" {
		for range 3 {
			Point("here")
			_, _ = os.Stdout.WriteString("passed\n")
		}
		return
	}
	for wish, passes := range map[string]int{"here": 0, "here:1": 0, "here:3": 2, "there": 3, "here:4": 3, "here:x": 3} {
		cmd := exec.Command(os.Args[0], "-test.run=TestPoint_KillsAtTheNthHit$")
		cmd.Env = append(os.Environ(), "CRASH_CHILD=1", envPoint+"="+wish)
		out, err := cmd.Output()
		got := 0
		for i := 0; i+7 <= len(out) && string(out[i:i+7]) == "passed\n"; i += 7 {
			got++
		}
		if got != passes {
			t.Errorf("%s: passed %d times, want %d", wish, got, passes)
		}
		var exit *exec.ExitError
		killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		if killed != (passes < 3) {
			t.Errorf("%s: killed %v, error %v", wish, killed, err)
		}
	}
}
