package maintenance

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"
)

// Thresholds of the compaction planner.
const (
	// smallFileShare of the target size makes a file small.
	smallFileShare = 0.75
	// smallFilesAutomatic in one partition are worth a rewrite that nobody asked for; OnDemand ones when asked.
	smallFilesAutomatic = 5
	smallFilesOnDemand  = 2
	// unclusteredShare: a partition is clustered as a whole when files without the layout hold more of its bytes,
	// else they are clustered by themselves. It bounds how often a byte is rewritten.
	unclusteredShare = 1.0 / 8
	// overlapAutomatic times the best layout's overlap is worth a rewrite that nobody asked for.
	overlapAutomatic = 2.0
	// clusterFilesPerPartition and clusterFileBytesMin shape the files of a clustered partition: enough files to skip
	// some, none so small that opening it costs more than skipping it gains.
	clusterFilesPerPartition = 16
	clusterFileBytesMin      = 32 << 20
	// planBytesMax bounds one run; what is over waits for the next. The first group is taken whatever its size.
	planBytesMax = 64 << 30
)

// Verdict is what a plan comes to.
type Verdict string

// The verdicts.
const (
	VerdictRun     Verdict = "run"
	VerdictNothing Verdict = "nothing"
	VerdictWait    Verdict = "wait" // later, by itself
	VerdictRefuse  Verdict = "refuse"
)

// Reason codes of plans. Programs may rely on them.
const (
	CodeEmptyTable    = "empty-table"
	CodeWellLaidOut   = "well-laid-out"
	CodeFewSmallFiles = "few-small-files"
	CodeMinInterval   = "min-interval"
	CodePendingBranch = "pending-branch"
	CodeRowLineage    = "row-lineage"
	CodeFormatVersion = "format-version"
	CodeEncrypted     = "encrypted"
	CodeDeleteFiles   = "delete-files"
	CodeOldSpecs      = "partition-evolution"
	CodeWriteFormat   = "write-format"
	CodeDataPath      = "data-path"
	CodeSettings      = "settings"
	CodeNotParquet    = "not-parquet"
	CodeOutside       = "outside-location"
	CodeListedTwice   = "listed-twice"
	CodeEncryptedFile = "encrypted-file"
	CodeClustered     = "clustered"
	CodeLargeEnough   = "large-enough"
	CodeOverBudget    = "over-budget"
	CodePlanned       = "planned"
	CodeSwitchedOff   = "switched-off"
)

// Wish is why and when a plan is made.
type Wish struct {
	Trigger      Trigger
	Now          time.Time
	LastFinished time.Time // of the last run; zero: never
}

// Group is one partition's files to be rewritten together.
type Group struct {
	Partition   string
	Files       []string // paths, sorted
	Rule        string   // unclustered or fragments
	Rows        int64
	Bytes       int64
	TargetBytes int64 // of an output file
}

// Plan is what a table needs, and why.
type Plan struct {
	Verdict Verdict
	Reason  Reason
	Groups  []Group
	Target  Target
	// Skipped counts the files left alone, by reason code.
	Skipped map[string]int64
	// Overlap is that of the chosen groups' files by their manifest bounds, weighted by rows; 0: unknown.
	Overlap float64
	// After is how long to wait when the verdict is VerdictWait.
	After time.Duration
}

// Fingerprint names the layout: what files of one fingerprint have in common. The size of files is not in it.
func (t Target) Fingerprint() string {
	if len(t.Columns) == 0 {
		return "packed"
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "1 %s %d", t.Curve, t.RowGroupRows)
	for _, c := range t.Columns {
		fmt.Fprintf(h, " %d", c.FieldID)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// PlanCompaction decides which files to rewrite. It is a fixed point: planned again on what its own plan leaves
// behind, it chooses nothing.
func PlanCompaction(f Facts, s Settings, record LayoutRecord, w Wish) Plan {
	if r, ok := refuseTable(f); ok {
		return Plan{Verdict: VerdictRefuse, Reason: r}
	}
	target, err := ResolveTarget(s, f.Shape)
	if err != nil {
		return Plan{Verdict: VerdictRefuse, Reason: Reason{CodeSettings, err.Error()}}
	}
	p := Plan{Target: target, Skipped: map[string]int64{}}
	if len(f.Files) == 0 {
		p.Verdict, p.Reason = VerdictNothing, Reason{CodeEmptyTable, "the table has no data files"}
		return p
	}
	if wait, r := waitFor(f, s, w); wait > 0 {
		p.Verdict, p.Reason, p.After = VerdictWait, r, wait
		return p
	}
	eligible := chooseEligible(f, p.Skipped)
	for _, key := range slices.Sorted(maps.Keys(eligible)) {
		if g, ok := planPartition(eligible[key], target, record, w.Trigger, p.Skipped); ok {
			p.Groups = append(p.Groups, g)
		}
	}
	p.limit()
	p.conclude(f)
	return p
}

// refuseTable names what this planner does not do, rather than doing it wrongly.
func refuseTable(f Facts) (Reason, bool) {
	switch {
	case f.FormatVersion < 1 || f.FormatVersion > 3:
		return Reason{CodeFormatVersion, fmt.Sprintf("the table has format version %d; versions 1 to 3 are compacted", f.FormatVersion)}, true
	case f.Encrypted:
		return Reason{CodeEncrypted, "the table is encrypted: its files cannot be rewritten without its keys"}, true
	case f.DeleteFiles > 0:
		return Reason{CodeDeleteFiles, fmt.Sprintf("the table has %d delete files, which compaction does not apply yet; rewrite them with an engine (Spark rewrite_data_files), or write with merge mode copy-on-write", f.DeleteFiles)}, true
	}
	if format := f.Properties["write.format.default"]; format != "" && !strings.EqualFold(format, "parquet") {
		return Reason{CodeWriteFormat, fmt.Sprintf("the table wants %s files (write.format.default); compaction writes Parquet only", format)}, true
	}
	for _, key := range []string{"write.data.path", "write.metadata.path"} {
		if path := strings.TrimRight(f.Properties[key], "/"); path != "" && !within(path, f.Location) {
			return Reason{CodeDataPath, fmt.Sprintf("the table's %s lies outside its location, where the server may not write", key)}, true
		}
	}
	for _, file := range f.Files {
		if file.SpecID != f.Spec.ID() {
			return Reason{CodeOldSpecs, fmt.Sprintf("the partition spec has changed and files of spec %d are still there (now %d): %s; rewrite them with an engine (Spark rewrite_data_files)",
				file.SpecID, f.Spec.ID(), file.Path)}, true
		}
		if f.FormatVersion == 3 && !file.HasRowIDs {
			return Reason{CodeRowLineage, fmt.Sprintf("rows of %s have no _row_id yet, since the table was upgraded to format version 3 and not written since; any write assigns them, and then compaction keeps them", file.Path)}, true
		}
	}
	return Reason{}, false
}

// waitFor holds back what nobody asked for.
func waitFor(f Facts, s Settings, w Wish) (time.Duration, Reason) {
	if w.Trigger != Automatic {
		return 0, Reason{}
	}
	if f.PendingBranch != "" {
		return pendingBranchWait, Reason{CodePendingBranch, fmt.Sprintf("%s would no longer fit main after a rewrite; a run on demand does not wait", f.PendingBranch)}
	}
	if left := w.LastFinished.Add(s.MinInterval).Sub(w.Now); !w.LastFinished.IsZero() && left > 0 {
		return left, Reason{CodeMinInterval, fmt.Sprintf("the last run ended %s ago; min-interval-seconds is %d", w.Now.Sub(w.LastFinished).Round(time.Second), int(s.MinInterval/time.Second))}
	}
	return 0, Reason{}
}

// pendingBranchWait is when to look again while a branch or a staged write is open.
const pendingBranchWait = 10 * time.Minute

// chooseEligible sorts files by partition and counts those that must stay as they are.
func chooseEligible(f Facts, skipped map[string]int64) map[string][]FileFacts {
	times := map[string]int{}
	for _, file := range f.Files {
		times[file.Path]++
	}
	out := map[string][]FileFacts{}
	for _, file := range f.Files {
		switch {
		case times[file.Path] > 1:
			skipped[CodeListedTwice]++
		case !file.Parquet:
			skipped[CodeNotParquet]++
		case file.Encrypted:
			skipped[CodeEncryptedFile]++
		case !within(file.Path, f.Location):
			skipped[CodeOutside]++
		default:
			out[file.Partition] = append(out[file.Partition], file)
		}
	}
	return out
}

// unit is what counts as one piece: a file that none of our runs wrote, or all files of one run.
type unit struct {
	files []FileFacts
	bytes int64
	fresh bool // not of the target's layout
}

// planPartition applies the two rules: cluster what is not clustered, and join small pieces.
func planPartition(files []FileFacts, t Target, record LayoutRecord, trigger Trigger, skipped map[string]int64) (Group, bool) {
	units := unitsOf(files, t, record)
	total, freshBytes, freshFiles := int64(0), int64(0), 0
	for _, u := range units {
		total += u.bytes
		if u.fresh {
			freshBytes += u.bytes
			freshFiles += len(u.files)
		}
	}
	outBytes := outputBytes(t, total)
	if len(t.Columns) > 0 && float64(freshBytes) > unclusteredShare*float64(total) {
		if trigger == OnDemand || freshFiles >= smallFilesAutomatic || freshBytes >= clusterFileBytesMin ||
			overlap(boxesOf(files, t)) >= overlapAutomatic {
			return newGroup(units, "unclustered", outBytes), true
		}
		skipped[CodeFewSmallFiles] += int64(len(files))
		return Group{}, false
	}
	return joinSmall(units, t, trigger, outBytes, skipped)
}

// joinSmall chooses small pieces when there are enough of them. With a curve, pieces without it count as small
// whatever their size, since they are to be clustered by themselves.
func joinSmall(units []unit, t Target, trigger Trigger, outBytes int64, skipped map[string]int64) (Group, bool) {
	var small []unit
	for _, u := range units {
		if float64(u.bytes) < smallFileShare*float64(outBytes) || (u.fresh && len(t.Columns) > 0) {
			small = append(small, u)
			continue
		}
		code := CodeLargeEnough
		if len(t.Columns) > 0 {
			code = CodeClustered
		}
		skipped[code] += int64(len(u.files))
	}
	enough := smallFilesAutomatic
	if trigger == OnDemand {
		enough = smallFilesOnDemand
	}
	if len(small) >= enough {
		return newGroup(small, "fragments", outBytes), true
	}
	for _, u := range small {
		code := CodeFewSmallFiles
		if !u.fresh {
			code = CodeClustered
		}
		skipped[code] += int64(len(u.files))
	}
	return Group{}, false
}

// unitsOf splits a partition's files into units, in a fixed order. A run of another layout is not of one piece.
func unitsOf(files []FileFacts, t Target, record LayoutRecord) []unit {
	runs := map[string][]FileFacts{}
	var units []unit
	for _, f := range files {
		run := RunOf(f.Path)
		if run != "" && record.Runs[run] == t.Fingerprint() {
			runs[run] = append(runs[run], f)
			continue
		}
		units = append(units, unit{files: []FileFacts{f}, bytes: f.Bytes, fresh: true})
	}
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		u := unit{files: runs[run]}
		for _, f := range u.files {
			u.bytes += f.Bytes
		}
		units = append(units, u)
	}
	return units
}

// outputBytes is the size to aim at for a partition's files.
func outputBytes(t Target, partitionBytes int64) int64 {
	if len(t.Columns) == 0 {
		return t.TargetBytes
	}
	return min(max(partitionBytes/clusterFilesPerPartition, clusterFileBytesMin), t.TargetBytes)
}

func newGroup(units []unit, rule string, outBytes int64) Group {
	g := Group{Rule: rule, TargetBytes: outBytes}
	for _, u := range units {
		for _, f := range u.files {
			g.Partition = f.Partition
			g.Files = append(g.Files, f.Path)
			g.Rows += f.Rows
			g.Bytes += f.Bytes
		}
	}
	slices.Sort(g.Files)
	return g
}

// boxesOf gives the files' boxes; a file without bounds covers everything.
func boxesOf(files []FileFacts, t Target) []Box {
	boxes := make([]Box, 0, len(files))
	for _, f := range files {
		b := Box{Rows: f.Rows}
		for _, c := range t.Columns {
			lower, upper := f.Lower[c.FieldID], f.Upper[c.FieldID]
			if _, known := f.Upper[c.FieldID]; !known {
				lower, upper = "", unboundedAbove
			}
			b.Lower, b.Upper = append(b.Lower, lower), append(b.Upper, upper)
		}
		boxes = append(boxes, b)
	}
	return boxes
}

// unboundedAbove sorts after every encoded bound in practice.
var unboundedAbove = strings.Repeat("\xff", 64)

// limit keeps the plan within planBytesMax, those groups first that hold most files.
func (p *Plan) limit() {
	slices.SortStableFunc(p.Groups, func(a, b Group) int { return len(b.Files) - len(a.Files) })
	total := int64(0)
	for i, g := range p.Groups {
		total += g.Bytes
		if total > planBytesMax && i > 0 {
			for _, over := range p.Groups[i:] {
				p.Skipped[CodeOverBudget] += int64(len(over.Files))
			}
			p.Groups = p.Groups[:i]
			return
		}
	}
}

// conclude sets verdict and reason from what was chosen and skipped.
func (p *Plan) conclude(f Facts) {
	seen := len(f.Files)
	if len(p.Groups) > 0 {
		chosen := 0
		for _, g := range p.Groups {
			chosen += len(g.Files)
		}
		p.Verdict = VerdictRun
		p.Reason = Reason{CodePlanned, fmt.Sprintf("%d of %d files in %d partitions are to be rewritten%s", chosen, seen, len(p.Groups), p.skippedText())}
		p.Overlap = p.measure(f)
		return
	}
	text := fmt.Sprintf("%d files seen, none chosen%s", seen, p.skippedText())
	for _, code := range []string{CodeNotParquet, CodeOutside, CodeListedTwice, CodeEncryptedFile} {
		if p.Skipped[code] == int64(seen) {
			p.Verdict, p.Reason = VerdictRefuse, Reason{code, text}
			return
		}
	}
	code := CodeWellLaidOut
	if p.Skipped[CodeFewSmallFiles] > 0 {
		code = CodeFewSmallFiles
	}
	p.Verdict, p.Reason = VerdictNothing, Reason{code, text}
}

// measure gives the overlap of the chosen files, group by group, weighted by rows.
func (p *Plan) measure(f Facts) float64 {
	byPath := make(map[string]FileFacts, len(f.Files))
	for _, file := range f.Files {
		byPath[file.Path] = file
	}
	var m mean
	for _, g := range p.Groups {
		files := make([]FileFacts, 0, len(g.Files))
		for _, path := range g.Files {
			files = append(files, byPath[path])
		}
		m.add(g.Rows, overlap(boxesOf(files, p.Target)))
	}
	return m.value()
}

func (p *Plan) skippedText() string {
	if len(p.Skipped) == 0 {
		return ""
	}
	parts := []string{}
	for _, code := range slices.Sorted(maps.Keys(p.Skipped)) {
		parts = append(parts, fmt.Sprintf("%d %s", p.Skipped[code], code))
	}
	return "; left alone: " + strings.Join(parts, ", ")
}

// within tells whether a path lies below a location. Both are in one spelling; see sameScheme.
func within(path, location string) bool {
	return strings.HasPrefix(sameScheme(path)+"/", strings.TrimRight(sameScheme(location), "/")+"/") && !strings.Contains(path, "/../")
}

// sameScheme spells s3a and s3n as s3, and file URIs with one form of slashes.
func sameScheme(path string) string {
	for _, alias := range []string{"s3a://", "s3n://"} {
		if rest, ok := strings.CutPrefix(path, alias); ok {
			return "s3://" + rest
		}
	}
	if rest, ok := strings.CutPrefix(path, "file:"); ok {
		return "/" + strings.TrimLeft(rest, "/")
	}
	return path
}
