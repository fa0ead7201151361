package catalog

import (
	"log/slog"
	"sync/atomic"
	"time"

	"catalogd/auth"
	"catalogd/vending"
)

// Service holds the operations. Every door (REST, management, worker, command line) leads through it.
type Service struct {
	Store     Store
	Admin     AdminStore
	Metadata  MetadataIO
	Providers map[string]vending.Provider // by storage type: S3, FILE
	Secrets   *auth.Secrets               // makes and hashes principals' secrets
	// SigningKeyMaker makes the keys that tokens are signed with; nil where none is ever made.
	SigningKeyMaker KeyMaker
	Webhooks        WebhookConfig
	Now             Clock
	Log             *slog.Logger

	cache     *metadataCache
	turns     *turns
	registers *registers
	// reports counts clients' reports: each so many sweep old ones away.
	reports atomic.Int64
	denials *denials
	// reportAge is after how long a report is taken away.
	reportAge time.Duration
	repeats   *repeats
	// parallelTables is how many tables of a transaction are worked on at a time.
	parallelTables int
	// transactionBytes is transactionBytesMax but for tests of what happens when it is passed.
	transactionBytes int64
}

// Limits of the service. Each is a promise in docs/operations.md.
const (
	commitRetriesMax       = 16
	commitRetryDelayMin    = 5 * time.Millisecond
	commitRetryDelayMax    = 500 * time.Millisecond
	commitAfterWriteMax    = 60 * time.Second // own deadline once a metadata file is written
	settleMin              = 5 * time.Second  // for the outcome of a commit that took all of its time
	stagedTableTTL         = 24 * time.Hour
	metadataCacheBytesMax  = 64 << 20
	credentialEpochSeconds = 900 // upper bound of an ETag's credential epoch
)

// Config is what New needs.
type Config struct {
	Store     Store
	Admin     AdminStore
	Metadata  MetadataIO
	Providers map[string]vending.Provider
	Secrets   *auth.Secrets // nil where no principal is ever made
	// SigningKeyMaker makes the keys that tokens are signed with; nil where none is ever made.
	SigningKeyMaker KeyMaker
	Webhooks        WebhookConfig
	Now             Clock        // nil: time.Now
	Log             *slog.Logger // nil: slog.Default()
	// ParallelTables bounds how many tables of one transaction are resolved, read or written at a time; 0 means
	// transactionParallelMax. With 1 the order of the calls is always the same.
	ParallelTables int
	// MetadataCacheBytes bounds the cache of metadata documents; 0 means metadataCacheBytesMax.
	MetadataCacheBytes int
	// ReportAge is how long clients' metrics reports stay; 0 means reportAgeDefault.
	ReportAge time.Duration
}

// New makes a Service.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.ParallelTables == 0 {
		c.ParallelTables = transactionParallelMax
	}
	if c.MetadataCacheBytes == 0 {
		c.MetadataCacheBytes = metadataCacheBytesMax
	}
	if c.ReportAge == 0 {
		c.ReportAge = reportAgeDefault
	}
	return &Service{
		Store: c.Store, Admin: c.Admin, Metadata: c.Metadata, Providers: c.Providers, Secrets: c.Secrets, SigningKeyMaker: c.SigningKeyMaker,
		Webhooks: c.Webhooks, Now: c.Now, Log: c.Log,
		cache: newMetadataCache(c.MetadataCacheBytes), turns: newTurns(), denials: newDenials(), registers: newRegisters(), repeats: newRepeats(),
		transactionBytes: transactionBytesMax, parallelTables: c.ParallelTables, reportAge: c.ReportAge,
	}
}
