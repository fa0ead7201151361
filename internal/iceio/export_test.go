package iceio

import "time"

// SetRetryDelayMax makes a test's retries quick.
func (s *Store) SetRetryDelayMax(d time.Duration) { s.retryDelayMax = d }

// Described is described, for errors that no test can make a file system give.
var Described = described
