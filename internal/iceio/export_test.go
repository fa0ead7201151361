package iceio

import "time"

// SetRetryDelayMax makes a test's retries quick.
func (s *Store) SetRetryDelayMax(d time.Duration) { s.retryDelayMax = d }
