package commit

// Names of the top level's members.
const (
	keyFormatVersion   = "format-version"
	keyUUID            = "table-uuid"
	keyLocation        = "location"
	keyLastSequence    = "last-sequence-number"
	keyLastUpdated     = "last-updated-ms"
	keyLastColumn      = "last-column-id"
	keyCurrentSchema   = "current-schema-id"
	keySchemas         = "schemas"
	keySchema          = "schema"         // v1's duplicate
	keyPartitionSpec   = "partition-spec" // v1's duplicate
	keySpecs           = "partition-specs"
	keyDefaultSpec     = "default-spec-id"
	keyLastPartition   = "last-partition-id"
	keyOrders          = "sort-orders"
	keyDefaultOrder    = "default-sort-order-id"
	keyProperties      = "properties"
	keyCurrentSnapshot = "current-snapshot-id"
	keyNextRow         = "next-row-id"
	keySnapshots       = "snapshots"
	keyRefs            = "refs"
	keyStatistics      = "statistics"
	keyPartitionStats  = "partition-statistics"
	keyEncryptionKeys  = "encryption-keys"
	keySnapshotLog     = "snapshot-log"
	keyMetadataLog     = "metadata-log"
)

// topMembersHint is the usual number of members at the top level.
const topMembersHint = 28

// placed are the snapshots of a text that was just written: where they lie is known, they need not be scanned again.
type placed struct {
	entries []snapshotEntry
	end     int // the byte after the array
}

// index reads the text of a document. Everything that is written passes through it too, so what we write can be
// read again.
func index(text []byte, known *placed) (*Document, error) {
	d := &Document{
		text:    text,
		members: make(object, 0, topMembersHint),
		spans:   make([]span, 0, topMembersHint),
	}
	s := scanner{text: text}
	s.space()
	more, err := s.open('{', '}')
	for more && err == nil {
		at := span{name: s.at}
		var m member
		if m.name, err = s.key(); err != nil {
			break
		}
		at.value = s.at
		switch {
		case string(m.name) != keySnapshots || s.peek() != '[':
			err = s.skipValue()
		case known != nil:
			d.snapshots, s.at = known.entries, known.end
		default:
			err = s.snapshots(d)
		}
		if err != nil {
			break
		}
		at.end = s.at
		m.value = text[at.value:at.end]
		d.members, d.spans = append(d.members, m), append(d.spans, at)
		more, err = s.next('}')
	}
	if err == nil {
		err = s.end()
	}
	if err == nil {
		err = d.members.checkUnique("the document")
	}
	if err == nil {
		err = d.read()
	}
	return d, err
}

// read fills the index from the top level's members.
func (d *Document) read() error {
	steps := []func(object) error{
		d.readCounters, d.readSchemas, d.readSpecs, d.readOrders, d.readProperties, d.readSnapshots, d.readRefs,
	}
	for _, step := range steps {
		if err := step(d.members); err != nil {
			return err
		}
	}
	d.snapshotLog, d.metadataLog = d.members.get(keySnapshotLog), d.members.get(keyMetadataLog)
	d.statistics, d.partitionStats = d.members.get(keyStatistics), d.members.get(keyPartitionStats)
	d.encryptionKeys = d.members.get(keyEncryptionKeys)
	for _, list := range []struct {
		name string
		text []byte
	}{
		{keySnapshotLog, d.snapshotLog}, {keyMetadataLog, d.metadataLog}, {keyStatistics, d.statistics},
		{keyPartitionStats, d.partitionStats}, {keyEncryptionKeys, d.encryptionKeys},
	} {
		if list.text != nil && list.text[0] != '[' {
			return shapef("field %q must be an array, not %s", list.name, kindOf(list.text))
		}
	}
	return nil
}

func (d *Document) readCounters(o object) (err error) {
	if d.version, err = o.integer(keyFormatVersion); err != nil {
		return err
	}
	if d.version < formatVersionMin || d.version > formatVersionMax {
		return shapef("cannot read unsupported %s %d", keyFormatVersion, d.version)
	}
	if d.uuid, err = o.strOr(keyUUID, ""); err != nil {
		return err
	}
	if d.uuid == "" && d.version > 1 {
		return shapef("missing field %q", keyUUID)
	}
	if d.uuid != "" && !isUUID(d.uuid) {
		return shapef("field %q is not a UUID: %q", keyUUID, d.uuid)
	}
	if d.location, err = o.str(keyLocation); err != nil {
		return err
	}
	if d.lastUpdated, err = o.long(keyLastUpdated); err != nil {
		return err
	}
	if d.lastColumn, err = o.integer(keyLastColumn); err != nil {
		return err
	}
	if d.version > 1 {
		if d.lastSequence, err = o.long(keyLastSequence); err != nil {
			return err
		}
	} else if d.lastSequence, _, err = o.longOr(keyLastSequence, 0); err != nil || d.lastSequence != 0 {
		return shapef("field %q must be 0 or absent in v1", keyLastSequence)
	}
	if d.version >= formatVersionRows {
		d.nextRow, err = o.long(keyNextRow)
	}
	return err
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != '-' {
				return false
			}
		default:
			if !isHex(s[i]) {
				return false
			}
		}
	}
	return true
}

// readParts reads one of the three lists whose elements have ids.
func readParts(list []byte, name, idName string) ([]part, error) {
	var parts []part
	var buf [8]member
	err := eachElement(list, name, func(text []byte) error {
		o, err := parseObject(text, name, buf[:0])
		if err != nil {
			return err
		}
		id, found, err := o.integerOr(idName, 0)
		if err != nil {
			return err
		}
		if !found && name != keySchemas { // a schema without an id is schema 0
			return shapef("%s: missing field %q", name, idName)
		}
		if fields := o.get("fields"); fields == nil || fields[0] != '[' {
			return shapef("%s: missing or wrong field %q", name, "fields")
		}
		if find(parts, id) != nil {
			return shapef("%s has %s %d twice", name, idName, id)
		}
		parts = append(parts, part{id, text})
		return nil
	})
	return parts, err
}

func (d *Document) readSchemas(o object) (err error) {
	list := o.get(keySchemas)
	if list == nil && d.version == 1 {
		text, err := o.need(keySchema)
		if err != nil {
			return err
		}
		parsed, err := parseSchema(text)
		if err != nil {
			return err
		}
		d.currentSchema, d.schemas = parsed.id, []part{{parsed.id, text}}
		return nil
	}
	if list == nil {
		return shapef("missing field %q", keySchemas)
	}
	if d.currentSchema, err = o.integer(keyCurrentSchema); err != nil {
		return err
	}
	if d.schemas, err = readParts(list, keySchemas, "schema-id"); err != nil {
		return err
	}
	current := d.CurrentSchemaJSON()
	if current == nil {
		return shapef("%s %d is not in %s", keyCurrentSchema, d.currentSchema, keySchemas)
	}
	_, err = parseSchema(current)
	return err
}

func (d *Document) readSpecs(o object) (err error) {
	list := o.get(keySpecs)
	switch {
	case list != nil:
		if d.defaultSpec, err = o.integer(keyDefaultSpec); err != nil {
			return err
		}
		if d.specs, err = readParts(list, keySpecs, "spec-id"); err != nil {
			return err
		}
	case d.version == 1:
		fields, err := o.need(keyPartitionSpec)
		if err != nil {
			return err
		}
		text, err := specOfFields(fields)
		if err != nil {
			return err
		}
		d.specs = []part{{0, text}}
	default:
		return shapef("missing field %q", keySpecs)
	}
	if d.DefaultSpecJSON() == nil {
		return shapef("%s %d is not in %s", keyDefaultSpec, d.defaultSpec, keySpecs)
	}
	var found bool
	if d.lastPartition, found, err = o.integerOr(keyLastPartition, 0); err != nil || found {
		return err
	}
	if d.version > 1 {
		return shapef("missing field %q", keyLastPartition)
	}
	d.lastPartition, err = highestPartitionID(d.specs)
	return err
}

var unsorted = []byte(`{"order-id":0,"fields":[]}`)

func (d *Document) readOrders(o object) (err error) {
	list := o.get(keyOrders)
	if list == nil {
		if d.version > 1 {
			return shapef("missing field %q", keyOrders)
		}
		d.orders = []part{{0, unsorted}}
		return nil
	}
	if d.defaultOrder, err = o.integer(keyDefaultOrder); err != nil {
		return err
	}
	if d.orders, err = readParts(list, keyOrders, "order-id"); err != nil {
		return err
	}
	if d.DefaultSortOrderJSON() == nil {
		return shapef("%s %d is not in %s", keyDefaultOrder, d.defaultOrder, keyOrders)
	}
	return nil
}

func (d *Document) readProperties(o object) (err error) {
	d.properties, err = parsePropertyMembers(o)
	return err
}

func (d *Document) readSnapshots(o object) (err error) {
	if list := o.get(keySnapshots); list != nil && list[0] != '[' {
		return shapef("field %q must be an array, not %s", keySnapshots, kindOf(list))
	}
	if d.current, d.hasCurrent, err = o.longOr(keyCurrentSnapshot, -1); err != nil {
		return err
	}
	d.hasCurrent = d.hasCurrent && d.current != -1
	if d.hasCurrent && d.snapshot(d.current) == nil {
		return shapef("%s %d is not in %s", keyCurrentSnapshot, d.current, keySnapshots)
	}
	if len(d.snapshots) == 0 {
		d.snapshots = nil
	}
	for i := range d.snapshots {
		d.sequenceMax = max(d.sequenceMax, d.snapshots[i].sequence)
	}
	if d.version > 1 && d.sequenceMax > d.lastSequence {
		return shapef("a snapshot has sequence-number %d, greater than %s %d", d.sequenceMax, keyLastSequence, d.lastSequence)
	}
	return nil
}

func (d *Document) readRefs(o object) error {
	text := o.get(keyRefs)
	var refs object
	if text != nil {
		var err error
		if refs, err = parseObject(text, keyRefs, nil); err != nil {
			return err
		}
	}
	d.refs = make([]namedRef, 0, len(refs)+1)
	known := d.snapshotLookup(len(refs))
	for _, m := range refs {
		r, err := parseRef(string(m.name), m.value)
		if err != nil {
			return err
		}
		if !known(r.SnapshotID) {
			return shapef("refs: %q points at snapshot %d, which is not in %s", r.name, r.SnapshotID, keySnapshots)
		}
		d.refs = append(d.refs, r)
	}
	main := d.ref(mainBranch)
	switch {
	case main == nil && d.hasCurrent: // files older than branches
		d.refs = append(d.refs, namedRef{name: mainBranch, Ref: Ref{SnapshotID: d.current, Type: refBranch}})
	case main != nil && (!d.hasCurrent || main.SnapshotID != d.current):
		return shapef("%s does not agree with the branch main in %s", keyCurrentSnapshot, keyRefs)
	}
	return nil
}

// lookupsScanMax is the number of look-ups up to which no map of the snapshots is made.
const lookupsScanMax = 16

// snapshotLookup gives a test for known snapshot ids that suits the number of questions.
func (d *Document) snapshotLookup(questions int) func(int64) bool {
	if questions <= lookupsScanMax {
		return func(id int64) bool { return d.snapshot(id) != nil }
	}
	ids := make(map[int64]struct{}, len(d.snapshots))
	for i := range d.snapshots {
		ids[d.snapshots[i].id] = struct{}{}
	}
	return func(id int64) bool { _, found := ids[id]; return found }
}
