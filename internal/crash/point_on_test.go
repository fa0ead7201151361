//go:build crashpoints

package crash

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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
		killed := killedBySIGKILL(err)
		if killed != (passes < 3) {
			t.Errorf("%s: killed %v, error %v", wish, killed, err)
		}
	}
}

// TestPoint_ReadsTheWishFromAFile has a child pass a point, then pass it again with a wish in the file, and sees the
// wish gone with the child.
func TestPoint_ReadsTheWishFromAFile(t *testing.T) {
	if os.Getenv("CRASH_CHILD") != "" {
		for line := bufio.NewScanner(os.Stdin); line.Scan(); {
			Point("here")
			_, _ = os.Stdout.WriteString("passed\n")
		}
		return
	}
	wish := filepath.Join(t.TempDir(), "wish")
	child := exec.Command(os.Args[0], "-test.run=TestPoint_ReadsTheWishFromAFile$")
	child.Env = append(os.Environ(), "CRASH_CHILD=1", envPoint+"=@"+wish)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	for _, point := range []string{"", "there", "here"} {
		if point != "" {
			if err := os.WriteFile(wish, []byte(point+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		if passed := answers.Scan(); passed != (point != "here") {
			t.Errorf("wish %q: passed %v", point, passed)
		}
	}
	if err := child.Wait(); !killedBySIGKILL(err) {
		t.Errorf("the child ended with %v", err)
	}
	if _, err := os.Stat(wish); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the wish is still there: %v", err)
	}
}

// TestPoint_KillsAnotherProcessWithItsChildren has a shell with a child, whose pid it prints, as the victim.
func TestPoint_KillsAnotherProcessWithItsChildren(t *testing.T) {
	victim := exec.Command("sh", "-c", "sleep 300 & echo $!; wait")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	pidFile, wish := filepath.Join(folder, "pid"), filepath.Join(folder, "wish")
	for path, text := range map[string]string{pidFile: strconv.Itoa(victim.Process.Pid) + "\nmore\n", wish: "here\n" + pidFile + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(envPoint, "@"+wish)
	Point("here") // and we live
	// Both ends of the pipe lie with the victim and its child; it ends when the last of them is gone. Waiting for the
	// victim closes our end, so that comes after.
	if err := out.(*os.File).SetReadDeadline(time.Now().Add(childPatience)); err != nil {
		t.Fatal(err)
	}
	if rest, err := said.ReadString('\n'); err != io.EOF || rest != "" {
		t.Errorf("the victim's child %d lives: %q, %v", child, rest, err)
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	if err := victim.Wait(); !killedBySIGKILL(err) {
		t.Errorf("the victim ended with %v", err)
	}
}

// childPatience is how long a killed process may take to be gone.
const childPatience = time.Minute

func killedBySIGKILL(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
}
