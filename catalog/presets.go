package catalog

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

// What a warehouse's presets are tried on: any table and any view.
const (
	triedTable = `{"name":"t","schema":{"type":"struct","fields":[]}}`
	triedView  = `{"name":"v","schema":{"type":"struct","schema-id":0,"fields":[]},"properties":{},"view-version":{"version-id":1,` +
		`"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":[],"representations":[{"type":"sql","dialect":"any","sql":"SELECT 1"}]}}`
	triedLocation = "s3://any/t"
)

// columnMetricsPrefix begins properties that are right or wrong by the columns of each table.
const columnMetricsPrefix = "write.metadata.metrics.column."

// checkPresets refuses presets with which no table, or no view, could be made: it makes one, as a create does.
func checkPresets(w Warehouse) error {
	stamp := commit.CreateStamp{Now: time.UnixMilli(1), UUID: uuid.Nil.String(), Location: triedLocation, Presets: w.tablePresets()}
	for _, presets := range []map[string]string{stamp.Presets.Defaults, stamp.Presets.Overrides} {
		maps.DeleteFunc(presets, func(name, _ string) bool { return strings.HasPrefix(name, columnMetricsPrefix) })
	}
	table, err := commit.DecodeCreate([]byte(triedTable))
	if err != nil {
		return fmt.Errorf("try presets: %w", err)
	}
	d, err := commit.Create(table, stamp)
	if err == nil {
		err = checkPaths(d)
	}
	if err != nil {
		return fault.Wrap(fault.BadRequest, err, "the properties %s... and %s... are refused: no table could be made with them: %s",
			prefixTableDefault, prefixTableOverride, fault.Message(err))
	}
	view, err := commit.DecodeCreateView([]byte(triedView))
	if err != nil {
		return fmt.Errorf("try presets: %w", err)
	}
	stamp.Presets = w.viewPresets()
	if _, err := commit.CreateView(view, stamp); err != nil {
		return fault.Wrap(fault.BadRequest, err, "the properties %s... and %s... are refused: no view could be made with them: %s",
			prefixViewDefault, prefixViewOverride, fault.Message(err))
	}
	return nil
}
