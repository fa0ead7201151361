package commit

import (
	"bytes"
	"strconv"

	"catalogd/internal/fault"
)

// How many older metadata files metadata-log keeps.
const (
	previousVersionsProperty = "write.metadata.previous-versions-max"
	previousVersionsDefault  = 100
	previousVersionsMin      = 1
)

// newLogEntries gives the entries that this request adds to snapshot-log: one for each move of main, but none for
// snapshots that the request brought and did not leave current.
func (d *draft) newLogEntries() []logEntry {
	kept := d.logged[:0:0]
	for _, e := range d.logged {
		_, ours := d.addedIDs[e.id]
		if ours && (!d.hasCurrent || e.id != d.current) {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// snapshotLogText writes snapshot-log; nil when it stays as it is.
func (d *draft) snapshotLogText() ([]byte, error) {
	entries := d.newLogEntries()
	if len(entries) == 0 && len(d.removed) == 0 {
		return nil, nil
	}
	old, last, err := d.keptLog()
	if err != nil {
		return nil, err
	}
	texts := make([][]byte, 0, len(entries))
	for _, e := range entries {
		if !d.has(e.id) { // moved to it, then removed it: what came before would be a gap
			old, texts = nil, texts[:0]
			continue
		}
		if e.timestamp < last-clockSkewMs {
			return nil, fault.New(fault.Validation,
				"Invalid timestamp %d of snapshot %d: more than a minute before the last snapshot log entry at %d", e.timestamp, e.id, last)
		}
		last = max(last, e.timestamp)
		text := strconv.AppendInt([]byte(`{"timestamp-ms":`), e.timestamp, 10)
		text = strconv.AppendInt(append(text, `,"snapshot-id":`...), e.id, 10)
		texts = append(texts, append(text, '}'))
	}
	if len(texts) == 0 && len(d.removed) == 0 {
		return nil, nil
	}
	return appendToArray(old, texts), nil
}

// keptLog gives the base's log without the entries up to the last one whose snapshot is gone, a gap would lie to
// time travel, and the time of its last entry.
func (d *draft) keptLog() (text []byte, last int64, err error) {
	if d.base == nil || d.base.snapshotLog == nil {
		return nil, 0, nil
	}
	if len(d.removed) == 0 {
		if last, ok := lastLogged(d.base.snapshotLog); ok {
			return d.base.snapshotLog, last, nil
		}
	}
	var kept [][]byte
	var buf [4]member
	err = eachElement(d.base.snapshotLog, keySnapshotLog, func(text []byte) error {
		o, err := parseObject(text, keySnapshotLog, buf[:0])
		if err != nil {
			return err
		}
		if last, err = o.long("timestamp-ms"); err != nil || len(d.removed) == 0 {
			return err
		}
		id, err := o.long("snapshot-id")
		if d.has(id) {
			kept = append(kept, text)
		} else {
			kept = kept[:0]
		}
		return err
	})
	if err != nil {
		return nil, 0, fault.New(fault.Validation, "table metadata: %s: %v", keySnapshotLog, err)
	}
	if len(d.removed) == 0 {
		return d.base.snapshotLog, last, nil
	}
	return joinArray(kept), last, nil
}

// lastLogged reads the time of a log's last entry from the end, without walking through the log. ok is false when the
// text before the closing bracket is not plainly one flat object.
func lastLogged(log []byte) (timestamp int64, ok bool) {
	s := scanner{text: log[:len(log)-1]}
	if s.at = bytes.LastIndexByte(log, '{'); s.at < 0 {
		return 0, false
	}
	entry, err := s.value()
	if err != nil || s.end() != nil {
		return 0, false
	}
	var buf [4]member
	o, err := parseObject(entry, keySnapshotLog, buf[:0])
	if err != nil {
		return 0, false
	}
	timestamp, err = o.long("timestamp-ms")
	return timestamp, err == nil
}

// metadataLogText writes metadata-log with the base's file added; nil when it stays as it is.
func (d *draft) metadataLogText(previous string) ([]byte, error) {
	if d.base == nil || previous == "" {
		return nil, nil
	}
	var old [][]byte
	if d.base.metadataLog != nil {
		var err error
		if old, err = parseArray(d.base.metadataLog, keyMetadataLog); err != nil {
			return nil, fault.New(fault.Validation, "table metadata: %v", err)
		}
	}
	entry := strconv.AppendInt([]byte(`{"timestamp-ms":`), d.base.lastUpdated, 10)
	entry = append(appendQuoted(append(entry, `,"metadata-file":`...), previous), '}')
	if keep := d.previousVersionsMax() - 1; len(old) > keep {
		return joinArray(append(old[len(old)-keep:len(old):len(old)], entry)), nil
	}
	return appendToArray(d.base.metadataLog, [][]byte{entry}), nil
}

func (d *draft) previousVersionsMax() int {
	text, _ := d.properties.get(previousVersionsProperty)
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return previousVersionsDefault
	}
	return max(int(n), previousVersionsMin)
}

// lastUpdated gives last-updated-ms: the server's clock, unless it has gone back behind what the table already says;
// Java's reader refuses a table that was updated before its last log entry.
func (d *draft) lastUpdated() int64 {
	if d.base == nil {
		return d.now
	}
	return max(d.now, d.base.lastUpdated)
}

// appendToArray adds elements to an array's text, keeping what is there as it is written; nil is the empty array.
func appendToArray(array []byte, elements [][]byte) []byte {
	if len(array) == 0 {
		return joinArray(elements)
	}
	end := len(array) - 1
	for end > 1 && isBlank(array[end-1]) {
		end--
	}
	size := len(array)
	for _, e := range elements {
		size += len(e) + 1
	}
	dst := append(make([]byte, 0, size), array[:end]...)
	for _, e := range elements {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = append(dst, e...)
	}
	return append(dst, array[end:]...)
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
