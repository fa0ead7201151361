package commit

import "bytes"

// topEdit is a change of one member of the document: another value, or none at all.
type topEdit struct {
	name   string
	value  []byte // nil removes the member
	splice bool   // the snapshots: written straight into the document, see writer
}

// edits gives what differs between the base and the draft, in the order in which a new document lists its members.
func (d *draft) edits(previous string) ([]topEdit, error) {
	snapshotLog, err := d.snapshotLogText()
	if err != nil {
		return nil, err
	}
	metadataLog, err := d.metadataLogText(previous)
	if err != nil {
		return nil, err
	}
	var edits []topEdit
	set := func(name string, value []byte) { edits = append(edits, topEdit{name: name, value: value}) }
	d.editCounters(set)
	d.editParts(set)
	if d.properties.moved || d.base == nil {
		set(keyProperties, d.properties.text())
	}
	d.editSnapshots(&edits)
	if snapshotLog != nil || d.base == nil {
		set(keySnapshotLog, orEmpty(snapshotLog))
	}
	if metadataLog != nil || d.base == nil {
		set(keyMetadataLog, orEmpty(metadataLog))
	}
	return append(edits, d.nullMembers(edits)...), nil
}

func orEmpty(array []byte) []byte {
	if array == nil {
		return []byte("[]")
	}
	return array
}

func (d *draft) editCounters(set func(string, []byte)) {
	b := d.base
	if b == nil || b.version != d.version {
		set(keyFormatVersion, number(int64(d.version)))
	}
	if (b == nil || b.uuid != d.uuid) && d.uuid != "" {
		set(keyUUID, quoted(d.uuid))
	}
	if b == nil || b.location != d.location {
		set(keyLocation, quoted(d.location))
	}
	if d.version > 1 && (b == nil || b.version == 1 || b.lastSequence != d.lastSequence) {
		set(keyLastSequence, number(d.lastSequence))
	}
	set(keyLastUpdated, number(d.lastUpdated()))
	if b == nil || b.lastColumn != d.lastColumn {
		set(keyLastColumn, number(int64(d.lastColumn)))
	}
	if d.version >= formatVersionRows && (b == nil || b.version < formatVersionRows || b.nextRow != d.nextRow) {
		set(keyNextRow, number(d.nextRow))
	}
}

// editParts writes schemas, specs and orders where they changed, or where an old v1 document lacks them.
func (d *draft) editParts(set func(string, []byte)) {
	lacks := func(name string) bool { return d.base == nil || d.base.members.get(name) == nil }
	ids := []struct {
		name    string
		now     int
		changed bool
	}{
		{keyCurrentSchema, d.schemas.selected, d.schemaMoved},
		{keyDefaultSpec, d.specs.selected, d.specMoved},
		{keyDefaultOrder, d.orders.selected, d.orderMoved},
		{keyLastPartition, d.lastPartition, d.base != nil && d.base.lastPartition != d.lastPartition},
	}
	for _, id := range ids {
		if id.changed || lacks(id.name) {
			set(id.name, number(int64(id.now)))
		}
	}
	if d.schemas.changed || lacks(keySchemas) {
		set(keySchemas, d.schemasText())
	}
	if d.specs.changed || lacks(keySpecs) {
		set(keySpecs, partsText(d.specs.parts))
	}
	if d.orders.changed || lacks(keyOrders) {
		set(keyOrders, partsText(d.orders.parts))
	}
	switch {
	case d.version > 1 && !lacks(keySchema):
		set(keySchema, nil)
	case d.version == 1 && (d.schemaMoved || lacks(keySchema)):
		set(keySchema, find(d.schemas.parts, d.schemas.selected))
	}
	switch {
	case d.version > 1 && !lacks(keyPartitionSpec):
		set(keyPartitionSpec, nil)
	case d.version == 1 && (d.specMoved || lacks(keyPartitionSpec)):
		set(keyPartitionSpec, fieldsOfSpec(find(d.specs.parts, d.specs.selected)))
	}
}

// schemasText writes the schemas; one that came from v1's schema member may lack its id.
func (d *draft) schemasText() []byte {
	texts := make([][]byte, len(d.schemas.parts))
	for i, p := range d.schemas.parts {
		texts[i] = p.text
		if o, err := parseObject(p.text, keySchemas, nil); err == nil && o.get("schema-id") == nil {
			texts[i] = rewrite(o, edit{"schema-id", number(int64(p.id))})
		}
	}
	return joinArray(texts)
}

func partsText(parts []part) []byte {
	texts := make([][]byte, len(parts))
	for i, p := range parts {
		texts[i] = p.text
	}
	return joinArray(texts)
}

func (d *draft) editSnapshots(edits *[]topEdit) {
	set := func(name string, value []byte) { *edits = append(*edits, topEdit{name: name, value: value}) }
	b := d.base
	moved := b == nil || b.hasCurrent != d.hasCurrent || b.current != d.current || b.version != d.version
	switch {
	case moved && d.hasCurrent:
		set(keyCurrentSnapshot, number(d.current))
	case moved && d.version < formatVersionRows:
		set(keyCurrentSnapshot, number(-1)) // Java's word for none up to v2
	case moved:
		set(keyCurrentSnapshot, nil)
	}
	if d.refsChanged || b == nil || b.ref(mainBranch) != nil && b.ref(mainBranch).text == nil {
		set(keyRefs, refsText(d.refs))
	}
	if b == nil || len(d.added) > 0 || len(d.removed) > 0 {
		*edits = append(*edits, topEdit{name: keySnapshots, splice: true})
	}
	if d.statistics.changed || b == nil {
		set(keyStatistics, d.statistics.array())
	}
	if d.partitionStats.changed || b == nil {
		set(keyPartitionStats, d.partitionStats.array())
	}
	if d.encryptionKeys.changed {
		set(keyEncryptionKeys, d.encryptionKeys.array())
	}
}

// nullMembers removes the members of the specification that are null: for readers they are absent, and Java's dies
// over some of them.
func (d *draft) nullMembers(edits []topEdit) []topEdit {
	if d.base == nil {
		return nil
	}
	var removals []topEdit
	for _, m := range d.base.members {
		if !isNull(m.value) || !contains(nullable, m.name) || findEdit(edits, m.name) >= 0 {
			continue
		}
		removals = append(removals, topEdit{name: string(m.name)})
	}
	return removals
}

var nullable = []string{
	keyProperties, keySnapshots, keyRefs, keyStatistics, keyPartitionStats, keyEncryptionKeys, keySnapshotLog,
	keyMetadataLog, keySchema, keyPartitionSpec,
}

func findEdit(edits []topEdit, name []byte) int {
	for i := range edits {
		if edits[i].name == string(name) {
			return i
		}
	}
	return -1
}

// writer writes the new document and remembers where the snapshots came to lie.
type writer struct {
	draft   *draft
	entries []snapshotEntry
	end     int
	wrote   bool
}

// placed gives the snapshots' places for the index.
func (w *writer) placed() *placed {
	if !w.wrote {
		return nil
	}
	return &placed{entries: w.entries, end: w.end}
}

// documentSlack is room for new members and longer numbers.
const documentSlack = 1024

// document writes the base's members in their order with their own text, but for the edits; new members come last.
func (w *writer) document(edits []topEdit) []byte {
	base := w.draft.base
	if base == nil {
		base = &Document{text: []byte("{}")}
	}
	size := len(base.text) + documentSlack
	for _, e := range edits {
		size += len(e.value) + len(e.name) + 4
	}
	for i := range w.draft.added {
		size += len(w.draft.added[i].text) + 1
	}
	return base.write(make([]byte, 0, size), edits, w)
}

// rewritten gives the document with some members changed; for views of it that are not a commit.
func (d *Document) rewritten(edits []topEdit) []byte { return d.write(nil, edits, nil) }

func (d *Document) write(dst []byte, edits []topEdit, w *writer) []byte {
	opening := bytes.IndexByte(d.text, '{') + 1
	dst = append(dst, d.text[:opening]...)
	last, empty := opening, true
	for i, m := range d.members {
		at := d.spans[i]
		lead := d.text[last:at.name]
		last = at.end
		edited := findEdit(edits, m.name)
		if edited >= 0 && edits[edited].value == nil && !edits[edited].splice {
			continue
		}
		if empty && i > 0 { // everything before it was removed: no comma
			lead = d.text[opening:d.spans[0].name]
		}
		empty = false
		dst = append(dst, lead...)
		if edited < 0 && string(m.name) == keySnapshots && w != nil && len(m.value) > 0 && m.value[0] == '[' {
			dst = w.copySnapshots(append(dst, d.text[at.name:at.value]...), at)
			continue
		}
		if edited < 0 {
			dst = append(dst, d.text[at.name:at.end]...)
			continue
		}
		dst = append(dst, d.text[at.name:at.value]...)
		dst = edits[edited].appendValue(dst, w)
	}
	for _, e := range edits {
		if e.value == nil && !e.splice || d.members.raw(e.name) != nil {
			continue
		}
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = append(appendQuoted(dst, e.name), ':')
		dst = e.appendValue(dst, w)
	}
	return append(dst, d.text[last:]...)
}

func (e topEdit) appendValue(dst []byte, w *writer) []byte {
	if e.splice {
		return w.appendSnapshots(dst)
	}
	return append(dst, e.value...)
}

// copySnapshots copies the array as it is.
func (w *writer) copySnapshots(dst []byte, at span) []byte {
	base := w.draft.base
	w.entries = shifted(base.snapshots, len(dst)-at.value, 0)
	dst = append(dst, base.text[at.value:at.end]...)
	w.end, w.wrote = len(dst), true
	return dst
}

// appendSnapshots writes the array: what the base has and was not removed, as text, then what was added.
func (w *writer) appendSnapshots(dst []byte) []byte {
	d := w.draft
	dst = append(dst, '[')
	var old []snapshotEntry
	if d.base != nil {
		old = d.base.snapshots
	}
	switch {
	case len(old) > 0 && len(d.removed) == 0:
		first, last := old[0].start, old[len(old)-1].end
		w.entries = shifted(old, len(dst)-first, len(d.added))
		dst = append(dst, d.base.text[first:last]...)
	default:
		w.entries = make([]snapshotEntry, 0, len(old)+len(d.added))
		for _, e := range old {
			if _, gone := d.removed[e.id]; !gone {
				dst = w.appendSnapshot(dst, e, d.base.text[e.start:e.end])
			}
		}
	}
	for i := range d.added {
		n := &d.added[i]
		e := snapshotEntry{id: n.id, parent: n.parent, hasParent: n.hasParent, sequence: n.sequence}
		dst = w.appendSnapshot(dst, e, n.text)
	}
	dst = append(dst, ']')
	w.end, w.wrote = len(dst), true
	return dst
}

func (w *writer) appendSnapshot(dst []byte, e snapshotEntry, text []byte) []byte {
	if len(w.entries) > 0 {
		dst = append(dst, ',')
	}
	e.start = len(dst)
	dst = append(dst, text...)
	e.end = len(dst)
	w.entries = append(w.entries, e)
	return dst
}

// shifted copies entries to another place in another text, with room for more.
func shifted(entries []snapshotEntry, by, room int) []snapshotEntry {
	moved := make([]snapshotEntry, len(entries), len(entries)+room)
	copy(moved, entries)
	for i := range moved {
		moved[i].start += by
		moved[i].end += by
	}
	return moved
}
