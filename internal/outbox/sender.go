package outbox

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"catalogd/catalog"
)

// Limits of one message.
const (
	sendMax        = 10 * time.Second // with the answer
	connectMax     = 5 * time.Second
	answerBytesMax = 4 << 10 // read and thrown away, so that the connection can be used again
	idleMax        = 30 * time.Second
)

// Sender sends messages. It follows no redirects and no proxy: where a message goes was checked.
type Sender struct {
	client  *http.Client
	now     func() time.Time
	private bool // receivers need not be public
}

// NewSender makes a Sender. allowPrivate lets it connect to addresses that are not public. now may be nil.
func NewSender(allowPrivate bool, now func() time.Time) *Sender { //nolint:revive // a setting
	if now == nil {
		now = time.Now
	}
	dialer := &net.Dialer{Timeout: connectMax}
	if !allowPrivate {
		dialer.Control = onlyPublic
	}
	return &Sender{now: now, private: allowPrivate, client: &http.Client{
		Timeout:       sendMax,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: connectMax, ResponseHeaderTimeout: sendMax, IdleConnTimeout: idleMax,
			MaxIdleConnsPerHost: 2, MaxResponseHeaderBytes: 64 << 10, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
	}}
}

// Close lets the connections go that are kept for the next message.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// Refused is an answer that is no success.
type Refused struct{ Status int }

// Error is for the webhook's owner.
func (e Refused) Error() string { return "the receiver answered " + strconv.Itoa(e.Status) }

// forGood tells that the receiver will answer the same message so again.
func (e Refused) forGood() bool {
	return e.Status < http.StatusInternalServerError && e.Status != http.StatusRequestTimeout && e.Status != http.StatusTooEarly &&
		e.Status != http.StatusTooManyRequests
}

// SendEvent sends one event. The id of an event is that of its message, however often it is sent.
func (s *Sender) SendEvent(ctx context.Context, w catalog.Webhook, secret []byte, e catalog.EventRow) error {
	body, err := bodyOf(e)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be used")
	}
	if r.URL.Scheme != "https" && !s.private { // it was made under another setting
		return errors.New("the address does not begin with https: (the setting webhooks.allow_private allows it)")
	}
	at, id := s.now(), e.ID.String()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "catalogd-webhook")
	r.Header[headerID] = []string{id}
	r.Header[headerTimestamp] = []string{strconv.FormatInt(at.Unix(), 10)}
	r.Header[headerSignature] = []string{signature(secret, id, at, body)}
	answer, err := s.client.Do(r)
	if err != nil {
		return whyNotSent(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, answerBytesMax)) // what counts is the status
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return Refused{answer.StatusCode}
	}
	return nil
}

// whyNotSent says in few words why nothing arrived. The address, which may hold a token, is not in it, and nothing of what is at the
// address, or of this server's own network, which the texts of errors tell.
func whyNotSent(err error) error {
	var private errPrivate
	var wrapped *url.Error
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var host x509.HostnameError
	var connection *net.OpError
	switch {
	case errors.As(err, &private):
		return private
	case errors.As(err, &name):
		return fmt.Errorf("the name %s cannot be resolved", name.Name)
	case errors.As(err, &host), errors.As(err, &certificate):
		return errors.New("the receiver's certificate is not one that this server trusts")
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", sendMax)
	case errors.As(err, &wrapped) && wrapped.Timeout():
		return fmt.Errorf("no answer within %s", sendMax)
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the receiver refuses connections")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errors.New("the receiver ended the connection without an answer")
	case errors.As(err, &connection) && connection.Op == "dial":
		return errors.New("the receiver cannot be connected to")
	}
	return errors.New("the receiver gives no answer that this server understands: it is to speak HTTP/1.1, by TLS 1.2 or later when the address is https:")
}
