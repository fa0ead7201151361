package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// printJSON writes one document for programs.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printRows writes aligned columns for people.
func printRows(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	return tw.Flush()
}

// printFields writes one thing as names and values, in the given order.
func printFields(w io.Writer, fields [][2]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		fmt.Fprintf(tw, "%s\t%s\n", f[0], firstOf(f[1], "-"))
	}
	return tw.Flush()
}

// millis shows a time of the management API: milliseconds since 1970.
func millis(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

func properties(m map[string]string) string {
	pairs := make([]string, 0, len(m))
	for k, v := range m {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}

// pairsFlag is a flag KEY=VALUE that may be given several times.
type pairsFlag map[string]string

func (p pairsFlag) String() string { return properties(p) }

// propertyFlag makes it the flag --property of a verb.
func (p pairsFlag) propertyFlag(_ *connection, fs *flag.FlagSet) {
	fs.Var(p, "property", "property `key=value`; may be given several times")
}

// Set adds one pair.
func (p pairsFlag) Set(value string) error {
	k, v, found := strings.Cut(value, "=")
	if !found || k == "" {
		return fmt.Errorf("%q is not KEY=VALUE", value)
	}
	p[k] = v
	return nil
}

// tableName splits NS.TABLE at its dots, the last part being the table. Levels with dots in their names come by
// --namespace as a JSON list; then the whole argument is the table's name.
func tableName(argument, namespaceJSON string) (namespace []string, table string, err error) {
	if namespaceJSON != "" {
		if namespace, err = namespaceLevels(namespaceJSON); err != nil {
			return nil, "", err
		}
		if argument == "" {
			return nil, "", wrongUsage("the name is empty")
		}
		return namespace, argument, nil
	}
	parts := strings.Split(argument, ".")
	if len(parts) < 2 || slices.Contains(parts, "") {
		return nil, "", wrongUsage("%q is not NAMESPACE.NAME", argument)
	}
	return parts[:len(parts)-1], parts[len(parts)-1], nil
}

// namespaceLevels reads a.b or ["a","b"].
func namespaceLevels(text string) ([]string, error) {
	if strings.HasPrefix(text, "[") {
		var levels []string
		if err := json.Unmarshal([]byte(text), &levels); err != nil || len(levels) == 0 || slices.Contains(levels, "") {
			return nil, wrongUsage("%s is not a JSON list of names", text)
		}
		return levels, nil
	}
	levels := strings.Split(text, ".")
	if slices.Contains(levels, "") {
		return nil, wrongUsage("%q is not a namespace", text)
	}
	return levels, nil
}

// dottedName shows a namespace ("" for name), or a name in it, as it is given: a.b, a.b.t. Where a part has a dot of its own, or
// begins like a list, the namespace is shown as the JSON list that --namespace takes: ["a.b"].t
func dottedName(namespace []string, name string) string {
	parts := slices.Clone(namespace)
	if name != "" {
		parts = append(parts, name)
	}
	dotted := strings.Join(parts, ".")
	if strings.Count(dotted, ".") == len(parts)-1 && !strings.HasPrefix(dotted, "[") {
		return dotted
	}
	list, err := json.Marshal(namespace)
	if err != nil { // strings only: cannot happen
		panic(err)
	}
	if name == "" {
		return string(list)
	}
	return string(list) + "." + name
}

// namespaceSegment is a namespace in a path.
func namespaceSegment(levels []string) string { return strings.Join(levels, "\x1f") }
