package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Names in the data folder of `catalogd dev`; Postgres' own are internal/pgserver's.
const (
	devLockName      = "dev.lock"
	devKeyName       = "secrets.key"
	devEnvName       = "client.env"
	devClientsName   = "clients.txt"
	devWarehouseName = "warehouse"
)

const devFolderRemedy = "this user must be able to write there; choose another folder by --data"

// devFolder is the data folder, locked for this process.
type devFolder struct {
	path string // absolute, links resolved: it becomes part of locations
	lock *os.File
}

// openDevFolder makes the folder when it is missing and takes it. The kernel frees the lock with the process, so a
// killed one never leaves the folder locked.
func openDevFolder(path string) (*devFolder, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", path, err)
	}
	// Postgres runs as another user when root starts us and has to pass through; what is secret has its own mode.
	if err := os.MkdirAll(absolute, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w; %s", err, devFolderRemedy)
	}
	if absolute, err = filepath.EvalSymlinks(absolute); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", path, err)
	}
	lock, err := os.OpenFile(filepath.Join(absolute, devLockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data folder: %w; %s", err, devFolderRemedy)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer lock.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the data folder %s: %w", absolute, err)
		}
		return nil, fmt.Errorf("the data folder %s is in use by another `catalogd dev`%s; stop that one or choose another folder by --data",
			absolute, holderOf(lock))
	}
	if err := lock.Truncate(0); err == nil {
		_, err = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		if err != nil {
			lock.Close()
			return nil, fmt.Errorf("write the lock of the data folder: %w", err)
		}
	}
	return &devFolder{path: absolute, lock: lock}, nil
}

// holderOf reads the process id that the lock's holder wrote.
func holderOf(lock *os.File) string {
	text := make([]byte, 32)
	n, _ := lock.ReadAt(text, 0)
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n]))); err == nil {
		return fmt.Sprintf(" (process %d)", pid)
	}
	return ""
}

func (d *devFolder) close() { d.lock.Close() }

func (d *devFolder) file(name string) string { return filepath.Join(d.path, name) }

// secretKey reads the key of the folder, or makes it at the first start.
func (d *devFolder) secretKey() (reference string, err error) {
	path := d.file(devKeyName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		raw := make([]byte, secretKeyBytes)
		rand.Read(raw) // never fails
		if err := d.write(devKeyName, base64.StdEncoding.EncodeToString(raw)+"\n"); err != nil {
			return "", fmt.Errorf("keep the key that encrypts secrets: %w", err)
		}
	} else if err != nil {
		return "", fmt.Errorf("read the key that encrypts secrets: %w", err)
	}
	return "file:" + path, nil
}

// write replaces a file whole or not at all, readable for this user alone.
func (d *devFolder) write(name, body string) error {
	next := d.file(name) + ".new"
	// A leftover could have another mode, which writing would keep.
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(body)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(next, d.file(name))
}

// clientVariable reads one value of the client.env that an earlier run wrote; "" when there is none.
func (d *devFolder) clientVariable(name string) string {
	body, err := readSmallFile(d.file(devEnvName))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(body) {
		if value, found := strings.CutPrefix(strings.TrimRight(line, "\r\n"), name+"="); found {
			return value
		}
	}
	return ""
}

// writeClientEnv writes KEY=value lines in the given order.
func (d *devFolder) writeClientEnv(pairs [][2]string) error {
	var b strings.Builder
	for _, p := range pairs {
		if strings.ContainsAny(p[1], " \t\r\n") {
			return fmt.Errorf("%s would have a blank in its value, which `env $(cat …)` cannot carry", p[0])
		}
		b.WriteString(p[0] + "=" + p[1] + "\n")
	}
	if err := d.write(devEnvName, b.String()); err != nil {
		return fmt.Errorf("write the clients' settings: %w", err)
	}
	return nil
}
