package main

import (
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// The kinds of settings: each makes a row of the table from a key and the field that holds it.

func text(key, help string, field func(*Config) *string) setting {
	return setting{key: key, help: help,
		show: func(c *Config) string { return *field(c) },
		set:  func(c *Config, value string) error { *field(c) = value; return nil },
	}
}

// webAddress is the address of a server; a trailing slash would double in everything that is appended.
func webAddress(key, help string, field func(*Config) *string) setting {
	s := text(key, help, field)
	s.set = func(c *Config, value string) error { *field(c) = strings.TrimRight(value, "/"); return nil }
	return s
}

func secret(key, help string, field func(*Config) *string) setting {
	s := text(key, help+"; also file:PATH or env:NAME", field)
	s.secret = true
	return s
}

func secrets(key, help string, field func(*Config) *[]string) setting {
	return setting{key: key, help: help + "; a list, each also file:PATH or env:NAME", secret: true, list: true,
		show: func(c *Config) string { return strings.Join(*field(c), ",") },
		set:  func(c *Config, value string) error { *field(c) = splitList(value); return nil },
	}
}

func networks(key, help string, field func(*Config) *[]netip.Prefix) setting {
	return setting{key: key, help: help + "; a list", list: true,
		show: func(c *Config) string {
			texts := make([]string, len(*field(c)))
			for i, n := range *field(c) {
				texts[i] = n.String()
			}
			return strings.Join(texts, ",")
		},
		set: func(c *Config, value string) error {
			*field(c) = nil
			for _, text := range splitList(value) {
				n, err := netip.ParsePrefix(text)
				if err != nil {
					return fmt.Errorf("%q is no network such as 10.0.0.0/8", text)
				}
				*field(c) = append(*field(c), n.Masked())
			}
			return nil
		},
	}
}

func toggle(key, help string, field func(*Config) *bool) setting {
	return setting{key: key, help: help, toggle: true,
		show: func(c *Config) string { return strconv.FormatBool(*field(c)) },
		set: func(c *Config, value string) error {
			switch strings.ToLower(value) {
			case "true", "yes", "on", "1":
				*field(c) = true
			case "false", "no", "off", "0":
				*field(c) = false
			default:
				return fmt.Errorf("%q is neither true nor false", value)
			}
			return nil
		},
	}
}

func number(key, help string, field func(*Config) *int) setting {
	return setting{key: key, help: help, number: true,
		show: func(c *Config) string { return strconv.Itoa(*field(c)) },
		set: func(c *Config, value string) error {
			n, err := strconv.Atoi(value)
			if err != nil {
				return fmt.Errorf("%q is not a whole number", value)
			}
			*field(c) = n
			return nil
		},
	}
}

func seconds(key, help string, field func(*Config) *time.Duration) setting {
	return setting{key: key, help: help, number: true,
		show: func(c *Config) string { return strconv.FormatInt(int64(*field(c)/time.Second), 10) },
		set: func(c *Config, value string) error {
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return fmt.Errorf("%q is not a whole number of seconds", value)
			}
			*field(c) = time.Duration(n) * time.Second
			return nil
		},
	}
}

func level(key, help string, field func(*Config) *slog.Level) setting {
	return setting{key: key, help: help,
		show: func(c *Config) string { return strings.ToLower(field(c).String()) },
		set: func(c *Config, value string) error {
			if err := field(c).UnmarshalText([]byte(value)); err != nil {
				return fmt.Errorf("%q is none of debug, info, warn and error", value)
			}
			return nil
		},
	}
}

// byteUnits are tried longest first, so that MiB is not read as B.
var byteUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}, {"", 1}}

func size(key, help string, field func(*Config) *int64) setting {
	return setting{key: key, help: help,
		show: func(c *Config) string { return formatBytes(*field(c)) },
		set: func(c *Config, value string) error {
			n, err := parseBytes(value)
			if err != nil {
				return err
			}
			*field(c) = n
			return nil
		},
	}
}

func parseBytes(value string) (int64, error) {
	for _, unit := range byteUnits {
		digits, found := strings.CutSuffix(strings.TrimSpace(value), unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.bytes {
			break
		}
		return n * unit.bytes, nil
	}
	return 0, fmt.Errorf("%q is not a size like 192MiB", value)
}

func formatBytes(n int64) string {
	for _, unit := range byteUnits[:3] {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}
