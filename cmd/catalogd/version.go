package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version and commit are set by the build (-ldflags -X); a plain `go build` in a checkout has the commit anyway.
var (
	version = "0.0.0-dev"
	commit  = ""
)

func runVersion(_ context.Context, c *call) error {
	if _, err := c.parse(c.newFlags(), 0, 0); err != nil {
		return err
	}
	fmt.Fprintf(c.Out, "catalogd %s commit %s %s %s/%s\n", version, buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

func buildCommit() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
