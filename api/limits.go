package api

import (
	"context"
	"net/http"
	"time"
)

// mutates tells whether a method may change something. The disconnect of a client never cancels a mutation: the
// client cannot know how far it came, and half of the work would be done for nothing.
func mutates(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return true
}

// limit bounds a request's body and time as its endpoint's row says.
func limit(e Endpoint, next HandlerFunc) HandlerFunc {
	bytesMax, deadline := e.BodyBytesMax, e.Deadline
	if bytesMax == 0 {
		bytesMax = BodyBytesDefault
	}
	if deadline == 0 {
		deadline = DeadlineDefault
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		c := r.Context().(*requestContext) // a Server's, and still ours alone
		ctx := c.client
		if mutates(r.Method) {
			ctx = context.WithoutCancel(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, deadline)
		defer cancel()
		c.Context = ctx
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = http.MaxBytesReader(w, r.Body, bytesMax)
		}
		return next(w, r)
	}
}

// Limits of connections. A slow client may hold a connection, never for ever.
const (
	headerBytesMax    = 64 << 10
	headerTimeoutMax  = 10 * time.Second
	requestTimeoutMax = 5 * time.Minute
	answerTimeoutMax  = 10 * time.Minute
	idleTimeoutMax    = 2 * time.Minute
	// answerPieceMax is the time for each piece of an answer to leave, and answerTimeoutMax that of all of it. A piece is
	// of answerPieceBytes; behind one that left within answerPieceQuick it is twice as large as that, up to
	// answerPieceBytesMax: each piece has its price, and whoever reads quickly is not cut for its size.
	answerPieceMax      = 30 * time.Second
	answerPieceBytes    = 256 << 10
	answerPieceQuick    = time.Second
	answerPieceBytesMax = 1 << 20
	// answerUntimedBytes go out without a time of their own: the connection's buffers take them.
	answerUntimedBytes = 64 << 10
)

// NewHTTPServer makes the net/http server for a handler, with limits on everything that a client controls.
func NewHTTPServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		MaxHeaderBytes:    headerBytesMax,
		ReadHeaderTimeout: headerTimeoutMax,
		ReadTimeout:       requestTimeoutMax,
		WriteTimeout:      answerTimeoutMax,
		IdleTimeout:       idleTimeoutMax,
	}
}
