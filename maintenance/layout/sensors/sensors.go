// Package sensors makes the readings of a factory: the table of the acceptance story about clustering, as data files and
// as the questions that are asked of it. Benchmarks and tests use it; the server doesn't.
package sensors

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"

	"catalogd/maintenance/layout"
	"catalogd/maintenance/zorder"
)

// Field ids of the table.
const (
	FieldFactory = iota + 1
	FieldSensor
	FieldMeasuredAt
	FieldMetric
	FieldValue
	FieldUnit
)

// Shape of the story's data.
const (
	Chunks       = 13
	chunkDays    = 30
	rowGroupRows = 1 << 20
)

// Start is the first reading's time.
var Start = time.Date(2022, 12, 31, 5, 0, 30, 0, time.UTC)

// End is the last reading's time: the last chunk is cut at a year's end.
var End = Start.AddDate(0, 0, 365)

// Schema gives the table's schema.
func Schema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: FieldFactory, Name: "factory_id", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: FieldSensor, Name: "sensor_id", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: FieldMeasuredAt, Name: "measured_at", Type: iceberg.PrimitiveTypes.TimestampTz},
		iceberg.NestedField{ID: FieldMetric, Name: "metric_name", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: FieldValue, Name: "metric_value", Type: iceberg.PrimitiveTypes.Float64},
		iceberg.NestedField{ID: FieldUnit, Name: "unit", Type: iceberg.PrimitiveTypes.String},
	)
}

// Data says how much to make.
type Data struct {
	Sensors  int
	Interval time.Duration // between two readings of a sensor
	Seed     uint64
}

// Full is the story at its full size: 52,561,300 rows.
var Full = Data{Sensors: 100, Interval: time.Minute, Seed: 1}

// Chunk gives the times of chunk n's first and last reading, both inclusive; neighbouring chunks share one time.
func (d Data) Chunk(n int) (from, to time.Time) {
	from = Start.AddDate(0, 0, n*chunkDays)
	to = from.AddDate(0, 0, chunkDays)
	if to.After(End) {
		to = End
	}
	return from, to
}

// SensorID names sensor i, from 0.
func SensorID(i int) string { return fmt.Sprintf("SNS-%05d", i+1) }

// Slice is a part of a chunk: readings from From to before To.
type Slice struct{ From, To time.Time }

// Write writes the readings of a slice of chunk n as one Parquet file, in time order, as a client of the table would.
// It gives the number of rows.
func (d Data) Write(w io.Writer, n int, s Slice) (int64, error) {
	from, to := d.Chunk(n)
	schema, err := arrowSchema()
	if err != nil {
		return 0, err
	}
	properties := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(3),
		parquet.WithMaxRowGroupLength(rowGroupRows), parquet.WithDataPageVersion(parquet.DataPageV1))
	writer, err := pqarrow.NewFileWriter(schema, struct{ io.Writer }{w}, properties, pqarrow.DefaultWriterProps())
	if err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(d.Seed, uint64(n)))
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	rows := int64(0)
	const batch = 1 << 16
	flush := func() error {
		record := builder.NewRecordBatch()
		defer record.Release()
		return writer.WriteBuffered(record)
	}
	for at := from; !at.After(to); at = at.Add(d.Interval) {
		for i := range d.Sensors {
			value := math.Round((random.Float64()*40+10)*100) / 100
			if at.Before(s.From) || !at.Before(s.To) {
				continue
			}
			builder.Field(0).(*array.StringBuilder).Append("FAC-001")
			builder.Field(1).(*array.StringBuilder).Append(SensorID(i))
			builder.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(at.UnixMicro()))
			builder.Field(3).(*array.StringBuilder).Append("temperature")
			builder.Field(4).(*array.Float64Builder).Append(value)
			builder.Field(5).(*array.StringBuilder).Append("celsius")
			if rows++; rows%batch == 0 {
				if err := flush(); err != nil {
					return rows, err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return rows, err
	}
	return rows, writer.Close()
}

func arrowSchema() (*arrow.Schema, error) {
	var fields []arrow.Field
	for _, f := range Schema().Fields() {
		var t arrow.DataType = arrow.BinaryTypes.String
		switch f.ID {
		case FieldMeasuredAt:
			t = arrow.FixedWidthTypes.Timestamp_us
		case FieldValue:
			t = arrow.PrimitiveTypes.Float64
		}
		fields = append(fields, arrow.Field{Name: f.Name, Type: t, Nullable: true,
			Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{fmt.Sprint(f.ID)})})
	}
	return arrow.NewSchema(fields, nil), nil
}

// Columns are the clustering columns of the story.
func Columns() []int { return []int{FieldSensor, FieldMeasuredAt} }

// Questions are seeded instances of the story's three predicates over (sensor_id, measured_at), for boxes of Columns().
type Questions struct {
	SensorDay  []layout.Predicate // P1: one sensor, one day
	SensorYear []layout.Predicate // P2: one sensor, all of the time
	Hour       []layout.Predicate // P3: all sensors, one hour
}

// Ask makes n instances of each predicate within a span of time.
func (d Data) Ask(n int, seed uint64, from, to time.Time) Questions {
	random := rand.New(rand.NewPCG(seed, 7))
	var q Questions
	for range n {
		sensor := text(SensorID(random.IntN(d.Sensors)))
		q.SensorDay = append(q.SensorDay, layout.Predicate{sensor, span(random, from, to, 24*time.Hour)})
		q.SensorYear = append(q.SensorYear, layout.Predicate{sensor})
		q.Hour = append(q.Hour, layout.Predicate{{}, span(random, from, to, time.Hour)})
	}
	return q
}

// Shares gives the mean share of row groups that each predicate touches.
func (q Questions) Shares(boxes []layout.Box) (p1, p2, p3 float64) {
	return layout.Share(boxes, q.SensorDay), layout.Share(boxes, q.SensorYear), layout.Share(boxes, q.Hour)
}

func text(s string) layout.Range {
	b := zorder.AppendBytes(zorder.AppendPresent(nil), []byte(s))
	return layout.Range{Lo: b, Hi: b}
}

// span picks a whole day or hour inside from..to.
func span(random *rand.Rand, from, to time.Time, length time.Duration) layout.Range {
	first := from.Truncate(length)
	if first.Before(from) {
		first = first.Add(length)
	}
	count := int64(to.Sub(first) / length)
	start := first.Add(time.Duration(random.Int64N(max(count, 1))) * length)
	return layout.Range{
		Lo: zorder.AppendLong(zorder.AppendPresent(nil), start.UnixMicro()),
		Hi: zorder.AppendLong(zorder.AppendPresent(nil), start.Add(length).UnixMicro()-1),
	}
}
