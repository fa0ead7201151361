package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"catalogd/internal/telemetry"
)

func runServe(ctx context.Context, c *call) error {
	printConfig := false
	config, err := c.configured(func(fs *flag.FlagSet) {
		fs.BoolVar(&printConfig, "print-config", false, "show the merged configuration with the source of each value, secrets masked, and end")
	})
	if err != nil {
		return err
	}
	if printConfig {
		c.warnOfVariables()
		config.print(c.Out)
		return nil
	}
	began := time.Now()
	lines := telemetry.NewLines(c.Err)
	defer lines.Flush()
	log := telemetry.NewLogger(lines, config.Log.Level, config.Log.Format)
	defer config.writeAudit(c.Out)()
	if _, _, err := config.secretKeys(); err != nil {
		return err // before the addresses are taken, so that the message is the same whatever else is wrong
	}
	if _, _, err := config.databaseURL(); err != nil {
		return err
	}
	api, ops, err := listenBoth(config)
	if err != nil {
		return err
	}
	a, err := newApp(ctx, config, log)
	if err != nil {
		return err
	}
	defer a.close()
	paceCollector(c)
	r := &running{app: a, api: api, ops: ops, withWorker: config.Maintenance.Embedded}
	if err := r.start(); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "catalogd ready on %s in %d ms\n", api.url(), time.Since(began).Milliseconds())
	return r.untilDone(ctx, nil)
}

// listenBoth takes the two addresses.
func listenBoth(config Config) (api, ops *listener, err error) {
	if api, err = listen("listen", config.Listen); err != nil {
		return nil, nil, err
	}
	if ops, err = listen("ops_listen", config.OpsListen); err != nil {
		api.net.Close()
		return nil, nil, err
	}
	return api, ops, nil
}

// running is a server at work: listeners, and a worker when it has one.
type running struct {
	app        *app
	api, ops   *listener
	withWorker bool

	servers *servers
	records *records
}

func (r *running) start() error {
	handler, err := r.app.handler()
	if err != nil {
		return err
	}
	r.servers = &servers{api: r.api, ops: r.ops, handler: handler, log: r.app.log,
		delay: r.app.config.Shutdown.Delay, grace: r.app.config.Shutdown.Grace, ending: func() { close(r.app.stopping) }}
	r.servers.health = r.app.health(r.servers.stopping.Load)
	if r.withWorker {
		if err := r.app.worker.Start(); err != nil {
			return err
		}
	}
	r.app.withIssuers = true
	r.app.issuers.Start()
	r.records = newRecords(r.app)
	r.records.start()
	r.app.deliverer.Start()
	r.servers.start()
	return nil
}

// untilDone waits for the end and ends in order: readiness says no, after the delay requests drain, the worker gives its
// job back meanwhile, then the database is let go by the caller.
func (r *running) untilDone(ctx context.Context, gone <-chan struct{}) error {
	err := r.servers.wait(ctx, gone)
	r.app.log.Info("stopping", "pid", os.Getpid())
	worker := make(chan error, 1)
	go func() { worker <- r.app.stopWorker() }()
	delivered := make(chan struct{})
	go func() { r.app.deliverer.Stop(); close(delivered) }()
	if err == nil {
		err = r.servers.linger(gone)
	}
	err = errors.Join(err, r.servers.stop(), <-worker, r.records.stop())
	<-delivered
	return err
}

// stop ends a server that did not get as far as waiting.
func (r *running) stop() error {
	r.app.deliverer.Stop()
	return errors.Join(r.servers.stop(), r.app.stopWorker(), r.records.stop())
}
