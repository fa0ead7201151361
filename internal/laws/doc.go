// Package laws holds the rules of this code base as tests: who may import whom, what stays pure, how big things may
// get, what names mean nothing, where SQL lives, and that tables which must agree do. It has no code that runs.
//
// The laws read source files with go/parser instead of asking the go command, because the test cache notices an edit
// of a file that a test read and would serve an old answer for one that it did not. Each failure says why the law is
// there. Allow-lists carry a date and may only shrink.
package laws
