package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
)

// ownerShow tells who owns a place.
func ownerShow(ctx context.Context, c *call) error {
	var place grantBody
	s, err := c.begin(ctx, 0, c.oneWarehouse, placeFlags(&place))
	if err != nil {
		return err
	}
	var answer struct {
		On    securable `json:"securable"`
		Owner *string   `json:"owner"`
	}
	target := joinPath([]string{"catalogs", s.warehouse, "owner"})
	if query := place.query().Encode(); query != "" {
		target += "?" + query
	}
	if err := s.call(ctx, http.MethodGet, target, nil, &answer); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	owner := "nobody"
	if answer.Owner != nil {
		owner = *answer.Owner
	}
	fmt.Fprintf(c.Out, "%s is owned by %s\n", place.on(s.warehouse), owner)
	return nil
}

// ownerSet hands a place over.
func ownerSet(ctx context.Context, c *call) error {
	var place grantBody
	var nobody bool
	s, err := c.begin(ctx, 0, c.oneWarehouse, placeFlags(&place), func(k *connection, fs *flag.FlagSet) {
		k.argumentsMore = 1
		fs.BoolVar(&nobody, "nobody", false, "leave it without an owner")
		k.check(func(args []string) error {
			if nobody == (len(args) == 1) {
				return wrongUsage("give the PRINCIPAL that is to own it, or --nobody")
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	owner, shown := "", "nobody"
	if !nobody {
		owner, shown = s.args[0], s.args[0]
	}
	body := map[string]any{"namespace": listOf(place.Namespace), "table": place.Table, "view": place.View, "owner": owner}
	if err := s.do(ctx, http.MethodPut, []string{"catalogs", s.warehouse, "owner"}, body, nil); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]string{"on": place.on(s.warehouse), "owner": owner})
	}
	fmt.Fprintf(c.Out, "%s is owned by %s now\n", place.on(s.warehouse), shown)
	return nil
}
