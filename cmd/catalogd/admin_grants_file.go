package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
)

// grantsFileBytesMax bounds a file of grants.
const grantsFileBytesMax = 1 << 20

// grantApply sends the changes of a file as they are, {"changes": [{"action", "catalogRole", "grant"}]}: the server knows what is right.
func grantApply(ctx context.Context, c *call) error {
	var body struct {
		Changes []json.RawMessage `json:"changes"`
	}
	s, err := c.begin(ctx, 1, c.oneWarehouse, func(k *connection, _ *flag.FlagSet) {
		k.check(func(args []string) error {
			text, err := readChanges(args[0])
			if err != nil {
				return err
			}
			if err := json.Unmarshal(text, &body); err != nil || len(body.Changes) == 0 {
				return wrongUsage(`%s is not {"changes": [{"action": "add", "catalogRole": …, "grant": {"type": …, "privilege": …}}]}`, args[0])
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if err := s.do(ctx, http.MethodPost, []string{"catalogs", s.warehouse, "grants"}, body, nil); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]int{"changes": len(body.Changes)})
	}
	fmt.Fprintf(c.Out, "applied %d changes of grants in warehouse %s\n", len(body.Changes), s.warehouse)
	return nil
}

// readChanges reads a file, or standard input by the name -.
func readChanges(path string) ([]byte, error) {
	file := os.Stdin
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return nil, fmt.Errorf("grants: %w", err)
		}
		defer file.Close()
	}
	text, err := io.ReadAll(io.LimitReader(file, grantsFileBytesMax+1))
	if err == nil && len(text) > grantsFileBytesMax {
		err = fmt.Errorf("it is longer than %d bytes", grantsFileBytesMax)
	}
	if err != nil {
		return nil, fmt.Errorf("grants in %s: %w", path, err)
	}
	return text, nil
}
