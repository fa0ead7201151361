// Package layout rewrites the rows of one partition into Parquet files whose row groups prune: rows that are near each
// other in the clustering columns end up in the same row group.
//
// Cluster is an external range-bucket sort in two passes. A sample of the clustering columns gives boundaries (package
// zorder). The first pass reads the inputs, computes each row's key and spills the row to one of a few buckets, each a
// contiguous range of keys. The second pass loads one bucket at a time, sorts it, cuts it into row groups and writes
// them. Since buckets are ranges, their order is the order of the output and nothing is merged.
//
// A column travels as a vec (vec.go): bare values, or codes into a dictionary that the whole job shares when a column has
// few distinct values. The codes of such a column are what is routed, spilled, sorted and at last written as dictionary
// indices; the values themselves are touched once per row group.
//
// The package knows Parquet, Arrow and schemas. It knows nothing of catalogs, commits or object stores: its caller hands
// in how to open inputs and create outputs.
package layout
