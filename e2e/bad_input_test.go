package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// badCall is one request that must be refused, and how. The error's code must repeat the status, and nothing may be
// written whatever it is.
type badCall struct {
	name   string
	method string // "" is POST
	path   string // below the catalog's /v1, or a whole URL
	header http.Header
	body   any // text or bytes are sent as they are, everything else as JSON; nil is no body
	status int
	typ    string // error.type; for the token route OAuth's error
	says   string // what the message must name; alternatives stand between bars
}

// Texts of the requests.
const (
	badTable     = "/dev/namespaces/ns/tables/t"
	badTables    = "/dev/namespaces/ns/tables"
	badCommits   = "/dev/transactions/commit"
	badRename    = "/dev/tables/rename"
	megabyte     = 1 << 20
	bigNameBytes = 10 * megabyte
)

type object = map[string]any
type list = []any

// badInput is a server that nobody else uses, with a table ns.t, its neighbour ns.victim, a view ns.v, and a way to see whether
// anything changed.
type badInput struct {
	t      *testing.T
	server *server
	rest   *rest
	db     *pgx.Conn
	folder string // of everything that tables may use
	base   string // the warehouse's location
	more   string // another allowed location
	table  loaded
	victim loaded
	state  string
	rows   int
}

func newBadInput(t *testing.T) *badInput {
	t.Helper()
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	more := filepath.Join(dir, "more")
	if err := os.Mkdir(more, 0o755); err != nil {
		t.Fatal(err)
	}
	b := &badInput{t: t, folder: dir, base: "file://" + filepath.Join(dir, "data", "warehouse"), more: "file://" + more}
	b.server = startDev(t, filepath.Join(dir, "data"), nil, "--no-worker", "--allowed-location", b.more)
	t.Cleanup(b.server.stop)
	b.rest = b.server.rest(t)
	var err error
	if b.db, err = pgx.Connect(t.Context(), b.server.env["CATALOGD_DEV_DATABASE_URL"]+"&search_path=catalogd"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.db.Close(context.Background()) })
	b.mustDo("POST", "/dev/namespaces", object{"namespace": list{"ns"}, "properties": object{"owner": "me"}})
	for _, name := range []string{"t", "victim"} {
		b.mustDo("POST", badTables, object{"name": name, "schema": goodSchema()})
	}
	b.mustDo("POST", badViews, goodView("v"))
	b.table, b.victim = b.loadTable("t"), b.loadTable("victim")
	b.mustDo("POST", badTable, appendOf(b.table, 1, 0))
	b.table = b.loadTable("t")
	b.state = b.everything()
	return b
}

func goodSchema() object {
	return object{"type": "struct", "schema-id": 0, "fields": list{
		object{"id": 1, "name": "id", "type": "long", "required": false},
		object{"id": 2, "name": "word", "type": "string", "required": false}}}
}

func (b *badInput) mustDo(method, path string, body any) []byte {
	b.t.Helper()
	status, raw := b.rest.call(method, path, body)
	if status != 200 && status != 204 {
		b.t.Fatalf("%s %s: %d %s", method, path, status, raw)
	}
	return raw
}

func (b *badInput) loadTable(name string) loaded {
	b.t.Helper()
	var l loaded
	if err := json.Unmarshal(b.mustDo("GET", badTables+"/"+name, nil), &l); err != nil {
		b.t.Fatal(err)
	}
	return l
}

// everything is what the database holds and what lies in the folders of tables, as a text to compare.
func (b *badInput) everything() string {
	b.t.Helper()
	ctx := b.t.Context()
	names, err := rowsOf[string](ctx, b.db, `SELECT table_name::text FROM information_schema.tables
		WHERE table_schema = 'catalogd' AND table_type = 'BASE TABLE' ORDER BY table_name`)
	if err != nil || len(names) < 10 {
		b.t.Fatalf("tables of the database: %v %v", names, err)
	}
	var parts []string
	for _, name := range names {
		rows := "TRUE"
		if name == "audit" {
			rows = "allowed" // refusals are recorded there
		}
		parts = append(parts, fmt.Sprintf(`SELECT '%[1]s ' || count(*) || ' ' || coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM %[1]s t WHERE %[2]s`, name, rows))
	}
	contents, err := rowsOf[string](ctx, b.db, strings.Join(parts, "\nUNION ALL "))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, place := range []string{b.base, b.more} {
		err := filepath.WalkDir(strings.TrimPrefix(place, "file://"), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			contents = append(contents, fmt.Sprintf("%s %d %s", path, info.Size(), info.ModTime()))
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return strings.Join(contents, "\n")
}

func rowsOf[T any](ctx context.Context, db *pgx.Conn, sql string) ([]T, error) {
	rows, err := db.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// unchanged fails the test with what is different, if anything is.
func (b *badInput) unchanged(t *testing.T) {
	t.Helper()
	now := b.everything()
	if now == b.state {
		return
	}
	before := map[string]bool{}
	for _, line := range strings.Split(b.state, "\n") {
		before[line] = true
	}
	for _, line := range strings.Split(now, "\n") {
		if !before[line] {
			t.Errorf("something was written: %s", line)
		}
	}
	b.state = now
}

// refused sends every call and holds its answer against the row.
func (b *badInput) refused(group string, calls []badCall) {
	b.t.Helper()
	b.t.Run(group, func(t *testing.T) {
		for _, c := range calls {
			t.Run(c.name, func(t *testing.T) {
				b.rows++
				status, header, raw := b.send(t, c)
				checkRefusal(t, c, status, header, raw)
				b.unchanged(t)
			})
		}
	})
}

func (b *badInput) send(t *testing.T, c badCall) (int, http.Header, []byte) {
	t.Helper()
	var body io.Reader
	switch content := c.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(content)
	case []byte:
		body = bytes.NewReader(content)
	default:
		raw, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(raw)
	}
	method, url := c.method, c.path
	if method == "" {
		method = http.MethodPost
	}
	if strings.HasPrefix(url, "/") {
		url = b.rest.base + url
	}
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.rest.token)
	req.Header.Set("Content-Type", "application/json")
	for name, values := range c.header {
		req.Header[name] = values
		if values == nil {
			req.Header.Del(name)
		}
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %.100s: %v", method, url, err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s %.100s: %v", method, url, err)
	}
	return answer.StatusCode, answer.Header, raw
}

func checkRefusal(t *testing.T, c badCall, status int, header http.Header, raw []byte) {
	t.Helper()
	if status != c.status {
		t.Errorf("status %d, wanted %d: %.400s", status, c.status, raw)
		return
	}
	if c.method == http.MethodHead {
		if len(raw) > 0 {
			t.Errorf("an answer to HEAD has a body: %s", raw)
		}
		return
	}
	if kind := header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("the answer is of type %q: %.200s", kind, raw)
	}
	if len(raw) > 16<<10 {
		t.Errorf("the answer has %d bytes: it repeats what it was sent", len(raw))
	}
	if strings.HasSuffix(c.path, "/oauth/tokens") {
		var refusal struct{ Error, ErrorDescription string }
		if err := json.Unmarshal(raw, &refusal); err != nil || refusal.Error != c.typ {
			t.Errorf("refused with %.300s, wanted %s", raw, c.typ)
		}
	} else {
		var refusal struct {
			Error struct {
				Message, Type string
				Code          int
			}
		}
		if err := json.Unmarshal(raw, &refusal); err != nil || refusal.Error.Type != c.typ || refusal.Error.Code != status {
			t.Errorf("refused with %.300s, wanted type %s and code %d", raw, c.typ, status)
		}
	}
	named := false
	for _, what := range strings.Split(c.says, "|") {
		named = named || what != "" && strings.Contains(string(raw), jsonText(what))
	}
	if !named {
		t.Errorf("the message does not name %q: %.400s", c.says, raw)
	}
	for _, inside := range []string{"Go value", "Go struct", "json:", "SQLSTATE", "pgx", ".go:", "runtime error"} {
		if strings.Contains(string(raw), inside) {
			t.Errorf("the message tells how the server is made: %.400s", raw)
		}
	}
}

// jsonText is how a text looks inside a JSON string.
func jsonText(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(raw[1 : len(raw)-1]))
}

// brokenHTTP sends what is no HTTP request, or half of one. Who answers is Go's own server, in its own words; nothing
// may be written, and the server goes on.
func (b *badInput) brokenHTTP() {
	b.t.Helper()
	host := strings.TrimSuffix(strings.TrimPrefix(b.server.env["CATALOG_URI"], "http://"), "/api/catalog")
	commit, err := json.Marshal(b.commitOf(object{"action": "set-properties", "updates": object{"k": "v"}}))
	if err != nil {
		b.t.Fatal(err)
	}
	head := func(method, path string, more ...string) string {
		lines := append([]string{method + " /api/catalog/v1" + path + " HTTP/1.1", "Host: " + host, "Authorization: Bearer " + b.rest.token,
			"Connection: close"}, more...)
		return strings.Join(lines, "\r\n") + "\r\n\r\n"
	}
	length := fmt.Sprintf("Content-Length: %d", len(commit))
	for name, c := range map[string]struct{ sent, answer string }{
		"no HTTP":                     {"nonsense\r\n\r\n", "HTTP/1.1 400"},
		"another protocol":            {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400"},
		"a version of its own":        {"GET / HTTP/9.9\r\nHost: x\r\n\r\n", "HTTP/1.1 505"},
		"a broken escape in the path": {head("POST", "/dev/namespaces/%zz/tables", length) + string(commit), "HTTP/1.1 400"},
		"a header of 100 kB":          {head("GET", "/dev/namespaces", "X-Long: "+strings.Repeat("a", 100_000)), "HTTP/1.1 431"},
		"a header with U+0000":        {head("GET", "/dev/namespaces", "X-Odd: a\x00b"), "HTTP/1.1 400"},
		"two lengths":                 {head("POST", badTable, length, "Content-Length: 2") + string(commit), "HTTP/1.1 400"},
		"a length and chunks": {head("POST", badTable, "Content-Length: 5", "Transfer-Encoding: chunked") + "nonsense",
			"HTTP/1.1 400"},
		"chunks that are none": {head("POST", badTable, "Transfer-Encoding: chunked") + "nonsense\r\n", "HTTP/1.1 400"},
		"half a commit":        {head("POST", badTable, length) + string(commit[:len(commit)/2]), "HTTP/1.1 400"},
		"half a chunked commit": {head("POST", badTable, "Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n%s", len(commit), commit),
			"HTTP/1.1 400"},
	} {
		b.t.Run("broken/"+name, func(t *testing.T) {
			b.rows++
			conn, err := net.Dial("tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(c.sent)); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(conn) // a server that has had enough may reset the connection
			if !strings.HasPrefix(string(answer), c.answer) {
				t.Errorf("answered %.200q, wanted %s", answer, c.answer)
			}
			b.unchanged(t)
		})
	}
	if status, _ := b.rest.call("GET", badTable, nil); status != 200 {
		b.t.Errorf("afterwards the server answers %d", status)
	}
}

// What is malformed, too big, unknown, badly named, out of place, steering, forged or expired is refused with the
// specification's type and a message that names it, and leaves no trace in the database or the folders.
func TestBadInput(t *testing.T) {
	b := newBadInput(t)
	b.refused("malformed", malformedBodies())
	b.refused("types", b.wrongTypes())
	b.refused("sizes", b.tooBig())
	b.refused("unknown", b.unknownThings())
	b.refused("queries", badQueries())
	b.refused("headers", b.badHeaders())
	b.refused("names", b.badNames())
	b.refused("locations", b.foreignLocations())
	b.refused("references", b.foreignReferences())
	b.refused("properties", b.steeringProperties())
	b.refused("formats", b.badFormats())
	b.refused("views", b.badViewCalls())
	b.refused("tokens", b.badTokens())
	b.refused("logins", b.badLogins())
	b.refused("management", b.badManagement())
	b.brokenHTTP()
	t.Logf("%d requests refused, nothing written", b.rows)
	if strings.Contains(b.server.log.String(), "stack=") {
		t.Errorf("something panicked:\n%s", tail(b.server.log.String(), 40))
	}
}
