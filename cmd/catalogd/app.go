package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/prometheus/client_golang/prometheus"

	"catalogd/api"

	"catalogd/api/manage"
	"catalogd/api/rest"
	"catalogd/auth"
	"catalogd/auth/external"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/internal/iceio"
	"catalogd/internal/outbox"
	"catalogd/internal/telemetry"
	"catalogd/maintenance"
	"catalogd/store"
	"catalogd/vending"
	"catalogd/vending/local"
	"catalogd/vending/s3"
)

// databasePatience is how long a start waits for Postgres: orchestrators start both at once.
const (
	databasePatience   = 30 * time.Second
	databaseRetryDelay = 500 * time.Millisecond
	databaseRemedy     = "is Postgres running there, are user and password right, and may that user connect to this database? `catalogd doctor` checks it"
)

// app is everything that a server or a worker is made of, wired. It holds no listener: serve and dev add those.
type app struct {
	config  Config
	log     *slog.Logger
	store   *store.Store
	secrets *auth.Secrets
	tokens  *auth.Tokens
	issuers *external.Issuers
	// withIssuers tells that their keys are being read: a worker does without.
	withIssuers bool
	service     *catalog.Service
	files       *iceio.Store
	worker      *maintenance.Worker
	deliverer   *outbox.Deliverer
	sender      *outbox.Sender
	ring        *auth.Ring
	stopping    chan struct{} // closed when requests are drained: none waits for events any more
	metrics     *telemetry.Metrics
	gather      prometheus.Gatherer
	uses        *usesWriter
}

// newApp opens the database and wires the parts, in the order in which they depend on each other. Nothing runs yet.
func newApp(ctx context.Context, c Config, log *slog.Logger) (*app, error) {
	a := &app{config: c, log: log}
	for _, text := range c.warnings() {
		log.Warn(text)
	}
	ring, err := c.ring()
	if err != nil {
		return nil, err
	}
	if a.store, err = openStore(ctx, c, log); err != nil {
		return nil, err
	}
	if err := errors.Join(a.checkKeys(ctx, ring, a.store), a.wire(ctx, ring), a.resealWebhooks(ctx)); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// checkKeys refuses a secrets.key that cannot read what is in the database: else the server would start and every
// login would fail. What a previous key encrypted is encrypted anew, so that this key can be dropped; not when rotation is nil.
func (a *app) checkKeys(ctx context.Context, ring *auth.Ring, rotation auth.RotationStore) error {
	keys, err := a.store.SigningKeys(ctx)
	if err != nil {
		return fmt.Errorf("read the signing keys: %w", err)
	}
	for _, key := range keys {
		if _, err := ring.Open(auth.Place{Table: "signing_keys", Row: key.KID}, key.PrivateKey); err != nil && key.RetiredAt.IsZero() {
			return &problem{"secrets.key", "the signing keys in the database were encrypted with another key",
				"give that one, here or in secrets.previous_keys"}
		}
	}
	if rotation == nil {
		return nil
	}
	resealed, err := auth.ResealKeys(ctx, rotation, ring, keys)
	if resealed > 0 {
		a.log.Info("signing keys were encrypted anew with the current secrets.key", "keys", resealed)
	}
	return err
}

// resealWebhooks does for webhooks' secrets what checkKeys does for signing keys. One that no key opens keeps nobody from
// starting: it says why when something is to be sent.
func (a *app) resealWebhooks(ctx context.Context) error {
	if a.service == nil { // it was not wired, which is said already
		return nil
	}
	resealed, err := a.service.ResealWebhooks(ctx)
	if resealed > 0 {
		a.log.Info("secrets of webhooks were encrypted anew with the current secrets.key", "webhooks", resealed)
	}
	return err
}

// ring makes the keys that secrets at rest are encrypted with.
func (c *Config) ring() (*auth.Ring, error) {
	current, previous, err := c.secretKeys()
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(previous))
	for i, key := range previous {
		texts[i] = base64.StdEncoding.EncodeToString(key)
	}
	return auth.NewRing(base64.StdEncoding.EncodeToString(current), texts...)
}

// openStore connects, migrates when it may, and refuses a schema that this binary does not fit.
func openStore(ctx context.Context, c Config, log *slog.Logger) (*store.Store, error) {
	pooled, direct, err := c.databaseURL()
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, store.Config{
		URL: pooled, MaxConns: c.Database.MaxConns, SimpleProtocol: c.Database.Pooler, Audited: auditLines(c.auditTo),
	})
	if err != nil {
		return nil, err
	}
	if err := awaitDatabase(ctx, s, log); err != nil {
		s.Close()
		return nil, err
	}
	if c.Database.Migrate {
		if err := store.Migrate(ctx, direct); err != nil {
			s.Close()
			return nil, err
		}
	}
	if err := s.CheckSchema(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// awaitDatabase waits for Postgres within its patience. A refusal that waiting does not mend ends it at once.
func awaitDatabase(ctx context.Context, s *store.Store, log *slog.Logger) error {
	waiting, cancel := context.WithTimeout(ctx, databasePatience)
	defer cancel()
	for said := false; ; said = true {
		err := s.Ping(waiting)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err() // somebody ended us; Postgres is not to blame
		case !fault.Is(err, fault.Busy):
			return fmt.Errorf("database.url: %w; %s", err, databaseRemedy)
		}
		if !said {
			log.Warn("waiting for Postgres", "cause", err.Error(), "at_most", databasePatience.String())
		}
		select {
		case <-waiting.Done(): // and with it when we are ended: the two cannot be told apart here
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("database.url: Postgres does not answer: %w; %s", err, databaseRemedy)
		case <-time.After(databaseRetryDelay):
		}
	}
}

func (a *app) wire(ctx context.Context, ring *auth.Ring) error {
	a.uses = startUses(a.store, a.log)
	registry := telemetry.NewRegistry()
	a.gather, a.metrics = registry, telemetry.NewMetrics(registry)
	telemetry.CountRoundTrips(registry, a.store.RoundTrips)
	a.ring, a.stopping = ring, make(chan struct{})
	a.secrets = auth.NewSecrets(ring)
	issuers, err := a.config.issuers()
	if err != nil {
		return err
	}
	if a.issuers, err = external.New(external.Settings{Issuers: issuers, Log: a.log}); err != nil {
		return err
	}
	keys := auth.NewKeys(a.store, ring, nil)
	keys.Algorithm, keys.RotateAfter, keys.Log = a.config.Tokens.Algorithm, a.config.Tokens.RotateAfter, a.log
	a.tokens = auth.NewTokens(auth.TokensConfig{
		Accounts: a.store, Keys: keys, Secrets: a.secrets, Rotation: a.store, Life: a.config.Tokens.TTL,
		ClientKeys: a.store, Denials: func(ctx context.Context, d auth.LoginDenial) { a.service.RecordLoginDenial(ctx, d) },
		Issuers: a.issuers, Identity: a.store, Anonymous: a.config.Open.Principal,
	})
	telemetry.CountDeniedLogins(registry, a.tokens.DeniedLogins)
	providers, err := a.providers(ctx)
	if err != nil {
		return err
	}
	a.files = iceio.New(iceio.Config{Providers: providers})
	a.sender = outbox.NewSender(a.config.Webhooks.AllowPrivate, nil)
	a.service = catalog.New(catalog.Config{
		Webhooks: catalog.WebhookConfig{Ring: ring, Sender: a.sender, AllowPrivate: a.config.Webhooks.AllowPrivate},
		Store:    a.store, Admin: a.store, Metadata: a.files, Providers: providers, Secrets: a.secrets, SigningKeyMaker: keys, Log: a.log,
		MetadataCacheBytes: int(a.config.Cache.Metadata), ReportAge: a.config.Retention.keep().Metrics,
	})
	a.worker = maintenance.New(maintenance.Config{
		Store: a.store, Tables: a.service, OpenFiles: a.openFiles,
		MemoryBytes: a.config.Maintenance.Memory, SpillDir: a.config.Maintenance.Scratch, Log: a.log,
		Keep: a.config.Retention.keep(),
	})
	a.deliverer = outbox.New(outbox.Config{Store: a.store, Sender: a.sender, OpenSecret: a.service.OpenWebhook, Log: a.log})
	return nil
}

// openFiles reaches one table's files for maintenance.
func (a *app) openFiles(ctx context.Context, p vending.Profile, s vending.Scope) (maintenance.Files, error) {
	return a.files.OpenTable(ctx, p, s)
}

// stopWorker gives a running job back to the queue.
func (a *app) stopWorker() error {
	ctx, cancel := context.WithTimeout(context.Background(), a.config.Shutdown.Grace+stopPatience)
	defer cancel()
	return a.worker.Stop(ctx)
}

// providers is the table of storages that warehouses may be on.
func (a *app) providers(ctx context.Context) (map[string]vending.Provider, error) {
	identity, err := awsconfig.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the server's own AWS settings: %w", err)
	}
	table := map[string]vending.Provider{"S3": s3.New(s3.Config{AWS: identity, Log: a.log})}
	if a.config.Storage.AllowFile {
		table[local.StorageType] = local.Provider{}
	}
	return table, nil
}

// handler is the whole API.
func (a *app) handler() (http.Handler, error) {
	endpoints := append(
		rest.Endpoints(rest.Config{Service: a.service, Tokens: rest.IssueTokens(a.tokens, a.config.PublicURL),
			Revocations: rest.RevokeTokens(a.tokens, a.service, a.config.PublicURL), Keys: a.tokens, PublicURL: a.config.PublicURL}),
		manage.Endpoints(manage.Config{Service: a.service, Maintenance: a.operations(), Cursors: a.ring, Stopping: a.stopping})...)
	endpoints = append(append(endpoints, manage.ReferenceEndpoints()...), api.RootEndpoint())
	server := api.ServerConfig{
		Endpoints: endpoints, Authenticator: a.tokens, Audit: a.service, Log: a.log, Metrics: a.metrics,
		TrustedProxies: a.config.TrustedProxies, Used: a.uses.note,
	}
	if a.config.Open.Principal != "" {
		server.Anonymous, server.KeepPagesOut = a.tokens.Anonymous, !a.config.Open.Public
	}
	return api.NewServer(server)
}

// operations are what the management API offers of maintenance.
func (a *app) operations() *maintenance.Operations {
	return &maintenance.Operations{Store: a.store, Tables: a.service, OpenFiles: a.openFiles, Now: time.Now}
}

// errStopping is what readiness says while requests are drained.
var errStopping = fault.New(fault.Busy, "the server is stopping")

// health is the ops listener's handler; stopping makes readiness answer no.
func (a *app) health(stopping func() bool) http.Handler {
	return api.OpsHandler(func(ctx context.Context) error {
		if stopping() {
			return errStopping
		}
		return errors.Join(a.store.Ping(ctx), a.store.CheckSchema(ctx))
	}, a.readyDetails, a.gather)
}

// readyDetails says how it stands with the identity providers, without which everybody else is served.
func (a *app) readyDetails() map[string]any {
	type issuer struct {
		URL     string `json:"url"`
		Ready   bool   `json:"ready"`
		Problem string `json:"problem,omitempty"`
	}
	if !a.withIssuers {
		return nil
	}
	issuers := []issuer{}
	for _, s := range a.issuers.States() {
		issuers = append(issuers, issuer{s.URL, s.Ready, s.Problem})
	}
	if len(issuers) == 0 {
		return nil
	}
	return map[string]any{"issuers": issuers}
}

func (a *app) close() {
	if a.uses != nil {
		a.uses.close()
	}
	if a.issuers != nil {
		a.issuers.Close()
	}
	if a.sender != nil {
		a.sender.Close()
	}
	if a.files != nil {
		a.files.Close()
	}
	a.store.Close()
}
