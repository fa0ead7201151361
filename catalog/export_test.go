package catalog

import "time"

// SetWriteDeadline shortens what a commit may take once its metadata file is being written.
func (s *Service) SetWriteDeadline(d time.Duration) { s.writeDeadline = d }

// SetTransactionBytes shortens what a transaction may hold, for tests of what happens then.
func (s *Service) SetTransactionBytes(n int64) { s.transactionBytes = n }

// Remedies is remedies, for tests.
func Remedies(principal string, lacks []Lack, roles []HeldRole) []string {
	return remedies(principal, lacks, roles)
}
