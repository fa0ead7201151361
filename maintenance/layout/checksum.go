package layout

import "fmt"

// Checksum is an order-independent 128-bit sum over rows: each row's content is hashed to 128 bits and the hashes are
// added. Two tables with equal rows, however ordered, have equal checksums.
type Checksum struct{ High, Low uint64 }

// String gives 32 hexadecimal digits.
func (c Checksum) String() string { return fmt.Sprintf("%016x%016x", c.High, c.Low) }
