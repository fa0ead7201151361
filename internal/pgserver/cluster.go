package pgserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// sharedRoot keeps what the user that runs Postgres could not reach where it is. Only root writes here.
const sharedRoot = "/var/lib/catalogd"

// place is where a folder's cluster is, and which release made it (0: it is still to be made).
type place struct {
	cluster string
	major   int
}

// locate finds the folder's cluster or the right place for a new one.
func locate(dir string, who identity) (place, error) {
	cluster := filepath.Join(dir, clusterName)
	note, err := os.ReadFile(filepath.Join(dir, noteName))
	switch {
	case err == nil:
		cluster = strings.TrimSpace(string(note))
	case !errors.Is(err, fs.ErrNotExist):
		return place{}, fmt.Errorf("read where the cluster is: %w", err)
	case !who.reaches(dir):
		cluster, err = moveOut(dir)
		if err != nil {
			return place{}, err
		}
	}
	version, err := os.ReadFile(filepath.Join(cluster, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return place{cluster: cluster}, nil
	}
	if err != nil {
		return place{}, fmt.Errorf("read the cluster's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(version)))
	if err != nil {
		return place{}, fmt.Errorf("%s holds no usable cluster: its version is %q", cluster, version)
	}
	return place{cluster: cluster, major: major}, nil
}

// moveOut chooses the place under /var/lib/catalogd and notes it in the folder. A cluster that is there already
// belonged to an earlier folder of the same name; its password went with that folder, so nobody can use it.
func moveOut(dir string) (string, error) {
	digest := sha256.Sum256([]byte(dir))
	cluster := filepath.Join(sharedRoot, hex.EncodeToString(digest[:8]))
	if err := os.MkdirAll(sharedRoot, 0o755); err != nil {
		return "", fmt.Errorf("make %s: %w", sharedRoot, err)
	}
	if err := endOrphan(context.Background(), cluster); err != nil {
		return "", err
	}
	if err := os.RemoveAll(cluster); err != nil {
		return "", fmt.Errorf("remove the cluster of an earlier folder %s: %w", dir, err)
	}
	if err := writeAtOnce(filepath.Join(dir, noteName), []byte(cluster+"\n")); err != nil {
		return "", fmt.Errorf("note where the cluster is: %w", err)
	}
	return cluster, nil
}

// loadPassword reads the folder's password or makes one. It is written before the cluster is made, so that no
// cluster exists whose password nobody knows.
func loadPassword(dir string) (string, error) {
	path := filepath.Join(dir, passwordName)
	kept, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(kept)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read Postgres' password: %w", err)
	}
	secret := make([]byte, 24)
	rand.Read(secret) // never fails
	password := base64.RawURLEncoding.EncodeToString(secret)
	if err := writeAtOnce(path, []byte(password+"\n")); err != nil {
		return "", fmt.Errorf("keep Postgres' password: %w", err)
	}
	return password, nil
}

// writeAtOnce leaves either no file or the whole file, for this user's eyes alone.
func writeAtOnce(path string, body []byte) error {
	if err := os.WriteFile(path+".new", body, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// createCluster runs initdb beside the place and renames, so that a crash leaves no half-made cluster behind.
func createCluster(ctx context.Context, bin string, who identity, cluster, password string, d Durability) error {
	fresh := cluster + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove a half-made cluster: %w", err)
	}
	// The folder's parent is open to everybody who reaches it; the cluster itself is its user's alone.
	if err := os.MkdirAll(filepath.Dir(cluster), 0o755); err != nil {
		return fmt.Errorf("make room for the cluster: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("make the cluster's folder: %w", err)
	}
	if err := who.own(fresh); err != nil {
		return err
	}
	passwordFile := cluster + ".pw"
	if err := writeAtOnce(passwordFile, []byte(password+"\n")); err != nil {
		return fmt.Errorf("hand over Postgres' password: %w", err)
	}
	defer os.Remove(passwordFile)
	if err := who.own(passwordFile); err != nil {
		return err
	}
	args := []string{
		"--pgdata", fresh, "--username", "postgres", "--auth-local", "scram-sha-256", "--auth-host", "scram-sha-256",
		"--pwfile", passwordFile, "--encoding", "UTF8", "--no-locale", "--no-instructions",
	}
	deferSync := d == Disposable || syncsAtOnce
	if deferSync {
		args = append(args, "--no-sync")
	}
	if err := who.run(ctx, "", filepath.Join(bin, "initdb"), args...); err != nil {
		return fmt.Errorf("make a Postgres cluster in %s: %w", cluster, err)
	}
	// Single-user mode needs no connection and no port. The statements go by standard input, so that the password
	// is not on a command line.
	statements := "CREATE ROLE " + roleName + " LOGIN CREATEDB PASSWORD '" + password + "'\n" +
		"CREATE DATABASE " + databaseName + " OWNER " + roleName + "\n"
	single := []string{"--single", "-D", fresh, "-c", "exit_on_error=on"}
	if deferSync {
		single = append(single, "-F") // no fsync
	}
	if err := who.run(ctx, statements, filepath.Join(bin, "postgres"), append(single, "postgres")...); err != nil {
		return fmt.Errorf("make the database %s: %w", databaseName, err)
	}
	if d == Durable {
		if err := syncFolder(fresh); err != nil {
			return err
		}
	}
	if err := os.Rename(fresh, cluster); err != nil {
		return fmt.Errorf("put the cluster in place: %w", err)
	}
	return nil
}

// reachableBin gives the binaries' folder, or a copy's that the user can reach: the cache folder of root lies under
// /root, where nobody else may look.
func reachableBin(found installation, who identity) (string, error) {
	if who.reaches(found.bin) {
		return found.bin, nil
	}
	info, err := os.Stat(filepath.Join(found.bin, "postgres"))
	if err != nil {
		return "", fmt.Errorf("look at the binaries: %w", err)
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", found.bin, info.Size(), info.ModTime().UnixNano()))
	target := filepath.Join(sharedRoot, fmt.Sprintf("postgres-%d-%s", found.major, hex.EncodeToString(digest[:6])))
	if _, err := os.Stat(target); err == nil {
		return filepath.Join(target, "bin"), nil
	}
	if err := os.MkdirAll(sharedRoot, 0o755); err != nil {
		return "", fmt.Errorf("make %s: %w", sharedRoot, err)
	}
	fresh, err := os.MkdirTemp(sharedRoot, "copy-")
	if err != nil {
		return "", fmt.Errorf("make room for a copy of the binaries: %w", err)
	}
	defer os.RemoveAll(fresh)
	for _, part := range []string{"bin", "lib", "share"} {
		if err := copyTree(filepath.Join(filepath.Dir(found.bin), part), filepath.Join(fresh, part)); err != nil {
			return "", fmt.Errorf("copy the binaries to where %s may run them: %w", who.name, err)
		}
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return "", fmt.Errorf("open the copy of the binaries: %w", err)
	}
	// Somebody else may have been quicker; then theirs is as good.
	if err := os.Rename(fresh, target); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("put the copy of the binaries in place: %w", err)
	}
	return filepath.Join(target, "bin"), nil
}

// copyTree copies folders, files and links, readable for everybody.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, below)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case entry.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		default:
			return copyFile(path, target)
		}
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, info.Mode().Perm()|0o444)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// lastLines keeps the end of a program's output, for an error message.
func lastLines(out []byte) string {
	const lines = 5
	all := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return string(bytes.Join(all, []byte("; ")))
}
