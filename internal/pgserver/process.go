package pgserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// identity is the user that Postgres runs as.
type identity struct {
	name     string
	uid, gid uint32
	other    bool // not this process's own user
}

// runAs gives this process's user, or for root somebody else.
func runAs() (identity, error) {
	if os.Geteuid() != 0 {
		return identity{name: "the current user"}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(account.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return identity{}, fmt.Errorf("read the ids of the user %s: %w", name, err)
		}
		return identity{name: name, uid: uint32(uid), gid: uint32(gid), other: true}, nil
	}
	return identity{}, errors.New("Postgres does not run as root, and there is neither a user postgres nor a user nobody: create one, or run catalogd as an ordinary user")
}

// reaches tells whether the user may enter the folder and every folder above it.
func (i identity) reaches(dir string) bool {
	if !i.other {
		return true
	}
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return false
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		bit := fs.FileMode(0o001)
		switch {
		case owner.Uid == i.uid:
			bit = 0o100
		case owner.Gid == i.gid:
			bit = 0o010
		}
		if info.Mode()&bit == 0 {
			return false
		}
		up := filepath.Dir(dir)
		if up == dir {
			return true
		}
		dir = up
	}
}

// own gives a folder to the user.
func (i identity) own(dir string) error {
	if !i.other {
		return nil
	}
	if err := os.Chown(dir, int(i.uid), int(i.gid)); err != nil {
		return fmt.Errorf("give %s to the user %s: %w", dir, i.name, err)
	}
	return nil
}

// command makes a command of the user. Its environment holds nothing that Postgres' programs would obey.
func (i identity) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(program, args...)
	c.Dir = "/"
	c.Env = []string{"PATH=" + filepath.Dir(program) + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	if library := os.Getenv("LD_LIBRARY_PATH"); library != "" {
		c.Env = append(c.Env, "LD_LIBRARY_PATH="+library)
	}
	// An own process group: Ctrl-C on the terminal reaches us, and we stop Postgres after what uses it.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if i.other {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: i.uid, Gid: i.gid, Groups: []uint32{i.gid}}
	}
	endWithParent(c.SysProcAttr)
	return c
}

// run executes a program of the user to its end.
func (i identity) run(ctx context.Context, input, program string, args ...string) error {
	c := i.command(program, args...)
	c.Stdin = strings.NewReader(input)
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	p, err := launchCommand(c)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.end(stopWaitMax)
		<-p.done
		return ctx.Err()
	}
	if p.err != nil {
		return fmt.Errorf("%w: %s", p.err, lastLines([]byte(out.String())))
	}
	return nil
}

// process is a child that somebody waits for.
type process struct {
	pid  int
	done chan struct{} // closed when it has ended
	err  error         // why it ended; read after done
}

func startProcess(c *exec.Cmd, log *os.File) (*process, error) {
	c.Stdout, c.Stderr = log, log
	return launchCommand(c)
}

// launchCommand starts the command from a thread that lives as long as it does: the kernel sends the signal for a
// parent's death when the starting thread ends, not the process.
func launchCommand(c *exec.Cmd) (*process, error) {
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		if err == nil {
			p.pid = c.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.err = c.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(p.pid, s) // it may end in this moment
	}
}

// end asks for an immediate shutdown and, after the wait, takes the process away.
func (p *process) end(wait time.Duration) {
	p.signal(syscall.SIGQUIT)
	select {
	case <-p.done:
		return
	case <-time.After(wait):
	}
	p.signal(syscall.SIGKILL)
	select {
	case <-p.done:
	case <-time.After(wait):
	}
}

// pidFile is what the postmaster writes about itself.
type pidFile struct {
	pid   int
	ready bool
}

// readPidFile reads postmaster.pid: line 1 is the process id, line 8 the state.
func readPidFile(cluster string) (pidFile, error) {
	f, err := os.Open(filepath.Join(cluster, "postmaster.pid"))
	if err != nil {
		return pidFile{}, err
	}
	defer f.Close()
	var lines []string
	for scanner := bufio.NewScanner(f); scanner.Scan(); {
		lines = append(lines, strings.TrimSpace(scanner.Text()))
	}
	if len(lines) == 0 {
		return pidFile{}, nil
	}
	pid, err := strconv.Atoi(lines[0])
	if err != nil {
		return pidFile{}, nil // half-written; the next look will show it
	}
	return pidFile{pid: pid, ready: len(lines) >= 8 && lines[7] == "ready"}, nil
}

// endOrphan ends the Postgres that a killed catalogd left behind on this cluster. The folder's lock is ours, so
// nobody else can want it. A process counts only when its working folder is the cluster: process ids are used again.
func endOrphan(ctx context.Context, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, orphanWaitMax)
	defer cancel()
	began := time.Now()
	status, err := readPidFile(cluster)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the pid file of an earlier Postgres: %w", err)
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for asked, insisted := false, false; ; {
		left := processesIn(cluster)
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			switch {
			case pid != status.pid: // a child; it ends with its postmaster
			case !asked:
				asked = true
				_ = syscall.Kill(pid, syscall.SIGINT)
			case !insisted && time.Since(began) > stopWaitMax:
				insisted = true
				_ = syscall.Kill(pid, syscall.SIGQUIT)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("an earlier Postgres (process %d) still uses %s and does not end: %w", left[0], cluster, ctx.Err())
		case <-ticker.C:
		}
	}
	// Nobody uses the cluster, so the file is stale. Left in place it would stop Postgres when the id in it belongs
	// to some other process of the same user by now.
	if err := os.Remove(filepath.Join(cluster, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a stale pid file: %w", err)
	}
	return nil
}
