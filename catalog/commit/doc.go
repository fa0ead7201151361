// Package commit is the commit engine of tables and views: pure functions from metadata JSON and a request to new
// metadata JSON.
//
// It works on the document's text. Members that no update touches are copied byte by byte, so unknown fields survive
// at every level; snapshots are spliced in and out as text; only the small parts (schemas, specs, orders, refs,
// properties, counters) are parsed. Semantics are those of Iceberg's specification and Java reference server; where
// they are silent or wrong, docs/decisions says what was chosen. Nothing here knows time, randomness or the network:
// they come in as arguments.
package commit
