package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"catalogd/internal/pgserver"
)

// bench's own names; the secret is as long as a chosen one must be.
const (
	rootCredential = "root:bench-bench-bench-bench-bench"
	lakeName       = "lake"  // in the object store
	diskName       = "disk"  // in a folder
	namespaceName  = "bench" // of small tables
	crowdName      = "crowd" // of very many
)

// server is `catalogd serve` as a process, with a Postgres and an object store of its own.
type server struct {
	dir      string
	postgres *pgserver.Server
	bucket   *bucket
	cmd      *exec.Cmd
	address  string // HOST:PORT
	ops      string
	token    string

	environment []string // of serve
}

var serveLine = regexp.MustCompile(`^catalogd ready on http://(\S+) in`)

// startServer brings the processes up, and makes schema and root.
func startServer(dir string) (*server, error) {
	s := &server{dir: dir}
	var err error
	if s.postgres, err = pgserver.Start(context.Background(), pgserver.Options{Dir: filepath.Join(dir, "postgres")}); err != nil {
		return nil, err
	}
	s.bucket = newBucket()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	if s.ops, err = freeAddress(); err != nil {
		return nil, err
	}
	s.environment = append(os.Environ(), "CATALOGD_DATABASE_URL="+s.postgres.URL(), "CATALOGD_DATABASE_MIGRATE=true",
		"CATALOGD_SECRETS_KEY="+base64.StdEncoding.EncodeToString(key), "CATALOGD_LISTEN=127.0.0.1:0", "CATALOGD_OPS_LISTEN="+s.ops,
		"CATALOGD_STORAGE_ALLOW_FILE=true", "CATALOGD_MAINTENANCE_EMBEDDED=false", "CATALOGD_ROOT_CREDENTIAL="+rootCredential,
		"CATALOGD_TOKENS_TTL=86400", "AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench", "AWS_REGION=us-east-1",
		"CATALOGD_DATABASE_MAX_CONNS="+strconv.Itoa(connectionsOfPool))
	for _, command := range []string{"migrate", "bootstrap"} {
		cmd := exec.Command("bin/catalogd", command)
		cmd.Env = s.environment
		if out, err := cmd.CombinedOutput(); err != nil {
			return s, fmt.Errorf("catalogd %s: %w\n%s", command, err, out)
		}
	}
	s.cmd, s.address, err = s.serve("bin/catalogd", s.environment)
	return s, err
}

// serve starts a server of a build and gives it with its address.
func (s *server) serve(binary string, environment []string) (cmd *exec.Cmd, address string, err error) {
	log, err := os.Create(filepath.Join(s.dir, filepath.Base(binary)+".log"))
	if err != nil {
		return nil, "", err
	}
	defer log.Close()
	cmd = exec.Command(binary, "serve")
	cmd.Env, cmd.Stderr = environment, log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := serveLine.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return cmd, m[1], nil
		}
	}
	return cmd, "", fmt.Errorf("catalogd serve ended before it was ready; see %s", log.Name())
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (s *server) close() {
	if s.cmd != nil && s.cmd.Process != nil {
		end(s.cmd, syscall.SIGTERM)
	}
	if s.bucket != nil {
		s.bucket.Close()
	}
	if s.postgres != nil {
		_ = s.postgres.Stop(context.Background())
	}
}

// prepare signs in and makes two warehouses of two namespaces each.
func (s *server) prepare() error {
	id, secret, _ := strings.Cut(rootCredential, ":")
	var err error
	if s.token, err = s.signIn(id, secret); err != nil {
		return err
	}
	folder := filepath.Join(s.dir, "disk")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, w := range map[string]struct{ base, storage string }{
		lakeName: {"s3://bench/lake", fmt.Sprintf(`{"storageType":"S3","stsUnavailable":true,"endpoint":%q,"region":"us-east-1","pathStyleAccess":true}`, s.bucket.URL)},
		diskName: {"file://" + folder, `{"storageType":"FILE"}`},
	} {
		body := fmt.Sprintf(`{"catalog":{"type":"INTERNAL","name":%q,"properties":{"default-base-location":%q},"storageConfigInfo":%s}}`, name, w.base, w.storage)
		if _, err := s.call("POST", "/api/management/v1/catalogs", body); err != nil {
			return err
		}
		for _, namespace := range []string{namespaceName, crowdName} {
			if _, err := s.call("POST", "/api/catalog/v1/"+name+"/namespaces", fmt.Sprintf(`{"namespace":[%q]}`, namespace)); err != nil {
				return err
			}
		}
	}
	return nil
}

// call sends one request and gives the answer's body, which must be a good one.
func (s *server) call(method, path, body string) ([]byte, error) {
	r, err := http.NewRequest(method, "http://"+s.address+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s %.500s", method, path, answer.Status, raw)
	}
	return raw, err
}

func tablePath(warehouse, namespace, table string) string {
	return "/api/catalog/v1/" + warehouse + "/namespaces/" + namespace + "/tables/" + table
}

func (s *server) createTable(warehouse, namespace, table string) error {
	_, err := s.call("POST", strings.TrimSuffix(tablePath(warehouse, namespace, ""), "/"), fmt.Sprintf(`{"name":%q,"schema":{"type":"struct","schema-id":0,"fields":[`+
		`{"id":1,"name":"id","type":"long","required":true},{"id":2,"name":"at","type":"timestamptz","required":false},`+
		`{"id":3,"name":"sensor","type":"string","required":false},{"id":4,"name":"value","type":"double","required":false}]},`+
		`"properties":{"write.metadata.previous-versions-max":"1","owner":"bench"}}`, table))
	return err
}

// roundTrips reads the server's own count of round trips to the database.
func (s *server) roundTrips() (float64, error) {
	answer, err := http.Get("http://" + s.ops + "/metrics")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "catalogd_database_round_trips_total "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("the server does not count its round trips: %w", lines.Err())
}
