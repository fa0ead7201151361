package commit

import (
	"bytes"
	"strings"

	"catalogd/internal/fault"
)

// updates is the table of update actions of tables: how each is read. viewUpdates is that of views.
var updates = map[string]func(object) (change, error){
	"assign-uuid":                 decodeAssignUUID,
	"upgrade-format-version":      decodeUpgrade,
	"add-schema":                  decodeAddSchema,
	"set-current-schema":          decodeSetCurrentSchema,
	"remove-schemas":              decodeRemoveSchemas,
	"add-spec":                    decodeAddSpec,
	"set-default-spec":            decodeSetDefaultSpec,
	"remove-partition-specs":      decodeRemoveSpecs,
	"add-sort-order":              decodeAddOrder,
	"set-default-sort-order":      decodeSetDefaultOrder,
	"add-snapshot":                decodeAddSnapshot,
	"set-snapshot-ref":            decodeSetRef,
	"remove-snapshots":            decodeRemoveSnapshots,
	"remove-snapshot-ref":         decodeRemoveRef,
	"set-location":                decodeSetLocation,
	"set-properties":              decodeSetProperties,
	"remove-properties":           decodeRemoveProperties,
	"set-statistics":              decodeSetStatistics,
	"remove-statistics":           decodeRemoveStatistics,
	"set-partition-statistics":    decodeSetPartitionStatistics,
	"remove-partition-statistics": decodeRemovePartitionStatistics,
	"add-encryption-key":          decodeAddKey,
	"remove-encryption-key":       decodeRemoveKey,
}

type assignUUID string

func decodeAssignUUID(o object) (change, error) {
	uuid, err := o.str("uuid")
	if err == nil && !isUUID(uuid) {
		err = shapef("field %q is not a UUID: %q", "uuid", excerpt([]byte(uuid)))
	}
	return assignUUID(uuid), err
}

// apply gives a uuid to a table that has none. An existing table keeps its own: it is what grants, events and
// writers know the table by.
func (c assignUUID) apply(d *draft) error {
	switch {
	case strings.EqualFold(d.uuid, string(c)):
		return nil
	case d.uuid != "":
		return fault.New(fault.IllegalArgument, "Cannot reassign the table's uuid from %s to %s", d.uuid, string(c))
	}
	d.uuid, d.changed = string(c), true
	return nil
}

type upgrade int

func decodeUpgrade(o object) (change, error) {
	version, err := o.integer("format-version")
	return upgrade(version), err
}

func (c upgrade) apply(d *draft) error {
	version := int(c)
	switch {
	case version > formatVersionMax:
		return fault.New(fault.IllegalArgument, "Cannot upgrade table to unsupported format version: v%d (supported: v%d)",
			version, formatVersionMax)
	case version < d.version:
		return fault.New(fault.IllegalArgument, "Cannot downgrade v%d table to v%d", d.version, version)
	case version == d.version:
		return nil
	}
	d.version, d.changed = version, true
	return nil
}

type setLocation string

func decodeSetLocation(o object) (change, error) {
	location, err := o.str("location")
	if err == nil && location == "" {
		err = shapef("field %q must not be empty", "location")
	}
	return setLocation(stripSlashes(location)), err
}

func (c setLocation) apply(d *draft) error {
	if stripSlashes(d.location) != string(c) {
		d.location, d.changed = string(c), true
	}
	return nil
}

type property struct{ name, value string }

type setProperties []property

func decodeSetProperties(o object) (change, error) {
	text := o.get("updates")
	if text == nil {
		text = o.get("updated") // clients before 1.0
	}
	if text == nil {
		return nil, shapef("missing field %q", "updates")
	}
	return parseProperties(text, "updates")
}

// parseProperties reads an object of strings; field is its name in messages.
func parseProperties(text []byte, field string) (setProperties, error) {
	members, err := parseObject(text, field, nil)
	if err != nil {
		return nil, err
	}
	if len(members) > updatesMax {
		return nil, fault.New(fault.TooLarge, "%s has %d properties; at most %d are allowed", field, len(members), updatesMax)
	}
	c := make(setProperties, len(members))
	for i, m := range members {
		value, err := stringOf(m.value, field+"."+string(m.name))
		if err != nil {
			return nil, err
		}
		c[i] = property{name: string(m.name), value: value}
	}
	return c, nil
}

func (c setProperties) apply(d *draft) error {
	for _, p := range c {
		if isReserved(p.name) {
			if d.ignoresReserved {
				continue
			}
			return fault.New(fault.IllegalArgument, "Cannot set the reserved property %s", p.name)
		}
		if err := checkProperty(p.name, p.value); err != nil {
			return err
		}
		d.changed = d.properties.set(p.name, p.value) || d.changed
	}
	return nil
}

type removeProperties []string

func decodeRemoveProperties(o object) (change, error) {
	name := "removals"
	if o.get(name) == nil && o.get("removed") != nil {
		name = "removed" // clients before 1.0
	}
	names, err := stringList(o, name)
	return removeProperties(names), err
}

func (c removeProperties) apply(d *draft) error {
	for _, name := range c {
		d.changed = d.properties.remove(name) || d.changed
	}
	return nil
}

// setStatistics is set-statistics and, with partition, set-partition-statistics.
type setStatistics struct {
	snapshot  int64
	path      string
	text      []byte
	partition bool
}

func decodeSetStatistics(o object) (change, error) {
	c, s, err := decodeStatistics(o, "statistics")
	if err != nil {
		return nil, err
	}
	if err = s.size("file-footer-size-in-bytes"); err != nil {
		return nil, err
	}
	if _, err = s.strOr("key-metadata", ""); err != nil {
		return nil, err
	}
	blobs, err := s.list("blob-metadata")
	if err != nil {
		return nil, err
	}
	for i, text := range blobs {
		blob, err := parseObject(text, "blob-metadata", nil)
		if err != nil {
			return nil, err
		}
		if err = checkBlob(blob); err != nil {
			return nil, shapef("blob-metadata: %v", err)
		}
		blobs[i] = rewrite(blob.withoutAnyNull())
	}
	if bytes.Contains(c.text, []byte("null")) { // Java's reader refuses the whole document over null properties
		c.text = rewrite(s.withoutAnyNull(), edit{"blob-metadata", joinArray(blobs)})
	}
	return c, nil
}

func checkBlob(blob object) error {
	if _, err := blob.str("type"); err != nil {
		return err
	}
	if _, err := blob.long("snapshot-id"); err != nil {
		return err
	}
	if _, err := blob.long("sequence-number"); err != nil {
		return err
	}
	if _, err := blob.integers("fields"); err != nil {
		return err
	}
	if properties := blob.get("properties"); properties != nil {
		_, err := stringMap(properties, "properties")
		return err
	}
	return nil
}

func decodeSetPartitionStatistics(o object) (change, error) {
	c, s, err := decodeStatistics(o, "partition-statistics")
	if err != nil {
		return nil, err
	}
	c.partition = true
	if bytes.Contains(c.text, []byte("null")) {
		c.text = rewrite(s.withoutAnyNull())
	}
	return c, nil
}

func decodeStatistics(o object, name string) (c setStatistics, s object, err error) {
	if c.text, err = o.need(name); err != nil {
		return c, nil, err
	}
	if s, err = parseObject(c.text, name, nil); err != nil {
		return c, nil, err
	}
	if c.snapshot, err = s.long("snapshot-id"); err != nil {
		return c, nil, err
	}
	if c.path, err = s.str("statistics-path"); err != nil {
		return c, nil, err
	}
	return c, s, s.size("file-size-in-bytes")
}

func (d *draft) statisticsOf(partition bool) (*keyed[int64], error) {
	l := &d.statistics
	if partition {
		l = &d.partitionStats
	}
	return l, l.load()
}

func (c setStatistics) apply(d *draft) error {
	l, err := d.statisticsOf(c.partition)
	if err != nil {
		return err
	}
	l.set(c.snapshot, c.text)
	d.changed = d.changed || l.changed
	return nil
}

type removeStatistics struct {
	snapshot  int64
	partition bool
}

func decodeRemoveStatistics(o object) (change, error) {
	id, err := o.long("snapshot-id")
	return removeStatistics{snapshot: id}, err
}

func decodeRemovePartitionStatistics(o object) (change, error) {
	id, err := o.long("snapshot-id")
	return removeStatistics{snapshot: id, partition: true}, err
}

func (c removeStatistics) apply(d *draft) error {
	l, err := d.statisticsOf(c.partition)
	if err == nil && l.drop(func(id int64) bool { return id == c.snapshot }) {
		d.changed = true
	}
	return err
}

type addKey struct {
	id   string
	text []byte
}

func decodeAddKey(o object) (change, error) {
	text, err := o.need("encryption-key")
	if err != nil {
		return nil, err
	}
	k, err := parseObject(text, "encryption-key", nil)
	if err != nil {
		return nil, err
	}
	c := addKey{text: text}
	if c.id, err = k.str("key-id"); err != nil {
		return nil, err
	}
	if _, err = k.str("encrypted-key-metadata"); err != nil {
		return nil, err
	}
	if _, err = k.strOr("encrypted-by-id", ""); err != nil {
		return nil, err
	}
	if properties := k.get("properties"); properties != nil {
		if _, err = stringMap(properties, "properties"); err != nil {
			return nil, err
		}
	}
	c.text = rewrite(k.withoutAnyNull())
	return c, nil
}

func (c addKey) apply(d *draft) error {
	if err := d.encryptionKeys.load(); err != nil {
		return err
	}
	if d.encryptionKeys.find(c.id) < 0 { // a known key stays as it is: manifests were encrypted with it
		d.encryptionKeys.set(c.id, c.text)
		d.changed = true
	}
	return nil
}

type removeKey string

func decodeRemoveKey(o object) (change, error) {
	id, err := o.str("key-id")
	return removeKey(id), err
}

func (c removeKey) apply(d *draft) error {
	err := d.encryptionKeys.load()
	if err == nil && d.encryptionKeys.drop(func(id string) bool { return id == string(c) }) {
		d.changed = true
	}
	return err
}
