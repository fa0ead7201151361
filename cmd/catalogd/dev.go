package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/internal/pgserver"
	"catalogd/internal/telemetry"
	"catalogd/vending"
)

// devWarehouse is the one warehouse that dev makes.
const devWarehouse = "dev"

// devOptions are the flags of `catalogd dev`.
type devOptions struct {
	data, listen, opsListen string
	location                string // of the warehouse; "" is a folder in the data folder
	allowed                 stringList
	storageConfig           string
	properties              pairsFlag // of the warehouse
	noWorker                bool
	open                    bool
}

func (c *call) devOptions() (devOptions, Config, error) {
	fs := c.newFlags()
	o := devOptions{properties: pairsFlag{}}
	fs.StringVar(&o.data, "data", "./catalogd-data", "`folder` of everything that dev keeps")
	fs.StringVar(&o.listen, "listen", "127.0.0.1:8181", "`host:port` of the API; port 0 takes a free one")
	fs.StringVar(&o.opsListen, "ops-listen", "127.0.0.1:8182", "`host:port` of health and metrics; port 0 takes a free one")
	fs.StringVar(&o.location, "warehouse-location", "", "base `url` of the warehouse's tables (default: file://DATA/warehouse)")
	fs.Var(&o.allowed, "allowed-location", "further `url` that tables may use; may be given several times")
	fs.StringVar(&o.storageConfig, "storage-config", "", "`file` with Polaris' storageConfigInfo as JSON, for an object store")
	fs.Var(o.properties, "warehouse-property", "property `key=value` of the warehouse; may be given several times")
	fs.BoolVar(&o.open, "open", false, "requests without a token may work in the warehouse: a trial without authentication")
	fs.BoolVar(&o.noWorker, "no-worker", false, "run no maintenance worker in this process")
	if _, err := c.parse(fs, 0, 0); err != nil {
		return o, Config{}, err
	}
	// Settings that dev does not decide itself come from the environment, as for serve.
	flags := map[string]string{
		"listen": o.listen, "ops_listen": o.opsListen, "storage.allow_file": "true", "database.migrate": "true",
	}
	if o.open {
		flags["open.principal"] = devVisitor
	}
	if c.lookup(envName("log.format")) == "" {
		flags["log.format"] = "text"
	}
	config, err := loadConfig(inputs{environ: c.Environ, flags: flags})
	return o, config, err
}

func runDev(ctx context.Context, c *call) error {
	began := time.Now()
	o, config, err := c.devOptions()
	if err != nil {
		return err
	}
	d := &dev{call: c, options: o, config: config, began: began}
	defer d.end()
	paceCollector(c)
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if err := d.run.start(); err != nil {
		return err
	}
	if err := d.announce(); err != nil {
		return errors.Join(err, d.run.stop())
	}
	return d.run.untilDone(ctx, d.postgres.Done())
}

// dev is one run of `catalogd dev`: what was started, to be ended in the opposite order.
type dev struct {
	call    *call
	options devOptions
	config  Config
	began   time.Time

	lines      *telemetry.Lines // the log
	audited    func()           // writes the last lines of the audit
	folder     *devFolder
	postgres   *pgserver.Server
	app        *app
	run        *running
	credential catalog.Credential
}

// prepare takes the folder and the addresses, starts Postgres and makes what a first start lacks.
func (d *dev) prepare(ctx context.Context) error {
	var err error
	if d.folder, err = openDevFolder(d.options.data); err != nil {
		return err
	}
	api, ops, err := listenBoth(d.config)
	if err != nil {
		return err
	}
	d.run = &running{api: api, ops: ops, withWorker: !d.options.noWorker}
	if d.config.Secrets.Key, err = d.folder.secretKey(); err != nil {
		return err
	}
	if d.postgres, err = pgserver.Start(ctx, pgserver.Options{Dir: d.folder.path}); err != nil {
		return fmt.Errorf("private Postgres: %w", err)
	}
	d.config.Database.URL, d.config.Database.DirectURL = d.postgres.URL(), ""
	d.lines = telemetry.NewLines(d.call.Err)
	log := telemetry.NewLogger(d.lines, d.config.Log.Level, d.config.Log.Format)
	d.audited = d.config.writeAudit(d.call.Out)
	if d.app, err = newApp(ctx, d.config, log); err != nil {
		return err
	}
	d.run.app = d.app
	if err := d.makeRoot(ctx); err != nil {
		return err
	}
	if err := d.makeWarehouse(ctx); err != nil {
		return err
	}
	return d.admitVisitors(ctx)
}

// end lets go of everything, whatever was reached.
func (d *dev) end() {
	if d.app != nil {
		d.app.close()
	}
	if d.lines != nil {
		d.lines.Flush()
		d.audited()
	}
	if d.postgres != nil {
		stop, cancel := context.WithTimeout(context.Background(), stopPatience)
		defer cancel()
		if err := d.postgres.Stop(stop); err != nil {
			fmt.Fprintf(d.call.Err, "%s: %v\n", d.call.Name, err)
		}
	}
	if d.folder != nil {
		d.folder.close()
	}
}

// announce writes the clients' settings and then says that the server is ready, in this order: scripts wait for the
// line and read the file.
func (d *dev) announce() error {
	base := d.run.api.url()
	if d.config.PublicURL != "" {
		base = d.config.PublicURL
	}
	storage, err := d.profile(d.location())
	if err != nil {
		return err
	}
	settings := clientSettings{
		CatalogURI: base + "/api/catalog", TokenURI: base + tokenPath, Warehouse: devWarehouse,
		ClientID: d.credential.ClientID, Secret: d.credential.Secret.Reveal(), Scope: adminDefaultScope,
		S3: !strings.HasPrefix(d.location(), "file:"), Storage: storage,
	}
	if err := d.folder.writeClientEnv([][2]string{
		{"CATALOG_URI", settings.CatalogURI},
		{"CATALOG_WAREHOUSE", settings.Warehouse},
		{"CATALOG_CREDENTIAL", settings.ClientID + ":" + settings.Secret},
		{"CATALOG_SCOPE", settings.Scope},
		{"CATALOG_OAUTH2__SERVER__URI", settings.TokenURI},
		{"CATALOGD_MANAGEMENT_URI", base + managementPath},
		{"CATALOGD_DEV_DATABASE_URL", d.config.Database.URL},
		{"CATALOGD_OPS_URI", d.run.ops.url()},
	}); err != nil {
		return err
	}
	var all strings.Builder
	settings.print(&all)
	if err := d.folder.write(devClientsName, all.String()); err != nil {
		return fmt.Errorf("write the clients' settings: %w", err)
	}
	if !d.call.Terminal {
		settings.Secret = "***"
	}
	settings.print(d.call.Out)
	if d.options.open {
		fmt.Fprintf(d.call.Out, "open: clients need no credential or token; what comes without is principal %s's, in warehouse %s alone\n", devVisitor, devWarehouse)
	}
	fmt.Fprintf(d.call.Out, "settings for scripts: %s; for people: %s\n", d.folder.file(devEnvName), d.folder.file(devClientsName))
	fmt.Fprintf(d.call.Out, "catalogd ready on %s in %d ms\n", d.run.api.url(), time.Since(d.began).Milliseconds())
	return nil
}

// location is the base of the warehouse's tables.
func (d *dev) location() string {
	if d.options.location != "" {
		return strings.TrimRight(d.options.location, "/")
	}
	return "file://" + d.folder.file(devWarehouseName)
}

// makeFolder makes the folder of a file: warehouse.
func (d *dev) makeFolder() error {
	path, isFile := strings.CutPrefix(d.location(), "file://")
	if !isFile {
		return nil
	}
	if !filepath.IsAbs(path) {
		return wrongUsage("--warehouse-location %q is not an absolute file: URL, for example file:///srv/lake", d.location())
	}
	if err := os.MkdirAll(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the warehouse's folder: %w", err)
	}
	return nil
}

// makeRoot makes sure that the root principal has the credential that client.env will name: the one that the
// environment fixes, else the one of the run before, else a new one.
func (d *dev) makeRoot(ctx context.Context) error {
	fixed := d.call.lookup(rootVariable)
	// A folder that lost its client.env knows nothing that could hold, so a new credential is made.
	known := firstOf(d.folder.clientVariable("CATALOG_CREDENTIAL"), "none:none")
	made, err := d.app.bootstrap(ctx, fixed, known)
	if err != nil {
		return err
	}
	d.credential = made.Credential
	if made.Rotated {
		fmt.Fprintln(d.call.Out, "the root credential of this data folder was changed")
	}
	return nil
}

// makeWarehouse makes the warehouse at the first start and keeps its storage, and the properties that the flags name, as
// the flags say.
func (d *dev) makeWarehouse(ctx context.Context) error {
	location, err := vending.CanonicalBase(d.location())
	if err != nil {
		return fmt.Errorf("the warehouse's location: %s; choose another by --data or --warehouse-location", fault.Message(err))
	}
	if err := d.makeFolder(); err != nil {
		return err
	}
	profile, err := d.profile(location)
	if err != nil {
		return err
	}
	return d.ensureWarehouse(ctx, catalog.WarehouseDraft{
		Name: devWarehouse, Location: location, Storage: profile, Properties: d.options.properties,
	})
}

// profile reads --storage-config, or makes the smallest one, and adds the allowed locations.
func (d *dev) profile(location string) (vending.Profile, error) {
	var p vending.Profile
	info, err := storageInfo(d.options.storageConfig, location, d.options.allowed)
	if err != nil {
		return p, err
	}
	body, err := json.Marshal(info)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fmt.Errorf("storage configuration %s: %w", d.options.storageConfig, err)
	}
	if !slices.Contains(p.AllowedLocations, location) {
		p.AllowedLocations = append(p.AllowedLocations, location)
	}
	return p, nil
}

// ensureWarehouse makes the warehouse, or brings an existing one's storage up to date with the flags. Its base
// location cannot change: tables lie there.
func (d *dev) ensureWarehouse(ctx context.Context, want catalog.WarehouseDraft) error {
	have, created, err := d.app.service.EnsureWarehouse(ctx, want)
	switch {
	case err != nil:
		return fmt.Errorf("the warehouse %s: %w", want.Name, err)
	case have.Location != want.Location:
		return fmt.Errorf("the warehouse %s of this data folder is at %s, not at %s: its tables lie there; choose another folder by --data, or the old location by --warehouse-location",
			want.Name, have.Location, want.Location)
	case created || reflect.DeepEqual(have.Storage, want.Storage) && holdsAll(have.ShownProperties(), want.Properties):
		return nil
	}
	properties := have.ShownProperties()
	maps.Copy(properties, want.Properties)
	caller, err := d.root(ctx)
	if err != nil {
		return err
	}
	_, err = d.app.service.UpdateWarehouse(ctx, caller, have.Name, catalog.WarehouseChange{
		Update: catalog.Update{Version: have.Version, Properties: properties}, Storage: &want.Storage,
	})
	if err != nil {
		return fmt.Errorf("bring the warehouse %s up to date with the flags: %w", have.Name, err)
	}
	return nil
}

// root is the principal that dev makes things as.
func (d *dev) root(ctx context.Context) (catalog.Caller, error) {
	root, err := d.app.store.FindPrincipal(ctx, catalog.RootPrincipal)
	if err != nil {
		return catalog.Caller{}, fmt.Errorf("find the principal %s: %w", catalog.RootPrincipal, err)
	}
	return catalog.Caller{Principal: auth.Principal{ID: root.ID, Name: root.Name, Kind: root.Kind, Roles: auth.RoleScope{All: true}}}, nil
}

// holdsAll tells whether some properties are among others.
func holdsAll(properties, some map[string]string) bool {
	for name, value := range some {
		if have, set := properties[name]; !set || have != value {
			return false
		}
	}
	return true
}
