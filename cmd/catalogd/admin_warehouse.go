package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
)

// warehouseBody is a catalog in Polaris' spelling.
type warehouseBody struct {
	Type       string            `json:"type"`
	Name       string            `json:"name"`
	Properties map[string]string `json:"properties"`
	Storage    map[string]any    `json:"storageConfigInfo"`
	Created    int64             `json:"createTimestamp,omitempty"`
	Updated    int64             `json:"lastUpdateTimestamp,omitempty"`
	Version    int64             `json:"entityVersion,omitempty"`
}

const baseLocationProperty = "default-base-location"

var warehouseVerbs = []*command{
	{name: "create", arguments: "NAME", summary: "make a warehouse", run: warehouseCreate},
	{name: "list", summary: "all warehouses, or with --search some", run: warehouseList},
	{name: "show", arguments: "NAME", summary: "one warehouse with its storage", run: warehouseShow},
	{name: "update", arguments: "NAME", summary: "change a warehouse's properties and storage; what is not named stays", run: warehouseUpdate},
	{name: "delete", arguments: "NAME", summary: "delete an empty warehouse; files stay", run: warehouseDelete},
}

func warehouseCreate(ctx context.Context, c *call) error {
	var location, storage string
	var allowed stringList
	var ifMissing bool
	var info map[string]any
	props := pairsFlag{}
	s, err := c.begin(ctx, 1, props.propertyFlag, func(k *connection, fs *flag.FlagSet) {
		fs.StringVar(&location, "location", "", "base `url` of new tables: s3://bucket/path or file:///path")
		fs.StringVar(&storage, "storage-config", "", "`file` with Polaris' storageConfigInfo as JSON (default: made from --location)")
		fs.Var(&allowed, "allowed-location", "further `url` that tables may use; may be given several times")
		fs.BoolVar(&ifMissing, "if-missing", false, "a warehouse of that name is no failure; it is left as it is")
		k.check(func([]string) (err error) {
			if location == "" {
				return wrongUsage("--location is missing")
			}
			info, err = storageInfo(storage, location, allowed)
			return err
		})
	})
	if err != nil {
		return err
	}
	if ifMissing {
		if err := s.do(ctx, http.MethodGet, []string{"catalogs", s.args[0]}, nil, nil); !isRefusal(err, http.StatusNotFound) {
			if err != nil {
				return err
			}
			return c.printWarehouse(ctx, s)
		}
	}
	all := map[string]string{baseLocationProperty: location}
	maps.Copy(all, props)
	body := map[string]any{"catalog": warehouseBody{Type: "INTERNAL", Name: s.args[0], Properties: all, Storage: info}}
	err = s.do(ctx, http.MethodPost, []string{"catalogs"}, body, nil)
	if err != nil && !(ifMissing && isRefusal(err, http.StatusConflict)) {
		return err
	}
	return c.printWarehouse(ctx, s)
}

// storageInfo reads a storageConfigInfo or makes the smallest one for a location.
func storageInfo(file, location string, allowed []string) (map[string]any, error) {
	info := map[string]any{}
	if file != "" {
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("storage configuration: %w", err)
		}
		if err := json.Unmarshal(body, &info); err != nil {
			return nil, fmt.Errorf("storage configuration %s: %w", file, err)
		}
	}
	if info["storageType"] == nil {
		switch {
		case strings.HasPrefix(location, "file:"):
			info["storageType"] = "FILE"
		case strings.HasPrefix(location, "s3:"):
			info["storageType"] = "S3"
		default:
			return nil, wrongUsage("%q begins neither with s3: nor with file:; give --storage-config", location)
		}
	}
	allow(info, allowed)
	return info, nil
}

// allow adds locations to those that a storageConfigInfo allows.
func allow(info map[string]any, locations []string) {
	list, _ := info["allowedLocations"].([]any)
	for _, l := range locations {
		if !slices.Contains(list, any(l)) {
			list = append(list, l)
		}
	}
	if len(list) > 0 {
		info["allowedLocations"] = list
	}
}

// warehouseUpdate reads the warehouse, changes what is named and sends it back with the version that was read, or the
// one that is expected: who changed it meanwhile is not overwritten.
func warehouseUpdate(ctx context.Context, c *call) error {
	props, expected, storage := pairsFlag{}, int64(0), ""
	var removed, allowed stringList
	s, err := c.begin(ctx, 1, props.propertyFlag, func(_ *connection, fs *flag.FlagSet) {
		fs.Var(&removed, "remove-property", "`key` to take away; may be given several times")
		fs.StringVar(&storage, "storage-config", "", "`file` with Polaris' storageConfigInfo as JSON, in place of the present one")
		fs.Var(&allowed, "allowed-location", "further `url` that tables may use; may be given several times")
		fs.Int64Var(&expected, "expected-version", 0, "refuse unless `version` is the present one, as show gives it")
	})
	if err != nil {
		return err
	}
	if len(props)+len(removed)+len(allowed) == 0 && storage == "" {
		return wrongUsage("nothing to change: give --property, --remove-property, --storage-config or --allowed-location")
	}
	path := []string{"catalogs", s.args[0]}
	var w warehouseBody
	if err := s.do(ctx, http.MethodGet, path, nil, &w); err != nil {
		return err
	}
	maps.Copy(w.Properties, props)
	for _, key := range removed {
		delete(w.Properties, key)
	}
	if storage != "" {
		if w.Storage, err = storageInfo(storage, w.Properties[baseLocationProperty], nil); err != nil {
			return err
		}
	}
	allow(w.Storage, allowed)
	version := w.Version
	if expected != 0 {
		version = expected
	}
	body := map[string]any{"currentEntityVersion": version, "properties": w.Properties, "storageConfigInfo": w.Storage}
	if err := s.do(ctx, http.MethodPut, path, body, nil); isRefusal(err, http.StatusConflict) {
		return fmt.Errorf("%w; nothing was changed: look at `catalogd warehouse show %s` and repeat what is still wanted", err, s.args[0])
	} else if err != nil {
		return err
	}
	return c.printWarehouse(ctx, s)
}

func warehouseList(ctx context.Context, c *call) error {
	var search string
	s, err := c.begin(ctx, 0, searchFlag(&search))
	if err != nil {
		return err
	}
	type list struct {
		Catalogs []warehouseBody `json:"catalogs"`
	}
	answer := list{[]warehouseBody{}}
	err = pages(ctx, s.admin, []string{"catalogs"}, found(search), func(page list) { answer.Catalogs = append(answer.Catalogs, page.Catalogs...) })
	if isRefusal(err, http.StatusForbidden) {
		return fmt.Errorf("%w; only administrators list all warehouses (principal role service_admin): ask one for the name of yours, "+
			"and give it with -w or to `catalogd warehouse show`", err)
	} else if err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, answer)
	}
	var rows [][]string
	for _, w := range answer.Catalogs {
		rows = append(rows, []string{w.Name, fmt.Sprint(w.Storage["storageType"]), w.Properties[baseLocationProperty], millis(w.Created)})
	}
	return printRows(c.Out, []string{"NAME", "STORAGE", "LOCATION", "CREATED"}, rows)
}

func warehouseShow(ctx context.Context, c *call) error {
	s, err := c.begin(ctx, 1)
	if err != nil {
		return err
	}
	return c.printWarehouse(ctx, s)
}

// printWarehouse shows the warehouse that the argument names.
func (c *call) printWarehouse(ctx context.Context, s *session) error {
	var w warehouseBody
	if err := s.do(ctx, http.MethodGet, []string{"catalogs", s.args[0]}, nil, &w); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, w)
	}
	storage, err := json.Marshal(w.Storage)
	if err != nil {
		return err
	}
	return printFields(c.Out, [][2]string{
		{"name", w.Name}, {"location", w.Properties[baseLocationProperty]}, {"storage", string(storage)},
		{"properties", properties(w.Properties)}, {"created", millis(w.Created)}, {"version", fmt.Sprint(w.Version)},
	})
}

func warehouseDelete(ctx context.Context, c *call) error {
	return c.deleteOne(ctx, "warehouse", func(s *session) []string { return []string{"catalogs", s.args[0]} })
}

// deleteOne is the delete verb of things that a path names. more adds flags of the verb's own.
func (c *call) deleteOne(
	ctx context.Context, kind string, path func(*session) []string, more ...verbFlags,
) error {
	s, err := c.begin(ctx, 1, more...)
	if err != nil {
		return err
	}
	if err := s.do(ctx, http.MethodDelete, path(s), nil, nil); err != nil {
		return err
	}
	if s.output == "json" {
		return printJSON(c.Out, map[string]string{"deleted": s.args[0]})
	}
	fmt.Fprintf(c.Out, "deleted %s %s\n", kind, s.args[0])
	return nil
}
