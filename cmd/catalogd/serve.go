package main

import (
	"context"
	"errors"
)

func runServe(_ context.Context, c *call) error {
	fs := c.newFlags()
	load := c.configFlags(fs)
	printConfig := fs.Bool("print-config", false, "show the merged configuration with the source of each value, secrets masked, and end")
	if _, err := c.parse(fs, 0, 0); err != nil {
		return err
	}
	config, err := load()
	if err != nil {
		return err
	}
	if *printConfig {
		config.print(c.Out)
		return nil
	}
	if _, _, err := config.secretKeys(); err != nil {
		return err
	}
	if _, _, err := config.databaseURL(); err != nil {
		return err
	}
	return errors.New("not wired yet")
}
func runDev(context.Context, *call) error       { return errors.New("not wired yet") }
func runWorker(context.Context, *call) error    { return errors.New("not wired yet") }
func runMigrate(context.Context, *call) error   { return errors.New("not wired yet") }
func runBootstrap(context.Context, *call) error { return errors.New("not wired yet") }
func runDoctor(context.Context, *call) error    { return errors.New("not wired yet") }
