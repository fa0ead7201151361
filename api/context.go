package api

import (
	"context"

	"github.com/go-chi/chi/v5"
)

// requestContext is the context of a request: its event, its route and the time that its endpoint gives it are in one
// place. A chain of contexts would copy the request at each link, with every request.
type requestContext struct {
	// Context is net/http's at first and the endpoint's, which has a deadline, before anything else may hold it.
	context.Context //nolint:containedctx // this one is that one with more values
	client          context.Context
	event           event
	route           chi.Context
}

type eventKey struct{}

// Value implements context.Context.
func (c *requestContext) Value(key any) any {
	switch key {
	case eventKey{}:
		return &c.event
	case chi.RouteCtxKey:
		return &c.route
	}
	return c.Context.Value(key)
}

// clientLeft tells that the client of a request has gone, whatever time the request itself still has.
func clientLeft(ctx context.Context) bool {
	if c, ok := ctx.(*requestContext); ok {
		ctx = c.client
	}
	return ctx.Err() != nil
}

// eventOf gives the request's event; an empty one, which nobody reads, outside of a Server.
func eventOf(ctx context.Context) *event {
	if e, ok := ctx.Value(eventKey{}).(*event); ok {
		return e
	}
	return &event{operation: operationUnmatched}
}
