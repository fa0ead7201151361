package maintenance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

var rewrite = flag.Bool("rewrite", false, "write what the planner says into the scenario files")

// TestPlan_Scenarios runs testdata/plan/*.txt. A file is a list of blocks: directives, a line of four dashes, and what
// the last directive answers, up to an empty line. Directives build on those before them:
//
//	table version=2 spec=factory_id order=sensor_id,measured_at     begins a table
//	prop KEY=VALUE, set KEY=VALUE                                   table properties, stored settings
//	files 5 part=F1 rows=1000 mb=2 sensor=a..z time=0..9            adds data files; also run=N spec=N format=avro
//	                                                                encrypted outside twice ids=no
//	deletes 3, encrypted, pending NAME                              facts of the table
//	plan on-demand, plan automatic last=30s                         plans
//	apply                                                           puts the last plan's outputs in place
func TestPlan_Scenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/plan/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := runScenario(t, string(text))
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				t.Errorf("the planner says otherwise (-rewrite takes it over):\n%s", diffLines(string(text), got))
			}
		})
	}
}

func diffLines(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	for i := range max(len(w), len(g)) {
		var l, r string
		if i < len(w) {
			l = w[i]
		}
		if i < len(g) {
			r = g[i]
		}
		if l != r {
			fmt.Fprintf(&b, "line %d\n  want %s\n  got  %s\n", i+1, l, r)
		}
	}
	return b.String()
}

// scenario is a table that directives build.
type scenario struct {
	t      *testing.T
	facts  Facts
	stored Stored
	record LayoutRecord
	plan   Plan
	runs   int
	n      int
}

func runScenario(t *testing.T, text string) string {
	t.Helper()
	s := &scenario{t: t}
	var out strings.Builder
	answer, skipping := "", false
	for _, line := range strings.SplitAfter(text, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case skipping && bare != "":
			continue
		case skipping:
			skipping = false
			out.WriteString(line)
		case bare == "----":
			out.WriteString("----\n" + answer)
			skipping = true
		case bare == "" || strings.HasPrefix(bare, "#"):
			out.WriteString(line)
		default:
			out.WriteString(line)
			answer = s.do(strings.Fields(bare))
		}
	}
	return out.String()
}

// scenarioSchema has a column of each sort that matters to planning.
func scenarioSchema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "factory_id", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 2, Name: "sensor_id", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "measured_at", Type: iceberg.PrimitiveTypes.TimestampTz},
		iceberg.NestedField{ID: 4, Name: "value", Type: iceberg.PrimitiveTypes.Float64},
		iceberg.NestedField{ID: 5, Name: "tags", Type: &iceberg.ListType{ElementID: 6, Element: iceberg.PrimitiveTypes.String}},
		iceberg.NestedField{ID: 7, Name: "device", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 8, Name: "Serial", Type: iceberg.PrimitiveTypes.Int64},
		}}},
	)
}

func (s *scenario) do(words []string) string {
	args := map[string]string{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		args[key] = value
	}
	switch words[0] {
	case "table":
		s.table(args)
	case "prop":
		for k, v := range args {
			s.facts.Properties[k] = v
		}
	case "set":
		for k, v := range args {
			s.stored[k] = v
		}
	case "files":
		s.files(words[1], args)
	case "deletes":
		s.facts.DeleteFiles = int64(s.number(words[1]))
	case "encrypted":
		s.facts.Encrypted = true
	case "pending":
		s.facts.PendingBranch = strings.Join(words[1:], " ")
	case "plan":
		return s.planAs(Trigger(words[1]), args)
	case "apply":
		s.apply()
	default:
		s.t.Fatalf("unknown directive %q", words[0])
	}
	return ""
}

func (s *scenario) number(text string) int {
	s.t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		s.t.Fatalf("%q is no number", text)
	}
	return n
}

func (s *scenario) table(args map[string]string) {
	schema := scenarioSchema()
	s.facts = Facts{FormatVersion: 2, Location: "s3://bucket/t", Properties: map[string]string{}, SnapshotID: 1, Sequence: 1}
	s.facts.Schema, s.facts.Spec, s.facts.Order = schema, *iceberg.UnpartitionedSpec, table.UnsortedSortOrder
	s.stored, s.record, s.runs = Stored{}, LayoutRecord{}, 0
	if v := args["version"]; v != "" {
		s.facts.FormatVersion = s.number(v)
	}
	if name := args["spec"]; name != "" {
		f, ok := schema.FindFieldByName(name)
		if !ok {
			s.t.Fatalf("no column %q", name)
		}
		s.facts.Spec = iceberg.NewPartitionSpecID(0, iceberg.PartitionField{
			SourceIDs: []int{f.ID}, FieldID: 1000, Name: name, Transform: iceberg.IdentityTransform{},
		})
	}
	if order := args["order"]; order != "" {
		s.facts.Order = sortOrder(s.t, schema, strings.Split(order, ",")...)
	}
}

func sortOrder(t *testing.T, schema *iceberg.Schema, names ...string) table.SortOrder {
	t.Helper()
	var fields []table.SortField
	for _, name := range names {
		f, ok := schema.FindFieldByName(name)
		if !ok {
			t.Fatalf("no column %q", name)
		}
		fields = append(fields, table.SortField{
			SourceIDs: []int{f.ID}, Transform: iceberg.IdentityTransform{}, Direction: table.SortASC, NullOrder: table.NullsFirst,
		})
	}
	order, err := table.NewSortOrder(1, fields)
	if err != nil {
		t.Fatal(err)
	}
	return order
}

// files adds files; each one's range of time follows the one before, as appends do, unless time is given.
func (s *scenario) files(count string, args map[string]string) {
	for range s.number(count) {
		s.n++
		f := FileFacts{
			Path: fmt.Sprintf("%s/data/%05d.parquet", s.facts.Location, s.n), SpecID: s.facts.Spec.ID(), Partition: args["part"],
			Rows: int64(s.number(args["rows"])), Bytes: int64(s.number(args["mb"])) << 20, RowGroups: 1,
			Parquet: args["format"] == "", HasRowIDs: args["ids"] == "", Lower: map[int]string{}, Upper: map[int]string{},
		}
		if run, ok := args["run"]; ok {
			f.Path = s.facts.Location + "/data/" + DataFileName(Lease{JobID: runID(s.number(run)), Epoch: 1}, s.n)
		}
		if _, ok := args["outside"]; ok {
			f.Path = "s3://other/" + filepath.Base(f.Path)
		}
		if _, ok := args["encrypted"]; ok {
			f.Encrypted = true
		}
		if spec, ok := args["spec"]; ok {
			f.SpecID = s.number(spec)
		}
		s.bound(&f, 2, args["sensor"], "a..z")
		s.bound(&f, 3, args["time"], fmt.Sprintf("%05d..%05d", s.n*10, s.n*10+9))
		s.facts.Files = append(s.facts.Files, f)
		if _, ok := args["twice"]; ok {
			s.facts.Files = append(s.facts.Files, f)
		}
	}
}

func (s *scenario) bound(f *FileFacts, id int, text, fallback string) {
	if text == "none" {
		return
	}
	if text == "" {
		text = fallback
	}
	f.Lower[id], f.Upper[id], _ = strings.Cut(text, "..")
}

func runID(n int) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte{byte(n)}) }

func (s *scenario) planAs(trigger Trigger, args map[string]string) string {
	settings, _, err := ParseSettings(s.facts.Properties, s.stored)
	if err != nil {
		return "settings: " + err.Error() + "\n"
	}
	wish := Wish{Trigger: trigger, Now: time.Unix(1_800_000_000, 0)}
	if last := args["last"]; last != "" {
		ago, err := time.ParseDuration(last)
		if err != nil {
			s.t.Fatal(err)
		}
		wish.LastFinished = wish.Now.Add(-ago)
	}
	s.plan = PlanCompaction(s.facts, settings, s.record, wish)
	return s.show()
}

func (s *scenario) show() string {
	p := s.plan
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s\n", p.Verdict, p.Reason.Code, p.Reason.Message)
	if p.After > 0 {
		fmt.Fprintf(&b, "look again in %s\n", p.After)
	}
	for _, g := range p.Groups {
		fmt.Fprintf(&b, "group %s %s: %d files, %d rows, %d MB, outputs of %d MB\n",
			g.Partition, g.Rule, len(g.Files), g.Rows, g.Bytes>>20, g.TargetBytes>>20)
	}
	if p.Verdict == VerdictRun && len(p.Target.Columns) > 0 {
		names := []string{}
		for _, c := range p.Target.Columns {
			names = append(names, c.Path)
		}
		fmt.Fprintf(&b, "%s by %s, overlap now %.2f\n", p.Target.Curve, strings.Join(names, ", "), p.Overlap)
	}
	if len(p.Target.Dropped) > 0 {
		fmt.Fprintf(&b, "not by %s: constant within a partition\n", strings.Join(p.Target.Dropped, ", "))
	}
	return b.String()
}

// apply replaces each group's files by what the layout engine would make of them.
func (s *scenario) apply() {
	s.runs++
	run := runID(100 + s.runs)
	for _, g := range s.plan.Groups {
		taken := map[string]bool{}
		for _, path := range g.Files {
			taken[path] = true
		}
		s.facts.Files = slices.DeleteFunc(s.facts.Files, func(f FileFacts) bool { return taken[f.Path] })
		count := max(1, (g.Bytes+g.TargetBytes-1)/g.TargetBytes)
		for i := range count {
			s.n++
			f := FileFacts{
				Path: s.facts.Location + "/data/" + DataFileName(Lease{JobID: run, Epoch: 1}, s.n), SpecID: s.facts.Spec.ID(),
				Partition: g.Partition, Rows: g.Rows / count, Bytes: g.Bytes / count, RowGroups: 1, Parquet: true,
				Lower: map[int]string{2: fmt.Sprintf("%c", 'a'+26*i/count), 3: "00000"}, Upper: map[int]string{2: fmt.Sprintf("%c", 'a'+26*(i+1)/count), 3: "99999"},
			}
			s.facts.Files = append(s.facts.Files, f)
		}
	}
	s.facts.SnapshotID++
	s.record = s.record.With(run, s.plan.Target, s.facts.SnapshotID, func(yield func(string) bool) {
		for _, f := range s.facts.Files {
			if !yield(f.Path) {
				return
			}
		}
	})
}
