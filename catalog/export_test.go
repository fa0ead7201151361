package catalog

// SetTransactionBytes shortens what a transaction may hold, for tests of what happens then.
func (s *Service) SetTransactionBytes(n int64) { s.transactionBytes = n }

// Remedies is remedies, for tests.
func Remedies(principal string, lacks []Lack, roles []HeldRole) []string {
	return remedies(principal, lacks, roles)
}
