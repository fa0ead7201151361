package catalog

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/internal/spelling"
)

// Properties of warehouses that this server obeys. All others are kept and shown by the management API, and mean
// nothing here: no client is ever told of them.
const (
	// propertyFoldsNames is taken when a warehouse is made and is a field of its own from then on.
	propertyFoldsNames = "case-insensitive-names"
	// propertyFormatVersions lists the format versions that tables may have or get, for example "1,2".
	propertyFormatVersions = "allowed-format-versions"
	propertyVerifyMetadata = "verify-metadata-on-load"

	// What follows these goes to the defaults and to the overrides of /v1/config.
	prefixConfigDefault  = "config-default."
	prefixConfigOverride = "config-override."
	// These are Java's own. Its clients apply them when they make tables and views; for all others this server does.
	prefixTableDefault  = "table-default."
	prefixTableOverride = "table-override."
	prefixViewDefault   = "view-default."
	prefixViewOverride  = "view-override."

	propertyFormatVersion = "format-version"
)

// Format versions that this server knows, and the one of tables whose request names none.
const (
	formatVersionMin     = 1
	formatVersionMax     = 3
	formatVersionDefault = 2
)

// clientConfigBytesMax bounds what a warehouse's properties add to every answer of /v1/config.
const clientConfigBytesMax = 16 << 10

var clientPrefixes = []string{
	prefixConfigDefault, prefixConfigOverride, prefixTableDefault, prefixTableOverride, prefixViewDefault, prefixViewOverride,
}

// splitClientKey gives the prefix that a property begins with, and what follows it.
func splitClientKey(name string) (prefix, key string) {
	for _, prefix := range clientPrefixes {
		if key, found := strings.CutPrefix(name, prefix); found {
			return prefix, key
		}
	}
	return "", name
}

// checkOptions refuses properties of a warehouse that would harm its clients, and values that mean nothing.
func checkOptions(properties map[string]string) error {
	bytes := 0
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		prefix, key := splitClientKey(name)
		if prefix != "" {
			bytes += len(name) + len(properties[name])
		}
		if err := checkOption(name, prefix, key); err != nil {
			return err
		}
	}
	if bytes > clientConfigBytesMax {
		return fault.New(fault.BadRequest, "the properties for clients are %d bytes long; at most %d are allowed, for every client is sent them at its start",
			bytes, clientConfigBytesMax)
	}
	for _, name := range []string{propertyFoldsNames, propertyVerifyMetadata} {
		if value, set := properties[name]; set && value != "true" && value != "false" {
			return fault.New(fault.BadRequest, "warehouse property %s=%q is refused: it is true or false", name, value)
		}
	}
	if text, set := properties[purgeDelayProperty]; set {
		if seconds, err := strconv.ParseInt(text, 10, 64); err != nil || seconds < 0 || seconds > int64(purgeDelayMax/time.Second) {
			return fault.New(fault.BadRequest, "warehouse property %s=%q is refused: it is a number of seconds from 0 to %d",
				purgeDelayProperty, text, int64(purgeDelayMax/time.Second))
		}
	}
	if err := checkFormatOptions(properties); err != nil {
		return err
	}
	return checkPresets(Warehouse{Properties: properties})
}

func checkOption(name, prefix, key string) error {
	refused := func(why string) error {
		return fault.New(fault.BadRequest, "warehouse property %q is refused: %s", name, why)
	}
	switch ofClient := prefix == prefixConfigDefault || prefix == prefixConfigOverride; {
	case prefix != "" && key == "":
		return refused("a name must follow the prefix")
	case prefix != "" && !isPlainName(key):
		return refused("a name behind a prefix is of printable ASCII characters, without spaces around it")
	case steers(key):
		return refused("it would steer clients' storage access or credentials; leave it out: endpoint, region and the rest belong to " +
			"storageConfigInfo, and credentials are vended with each table")
	case ofClient && takesOver(key):
		return refused("it would change whom clients talk to, as whom, or what code they run; leave it out, and set it in the client's own configuration")
	case ofClient && splitsAgain(key):
		return refused("give " + key + " itself, without " + prefix)
	case prefix == "" && meant(name) != "":
		return refused("nothing obeys that name; did you mean " + meant(name) + "?")
	case prefix == "" || ofClient:
		return nil
	case loadsCode(key):
		return refused(codeMessage)
	case slices.Contains(locationProperties, strings.ToLower(key)):
		return refused("a table's files stay inside the table's own location, which no two tables share; leave it out")
	case prefix != prefixTableDefault && strings.EqualFold(key, propertyFormatVersion):
		return refused("give the version of new tables as " + prefixTableDefault + propertyFormatVersion + ", and what may be asked for as " + propertyFormatVersions)
	}
	return nil
}

// misspeltMax is how many slips make a name that is still taken for another one.
const misspeltMax = 2

// meant gives the option, or the prefix of some, that a name nearly is. Properties that nobody obeys are kept without a
// word, and one that was meant to keep dropped tables for a week must not be among them.
func meant(name string) string {
	options := []string{propertyFoldsNames, propertyFormatVersions, propertyVerifyMetadata, purgeDelayProperty}
	if slices.Contains(options, name) {
		return ""
	}
	if head, _, dotted := strings.Cut(name, "."); dotted {
		name, options = head+".", clientPrefixes
	}
	for _, option := range options {
		if d := spelling.Distance(name, option); d <= misspeltMax {
			return option
		}
	}
	return ""
}

func splitsAgain(key string) bool {
	prefix, _ := splitClientKey(key)
	return prefix != ""
}

// checkFormatOptions wants versions that exist, and a default that is allowed.
func checkFormatOptions(properties map[string]string) error {
	allowed := allFormatVersions
	if text, set := properties[propertyFormatVersions]; set {
		var err error
		if allowed, err = parseFormatVersions(text); err != nil {
			return err
		}
	}
	text, set := properties[prefixTableDefault+propertyFormatVersion]
	if !set {
		return nil
	}
	version, err := strconv.Atoi(text)
	if err != nil || !slices.Contains(allowed, version) {
		return fault.New(fault.BadRequest, "warehouse property %s%s=%q is refused: it is one of %s",
			prefixTableDefault, propertyFormatVersion, text, versionList(allowed))
	}
	return nil
}

var allFormatVersions = []int{1, 2, 3}

func parseFormatVersions(text string) ([]int, error) {
	var versions []int
	for part := range strings.SplitSeq(text, ",") {
		version, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || version < formatVersionMin || version > formatVersionMax {
			return nil, fault.New(fault.BadRequest, "warehouse property %s=%q is refused: it is a list of versions from %d to %d, for example 1,2",
				propertyFormatVersions, text, formatVersionMin, formatVersionMax)
		}
		versions = append(versions, version)
	}
	slices.Sort(versions)
	return slices.Compact(versions), nil
}

func versionList(versions []int) string {
	texts := make([]string, len(versions))
	for i, version := range versions {
		texts[i] = strconv.Itoa(version)
	}
	return strings.Join(texts, ", ")
}

// formatVersions are those that tables of the warehouse may have or get.
func (w Warehouse) formatVersions() []int {
	text, set := w.Properties[propertyFormatVersions]
	if !set {
		return allFormatVersions
	}
	versions, err := parseFormatVersions(text)
	if err != nil { // refused when it was set
		return allFormatVersions
	}
	return versions
}

// checkFormatVersion refuses a table, new, registered or upgraded, of a version that the warehouse does not allow.
// Tables that have such a version already stay as they are and take commits.
func (w Warehouse) checkFormatVersion(version int) error {
	allowed := w.formatVersions()
	if slices.Contains(allowed, version) {
		return nil
	}
	return fault.New(fault.BadRequest, "format version %d is refused: warehouse %s allows %s (its property %s)",
		version, w.Name, versionList(allowed), propertyFormatVersions)
}

// prefixed gives the properties with the prefix, without it.
func (w Warehouse) prefixed(prefix string) map[string]string {
	found := map[string]string{}
	for name, value := range w.Properties {
		if key, is := strings.CutPrefix(name, prefix); is {
			found[key] = value
		}
	}
	return found
}

// tablePresets are the properties of every new table. Its version is 2 unless the warehouse says otherwise; where 2
// is not allowed, the highest that is.
func (w Warehouse) tablePresets() commit.Presets {
	p := commit.Presets{Defaults: w.prefixed(prefixTableDefault), Overrides: w.prefixed(prefixTableOverride)}
	if _, set := p.Defaults[propertyFormatVersion]; !set {
		allowed, version := w.formatVersions(), formatVersionDefault
		if !slices.Contains(allowed, version) {
			version = allowed[len(allowed)-1]
		}
		p.Defaults[propertyFormatVersion] = strconv.Itoa(version)
	}
	return p
}

// viewPresets are the properties of every new view.
func (w Warehouse) viewPresets() commit.Presets {
	return commit.Presets{Defaults: w.prefixed(prefixViewDefault), Overrides: w.prefixed(prefixViewOverride)}
}

// clientConfig gives what /v1/config answers beside what the server says itself. Nothing without one of the prefixes is
// ever in it.
func (w Warehouse) clientConfig() (defaults, overrides map[string]string) {
	defaults, overrides = w.prefixed(prefixConfigDefault), w.prefixed(prefixConfigOverride)
	for name, value := range w.Properties {
		switch prefix, _ := splitClientKey(name); prefix {
		case prefixTableDefault, prefixViewDefault:
			defaults[name] = value
		case prefixTableOverride, prefixViewOverride:
			overrides[name] = value
		}
	}
	return defaults, overrides
}

// takeFoldsNames takes the property out that says whether a warehouse folds names.
func takeFoldsNames(properties map[string]string) (folds, said bool) {
	text, said := properties[propertyFoldsNames]
	delete(properties, propertyFoldsNames)
	return text == "true", said
}

// checkNewTable holds the first metadata of a table against its warehouse's rules. Its location was accepted already.
func (r Resolution) checkNewTable(d *commit.Document, accepted string) error {
	if err := r.Warehouse.checkFormatVersion(d.FormatVersion()); err != nil {
		return err
	}
	return r.checkDocument(d, accepted)
}

// checkNextTable is checkNewTable for a table that is there: a version and a location that it has already are not held
// against it.
func (r Resolution) checkNextTable(base, next *commit.Document) error {
	if next.FormatVersion() == base.FormatVersion() {
		return r.checkDocument(next, r.Table.Location)
	}
	return r.checkNewTable(next, r.Table.Location)
}

// ShownProperties are the warehouse's properties as its administrator set them, in a map of their own.
func (w Warehouse) ShownProperties() map[string]string {
	shown := map[string]string{}
	maps.Copy(shown, w.Properties)
	if w.FoldsNames {
		shown[propertyFoldsNames] = "true"
	}
	return shown
}
