package maintenance

import "catalogd/internal/fault"

// Kind names a sort of work.
type Kind string

// The kinds that this server runs. A purge is begun by dropping a table and by nothing else.
const (
	Compaction Kind = "compaction"
	Purge      Kind = "purge"
)

// kindRow says how a kind's jobs are run.
type kindRow struct {
	name Kind
	// needsTable tells that the table must be there.
	needsTable bool
	// onDemand tells that people may ask for a run.
	onDemand bool
	// attemptsMax bounds claims of one job: a job that kills its worker must not do so for ever.
	attemptsMax int
	begin       func(w *Worker, claim *Claim) task
	// remains says, for kinds whose attempts leave something done though they fail, what was done and what is left; nil
	// for kinds that do all or nothing.
	remains func(Job, Outcome) string
}

// keeps gives what an attempt that came so far leaves done; nil for kinds that do all or nothing.
func (k kindRow) keeps(reached Outcome) *Outcome {
	if k.remains == nil {
		return nil
	}
	return &reached
}

// kinds is the table of kinds: a new kind is a new row.
func kinds() []kindRow {
	return []kindRow{
		{Compaction, true, true, 3, func(w *Worker, claim *Claim) task { return w.compaction(claim) }, nil},
		{Purge, false, false, 8, func(w *Worker, claim *Claim) task { return w.purge(claim) }, purgeRemains},
	}
}

// rowOf gives a kind's row; false for a kind of another version of this program.
func rowOf(k Kind) (kindRow, bool) {
	for _, row := range kinds() {
		if row.name == k {
			return row, true
		}
	}
	return kindRow{}, false
}

// KindNames gives the kinds whose jobs this version can run.
func KindNames() []string {
	var names []string
	for _, row := range kinds() {
		names = append(names, string(row.name))
	}
	return names
}

// kindsKnown are names that the command line documents and that a later version will run.
var kindsKnown = []Kind{"expire-snapshots", "remove-orphans", "rewrite-manifests"}

// ParseKind checks the name of a kind that somebody asks for; "" is Compaction.
func ParseKind(name string) (Kind, error) {
	if name == "" {
		return Compaction, nil
	}
	if row, ok := rowOf(Kind(name)); ok && row.onDemand {
		return row.name, nil
	}
	if Kind(name) == Purge {
		return "", fault.New(fault.BadRequest, "a purge is begun by dropping a table with purgeRequested=true")
	}
	for _, k := range kindsKnown {
		if string(k) == name {
			return "", fault.New(fault.Unsupported, "maintenance job %q is not built yet; this server runs: %s", name, Compaction)
		}
	}
	return "", fault.New(fault.BadRequest, "unknown maintenance job %q; this server runs: %s", name, Compaction)
}
