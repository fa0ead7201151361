// Package pgserver runs a private Postgres: for `catalogd dev`, so that nothing has to be set up first, and for the
// tests, so that they meet the real database. One server owns one folder. It listens on loopback alone, on a free
// port, with a random password, and keeps no socket file, since a socket's path may have 107 bytes only.
//
// The folder survives everything. A lock file is held while the server runs, so a second start of the same folder is
// refused; the kernel drops the lock with the process, so after kill -9 the next start gets it, ends the Postgres
// that was left behind, if it is still there, and starts a new one, which recovers from its log.
//
// Postgres refuses to run as root, so root runs it as the user postgres, else as nobody. That user must reach the
// folder; one that it cannot reach (/root, a 0700 temporary folder) keeps only the password and a note, and the
// cluster goes to /var/lib/catalogd.
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Limits of a start and of a stop.
const (
	startAttemptsMax = 5                       // a free port may be taken by somebody else before Postgres binds it
	startWaitMax     = 120 * time.Second       // recovery of a big log takes its time
	orphanWaitMax    = 30 * time.Second        // until a Postgres left behind must have ended
	stopWaitMax      = 10 * time.Second        // until a stop becomes an immediate one
	pollInterval     = 5 * time.Millisecond    // of the files that Postgres writes about its state
	logBytesMax      = int64(16 * 1024 * 1024) // the log begins anew at a start when it is longer
)

// Names inside the folder.
const (
	lockName     = "postgres.lock"
	passwordName = "postgres.password"
	noteName     = "postgres.location" // where the cluster is, when it is not here
	clusterName  = "postgres"
	logName      = "postgres.log"
)

// roleName and databaseName are what URL names. The role is no superuser: what works for it works in production.
const (
	roleName     = "catalogd"
	databaseName = "catalogd"
)

// Durability says whether a crash of the machine may lose data.
type Durability int

// Durable is for everything but tests; Disposable skips every fsync.
const (
	Durable Durability = iota
	Disposable
)

// Options say how to run the server.
type Options struct {
	// Dir holds the cluster. It is made when it is missing.
	Dir string
	// Durability is Disposable for tests only.
	Durability Durability
	// ConnectionsMax is Postgres' max_connections; 0 means 100.
	ConnectionsMax int
}

// Server is a running Postgres.
type Server struct {
	dir      string
	cluster  string // Postgres' data folder
	password string
	port     int
	lock     *os.File
	process  *process
}

// Start runs Postgres on the folder, making the cluster when there is none, and returns when it takes connections.
// The context bounds the start, not the server's life: Stop ends it, and on Linux so does the end of this process.
func Start(ctx context.Context, o Options) (*Server, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder %s: %w", o.Dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for Postgres: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, lock: lock}
	if err := s.start(ctx, o); err != nil {
		lock.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, o Options) error {
	who, err := runAs()
	if err != nil {
		return err
	}
	place, err := locate(s.dir, who)
	if err != nil {
		return err
	}
	s.cluster = place.cluster
	found, err := findMajor(place.major)
	if err != nil {
		return err
	}
	bin, err := reachableBin(found, who)
	if err != nil {
		return err
	}
	if err := endOrphan(ctx, s.cluster); err != nil {
		return err
	}
	s.password, err = loadPassword(s.dir)
	if err != nil {
		return err
	}
	if place.major == 0 {
		if err := createCluster(ctx, bin, who, s.cluster, s.password, o.Durability); err != nil {
			return err
		}
	}
	return s.launch(ctx, bin, who, o)
}

// launch starts the postmaster, with another port when somebody took the one that looked free.
func (s *Server) launch(ctx context.Context, bin string, who identity, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, startWaitMax)
	defer cancel()
	log, err := openLog(filepath.Join(s.dir, logName))
	if err != nil {
		return err
	}
	defer log.Close() // Postgres has its own copy
	for attempt := 1; ; attempt++ {
		s.port, err = freePort()
		if err != nil {
			return err
		}
		s.process, err = startProcess(who.command(filepath.Join(bin, "postgres"), settings(s.cluster, s.port, o)...), log)
		if err != nil {
			return fmt.Errorf("start postgres: %w", err)
		}
		if err = s.awaitReady(ctx); err == nil {
			return nil
		}
		s.process.end(stopWaitMax)
		if attempt == startAttemptsMax || ctx.Err() != nil {
			return fmt.Errorf("postgres did not start, its log %s says why: %w", log.Name(), err)
		}
	}
}

// settings gives the arguments of the postmaster. They win over the files of the cluster, so a folder made by an
// older release runs with today's.
func settings(cluster string, port int, o Options) []string {
	connections := o.ConnectionsMax
	if connections == 0 {
		connections = 100
	}
	args := []string{"-D", cluster}
	set := func(name, value string) { args = append(args, "-c", name+"="+value) }
	set("listen_addresses", "127.0.0.1")
	set("port", strconv.Itoa(port))
	set("unix_socket_directories", "")
	set("max_connections", strconv.Itoa(connections))
	set("password_encryption", "scram-sha-256")
	set("logging_collector", "off")
	set("log_destination", "stderr")
	set("log_timezone", "UTC")
	set("timezone", "UTC")
	set("jit", "off") // our statements are short; compiling them costs more than running them
	set("shared_buffers", "64MB")
	set("max_wal_size", "256MB")
	set("wal_level", "minimal") // nobody replicates a private Postgres
	set("max_wal_senders", "0")
	for name, value := range platformSettings {
		set(name, value)
	}
	if o.Durability == Disposable {
		set("fsync", "off")
		set("synchronous_commit", "off")
		set("full_page_writes", "off")
		set("autovacuum", "off")
	}
	return args
}

// awaitReady watches the state that the postmaster writes into its pid file.
func (s *Server) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.process.done:
			return fmt.Errorf("postgres ended (%v)", s.process.err)
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			status, err := readPidFile(s.cluster)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if err == nil && status.pid == s.process.pid && status.ready {
				return nil
			}
		}
	}
}

// URL is the connection string of the database `catalogd`, password included.
func (s *Server) URL() string { return s.DatabaseURL(databaseName) }

// DatabaseURL is the connection string of another database of the server.
func (s *Server) DatabaseURL(name string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(roleName, s.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + name,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// PID is the postmaster's process id.
func (s *Server) PID() int { return s.process.pid }

// Done is closed when Postgres has ended, whoever ended it.
func (s *Server) Done() <-chan struct{} { return s.process.done }

// Stop ends Postgres: open transactions are rolled back and the cluster is left clean. When the context ends first,
// Postgres is ended at once and recovers at its next start. Stop may be called again.
func (s *Server) Stop(ctx context.Context) error {
	defer s.lock.Close()
	s.process.signal(syscall.SIGINT)
	select {
	case <-s.process.done:
		return nil
	case <-time.After(stopWaitMax):
	case <-ctx.Done():
	}
	s.process.end(stopWaitMax)
	select {
	case <-s.process.done:
		return nil
	default:
		return fmt.Errorf("stop postgres: process %d does not end", s.process.pid)
	}
}

// lockDir takes the folder for this process.
func lockDir(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("the folder %s is in use by another catalogd; stop that one or choose another folder", dir)
		}
		return nil, fmt.Errorf("lock the folder %s: %w", dir, err)
	}
	return lock, nil
}

// freePort asks the kernel. Postgres cannot be given a socket or port 0, so somebody else may take it meanwhile.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func openLog(path string) (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > logBytesMax {
		flags |= os.O_TRUNC
	}
	log, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open Postgres' log: %w", err)
	}
	return log, nil
}
