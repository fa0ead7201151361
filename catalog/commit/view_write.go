package commit

import (
	"slices"
	"strconv"
	"strings"

	"catalogd/internal/fault"
)

// Properties that the engine obeys.
const (
	historySizeProperty = "version.history.num-entries"
	historySizeDefault  = 10
	dropDialectProperty = "replace.drop-dialect.allowed"
)

// added gives the versions that the request brought.
func (d *viewDraft) added() []viewVersion {
	if d.base == nil {
		return d.versions
	}
	return d.versions[len(d.base.versions):]
}

func (d *viewDraft) changed() bool {
	return d.properties.moved || d.schemas.changed || len(d.added()) > 0 || d.current != d.base.current ||
		d.location != d.base.location
}

// finish checks the draft as a whole and writes it.
func (d *viewDraft) finish() (*View, error) {
	if d.location == "" {
		return nil, fault.New(fault.IllegalArgument, "Cannot create a view without a location")
	}
	if err := d.checkDialects(); err != nil {
		return nil, err
	}
	historySize, err := d.historySize()
	if err != nil {
		return nil, err
	}
	kept := d.keptVersions(historySize)
	next, err := parseView(d.document(kept))
	if err != nil {
		return nil, fault.New(fault.Validation, "Cannot commit: the new metadata would be invalid: %v", err)
	}
	return next, nil
}

// checkDialects refuses a replace that would leave readers of some dialect without a query.
func (d *viewDraft) checkDialects() error {
	if d.base == nil || d.current == d.base.current {
		return nil
	}
	if allowed, _ := d.properties.get(dropDialectProperty); strings.EqualFold(allowed, "true") {
		return nil
	}
	before, _ := d.base.version(d.base.current).dialects()
	after, _ := findVersion(d.versions, d.current).dialects()
	for _, dialect := range before {
		if !slices.Contains(after, dialect) {
			return fault.New(fault.Validation, "Cannot replace view due to loss of view dialects (%s=false): it has %s, the new version has %s",
				dropDialectProperty, excerpt([]byte(strings.Join(before, ", "))), excerpt([]byte(strings.Join(after, ", "))))
		}
	}
	return nil
}

func (d *viewDraft) historySize() (int, error) {
	text, set := d.properties.get(historySizeProperty)
	if !set {
		return historySizeDefault, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fault.New(fault.IllegalArgument, "%s must be a positive integer but was %q", historySizeProperty, excerpt([]byte(text)))
	}
	return int(n), nil
}

// keptVersions gives the ids of the versions that stay; nil when all do. The newest stay, as many as the history may
// hold and never less than the request brought, and the current one always. The one with the highest id stays too,
// even where the history holds one: ids are given by counting on from it, and none must be used twice.
func (d *viewDraft) keptVersions(historySize int) map[int]struct{} {
	must := map[int]struct{}{d.current: {}}
	for _, v := range d.added() {
		must[v.id] = struct{}{}
	}
	ids := make([]int, len(d.versions))
	for i := range d.versions {
		ids[i] = d.versions[i].id
	}
	slices.SortFunc(ids, func(a, b int) int { return b - a })
	must[ids[0]] = struct{}{}
	keep := max(historySize, len(must))
	if len(ids) <= keep {
		return nil
	}
	for _, id := range ids {
		if len(must) == keep {
			break
		}
		must[id] = struct{}{}
	}
	return must
}

// logTexts gives version-log: one entry more when the request leaves another version current, dated as the version
// if the request brought it. Where versions were dropped, the entries up to the last one of a dropped version go as
// well: the log must not have gaps.
func (d *viewDraft) logTexts(kept map[int]struct{}) [][]byte {
	var entries []viewLogEntry
	if d.base != nil {
		entries = d.base.log[:len(d.base.log):len(d.base.log)]
	}
	if d.base == nil || d.current != d.base.current {
		at := d.now
		if v := findVersion(d.added(), d.current); v != nil {
			at = v.timestamp
		}
		text := strconv.AppendInt([]byte(`{"timestamp-ms":`), at, 10)
		text = strconv.AppendInt(append(text, `,"version-id":`...), int64(d.current), 10)
		entries = append(entries, viewLogEntry{d.current, append(text, '}')})
	}
	var texts [][]byte
	for _, e := range entries {
		if _, stays := kept[e.version]; kept != nil && !stays {
			texts = texts[:0]
			continue
		}
		texts = append(texts, e.text)
	}
	return texts
}

func (d *viewDraft) versionTexts(kept map[int]struct{}) [][]byte {
	var texts [][]byte
	for i := range d.versions {
		v := &d.versions[i]
		if _, stays := kept[v.id]; kept != nil && !stays {
			continue
		}
		text := v.text
		if text == nil {
			text = rewrite(v.o, edit{"version-id", number(int64(v.id))}, edit{"schema-id", number(int64(v.schema))})
		}
		texts = append(texts, text)
	}
	return texts
}

// document writes the base's members in their order with their own text, but for what changed; new ones come last.
func (d *viewDraft) document(kept map[int]struct{}) []byte {
	var edits []edit
	var members object
	set := func(name string, value []byte) { edits = append(edits, edit{name, value}) }
	b := d.base
	if b == nil {
		set(keyViewUUID, quoted(d.uuid))
		set(keyFormatVersion, number(viewFormatVersion))
	} else {
		members = b.members
	}
	if b == nil || b.location != d.location {
		set(keyLocation, quoted(d.location))
	}
	if b == nil || d.properties.moved {
		set(keyProperties, d.properties.text())
	}
	if d.schemas.changed {
		set(keySchemas, partsText(d.schemas.parts))
	}
	if b == nil || b.current != d.current {
		set(keyCurrentVersion, number(int64(d.current)))
	}
	if len(d.added()) > 0 || kept != nil {
		set(keyVersions, joinArray(d.versionTexts(kept)))
	}
	if b == nil || b.current != d.current || kept != nil {
		set(keyVersionLog, joinArray(d.logTexts(kept)))
	}
	return rewrite(members, edits...)
}
