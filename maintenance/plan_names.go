package maintenance

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// dataFileName is the form of our data files' names: the job, the claim's epoch and a counter. The job tells which
// run wrote a file, the epoch keeps two workers that hold one job after the other apart.
var dataFileName = regexp.MustCompile(`^catalogd-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-[0-9]+-[0-9]+\.parquet$`)

// DataFileName names the n-th data file of a claim.
func DataFileName(l Lease, n int) string {
	return fmt.Sprintf("catalogd-%s-%d-%05d.parquet", l.JobID, l.Epoch, n)
}

// RunOf gives the id of the job that wrote a data file, "" when none of ours did.
func RunOf(path string) string {
	m := dataFileName.FindStringSubmatch(path[strings.LastIndexByte(path, '/')+1:])
	if m == nil {
		return ""
	}
	return m[1]
}

// manifestName names a manifest, manifestListName a manifest list: unique for each try of a commit.
func manifestName(l Lease, try uuid.UUID, n int) string {
	return fmt.Sprintf("%s-%d-%s-m%d.avro", l.JobID, l.Epoch, try, n)
}

func manifestListName(l Lease, snapshotID int64, try uuid.UUID) string {
	return fmt.Sprintf("snap-%d-%d-%s.avro", snapshotID, l.Epoch, try)
}
