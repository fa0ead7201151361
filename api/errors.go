package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"catalogd/internal/fault"
)

// wireError is how a kind of fault looks on the wire.
type wireError struct {
	status int
	// name is the specification's exception name; Java clients branch on it for some statuses.
	name string
	// retryAfter is sent as Retry-After. Only for faults that are raised before anything was touched: clients repeat
	// even a commit when they see the header.
	retryAfter time.Duration
}

// wireErrors is THE table: each kind of fault has one row.
var wireErrors = map[fault.Kind]wireError{
	fault.NoSuchWarehouse:   {status: 404, name: "NoSuchWarehouseException"},
	fault.NoSuchNamespace:   {status: 404, name: "NoSuchNamespaceException"},
	fault.NoSuchTable:       {status: 404, name: "NoSuchTableException"},
	fault.NoSuchView:        {status: 404, name: "NoSuchViewException"},
	fault.NoSuchFunction:    {status: 404, name: "NoSuchFunctionException"},
	fault.NotFound:          {status: 404, name: "NotFoundException"},
	fault.FileNotFound:      {status: 404, name: "NotFoundException"},
	fault.AlreadyExists:     {status: 409, name: "AlreadyExistsException"},
	fault.NamespaceNotEmpty: {status: 409, name: "NamespaceNotEmptyException"},
	fault.CommitConflict:    {status: 409, name: "CommitFailedException"},
	fault.CommitRace:        {status: 409, name: "CommitFailedException"},
	fault.CommitUnknown:     {status: 500, name: "CommitStateUnknownException"},
	fault.RepeatLanded:      {status: 500, name: "CommitStateUnknownException"}, // the domain answers it from what is kept
	fault.VersionConflict:   {status: 409, name: "CommitFailedException"},
	fault.BadRequest:        {status: 400, name: "BadRequestException"},
	fault.IllegalArgument:   {status: 400, name: "IllegalArgumentException"},
	fault.Validation:        {status: 400, name: "ValidationException"},
	fault.Unprocessable:     {status: 422, name: "UnprocessableEntityException"},
	fault.Unauthenticated:   {status: 401, name: "NotAuthorizedException"},
	fault.Forbidden:         {status: 403, name: "ForbiddenException"},
	fault.Unsupported:       {status: 406, name: "UnsupportedOperationException"},
	fault.TooLarge:          {status: 413, name: "PayloadTooLargeException"},
	fault.RateLimited:       {status: 429, name: "TooManyRequestsException", retryAfter: time.Second},
	fault.Busy:              {status: 503, name: "SlowDownException", retryAfter: time.Second},
	fault.Internal:          {status: 500, name: "InternalServerError"},
}

// WireError gives a kind's HTTP status and exception name. A kind without a row is Internal.
func WireError(kind fault.Kind) (status int, name string) {
	row, ok := wireErrors[kind]
	if !ok {
		row = wireErrors[fault.Internal]
	}
	return row.status, row.name
}

// HasWireError tells whether a kind has a row of its own; for the law that all have one.
func HasWireError(kind fault.Kind) bool {
	_, ok := wireErrors[kind]
	return ok
}

// ErrorBody is the specification's error answer. Code repeats the HTTP status: Java clients believe it and not the
// status.
type ErrorBody struct {
	Error ErrorModel `json:"error"`
}

// ErrorModel is the inner part of ErrorBody.
type ErrorModel struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    int    `json:"code"`
}

// messageBytesMax bounds an error's message in the answer and in the log: it may quote what the client sent.
const messageBytesMax = 4 << 10

// messageOf gives the message that the caller reads.
func messageOf(err error) string {
	message := fault.Message(err)
	if len(message) > messageBytesMax {
		message = strings.ToValidUTF8(message[:messageBytesMax], "") + "..."
	}
	return message
}

// statusClientGone is logged when the client left before there was an answer; nobody receives it.
const statusClientGone = 499

// fail renders an error and notes it for the request's log line.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	err = classify(r, err)
	event := eventOf(r.Context())
	event.err = err
	if rec, ok := w.(*recorder); ok && rec.status != 0 {
		// Half an answer is out. Cutting the connection is the only way left to say that it is not whole.
		panic(http.ErrAbortHandler)
	}
	if errors.Is(err, context.Canceled) && clientLeft(r.Context()) {
		event.clientGone = true
	}
	row, ok := wireErrors[fault.KindOf(err)]
	if !ok {
		row = wireErrors[fault.Internal]
	}
	after := row.retryAfter
	var knows interface{ RetryAfter() time.Duration }
	if errors.As(err, &knows) {
		after = knows.RetryAfter()
	}
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(after/time.Second)))
	}
	if row.status == http.StatusUnauthorized {
		challenge(w, r)
	}
	writeError(w, r, row.status, row.name, messageOf(err))
}

// classify gives a meaning to errors that have none but are known to HTTP: a body that is too long, and a read that
// ran out of time. A mutation that ran out of time stays a 500: whether it landed is not known here.
func classify(r *http.Request, err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return fault.Wrap(fault.TooLarge, err, "request body is longer than the %d bytes that this route takes", tooLong.Limit)
	}
	if errors.Is(err, context.DeadlineExceeded) && !mutates(r.Method) {
		return fault.Wrap(fault.Busy, err, "the answer was not ready in time; try again")
	}
	return err
}

// writeError writes an error answer. Answers to HEAD have no body.
func writeError(w http.ResponseWriter, r *http.Request, status int, name, message string) {
	h := w.Header()
	for _, header := range []string{"ETag", "Etag", "Content-Encoding", "Content-Length"} {
		delete(h, header)
	}
	h.Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		h.Del("Content-Type")
		w.WriteHeader(status)
		return
	}
	body, err := EncodeJSON(ErrorBody{Error: ErrorModel{Message: message, Type: name, Code: status}})
	if err != nil { // three strings and a number: cannot happen
		panic(err)
	}
	writeBody(w, r, status, body)
}
