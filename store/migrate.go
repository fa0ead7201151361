package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"catalogd/internal/fault"
	"catalogd/migrations"
)

// versionTable is goose's record of the steps that were taken; it lies in our schema.
const versionTable = "schema_versions"

// newerStepsMax is how many steps the schema may be ahead of the binary: steps first add and only the next one takes
// away, so one newer step still serves this binary while a new one is rolled out.
const newerStepsMax = 1

// How long a server waits for another one that migrates: it asks again every second, for ten minutes.
const (
	migrationLockPeriodSeconds = 1
	migrationLockAttemptsMax   = 600
)

// A step waits for the locks of its tables no longer than this, because everybody who comes later waits behind it. Then it
// steps back, lets them through and tries again.
const (
	migrationLockMillisMax = "3000"
	migrationPause         = time.Second
	migrationTriesMax      = 120
)

// PostgresMin is the oldest major release of Postgres that the schema is written for.
const PostgresMin = 15

const sqlServerVersion = `SELECT current_setting('server_version_num')::integer`

// checkServer refuses a Postgres that is too old; version is its server_version_num.
func checkServer(version int) error {
	if major := version / 10_000; major < PostgresMin {
		return fault.New(fault.Internal, "the database is Postgres %d; %d or newer is needed", major, PostgresMin)
	}
	return nil
}

const sqlSchemaExists = `SELECT to_regnamespace('catalogd') IS NOT NULL`

// The lock keeps two servers from making the schema at once, which IF NOT EXISTS does not.
const sqlLockSchema = `SELECT pg_advisory_xact_lock(hashtextextended('catalogd schema', 0))`

const sqlCreateSchema = `CREATE SCHEMA IF NOT EXISTS catalogd`

// Migrate brings the database to the newest schema. Several servers may do so at once; one does the work. The URL
// must lead to Postgres itself and not through a transaction pooler.
func Migrate(ctx context.Context, url string) error { return migrateTo(ctx, url, migrations.Latest()) }

func migrateTo(ctx context.Context, url string, version int64) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fault.New(fault.Internal, "database.direct_url or database.url is not a usable Postgres connection string")
	}
	config.RuntimeParams["search_path"] = schemaName
	config.RuntimeParams["application_name"] = "catalogd migrate"
	config.RuntimeParams["lock_timeout"] = migrationLockMillisMax
	db := stdlib.OpenDB(*config)
	defer db.Close()
	for try := 1; ; try++ {
		err := migrateOnce(ctx, db, version)
		if !lockedOut(err) || try == migrationTriesMax {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(migrationPause):
		}
	}
}

// lockedOut tells that somebody holds a lock which a step needs, or that the two waited for each other. The step was rolled back.
func lockedOut(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == stateLockNotAvailable || refused.Code == stateDeadlock)
}

// migrateOnce takes all steps that are left. One that was interrupted has left nothing and is taken again.
func migrateOnce(ctx context.Context, db *sql.DB, version int64) error {
	var server int
	if err := db.QueryRowContext(ctx, sqlServerVersion).Scan(&server); err != nil {
		return fmt.Errorf("ask for the version of Postgres: %w", translate(err))
	}
	if err := checkServer(server); err != nil {
		return err
	}
	if err := createSchema(ctx, db); err != nil {
		return fmt.Errorf("create the schema %s: %w", schemaName, translate(err))
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(migrationLockPeriodSeconds, migrationLockAttemptsMax))
	if err != nil {
		return fmt.Errorf("make the migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files,
		goose.WithSessionLocker(locker), goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if _, err := provider.UpTo(ctx, version); err != nil {
		return fmt.Errorf("migrate the database: %w", translate(err))
	}
	return nil
}

// createSchema asks first: a role that may not create schemas can then use one that an administrator made for it.
func createSchema(ctx context.Context, db *sql.DB) error {
	var exists bool
	if err := db.QueryRowContext(ctx, sqlSchemaExists).Scan(&exists); err != nil || exists {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, sqlLockSchema); err == nil {
		_, err = tx.ExecContext(ctx, sqlCreateSchema)
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

const sqlVersionTableExists = `SELECT to_regclass('catalogd.schema_versions') IS NOT NULL`

const sqlSchemaVersion = `SELECT coalesce(max(version_id), 0) FROM catalogd.schema_versions WHERE is_applied`

// SchemaVersion gives the number of the newest step that the database has taken; 0 when it has taken none.
func (s *Store) SchemaVersion(ctx context.Context) (int64, error) {
	var version int64
	err := s.read(ctx, func(q querier) error {
		var exists bool
		if err := q.QueryRow(ctx, sqlVersionTableExists).Scan(&exists); err != nil || !exists {
			return err
		}
		return q.QueryRow(ctx, sqlSchemaVersion).Scan(&version)
	})
	if err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return version, nil
}

// CheckSchema refuses to work on a Postgres that is too old, and on a schema that this binary does not fit: one that is
// older, or more than one step newer. The messages say what to do.
func (s *Store) CheckSchema(ctx context.Context) error {
	var server int
	err := s.read(ctx, func(q querier) error { return q.QueryRow(ctx, sqlServerVersion).Scan(&server) })
	if err != nil {
		return fmt.Errorf("ask for the version of Postgres: %w", err)
	}
	if err := checkServer(server); err != nil {
		return err
	}
	version, err := s.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	return checkVersion(version, migrations.Latest())
}

func checkVersion(database, binary int64) error {
	switch {
	case database < binary:
		return fault.New(fault.Internal,
			"the database's schema is at version %d and this catalogd needs %d: run `catalogd migrate` or set database.migrate: true",
			database, binary)
	case database > binary+newerStepsMax:
		return fault.New(fault.Internal,
			"the database's schema is at version %d, too new for this catalogd, which knows %d: install the newer catalogd", database, binary)
	}
	return nil
}
