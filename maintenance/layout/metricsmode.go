package layout

import (
	"strconv"
	"strings"

	"catalogd/internal/fault"
)

// MetricsModes say which statistics of a column go to the manifest. The zero value is the table format's default:
// counts and bounds of 16 characters for the first hundred leaf columns.
type MetricsModes struct {
	byDefault   *metricsMode
	byColumn    map[string]metricsMode
	inferredMax int
}

type metricsMode struct {
	counts   bool
	bounds   bool
	truncate int // 0: whole values
}

const (
	truncateDefault    = 16
	inferredMaxDefault = 100
)

var metricsDefault = metricsMode{counts: true, bounds: true, truncate: truncateDefault}

func metricsFromProperties(properties map[string]string) (MetricsModes, error) {
	m := MetricsModes{byColumn: map[string]metricsMode{}, inferredMax: inferredMaxDefault}
	const columnPrefix = "write.metadata.metrics.column."
	for property, text := range properties {
		switch {
		case property == "write.metadata.metrics.default":
			mode, err := parseMetricsMode(property, text)
			if err != nil {
				return m, err
			}
			m.byDefault = &mode
		case property == "write.metadata.metrics.max-inferred-column-defaults":
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return m, fault.New(fault.Validation, "table property %s: %q is not a number of columns", property, text)
			}
			m.inferredMax = n
		case strings.HasPrefix(property, columnPrefix):
			mode, err := parseMetricsMode(property, text)
			if err != nil {
				return m, err
			}
			m.byColumn[strings.TrimPrefix(property, columnPrefix)] = mode
		}
	}
	return m, nil
}

func parseMetricsMode(property, text string) (metricsMode, error) {
	switch text = strings.ToLower(strings.TrimSpace(text)); text {
	case "none":
		return metricsMode{}, nil
	case "counts":
		return metricsMode{counts: true}, nil
	case "full":
		return metricsMode{counts: true, bounds: true}, nil
	}
	if inner, ok := strings.CutPrefix(text, "truncate("); ok {
		n, err := strconv.Atoi(strings.TrimSuffix(inner, ")"))
		if err == nil && n > 0 && strings.HasSuffix(inner, ")") {
			return metricsMode{counts: true, bounds: true, truncate: n}, nil
		}
	}
	return metricsMode{}, fault.New(fault.Validation, "table property %s: %q is not a metrics mode", property, text)
}

// of gives the mode of a leaf column: its own, else the default, else what the format infers.
func (m MetricsModes) of(name string, ordinal int) metricsMode {
	if mode, ok := m.byColumn[name]; ok {
		return mode
	}
	if m.byDefault != nil {
		return *m.byDefault
	}
	inferredMax := m.inferredMax
	if m.byColumn == nil {
		inferredMax = inferredMaxDefault
	}
	if ordinal >= inferredMax {
		return metricsMode{}
	}
	return metricsDefault
}
