package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Access tokens of this story's server live this long; a client works for more than three lives.
const (
	shortTokenSeconds = 20
	longWorkSeconds   = 3*shortTokenSeconds + 5
)

// liveClient is a client that runs on while the story goes on.
type liveClient struct {
	t     *testing.T
	in    io.WriteCloser
	lines *bufio.Scanner
}

// startLive starts tokens_pyiceberg.py with more variables.
func startLive(t *testing.T, s *server, env ...string) *liveClient {
	t.Helper()
	cmd := exec.Command(pyiceberg(t).program, filepath.Join(root(t), "e2e", "stories", "tokens_pyiceberg.py"))
	cmd.Env = append(cleanEnv(), env...)
	for _, name := range []string{"CATALOG_URI", "CATALOG_WAREHOUSE", "CATALOG_OAUTH2__SERVER__URI"} {
		cmd.Env = append(cmd.Env, name+"="+s.env[name])
	}
	in, out, problems := startTalking(t, cmd)
	c := &liveClient{t: t, in: in, lines: bufio.NewScanner(out)}
	if !c.lines.Scan() || c.lines.Text() != "ready" {
		t.Fatalf("the client did not start: %s\n%s", c.lines.Text(), problems)
	}
	return c
}

// want gives the client a command and wants an answer that begins so.
func (c *liveClient) want(command, answer string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, command); err != nil {
		c.t.Fatal(err)
	}
	if !c.lines.Scan() || !strings.HasPrefix(c.lines.Text(), answer) {
		c.t.Errorf("%s: %q, want %q", command, c.lines.Text(), answer)
	}
}

// personalToken makes a personal access token by the command line, as root.
func (s *server) personalToken(t *testing.T, principal, name string, args ...string) string {
	t.Helper()
	var answer struct {
		Secret string `json:"secret"`
	}
	text := s.catalogd(t, append([]string{"token", "create", name, "--principal", principal, "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return answer.Secret
}

// A service works with a personal access token, in PyIceberg and Spark and in each way in which clients take one: a role restriction narrows it, refresh
// keeps it alive past three lives of its access tokens, an access token without a credential ends with its life, and revocation
// stops whoever is at work.
func TestStory_PersonalAccessTokens(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &server{dir: filepath.Join(dir, "data"), log: &lockedBuffer{}}
	s.cmd = exec.Command(binary(t), "dev", "--data", s.dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--no-worker")
	s.cmd.Env = append(cleanEnv(), fmt.Sprintf("CATALOGD_TOKENS_TTL=%d", shortTokenSeconds))
	s.waitReady(t)
	t.Cleanup(s.stop)

	s.request(t, http.MethodPost, "/namespaces", `{"namespace":["orders"]}`)
	s.request(t, http.MethodPost, "/namespaces/orders/tables", `{"name":"online","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`)
	s.catalogd(t, "principal", "create", "engine")
	for role, privilege := range map[string]string{"reader_role": "TABLE_READ_DATA", "rw_role": "TABLE_WRITE_DATA"} {
		s.catalogd(t, "role", "create", role)
		s.catalogd(t, "role", "assign", role, "--principal", "engine")
		s.catalogd(t, "role", "create", role, "-w", "dev")
		s.catalogd(t, "role", "assign", role, "-w", "dev", "--principal-role", role)
		s.catalogd(t, "grant", "create", privilege, "-w", "dev", "--role", role)
	}
	wide := s.personalToken(t, "engine", "wide")
	narrow := s.personalToken(t, "engine", "narrow", "--role", "reader_role")

	bearer := startLive(t, s, "TOKEN="+wide)
	bearer.want("append orders.online", "ok")
	credential := startLive(t, s, "CREDENTIAL="+wide, "SCOPE=session:role:RW_ROLE")
	credential.want("append orders.online", "ok")
	narrowed := startLive(t, s, "CREDENTIAL="+wide, "SCOPE=session:role:READER_ROLE")
	restricted := startLive(t, s, "TOKEN="+narrow)
	for _, reader := range []*liveClient{narrowed, restricted} {
		reader.want("read orders.online", "ok 2")
		reader.want("append orders.online", "refused ForbiddenError")
	}
	exchanged := startLive(t, s, "EXCHANGE="+wide)
	exchanged.want("read orders.online", "ok 2")

	as := *s // Spark's credential without a colon, which is refreshed with Basic of the same
	as.env = maps.Clone(s.env)
	as.env["CATALOG_CREDENTIAL"], as.env["CATALOG_SCOPE"] = wide, "session:role:READER_ROLE"
	wantLines(t, spark(t).run(t, &as, "stories/engine_spark.py", "read:orders.online"), "orders.online 2 2")

	credential.want(fmt.Sprintf("work orders.online %d", longWorkSeconds), "ok")
	exchanged.want("read orders.online", "refused UnauthorizedError") // its life is over, and it has no credential
	bearer.want("append orders.online", "ok")

	s.catalogd(t, "token", "revoke", "wide", "--principal", "engine")
	bearer.want("read orders.online", "refused UnauthorizedError")
	for _, gone := range []*liveClient{credential, narrowed} { // each asks for another token and is told that its credential is none
		gone.want("read orders.online", "refused OAuthError")
	}
	restricted.want("read orders.online", "ok 3")
	if list := s.catalogd(t, "token", "list", "--principal", "engine", "--output", "json"); strings.Contains(list, wide) || !strings.Contains(list, "reader_role") {
		t.Errorf("%s", list)
	}
}

// request asks the catalog as root and wants a success.
func (s *server) request(t *testing.T, method, path, body string) {
	t.Helper()
	id, secret, _ := strings.Cut(s.env["CATALOG_CREDENTIAL"], ":")
	token := s.tokenOf(t, url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}})
	r, err := http.NewRequest(method, s.env["CATALOG_URI"]+"/v1/"+s.env["CATALOG_WAREHOUSE"]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", path, answer.StatusCode, text)
	}
}

func (s *server) tokenOf(t *testing.T, form url.Values) string {
	t.Helper()
	answer, err := http.PostForm(s.env["CATALOG_OAUTH2__SERVER__URI"], form)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var token struct {
		Text string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&token); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", answer.StatusCode, err)
	}
	return token.Text
}
