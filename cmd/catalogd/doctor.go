package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/pgserver"
	"catalogd/internal/telemetry"
	"catalogd/store"
	"catalogd/vending"
)

// Limits of the checks.
const (
	checkTimeMax    = 10 * time.Second
	scratchBytesMin = 1 << 30
)

// finding is the outcome of one check. A remedy makes it a failure, unless it is a note.
type finding struct {
	what   string
	result string
	remedy string
	note   bool // worth knowing, no failure
}

func runDoctor(ctx context.Context, c *call) error {
	ready := false
	config, err := c.configured(func(fs *flag.FlagSet) {
		fs.BoolVar(&ready, "ready", false, "only ask the running server's /readyz, for health checks of containers")
	})
	if err != nil {
		return err
	}
	if ready {
		return askReady(ctx, c, config)
	}
	c.warnOfVariables()
	d := &doctor{config: config, out: c.Out}
	d.run(ctx)
	if d.failed > 0 {
		fmt.Fprintf(c.Err, "%s: %d of %d checks failed\n", c.Name, d.failed, d.checks)
		return errFailedShown
	}
	return nil
}

// askReady asks the ops listener of this machine.
func askReady(ctx context.Context, c *call, config Config) error {
	host, port, err := net.SplitHostPort(config.OpsListen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeMax)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, secretFileBytesMax))
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Out, strings.TrimSpace(string(body)))
	if res.StatusCode != http.StatusOK {
		return errFailedShown
	}
	return nil
}

// doctor runs checks in the order in which a server needs things; what an earlier failure makes pointless is left out.
type doctor struct {
	config         Config
	out            io.Writer
	checks, failed int
}

func (d *doctor) report(f finding) {
	d.checks++
	state := "ok   "
	switch {
	case f.note:
		state = "note "
	case f.remedy != "":
		state = "FAIL "
		d.failed++
	}
	fmt.Fprintf(d.out, "%s%-22s %s\n", state, f.what, f.result)
	if f.remedy != "" {
		fmt.Fprintf(d.out, "     %-22s %s\n", "", f.remedy)
	}
}

// reportError makes a finding of an error, with the problem's own remedy when it has one.
func (d *doctor) reportError(what string, err error, remedy string) {
	var p *problem
	if errors.As(err, &p) {
		d.report(finding{what: what, result: p.Wrong, remedy: firstOf(p.Remedy, remedy, "correct it")})
		return
	}
	d.report(finding{what: what, result: explain(err), remedy: remedy})
}

func (d *doctor) run(ctx context.Context) {
	d.report(finding{what: "configuration", result: fmt.Sprintf("%d values are not defaults", len(d.config.sources))})
	for _, text := range d.config.warnings() {
		d.report(finding{what: "configuration", result: text, note: true})
	}
	d.checkSecrets()
	d.checkIssuers(ctx)
	d.checkAddress("listen", d.config.Listen)
	d.checkAddress("ops_listen", d.config.OpsListen)
	d.checkScratch()
	if bin, err := pgserver.Find(); err != nil {
		d.report(finding{what: "private Postgres", result: "no programs found; only `catalogd dev` needs them", note: true})
	} else {
		d.report(finding{what: "private Postgres", result: bin + " (only `catalogd dev` needs it)"})
	}
	if d.checkPostgres(ctx) {
		d.checkApp(ctx)
	}
}

// checkAddress wants the address to be free, or held by a catalogd.
func (d *doctor) checkAddress(key, address string) {
	l, err := listen(key, address)
	if err == nil {
		l.net.Close()
		d.report(finding{what: key, result: address + " is free"})
		return
	}
	if probe, dial := net.DialTimeout("tcp", address, time.Second); dial == nil {
		probe.Close()
		d.report(finding{what: key, result: address + " is in use; good when that is a running catalogd", note: true})
		return
	}
	d.reportError(key, err, "")
}

func (d *doctor) checkScratch() {
	folder := firstOf(d.config.Maintenance.Scratch, os.TempDir())
	probe, err := os.CreateTemp(folder, "catalogd-doctor-")
	if err != nil {
		d.report(finding{what: "maintenance.scratch", result: err.Error(), remedy: "name a folder that the worker can write"})
		return
	}
	defer os.Remove(probe.Name())
	defer probe.Close()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err == nil {
		free := int64(fs.Bavail) * int64(fs.Bsize)
		f := finding{what: "maintenance.scratch", result: fmt.Sprintf("%s, %d GB free", folder, free>>30)}
		if free < scratchBytesMin {
			f.remedy, f.note = "a compaction may need as much as the largest partition", true
		}
		d.report(f)
	}
}

// checkPostgres connects both ways and tells whether more can be asked.
func (d *doctor) checkPostgres(ctx context.Context) bool {
	pooled, direct, err := d.config.databaseURL()
	if err != nil {
		d.reportError("database.url", err, "")
		return false
	}
	good := true
	for _, target := range []struct{ key, url string }{{"database.url", pooled}, {"database.direct_url", direct}} {
		if target.key == "database.direct_url" && direct == pooled {
			continue
		}
		version, took, err := postgresVersion(ctx, target.url)
		major := 0
		_, _ = fmt.Sscanf(version, "%d", &major)
		switch {
		case err != nil:
			good = false
			d.report(finding{what: target.key, result: err.Error(), remedy: "is Postgres running, and may this user connect to this database?"})
		case major < store.PostgresMin:
			good = false
			d.report(finding{what: target.key, result: "Postgres " + version, remedy: fmt.Sprintf("Postgres %d or newer is needed", store.PostgresMin)})
		default:
			d.report(finding{what: target.key, result: fmt.Sprintf("Postgres %s answers in %d ms", version, took.Milliseconds())})
		}
	}
	return good
}

func postgresVersion(ctx context.Context, url string) (version string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeMax)
	defer cancel()
	began := time.Now()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", 0, err
	}
	defer conn.Close(ctx)
	err = conn.Ping(ctx)
	return conn.PgConn().ParameterStatus("server_version"), time.Since(began), err
}

// checkApp asks what the wired server would: schema, signing keys, the storage of each warehouse.
func (d *doctor) checkApp(ctx context.Context) {
	pooled, _, err := d.config.databaseURL()
	if err != nil {
		return // reported already
	}
	s, err := store.Open(ctx, store.Config{URL: pooled, MaxConns: databaseConnsMin, SimpleProtocol: d.config.Database.Pooler})
	if err != nil {
		d.reportError("schema", err, "see database.url")
		return
	}
	err = s.CheckSchema(ctx)
	s.Close()
	if err != nil {
		d.reportError("schema", err, "catalogd migrate")
		return
	}
	d.report(finding{what: "schema", result: "fits this catalogd"})
	ring, err := d.config.ring()
	if err != nil {
		return // reported already
	}
	quiet := telemetry.NewLogger(io.Discard, d.config.Log.Level, "text")
	a := &app{config: d.config, log: quiet, store: s}
	if a.store, err = openStore(ctx, d.config, quiet); err != nil {
		d.reportError("database", err, "see database.url")
		return
	}
	defer a.close()
	if err := a.wire(ctx, ring); err != nil {
		d.reportError("wiring", err, "")
		return
	}
	d.checkRotation(ctx, a)
	d.checkWarehouses(ctx, a)
}

// checkWarehouses asks each warehouse's storage for what the server will ask: a session, or a folder.
func (d *doctor) checkWarehouses(ctx context.Context, a *app) {
	warehouses, err := a.store.ListWarehouses(ctx, catalog.ListQuery{})
	if err != nil {
		d.reportError("warehouses", err, "see database.url")
		return
	}
	if len(warehouses) == 0 {
		d.report(finding{what: "warehouses", result: "there is none yet; `catalogd warehouse create` makes one", note: true})
	}
	providers, err := a.providers(ctx)
	if err != nil {
		d.reportError("storage", err, "")
		return
	}
	for _, w := range warehouses {
		what := "warehouse " + w.Name
		provider, known := providers[w.Storage.StorageType]
		if !known {
			d.report(finding{what: what, result: "storage " + w.Storage.StorageType + " is not served",
				remedy: "for FILE set storage.allow_file: true"})
			continue
		}
		if path, isFile := vending.FilePath(w.Location); isFile {
			if err := os.MkdirAll(path, 0o755); err != nil {
				d.report(finding{what: what, result: err.Error(), remedy: "the server's user must be able to write there"})
			} else {
				d.report(finding{what: what, result: w.Location})
			}
			continue
		}
		if !provider.CanVend(w.Storage) {
			d.report(finding{what: what, result: w.Location + ": vends no credentials", note: true})
			continue
		}
		probe := vending.Scope{Warehouse: w.ID.String(), Named: w.Name, Table: "doctor", Principal: "doctor", Location: w.Location + "/doctor", Access: vending.Read}
		if _, err := provider.Vend(ctx, w.Storage, probe); err != nil {
			d.reportError(what, err, "may the server's AWS identity assume the warehouse's role, and does the token service answer?")
			continue
		}
		d.report(finding{what: what, result: w.Location + ": vends credentials"})
	}
}
