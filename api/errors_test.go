package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

// The names are the specification's; clients branch on them.
func TestField_C011_ErrorsHaveTheSpecificationsTypesAndCodes(t *testing.T) {
	for kind, want := range map[fault.Kind]ErrorModel{
		fault.NoSuchWarehouse:   {Code: 404, Type: "NoSuchWarehouseException"},
		fault.NoSuchNamespace:   {Code: 404, Type: "NoSuchNamespaceException"},
		fault.NoSuchTable:       {Code: 404, Type: "NoSuchTableException"},
		fault.NoSuchView:        {Code: 404, Type: "NoSuchViewException"},
		fault.FileNotFound:      {Code: 404, Type: "NotFoundException"},
		fault.AlreadyExists:     {Code: 409, Type: "AlreadyExistsException"},
		fault.NamespaceNotEmpty: {Code: 409, Type: "NamespaceNotEmptyException"},
		fault.CommitConflict:    {Code: 409, Type: "CommitFailedException"},
		fault.CommitRace:        {Code: 409, Type: "CommitFailedException"},
		fault.CommitUnknown:     {Code: 500, Type: "CommitStateUnknownException"},
		fault.BadRequest:        {Code: 400, Type: "BadRequestException"},
		fault.IllegalArgument:   {Code: 400, Type: "IllegalArgumentException"},
		fault.Validation:        {Code: 400, Type: "ValidationException"},
		fault.Unprocessable:     {Code: 422, Type: "UnprocessableEntityException"},
		fault.Unauthenticated:   {Code: 401, Type: "NotAuthorizedException"},
		fault.Forbidden:         {Code: 403, Type: "ForbiddenException"},
		fault.Unsupported:       {Code: 406, Type: "UnsupportedOperationException"},
		fault.Busy:              {Code: 503, Type: "SlowDownException"},
		fault.Internal:          {Code: 500, Type: "InternalServerError"},
		fault.Kind("invented"):  {Code: 500, Type: "InternalServerError"},
	} {
		ts := newTestServer(t, publicRow("GET", "/x", func(http.ResponseWriter, *http.Request) error {
			return fmt.Errorf("load: %w", fault.Wrap(kind, errors.New("hidden cause"), "what %s", "happened"))
		}))
		w := ts.send(t, "GET", "/x", "")
		got := wireErrorOf(t, w)
		want.Message = "what happened"
		if got != want {
			t.Errorf("%s: %+v, want %+v", kind, got, want)
		}
		if retry := w.Header().Get("Retry-After"); (retry != "") != (kind == fault.Busy) {
			t.Errorf("%s: Retry-After is %q", kind, retry)
		}
	}
}

func TestFail_ForeignErrorsTellNothing(t *testing.T) {
	ts := newTestServer(t, publicRow("POST", "/x", func(http.ResponseWriter, *http.Request) error {
		return errors.New("pq: password of admin is hunter2")
	}))
	w := ts.send(t, "POST", "/x", "")
	if e := wireErrorOf(t, w); w.Code != 500 || strings.Contains(e.Message, "hunter2") {
		t.Errorf("answer is %d %+v", w.Code, e)
	}
}

// A read that ran out of time can be tried again; a mutation that did is a 500, because it may have landed.
func TestFail_OutOfTime(t *testing.T) {
	late := func(http.ResponseWriter, *http.Request) error {
		return fmt.Errorf("query: %w", context.DeadlineExceeded)
	}
	ts := newTestServer(t, publicRow("GET", "/x", late), publicRow("POST", "/x", late))
	if w := ts.send(t, "GET", "/x", ""); w.Code != 503 {
		t.Errorf("GET: %d", w.Code)
	}
	if w := ts.send(t, "POST", "/x", ""); w.Code != 500 || w.Header().Get("Retry-After") != "" {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestFail_HEADHasNoBody(t *testing.T) {
	ts := newTestServer(t, publicRow("HEAD", "/x", func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.NoSuchTable, "Table does not exist: a.b")
	}))
	w := ts.send(t, "HEAD", "/x", "")
	if w.Code != 404 || w.Body.Len() != 0 || w.Header().Get("Content-Length") != "" || w.Header().Get("Content-Type") != "" {
		t.Errorf("HEAD: %d %q %v", w.Code, w.Body, w.Header())
	}
}

// A message may quote what the client sent; ten megabytes of it are not sent back, and not logged.
func TestFail_LongMessagesAreCut(t *testing.T) {
	ts := newTestServer(t, publicRow("POST", "/x", func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.BadRequest, "location %q is refused", strings.Repeat("表", 1<<20))
	}))
	w := ts.send(t, "POST", "/x", "")
	message := wireErrorOf(t, w).Message
	if len(message) > messageBytesMax+3 || !strings.HasPrefix(message, "location \"表") || !strings.HasSuffix(message, "表...") {
		t.Errorf("the message has %d bytes and ends in %q", len(message), message[max(0, len(message)-9):])
	}
	if reason, _ := ts.lastLine(t)["reason"].(string); reason != message {
		t.Errorf("the log's reason has %d bytes", len(reason))
	}
}
