// Package fault holds the meanings that an error can have in this program. It is a leaf: it imports nothing of
// ours, and every package may import it. A kind is what programs branch on; the message is what a caller reads;
// the cause is what an operator reads in the log. HTTP statuses and the wire's type names live in api/errors.go.
package fault

import (
	"errors"
	"fmt"
)

// Kind is the meaning of an error. Every kind has one row in api/errors.go.
type Kind string

// The kinds. Names follow the Iceberg REST specification's exceptions where it has one.
const (
	NoSuchWarehouse   Kind = "no-such-warehouse"
	NoSuchNamespace   Kind = "no-such-namespace"
	NoSuchTable       Kind = "no-such-table"
	NoSuchView        Kind = "no-such-view"
	NoSuchFunction    Kind = "no-such-function"
	NotFound          Kind = "not-found"           // any other thing: principal, role, job, route
	FileNotFound      Kind = "file-not-found"      // a metadata file that the pointer names is gone
	AlreadyExists     Kind = "already-exists"      // name taken
	NamespaceNotEmpty Kind = "namespace-not-empty" // drop refused
	CommitConflict    Kind = "commit-conflict"     // a requirement failed; the client must refresh
	CommitRace        Kind = "commit-race"         // the pointer moved under us; the server may retry
	CommitUnknown     Kind = "commit-unknown"      // nobody can tell whether the commit landed
	RepeatLanded      Kind = "repeat-landed"       // a request of the same idempotency key came to its end before
	VersionConflict   Kind = "version-conflict"    // an entity version did not match
	BadRequest        Kind = "bad-request"         // malformed: not JSON, wrong type, missing field
	IllegalArgument   Kind = "illegal-argument"    // well-formed but refused by a rule of the specification
	Validation        Kind = "validation"          // well-formed, but does not fit the table
	Unprocessable     Kind = "unprocessable"       // a key both set and removed
	Unauthenticated   Kind = "unauthenticated"
	Forbidden         Kind = "forbidden"
	Unsupported       Kind = "unsupported" // the specification knows it, this server does not do it
	TooLarge          Kind = "too-large"   // a named limit was passed
	RateLimited       Kind = "rate-limited"
	Busy              Kind = "busy" // refused before anything was touched; a later try may work
	Internal          Kind = "internal"
)

// Error carries a kind, a message for the caller and, for the operator only, a cause.
type Error struct {
	Kind    Kind
	Message string
	Cause   error
}

// New makes an error of a kind. The message names the thing and, where there is one, the remedy.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap makes an error of a kind whose cause goes to the log and never to the caller.
func Wrap(kind Kind, cause error, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Cause: cause}
}

// Error gives message and cause; for logs. Callers are shown Message alone.
func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// KindOf gives the kind of the outermost Error in err's chain, Internal when there is none, "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Is tells whether err is of the kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }

// Message gives what a caller may read: the outermost Error's message, or a fixed text for foreign errors.
func Message(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "internal error; the server's log has the cause under this request's id"
}
