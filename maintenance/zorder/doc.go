// Package zorder turns the values of a few columns into one sort key that keeps rows near each other when they are near
// in every one of those columns.
//
// The steps are: an order-preserving form of each value (order.go), its rank among a sample of the column's values
// (rank.go, build.go), and a curve through the grid of ranks (curve.go). Ranks rather than raw bits are what make the
// curve work: a column of a hundred small integers has its varying bits at the very bottom of a 64-bit word, so a curve
// over raw bits degenerates into a sort by the other column.
//
// The boundaries that a table was clustered with are a layout version: they are kept as JSON, so that a later run over
// new rows uses the same curve.
//
// The package is pure: no IO, no clock, no randomness, no columnar library. Whoever reads files hands in plain values.
package zorder
