package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Sizes of what is measured.
const (
	restPairs       = 5
	restSeconds     = 2
	smallTables     = 10_000
	crowdTables     = 100_000
	snapshotsOfMany = 1_000
	idleMBMax       = 80
	loadedMBMax     = 250
)

// restBench is both servers and what they are asked.
type restBench struct {
	*server
	bareAddress string
	barePID     int
	postgresPID int
	seconds     time.Duration
	tables      int
	figures     []figure
	database    *pgx.Conn
	someID      string // of a table, for the bare server
	baseline    string // what ours is compared with
}

// measureREST compares the REST catalog's routes with bare handlers.
func measureREST() ([]figure, error) {
	dir, err := serverFolder()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := startServer(dir)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return nil, err
	}
	b := &restBench{server: s, seconds: restSeconds * time.Second, tables: smallTables, baseline: bareName}
	if err := b.settings(); err != nil {
		return nil, err
	}
	bareDir, err := os.MkdirTemp(dir, "bare-")
	if err != nil {
		return nil, err
	}
	address, bareCommand, err := startBare(s.postgres.URL(), bareDir)
	if err != nil {
		return nil, err
	}
	defer end(bareCommand, syscall.SIGTERM)
	b.bareAddress, b.barePID = address, bareCommand.Process.Pid
	b.postgresPID = s.postgres.PID()
	if b.database, err = pgx.Connect(context.Background(), s.postgres.URL()); err != nil {
		return nil, err
	}
	defer b.database.Close(context.Background())
	for _, step := range []func() error{b.idle, b.prepare, b.fill, b.reads, b.commits, b.memory} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.figures, nil
}

// settings reads BENCH_SECONDS, the time of one run of load, and BENCH_TABLES, for short tries.
func (b *restBench) settings() error {
	if text := os.Getenv("BENCH_SECONDS"); text != "" {
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		b.seconds = time.Duration(seconds * float64(time.Second))
	}
	if text := os.Getenv("BENCH_TABLES"); text != "" {
		var err error
		if b.tables, err = strconv.Atoi(text); err != nil || b.tables < 16 {
			return fmt.Errorf("BENCH_TABLES=%s is not a number from 16 on: %w", text, err)
		}
	}
	return nil
}

func (b *restBench) add(f figure) {
	b.figures = append(b.figures, f)
	fmt.Fprintf(os.Stderr, "  %-44s %12.3f %-18s %12.3f ratio %.3f\n", f.Name, f.Value, f.Unit, f.BaselineValue, f.Ratio)
}

func (b *restBench) idle() error {
	kb, err := residentKB(b.cmd.Process.Pid)
	b.add(figure{Name: "serve, resident when idle", Value: kb / 1024, Unit: "MB", BaselineName: "bar", BaselineValue: idleMBMax, Ratio: kb / 1024 / idleMBMax})
	return err
}

// fill makes the tables. Those of the crowd are rows alone: they are listed, never loaded.
func (b *restBench) fill() error {
	began := time.Now()
	work := make(chan int)
	failed := make(chan error, connectionsOfLoad)
	for range connectionsOfLoad {
		go func() {
			var err error
			for i := range work {
				if err == nil {
					err = b.createTable(lakeName, namespaceName, "t"+strconv.Itoa(i))
				}
			}
			failed <- err
		}()
	}
	for i := range b.tables {
		work <- i
	}
	close(work)
	for range connectionsOfLoad {
		if err := <-failed; err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "  %d tables in %.0f s\n", b.tables, time.Since(began).Seconds())
	if err := b.createTable(lakeName, namespaceName, "many"); err != nil {
		return err
	}
	var location string
	if err := b.database.QueryRow(context.Background(), `SELECT location FROM catalogd.tables WHERE name = 'many'`).Scan(&location); err != nil {
		return err
	}
	if _, err := b.call("POST", tablePath(lakeName, namespaceName, "many"), manySnapshots(location)); err != nil {
		return err
	}
	for i := range 32 {
		if err := b.createTable(diskName, namespaceName, "c"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	ctx := context.Background()
	for _, statement := range []string{
		`INSERT INTO catalogd.tables (id, warehouse_id, namespace_id, kind, name, table_uuid, location, metadata_location, format_version, version, created_at, updated_at)
		 SELECT gen_random_uuid(), warehouse_id, id, 'table', 'table_' || lpad(n::text, 6, '0'), gen_random_uuid(), 's3://bench/none/' || n, 's3://bench/none/' || n, 2, 1, now(), now()
		 FROM catalogd.namespaces, generate_series(1, ` + strconv.Itoa(crowdTables) + `) AS n WHERE levels = '{` + crowdName + `}' AND warehouse_id = (SELECT id FROM catalogd.warehouses WHERE name = '` + lakeName + `')`,
		`CREATE TABLE bare_tables (id text PRIMARY KEY, location text NOT NULL)`,
		`CREATE TABLE bare_events (id uuid PRIMARY KEY, location text NOT NULL)`,
		`INSERT INTO bare_tables SELECT n::text, '' FROM generate_series(0, 31) AS n`,
		`ANALYZE`,
	} {
		if _, err := b.database.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return b.database.QueryRow(ctx, `SELECT id::text FROM catalogd.tables WHERE name = 't7'`).Scan(&b.someID)
}

// manySnapshots is a commit of many appends at once.
func manySnapshots(location string) string {
	updates := make([]string, 0, snapshotsOfMany+1)
	for i := range snapshotsOfMany {
		parent := ""
		if i > 0 {
			parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, 7_000_000_000_000_000_000+i)
		}
		updates = append(updates, fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,"timestamp-ms":%d,`+
			`"manifest-list":"%s/metadata/snap-%d-1-0f1b9e4c-6d3c-4f59-a2f7-3e1d5b2c7a90.avro","schema-id":0,"summary":{"operation":"append",`+
			`"spark.app.id":"local-1790000000000","added-data-files":"4","added-records":"%d","added-files-size":"%d","changed-partition-count":"1",`+
			`"total-records":"%d","total-files-size":"%d","total-data-files":"%d","total-delete-files":"0","total-position-deletes":"0","total-equality-deletes":"0"}}}`,
			7_000_000_000_000_000_001+i, parent, i+1, 1_790_000_000_000+int64(i)*60_000, location, 7_000_000_000_000_000_001+i, 1000+i, 90_000+17*i, 1000*(i+1), 90_000*(i+1), 4*(i+1)))
	}
	updates = append(updates, fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`, 7_000_000_000_000_000_000+snapshotsOfMany))
	return `{"requirements":[],"updates":[` + strings.Join(updates, ",") + `]}`
}

// row is one comparison of reads.
type row struct {
	name        string
	method      string
	path        func(turn int) string
	header      map[string]string
	status      int
	encoding    string
	perDatabase float64 // bound of round trips for a request
}

func (b *restBench) reads() error {
	small := func(turn int) string { return tablePath(lakeName, namespaceName, "t"+strconv.Itoa(turn%16)) }
	only := func(path string) func(int) string { return func(int) string { return path } }
	many := only(tablePath(lakeName, namespaceName, "many"))
	tag, err := b.etagOf(many(0))
	if err != nil {
		return err
	}
	list := strings.TrimSuffix(tablePath(lakeName, crowdName, ""), "/") + "?pageSize=1000&pageToken="
	for _, r := range []row{
		{name: "load, small table", method: "GET", path: small, status: 200},
		{name: "load, 1,000 snapshots", method: "GET", path: many, status: 200},
		{name: "load, 1,000 snapshots, gzip", method: "GET", path: many, status: 200, header: map[string]string{"Accept-Encoding": "gzip"}, encoding: "gzip"},
		{name: "HEAD", method: "HEAD", path: small, status: 204},
		{name: "load, 304", method: "GET", path: many, status: 304, header: map[string]string{"If-None-Match": tag}},
		{name: "load, missing table", method: "GET", path: only(tablePath(lakeName, namespaceName, "nothing")), status: 404},
		{name: "list 1,000 of 100,000", method: "GET", path: only(list), status: 200},
	} {
		if err := b.read(r); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

func (b *restBench) etagOf(path string) (string, error) {
	r, err := http.NewRequest("GET", "http://"+b.address+path, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if tags := answer.Header["Etag"]; len(tags) == 1 {
		return tags[0], nil
	}
	return "", fmt.Errorf("no ETag: %s %v", answer.Status, answer.Header)
}

func (b *restBench) read(r row) error {
	header := map[string]string{"Authorization": "Bearer " + b.token}
	for name, value := range r.header {
		header[name] = value
	}
	shots := make([]shot, 16)
	for i := range shots {
		shots[i] = shot{request(r.method, r.path(i), header, nil), r.status}
	}
	ours := func(d time.Duration) (measured, error) {
		return fire(b.address, connectionsOfLoad, d, func(connection, turn int) shot { return shots[(connection+turn)%16] })
	}
	warm, err := ours(b.seconds / 4)
	if err != nil {
		return err
	}
	if err := b.teach("a", r.status, r.encoding, warm.bytes); err != nil {
		return err
	}
	one := shot{request(r.method, "/answers/a/"+b.someID, r.header, nil), r.status}
	theirs := func(d time.Duration) (measured, error) {
		return fire(b.bareAddress, connectionsOfLoad, d, func(int, int) shot { return one })
	}
	return b.compare(r.name, ours, theirs)
}

// teach tells the bare server what to answer under a name.
func (b *restBench) teach(name string, status int, encoding string, size int) error {
	r, err := http.NewRequest("PUT", "http://"+b.bareAddress+"/answers/"+name, bytes.NewReader(bytes.Repeat([]byte("x"), size)))
	if err != nil {
		return err
	}
	r.Header.Set("X-Status", strconv.Itoa(status))
	r.Header.Set("X-Encoding", encoding)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// side is one of the two servers over all of its runs.
type side struct {
	fire           func(time.Duration) (measured, error)
	pid            int
	rate, p99      []float64
	requests       int
	processor      float64 // seconds, the database's included
	trips, objects float64
}

func (b *restBench) run(s *side) error {
	trips, objects, err := b.counted()
	if err != nil {
		return err
	}
	processor := b.processor(s)
	got, err := s.fire(b.seconds)
	if err != nil {
		return err
	}
	s.processor += b.processor(s) - processor
	tripsAfter, objectsAfter, err := b.counted()
	s.trips, s.objects = s.trips+tripsAfter-trips, s.objects+objectsAfter-objects
	s.requests += got.requests
	s.rate, s.p99 = append(s.rate, got.perSecond), append(s.p99, got.p99)
	return err
}

func (b *restBench) processor(s *side) float64 {
	return processorSeconds(s.pid) + processorSeconds(b.postgresPID)
}

func (s *side) microseconds() float64 { return s.processor * 1e6 / float64(s.requests) }

// compare runs alternating pairs and adds the figures: the medians and their ratio, what a request
// cost in processor time of server and database together, and the calls that each of our requests made.
func (b *restBench) compare(name string, fireOurs, fireTheirs func(time.Duration) (measured, error)) error {
	ours, theirs := &side{fire: fireOurs, pid: b.cmd.Process.Pid}, &side{fire: fireTheirs, pid: b.barePID}
	for pair := range restPairs {
		order := []*side{ours, theirs}
		if pair%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			if err := b.run(s); err != nil {
				return err
			}
		}
	}
	b.add(against(name, median(ours.rate), "requests/s", b.baseline, median(theirs.rate)))
	b.add(against(name+", p99", median(ours.p99), "ms", b.baseline, median(theirs.p99)))
	b.add(against(name+", processor", ours.microseconds(), "us/request", b.baseline, theirs.microseconds()))
	b.add(figure{Name: name + ", database", Value: ours.trips / float64(ours.requests), Unit: "round trips/request"})
	b.add(figure{Name: name + ", object store", Value: ours.objects / float64(ours.requests), Unit: "calls/request"})
	return nil
}

func (b *restBench) counted() (roundTrips, objectCalls float64, err error) {
	roundTrips, err = b.roundTrips()
	return roundTrips, float64(b.bucket.calls.Load()), err
}

// commits compare commits of a property on tables in a folder with a handler that writes and syncs a file of the same
// size and moves one row.
func (b *restBench) commits() error {
	for _, tables := range []int{1, 8, 32} {
		one := func(connection, turn int) string {
			return fmt.Sprintf(`{"requirements":[],"updates":[{"action":"set-properties","updates":{"turn":"%d.%d"}}]}`, time.Now().UnixNano(), turn)
		}
		ours := func(d time.Duration) (measured, error) {
			return fire(b.address, tables, d, func(connection, turn int) shot {
				path := tablePath(diskName, namespaceName, "c"+strconv.Itoa(connection))
				return shot{request("POST", path, map[string]string{"Authorization": "Bearer " + b.token}, []byte(one(connection, turn))), 200}
			})
		}
		warm, err := ours(b.seconds / 4)
		if err != nil {
			return err
		}
		if err := b.teach("c", 200, "", warm.bytes); err != nil {
			return err
		}
		// The answer is the file's text and its location, so the file is a little smaller.
		size := strconv.Itoa(warm.bytes)
		theirs := func(d time.Duration) (measured, error) {
			return fire(b.bareAddress, tables, d, func(connection, turn int) shot {
				return shot{request("POST", "/commits/c/"+strconv.Itoa(connection)+"/"+size, nil, []byte(one(connection, turn))), 200}
			})
		}
		name := fmt.Sprintf("commit, %d tables in parallel", tables)
		if tables == 1 {
			name = "commit, one table, one writer"
		}
		if err := b.compare(name, ours, theirs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// memory loads all small tables, again and again.
func (b *restBench) memory() error {
	shots := make([]shot, b.tables)
	for i := range shots {
		shots[i] = shot{request("GET", tablePath(lakeName, namespaceName, "t"+strconv.Itoa(i)), map[string]string{"Authorization": "Bearer " + b.token}, nil), 200}
	}
	got, err := fire(b.address, connectionsOfLoad, 5*b.seconds, func(connection, turn int) shot {
		return shots[(connection*b.tables/connectionsOfLoad+turn)%b.tables]
	})
	if err != nil {
		return err
	}
	kb, err := residentKB(b.cmd.Process.Pid)
	b.add(figure{Name: "load, 10,000 small tables in turn", Value: got.perSecond, Unit: "requests/s"})
	b.add(figure{Name: "serve, resident under load", Value: kb / 1024, Unit: "MB", BaselineName: "bar", BaselineValue: loadedMBMax, Ratio: kb / 1024 / loadedMBMax})
	return err
}
