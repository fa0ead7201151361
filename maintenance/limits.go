package maintenance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"time"

	"catalogd/internal/fault"
	"catalogd/maintenance/manifest"
)

// Limits of what one plan reads and holds of a table; those of single files are package manifest's. docs/operations.md
// promises them.
const (
	planEntriesMax  = 2_000_000 // entries of all manifests, deleted ones too
	planUnpackedMax = 4 << 30   // bytes of them
	planHeldMax     = 256 << 20 // bytes of what is kept of the live ones: see heldBytes
	fileFactsBytes  = 360       // of a FileFacts and its two maps, without texts
	boundBytes      = 2 * 40    // of a column's bounds in the maps
	dryRunsAtOnce   = 2         // of a server
)

// Deadlines bound how long one table can keep a worker busy; 0 means the default.
type Deadlines struct {
	Look time.Duration // of a look at a table
	Plan time.Duration // of a job's planning
	Job  time.Duration // of one claim of a job
}

const (
	lookTimeMax = 5 * time.Minute
	planTimeMax = 15 * time.Minute
	jobTimeMax  = 12 * time.Hour
)

func (d Deadlines) orDefault() Deadlines {
	if d.Look == 0 {
		d.Look = lookTimeMax
	}
	if d.Plan == 0 {
		d.Plan = planTimeMax
	}
	if d.Job == 0 {
		d.Job = jobTimeMax
	}
	return d
}

// Why a table's work was cut off.
var (
	errLookTooLong = errors.New("the look at the table's manifests took too long")
	errPlanTooLong = errors.New("reading the table's manifests took too long")
	errJobTooLong  = errors.New("the job took too long")
	errTableGone   = errors.New("the table was dropped")
	errDefect      = errors.New("defect in the server")
)

// Reason codes of tables that are not maintained because of what their files are like.
const (
	CodeTooLarge = "too-large" // a named limit was passed
	CodeTooLong  = "too-long"  // a deadline was passed
	// CodeMissingFile: a file that the table's current state names is not in the store.
	CodeMissingFile = "missing-file"
)

// missingFile gives the name of the table's file whose absence an error is about. The store said so: it is final.
func missingFile(err error) (name string, missing bool) {
	var at *fs.PathError
	if !errors.Is(err, fs.ErrNotExist) || !fault.Is(err, fault.FileNotFound) || !errors.As(err, &at) {
		return "", false // the worker's own files are not the table's
	}
	return at.Path, true
}

// refusedFor gives the reason when an error says that the table's files are more than a worker reads, or are not what
// they should be: trying again soon would not help.
func refusedFor(err error) (Reason, bool) {
	if name, missing := missingFile(err); missing {
		return Reason{CodeMissingFile, fmt.Sprintf("%s is gone from the store although the table's current state names it: whoever reads the "+
			"table fails too. Bring it back from the bucket's versions or a backup, or roll the table back to a snapshot that does not name it", name)}, true
	}
	switch {
	case errors.Is(err, errLookTooLong):
		return Reason{CodeTooLong, errLookTooLong.Error()}, true
	case errors.Is(err, errPlanTooLong):
		return Reason{CodeTooLong, errPlanTooLong.Error()}, true
	case errors.Is(err, manifest.ErrBroken):
		return Reason{CodeUnreadable, explain(err)}, true
	case fault.Is(err, fault.TooLarge):
		return Reason{CodeTooLarge, explain(err)}, true
	}
	return Reason{}, false
}

// heldBytes is about what the facts take in memory.
func (f FileFacts) heldBytes() int64 {
	n := int64(fileFactsBytes + len(f.Path) + len(f.Partition))
	for _, bounds := range []map[int]string{f.Lower, f.Upper} {
		for _, b := range bounds {
			n += int64(boundBytes/2 + len(b))
		}
	}
	return n
}

// safely makes a panic an error: whatever a table's files hold, the worker goes on with the others.
func (w *Worker) safely(ctx context.Context, what string, do func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			w.log.ErrorContext(ctx, "the maintenance worker panicked", "doing", what, "cause", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %s: %v", errDefect, what, cause)
		}
	}()
	return do()
}
