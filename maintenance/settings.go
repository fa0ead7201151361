package maintenance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"catalogd/internal/fault"
)

// Strategy is how files are laid out.
type Strategy string

// The strategies. Auto clusters when there are columns to cluster by, else it packs.
const (
	Auto    Strategy = "auto"
	BinPack Strategy = "bin-pack"
	Sort    Strategy = "sort"
	ZOrder  Strategy = "z-order"
)

// Curve is the order of rows within a partition.
type Curve string

// The curves. NoCurve keeps rows as they come.
const (
	Hilbert  Curve = "hilbert"
	ZCurve   Curve = "zorder"
	Linear   Curve = "linear"
	NoCurve  Curve = ""
	curveAny Curve = Hilbert
)

// The names of the settings. As table properties they carry PropertyPrefix.
const (
	KeyEnabled        = "enabled"
	KeyStrategy       = "strategy"
	KeyColumns        = "cluster-columns"
	KeyCurve          = "curve"
	KeyRowGroupRows   = "row-group-rows"
	KeyTargetBytes    = "target-file-size-bytes"
	KeyMinInterval    = "min-interval-seconds"
	PropertyPrefix    = "catalogd.maintenance."
	targetBytesOthers = "write.target-file-size-bytes"
)

// Limits and defaults of the settings.
const (
	targetBytesDefault   = 512 << 20
	targetBytesMin       = 1 << 20
	targetBytesMax       = 4 << 30
	rowGroupRowsMin      = 100
	rowGroupRowsMax      = 16 << 20
	minIntervalDefault   = 60 * time.Second
	minIntervalMax       = 90 * 24 * time.Hour
	clusterColumnsMax    = 8
	settingValueBytesMax = 8 << 10
)

// Stored holds the settings made by command, as texts in the spelling of the table properties.
type Stored map[string]string

// Settings says how a table is to be maintained. Columns are names as given; ResolveColumns finds them.
type Settings struct {
	Enabled      bool
	Strategy     Strategy
	Columns      []string // nil: those of the table's sort order
	Curve        Curve
	RowGroupRows int64 // 0: chosen by the partition's size
	TargetBytes  int64
	MinInterval  time.Duration
}

// Setting is one setting as shown: its value in force and where it comes from.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// Sources of settings. A property's source also names the property.
const (
	SourceDefault  = "default"
	SourceProperty = "table-property"
	SourceStored   = "maintenance-set"
	SourceOrder    = "sort-order"
)

// settingRow is one row of the table of settings: how its text is read and what holds without one.
type settingRow struct {
	key      string
	fallback string
	read     func(s *Settings, text string) error
}

// settingRows is the table of settings, in the order in which they are shown.
var settingRows = []settingRow{
	{KeyEnabled, "false", readEnabled},
	{KeyStrategy, string(Auto), readStrategy},
	{KeyColumns, "", readColumns},
	{KeyCurve, string(curveAny), readCurve},
	{KeyRowGroupRows, "auto", readRowGroupRows},
	{KeyTargetBytes, strconv.Itoa(targetBytesDefault), readTargetBytes},
	{KeyMinInterval, strconv.Itoa(int(minIntervalDefault / time.Second)), readMinInterval},
}

// ParseSettings merges the table's properties and the stored settings; stored ones win. A value that cannot be read
// is fault.Validation and names its key and where it stands.
func ParseSettings(properties map[string]string, stored Stored) (Settings, []Setting, error) {
	var s Settings
	shown := make([]Setting, 0, len(settingRows))
	for _, row := range settingRows {
		v := Setting{Key: row.key, Value: row.fallback, Source: SourceDefault}
		if text, ok := properties[targetBytesOthers]; ok && row.key == KeyTargetBytes {
			v.Value, v.Source = clampTarget(text, row.fallback), SourceProperty+" "+targetBytesOthers
		}
		if text, ok := properties[PropertyPrefix+row.key]; ok {
			v.Value, v.Source = text, SourceProperty+" "+PropertyPrefix+row.key
		}
		if text, ok := stored[row.key]; ok {
			v.Value, v.Source = text, SourceStored
		}
		if err := row.read(&s, strings.TrimSpace(v.Value)); err != nil {
			return Settings{}, nil, fault.New(fault.Validation, "maintenance setting %s (%s): %s", v.Key, v.Source, fault.Message(err))
		}
		shown = append(shown, v)
	}
	if s.Strategy == ZOrder && s.Curve == Linear {
		return Settings{}, nil, fault.New(fault.Validation,
			"maintenance strategy z-order does not go with curve linear; use strategy sort, or curve hilbert or zorder")
	}
	return s, shown, nil
}

// clampTarget reads other tools' target size, which may lie outside our range; nonsense counts as not set.
func clampTarget(text, fallback string) string {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 {
		return fallback
	}
	return strconv.FormatInt(min(max(n, targetBytesMin), targetBytesMax), 10)
}

// ParseChange reads a change of stored settings as the API takes it: texts, numbers, booleans, a list of texts for
// cluster-columns, and null to go back to what holds otherwise. The names may carry PropertyPrefix.
func ParseChange(body map[string]json.RawMessage) (map[string]*string, error) {
	change := map[string]*string{}
	for name, raw := range body {
		key := strings.TrimPrefix(name, PropertyPrefix)
		if !slices.ContainsFunc(settingRows, func(r settingRow) bool { return r.key == key }) {
			return nil, fault.New(fault.BadRequest, "unknown maintenance setting %q; known are: %s", name, settingNames())
		}
		if len(raw) > settingValueBytesMax {
			return nil, fault.New(fault.TooLarge, "maintenance setting %s is %d bytes long; at most %d are allowed",
				key, len(raw), settingValueBytesMax)
		}
		text, err := settingText(raw)
		if err != nil {
			return nil, fault.New(fault.BadRequest, "maintenance setting %s: %s", key, fault.Message(err))
		}
		change[key] = text
	}
	return change, nil
}

// Apply gives the stored settings after a change.
func (s Stored) Apply(change map[string]*string) Stored {
	out := Stored{}
	for k, v := range s {
		out[k] = v
	}
	for k, v := range change {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = *v
		}
	}
	return out
}

func settingNames() string {
	names := make([]string, len(settingRows))
	for i, r := range settingRows {
		names[i] = r.key
	}
	return strings.Join(names, ", ")
}

// settingText turns a JSON value into a property's text; nil for null.
func settingText(raw json.RawMessage) (*string, error) {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fault.New(fault.BadRequest, "not a JSON value")
	}
	var text string
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		text = v
	case bool:
		text = strconv.FormatBool(v)
	case json.Number:
		text = v.String()
	case []any:
		for _, e := range v {
			if _, ok := e.(string); !ok {
				return nil, fault.New(fault.BadRequest, "a list may hold texts only")
			}
		}
		text = string(raw)
	default:
		return nil, fault.New(fault.BadRequest, "must be a text, a number, a boolean, a list of texts or null")
	}
	return &text, nil
}

func readEnabled(s *Settings, text string) error {
	switch strings.ToLower(text) {
	case "true":
		s.Enabled = true
	case "false":
		s.Enabled = false
	default:
		return fault.New(fault.Validation, "%q is neither true nor false", text)
	}
	return nil
}

func readStrategy(s *Settings, text string) error {
	switch strings.ToLower(text) {
	case "auto":
		s.Strategy = Auto
	case "bin-pack", "binpack": // Polaris and Iceberg; Amazon S3 Tables
		s.Strategy = BinPack
	case "sort":
		s.Strategy = Sort
	case "z-order", "zorder":
		s.Strategy = ZOrder
	default:
		return fault.New(fault.Validation, "%q is none of auto, bin-pack, sort, z-order", text)
	}
	return nil
}

// readColumns takes names split at commas, or a JSON list for names that hold commas.
func readColumns(s *Settings, text string) error {
	s.Columns = nil
	if text == "" {
		return nil
	}
	var names []string
	if strings.HasPrefix(text, "[") {
		if err := json.Unmarshal([]byte(text), &names); err != nil {
			return fault.New(fault.Validation, "%q is not a JSON list of column names", text)
		}
	} else {
		for _, name := range strings.Split(text, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if len(names) > clusterColumnsMax {
		return fault.New(fault.Validation, "%d columns; at most %d are allowed, and each column more than three takes much from the others",
			len(names), clusterColumnsMax)
	}
	if slices.Contains(names, "") {
		return fault.New(fault.Validation, "%q holds an empty column name", text)
	}
	s.Columns = names
	return nil
}

func readCurve(s *Settings, text string) error {
	switch c := Curve(strings.ToLower(text)); c {
	case Hilbert, ZCurve, Linear:
		s.Curve = c
	case "z-order":
		s.Curve = ZCurve
	default:
		return fault.New(fault.Validation, "%q is none of hilbert, zorder, linear", text)
	}
	return nil
}

func readRowGroupRows(s *Settings, text string) error {
	if text == "auto" {
		s.RowGroupRows = 0
		return nil
	}
	n, err := readInt(text, rowGroupRowsMin, rowGroupRowsMax)
	s.RowGroupRows = n
	return err
}

func readTargetBytes(s *Settings, text string) error {
	n, err := readInt(text, targetBytesMin, targetBytesMax)
	s.TargetBytes = n
	return err
}

func readMinInterval(s *Settings, text string) error {
	n, err := readInt(text, 0, int64(minIntervalMax/time.Second))
	s.MinInterval = time.Duration(n) * time.Second
	return err
}

func readInt(text string, low, high int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, fault.New(fault.Validation, "%q is not a whole number from %d to %d", text, low, high)
	}
	return n, nil
}

// String shows the settings for logs.
func (s Settings) String() string {
	return fmt.Sprintf("%s/%s columns=%v rows=%d bytes=%d", s.Strategy, s.Curve, s.Columns, s.RowGroupRows, s.TargetBytes)
}
