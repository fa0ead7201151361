package commit

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"catalogd/internal/fault"
)

// The only format version of views.
const viewFormatVersion = 1

// Names of the top level's members that only views have.
const (
	keyViewUUID       = "view-uuid"
	keyCurrentVersion = "current-version-id"
	keyVersions       = "versions"
	keyVersionLog     = "version-log"
)

// View is one version of a view's metadata: its JSON text and an index into it. It never changes, so one View may
// serve many requests at once. Texts that it gives are its own; callers must not write to them.
type View struct {
	text    []byte
	members object // the top level

	uuid, location string
	schemas        []part
	versions       []viewVersion
	current        int
	log            []viewLogEntry
	properties     object
}

type viewLogEntry struct {
	version int
	text    []byte
}

// ParseView reads a view's metadata document, keeping its text as it is, but for properties that are null: they are
// left out, because Java's reader refuses the document over them. The error is a fault.Validation that names the
// field that is missing or wrong. Several queries of one dialect are read, as Java reads them, so that they can be
// repaired; only new versions must not have them.
func ParseView(raw []byte) (*View, error) {
	v, err := parseView(raw)
	if err != nil {
		return nil, fault.New(fault.Validation, "view metadata: %v", err)
	}
	return v, nil
}

func parseView(raw []byte) (*View, error) {
	if !utf8.Valid(raw) {
		return nil, shapef("not valid UTF-8")
	}
	if err := checkText(raw); err != nil {
		return nil, err
	}
	members, err := parseObject(trimSpace(raw), "the document", nil)
	if err != nil {
		return nil, err
	}
	v := &View{text: raw, members: members}
	if properties := members.raw(keyProperties); properties != nil && isNull(properties) {
		v.text = rewrite(members, edit{keyProperties, nil})
		if v.members, err = parseObject(v.text, "the document", nil); err != nil {
			return nil, err
		}
	}
	for _, step := range []func(object) error{v.readHead, v.readSchemas, v.readVersions, v.readLog} {
		if err := step(v.members); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *View) readHead(o object) (err error) {
	version, err := o.integer(keyFormatVersion)
	if err != nil {
		return err
	}
	if version != viewFormatVersion {
		return shapef("cannot read unsupported %s %d", keyFormatVersion, version)
	}
	if v.uuid, err = o.str(keyViewUUID); err != nil {
		return err
	}
	if !isUUID(v.uuid) {
		return shapef("field %q is not a UUID: %q", keyViewUUID, excerpt([]byte(v.uuid)))
	}
	if v.location, err = o.str(keyLocation); err != nil {
		return err
	}
	v.properties, err = parsePropertyMembers(o)
	return err
}

func (v *View) readSchemas(o object) error {
	list, err := o.need(keySchemas)
	if err != nil {
		return err
	}
	v.schemas, err = readParts(list, keySchemas, "schema-id")
	return err
}

func (v *View) readVersions(o object) error {
	list, err := o.need(keyVersions)
	if err != nil {
		return err
	}
	if v.current, err = o.integer(keyCurrentVersion); err != nil {
		return err
	}
	known := map[int]struct{}{}
	err = eachElement(list, keyVersions, func(text []byte) error {
		version, err := parseViewVersion(text)
		if err != nil {
			return err
		}
		if _, twice := known[version.id]; twice {
			return shapef("%s has version-id %d twice", keyVersions, version.id)
		}
		known[version.id], version.text = struct{}{}, text
		v.versions = append(v.versions, version)
		return nil
	})
	if err != nil {
		return err
	}
	current := v.version(v.current)
	if current == nil {
		return shapef("%s %d is not in %s", keyCurrentVersion, v.current, keyVersions)
	}
	schema := find(v.schemas, current.schema)
	if schema == nil {
		return shapef("schema-id %d of the current version %d is not in %s", current.schema, current.id, keySchemas)
	}
	_, err = parseSchema(schema)
	return err
}

func (v *View) readLog(o object) error {
	list, err := o.need(keyVersionLog)
	if err != nil {
		return err
	}
	return eachElement(list, keyVersionLog, func(text []byte) error {
		var buf [4]member
		entry, err := parseObject(text, keyVersionLog, buf[:0])
		if err != nil {
			return err
		}
		if _, err = entry.long("timestamp-ms"); err != nil {
			return shapef("%s: %v", keyVersionLog, err)
		}
		id, err := entry.integer("version-id")
		if err != nil {
			return shapef("%s: %v", keyVersionLog, err)
		}
		v.log = append(v.log, viewLogEntry{id, text})
		return nil
	})
}

// JSON gives the document's text.
func (v *View) JSON() []byte { return v.text }

// IndexBytes tells about how much memory the view holds beside its text.
func (v *View) IndexBytes() int {
	members := cap(v.members) + cap(v.properties)
	for i := range v.versions {
		members += cap(v.versions[i].o)
	}
	return int(unsafe.Sizeof(*v)) + members*int(unsafe.Sizeof(member{})) + cap(v.schemas)*int(unsafe.Sizeof(part{})) +
		cap(v.versions)*int(unsafe.Sizeof(viewVersion{})) + cap(v.log)*int(unsafe.Sizeof(viewLogEntry{}))
}

// UUID gives view-uuid as written.
func (v *View) UUID() string { return v.uuid }

// Location gives the view's location without trailing slashes.
func (v *View) Location() string { return stripSlashes(v.location) }

// Properties gives a copy of the view's properties.
func (v *View) Properties() map[string]string { return v.properties.stringValues() }

// Property gives one property and whether it is set.
func (v *View) Property(name string) (string, bool) { return v.properties.stringValue(name) }

// CurrentVersionID gives the id of the version that the view is read by.
func (v *View) CurrentVersionID() int { return v.current }

func (v *View) version(id int) *viewVersion { return findVersion(v.versions, id) }

func findVersion(versions []viewVersion, id int) *viewVersion {
	for i := range versions {
		if versions[i].id == id {
			return &versions[i]
		}
	}
	return nil
}

// viewVersion is one definition of a view.
type viewVersion struct {
	id        int
	schema    int
	timestamp int64
	text      []byte // as it stands in the document; nil for a version that a request brings
	o         object
}

var versionFields = []string{
	"version-id", "timestamp-ms", "schema-id", "summary", "representations", "default-catalog", "default-namespace",
}

// parseViewVersion reads a version. All that Java's reader needs must be there.
func parseViewVersion(text []byte) (version viewVersion, err error) {
	if version.o, err = parseObject(text, "a view version", nil); err != nil {
		return version, err
	}
	if version.id, err = version.o.integer("version-id"); err != nil {
		return version, shapef("view version: %v", err)
	}
	if err = version.read(); err != nil {
		err = shapef("view version %d: %v", version.id, err)
	}
	return version, err
}

func (v *viewVersion) read() (err error) {
	if v.timestamp, err = v.o.long("timestamp-ms"); err != nil {
		return err
	}
	if v.schema, err = v.o.integer("schema-id"); err != nil {
		return err
	}
	summary, err := v.o.need("summary")
	if err != nil {
		return err
	}
	if _, err = stringMap(summary, "summary"); err != nil {
		return err
	}
	if _, err = v.representations(); err != nil {
		return err
	}
	if _, err = v.o.strOr("default-catalog", ""); err != nil {
		return err
	}
	_, err = v.namespace()
	return err
}

// namespace gives the levels that unqualified names are looked up in; none is a meaning of its own.
func (v *viewVersion) namespace() ([]string, error) {
	levels, err := stringList(v.o, "default-namespace")
	for _, level := range levels {
		if strings.IndexByte(level, 0) >= 0 {
			return nil, shapef("field %q must not hold a NUL character", "default-namespace")
		}
	}
	return levels, err
}

// representation is one text of a view. Types that we do not know are kept as they are.
type representation struct {
	text         []byte
	isSQL        bool
	sql, dialect string
	extra        object
}

var representationFields = []string{"type", "sql", "dialect"}

func (v *viewVersion) representations() ([]representation, error) {
	texts, err := v.o.list("representations")
	if err != nil {
		return nil, err
	}
	list := make([]representation, len(texts))
	for i, text := range texts {
		var buf [4]member
		o, err := parseObject(text, "a representation", buf[:0])
		if err != nil {
			return nil, err
		}
		typ, err := o.str("type")
		if err != nil {
			return nil, shapef("representations: %v", err)
		}
		r := representation{text: text, isSQL: strings.EqualFold(typ, "sql")}
		if r.isSQL {
			if r.sql, err = o.str("sql"); err == nil {
				r.dialect, err = o.str("dialect")
			}
			if err != nil {
				return nil, shapef("representations: %v", err)
			}
			r.extra = o.others(representationFields)
		}
		list[i] = r
	}
	return list, nil
}

// checkQueries refuses what some readers of a new version could not take.
func (v *viewVersion) checkQueries() error {
	texts, err := v.representations()
	for _, r := range texts {
		switch {
		case !r.isSQL:
		case strings.TrimSpace(r.dialect) == "":
			return shapef("representations: field %q must not be blank", "dialect")
		case strings.TrimSpace(r.sql) == "":
			return shapef("representations: field %q must not be blank", "sql")
		}
	}
	return err
}

// dialects gives the SQL dialects in lower case, each once, and the first that is there twice; "" when none is.
func (v *viewVersion) dialects() (dialects []string, twice string) {
	texts, _ := v.representations() // checked when the version was read
	for _, r := range texts {
		dialect := strings.ToLower(strings.TrimSpace(r.dialect))
		switch {
		case !r.isSQL:
		case contains(dialects, []byte(dialect)):
			if twice == "" {
				twice = dialect
			}
		default:
			dialects = append(dialects, dialect)
		}
	}
	return dialects, twice
}

// definition spells what the version means, without its id and time: equal versions have equal ones.
func (v *viewVersion) definition(schema int) string {
	summary, _ := stringMap(v.o.get("summary"), "summary") // checked when the version was read, as all of it
	catalog, _ := v.o.strOr("default-catalog", "")
	namespace, _ := v.namespace()
	representations, _ := v.representations()
	dst := append([]byte{}, number(int64(schema))...)
	if v.o.get("default-catalog") != nil {
		dst = appendQuoted(append(dst, '@'), catalog)
	}
	for _, level := range namespace {
		dst = appendQuoted(append(dst, '/'), level)
	}
	for _, name := range slices.Sorted(maps.Keys(summary)) {
		dst = appendQuoted(append(appendQuoted(append(dst, ','), name), '='), summary[name])
	}
	for _, r := range representations {
		if !r.isSQL {
			dst = append(append(dst, '|'), r.text...)
			continue
		}
		dst = appendQuoted(appendQuoted(append(dst, '|'), r.dialect), r.sql)
		dst = append(dst, rewrite(r.extra)...)
	}
	return string(append(dst, rewrite(v.o.others(versionFields))...))
}

// versionIDMax is the highest id that Java can read.
const versionIDMax = math.MaxInt32
