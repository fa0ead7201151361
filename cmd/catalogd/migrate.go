package main

import (
	"context"
	"fmt"

	"catalogd/internal/telemetry"
	"catalogd/store"
)

func runMigrate(ctx context.Context, c *call) error {
	c.about = []string{"database.url", "database.direct_url", "database.pooler", "log.level", "log.format"}
	config, err := c.configured()
	if err != nil {
		return err
	}
	pooled, direct, err := config.databaseURL()
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, store.Config{URL: pooled, MaxConns: databaseConnsMin, SimpleProtocol: config.Database.Pooler})
	if err != nil {
		return err
	}
	defer s.Close()
	c.warnOfVariables()
	if err := awaitDatabase(ctx, s, telemetry.NewLogger(c.Err, config.Log.Level, config.Log.Format)); err != nil {
		return err
	}
	before, err := s.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx, direct); err != nil {
		return err
	}
	after, err := s.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if before == after {
		fmt.Fprintf(c.Out, "the schema is up to date at version %d\n", after)
	} else {
		fmt.Fprintf(c.Out, "migrated from version %d to %d\n", before, after)
	}
	return nil
}
