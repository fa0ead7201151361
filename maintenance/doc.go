// Package maintenance keeps tables healthy. A planner decides from metadata alone what a table needs and says why it
// needs nothing; a worker claims jobs from the database under a lease, rewrites files beside the table and commits
// through catalog.Service as the principal system:maintenance, like any other client.
//
// What holds at every moment:
//
//   - A file is recorded in the database before it is written, so a job that dies leaves nothing that nobody knows.
//   - A commit carries the job's lease epoch: a worker that lost its lease cannot commit, however late it wakes.
//   - Files are removed only when it is certain that no commit names them; an unknown outcome removes nothing.
//   - A rewrite replaces files by name, never by partition. Before every try each replaced file is looked up in the
//     newest snapshot; a group of which a file is gone, or got a delete, is given up and the rest goes on.
//   - Planning is a fixed point: what a run leaves behind is not chosen by the next one.
//
// plan_*.go and settings.go are pure: values in, a decision with its reason out.
package maintenance
