// Package crash lets a test kill the process at a named point. Only a build with the tag crashpoints can: in every
// other build Point is an empty function that the compiler removes.
//
// With the tag, CATALOGD_CRASH_POINT=name kills the process with SIGKILL (nothing is flushed, no deferred call runs)
// when Point(name) is reached; name:3 means the third time. CATALOGD_CRASH_LOG names a file to which every point
// that is reached is appended, one name a line, so that a test can learn which points a run passes.
// CATALOGD_CRASH_PIDFILE makes another process the victim: the one whose pid is the file's first line, as in
// Postgres' postmaster.pid, with all its children. Then this process goes on.
//
// CATALOGD_CRASH_POINT=@file reads the wish from a file at each point, so that a running process can be given one:
// the first line is the point's name, the second, when there is one, a pid file as above, or the word stop: then this
// process hangs, as by SIGSTOP, and goes on at SIGCONT. The file is removed before: a wish is granted once.
package crash
