package maintenance

import "catalogd/internal/fault"

// Kind names a sort of work.
type Kind string

// The kinds that this server runs.
const Compaction Kind = "compaction"

// kinds is the table of kinds: a new kind is a new row.
var kinds = []Kind{Compaction}

// kindsKnown are names that the command line documents and that a later version will run.
var kindsKnown = []Kind{"expire-snapshots", "remove-orphans", "rewrite-manifests"}

// ParseKind checks a kind's name; "" is Compaction.
func ParseKind(name string) (Kind, error) {
	if name == "" {
		return Compaction, nil
	}
	for _, k := range kinds {
		if string(k) == name {
			return k, nil
		}
	}
	for _, k := range kindsKnown {
		if string(k) == name {
			return "", fault.New(fault.Unsupported, "maintenance job %q is not built yet; this server runs: %s", name, Compaction)
		}
	}
	return "", fault.New(fault.BadRequest, "unknown maintenance job %q; this server runs: %s", name, Compaction)
}
