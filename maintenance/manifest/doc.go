// Package manifest reads manifest lists and manifests, which belong to whoever may write a table: nothing in them is
// trusted. Before iceberg-go's decoder sees a byte, the file's container is opened, its schema is held against what
// the decoder relies on, and every record is walked without building anything from it. So what a file can cost is
// bounded by the limits of this package, and a broken one is an error that names it. Whatever the decoder stumbles over
// all the same ends as such an error too.
package manifest
