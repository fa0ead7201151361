package layout

import (
	"context"

	"catalogd/internal/fault"
)

// Cluster rewrites the job's inputs into clustered outputs. On error nothing is left: outputs are aborted, or removed
// when they were closed already, and the spill folder is gone. Refusals are of kind fault.Unsupported (an input can't
// be mapped exactly) or fault.Validation (a column can't be clustered by).
func Cluster(ctx context.Context, job Job) (Result, error) {
	return Result{}, fault.New(fault.Unsupported, "clustering is not built yet")
}

// Copy decodes the inputs and encodes them with the same writer settings in the order of the inputs. It is what Cluster's
// speed and size are compared with.
func Copy(ctx context.Context, job Job) (Result, error) {
	return Result{}, fault.New(fault.Unsupported, "copying is not built yet")
}
