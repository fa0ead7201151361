package catalog

import "time"

// SetWriteDeadline shortens what a commit may take once its metadata file is being written.
func (s *Service) SetWriteDeadline(d time.Duration) { s.writeDeadline = d }
