package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"catalogd/internal/telemetry"
)

// workerMemoryFloor is what a worker needs beside its jobs: the program itself, decoders' pages, the cache of metadata.
const workerMemoryFloor = 128 << 20

// boundMemory makes the collector work harder before a worker takes much more than it was given. A limit of the
// operator's own, GOMEMLIMIT, comes first.
func boundMemory(c *call, config Config) {
	if c.lookup("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(2*config.Maintenance.Memory + workerMemoryFloor)
	}
}

// runWorker is a server without its API: the worker, and the ops listener for its health.
func runWorker(ctx context.Context, c *call) error {
	config, err := c.configured()
	if err != nil {
		return err
	}
	defer config.writeAudit(c.Out)()
	ops, err := listen("ops_listen", config.OpsListen)
	if err != nil {
		return err
	}
	a, err := newApp(ctx, config, telemetry.NewLogger(c.Err, config.Log.Level, config.Log.Format))
	if err != nil {
		return err
	}
	defer a.close()
	boundMemory(c, config)
	s := &servers{ops: ops, log: a.log, grace: config.Shutdown.Grace}
	s.health = a.health(s.stopping.Load)
	if err := a.worker.Start(); err != nil {
		return err
	}
	s.start()
	fmt.Fprintf(c.Out, "catalogd worker ready, health on %s\n", ops.url())
	err = s.wait(ctx, nil)
	a.log.Info("stopping")
	s.stopping.Store(true)
	return errors.Join(err, a.stopWorker(), s.stop())
}
