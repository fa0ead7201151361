package commit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
)

// The table of the benchmarks: so many snapshots as Spark writes them, about 0.94 MB of JSON.
const (
	benchSnapshots = 1000
	benchStart     = int64(1700000000000)
	benchUUID      = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
)

func sparkSnapshot(i int) string {
	parent := ""
	if i > 1 {
		parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, snapshotID(i-1))
	}
	return fmt.Sprintf(`{"sequence-number":%d,"snapshot-id":%d,%s"timestamp-ms":%d,"summary":{"operation":"append",`+
		`"spark.app.id":"application_1700000000000_%04d","added-data-files":"8","added-records":"1048576",`+
		`"added-files-size":"73400320","changed-partition-count":"1","total-records":"%d","total-files-size":"%d",`+
		`"total-data-files":"%d","total-delete-files":"0","total-position-deletes":"0","total-equality-deletes":"0",`+
		`"engine-version":"4.1.0","app-id":"application_1700000000000_%04d","engine-name":"spark",`+
		`"iceberg-version":"Apache Iceberg 1.10.1 (commit ccb8bc435062171e64bc8b7e5f56e6aed9c5b934)"},`+
		`"manifest-list":"s3://warehouse/9c12d441-03fe-4693-9a96-a0705ddf69c1/metadata/snap-%d-1-b3a1f4c0-7b1f-4d8e-9a55-0c1d2e3f4a5b.avro",`+
		`"schema-id":0}`,
		i, snapshotID(i), parent, benchStart+int64(i)*1000, i, i*1048576, i*73400320, i*8, i, snapshotID(i))
}

func snapshotID(i int) int64 { return 3055729675574597000 + int64(i)*7919 }

// sparkTable is the metadata of a table with n appends.
func sparkTable(n int) []byte {
	snapshots, log, files := make([]string, n), make([]string, n), make([]string, min(n, 100))
	for i := range n {
		snapshots[i] = sparkSnapshot(i + 1)
		log[i] = fmt.Sprintf(`{"timestamp-ms":%d,"snapshot-id":%d}`, benchStart+int64(i+1)*1000, snapshotID(i+1))
	}
	for i := range files {
		files[i] = fmt.Sprintf(`{"timestamp-ms":%d,"metadata-file":"s3://warehouse/%s/metadata/%05d-0b2c9a4e-94b0-4a3f-8d2c-6a5b4c3d2e1f.metadata.json"}`,
			benchStart+int64(n-len(files)+i)*1000, benchUUID, n-len(files)+i)
	}
	columns := make([]string, 20)
	for i := range columns {
		columns[i] = fmt.Sprintf(`{"id":%d,"name":"column_%d","required":false,"type":"double"}`, i+1, i+1)
	}
	return []byte(fmt.Sprintf(`{"format-version":2,"table-uuid":"%s","location":"s3://warehouse/%s","last-sequence-number":%d,`+
		`"last-updated-ms":%d,"last-column-id":20,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[%s]}],`+
		`"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,`+
		`"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"owner":"spark","write.parquet.compression-codec":"zstd"},`+
		`"current-snapshot-id":%d,"refs":{"main":{"snapshot-id":%d,"type":"branch"}},"snapshots":[%s],"statistics":[],`+
		`"partition-statistics":[],"snapshot-log":[%s],"metadata-log":[%s]}`,
		benchUUID, benchUUID, n, benchStart+int64(n)*1000, strings.Join(columns, ","), snapshotID(n), snapshotID(n),
		strings.Join(snapshots, ","), strings.Join(log, ","), strings.Join(files, ",")))
}

// sparkAppend is the body of the next append.
func sparkAppend(n int) []byte {
	return []byte(fmt.Sprintf(`{"identifier":{"namespace":["db"],"name":"t"},"requirements":[{"type":"assert-table-uuid","uuid":"%s"},`+
		`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%d}],"updates":[%s]}`,
		benchUUID, snapshotID(n), strings.Join(sparkAppendUpdates(n), ",")))
}

func sparkAppendUpdates(n int) []string {
	return []string{
		`{"action":"add-snapshot","snapshot":` + sparkSnapshot(n+1) + `}`,
		fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`, snapshotID(n+1)),
	}
}

func commitRaw(raw, body []byte, s Stamp) ([]byte, error) {
	base, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	r, err := DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	if err := Check(base, r); err != nil {
		return nil, err
	}
	next, _, err := Apply(base, r, s)
	if err != nil {
		return nil, err
	}
	return next.JSON(), nil
}

func commitIcebergGo(raw, body []byte, location string) ([]byte, error) {
	base, err := table.ParseMetadataBytes(raw)
	if err != nil {
		return nil, err
	}
	var request struct {
		Requirements table.Requirements `json:"requirements"`
		Updates      table.Updates      `json:"updates"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	for _, q := range request.Requirements {
		if err := q.Validate(base); err != nil {
			return nil, err
		}
	}
	next, err := table.UpdateTableMetadata(base, request.Updates, location)
	if err != nil {
		return nil, err
	}
	return json.Marshal(next)
}

const benchFile = "s3://warehouse/9c12d441-03fe-4693-9a96-a0705ddf69c1/metadata/01000-5d0b8a44-94b0-4a3f-8d2c-6a5b4c3d2e1f.metadata.json"

// BenchmarkCommitRaw goes from the bytes of the old metadata file and of the request to the bytes of the new file,
// with nothing cached.
func BenchmarkCommitRaw(b *testing.B) {
	raw, body := sparkTable(benchSnapshots), sparkAppend(benchSnapshots)
	stamp := Stamp{Now: time.UnixMilli(benchStart + (benchSnapshots+2)*1000), MetadataLocation: benchFile}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := commitRaw(raw, body, stamp); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommitIcebergGo does the same with iceberg-go: parse, decode, check, apply, marshal.
func BenchmarkCommitIcebergGo(b *testing.B) {
	raw, body := sparkTable(benchSnapshots), sparkAppend(benchSnapshots)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := commitIcebergGo(raw, body, benchFile); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExpire removes 99,000 of 100,000 snapshots in one commit.
func BenchmarkExpire(b *testing.B) {
	const all, kept = 100_000, 1_000
	raw := sparkTable(all)
	var body bytes.Buffer
	body.WriteString(`{"requirements":[],"updates":[{"action":"remove-snapshots","snapshot-ids":[`)
	for i := range all - kept {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, "%d", snapshotID(i+1))
	}
	body.WriteString(`]}]}`)
	stamp := Stamp{Now: time.UnixMilli(benchStart + (all+2)*1000), MetadataLocation: benchFile}
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := commitRaw(raw, body.Bytes(), stamp); err != nil {
			b.Fatal(err)
		}
	}
}

// allocationsMax is the bar for one commit on a table of benchSnapshots snapshots.
const allocationsMax = 500

func TestCommitRaw_AllocatesLittle(t *testing.T) {
	raw, body := sparkTable(benchSnapshots), sparkAppend(benchSnapshots)
	stamp := Stamp{Now: time.UnixMilli(benchStart + (benchSnapshots+2)*1000), MetadataLocation: benchFile}
	allocations := testing.AllocsPerRun(5, func() {
		if _, err := commitRaw(raw, body, stamp); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > allocationsMax {
		t.Errorf("%.0f allocations, want at most %d", allocations, allocationsMax)
	}
}
