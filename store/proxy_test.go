package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// cut says what a proxy does when a COMMIT comes by.
type cut int

const (
	pass        cut = iota // nothing
	loseRequest            // both sides are cut off before the server sees it
	loseAnswer             // the server works on it; the client is cut off and never hears
	hold                   // the client is cut off; the server gets it when the test says so
	loseEnd                // the client gets the answer but for its end, which says that the server is done
)

// proxy stands between the store and Postgres and knows the protocol as far as it needs to find a COMMIT: the statement,
// or the end of statements outside of a transaction that write an event.
type proxy struct {
	listener net.Listener
	target   string
	released chan struct{} // closed to let held COMMITs go on
	held     chan struct{} // one value for each COMMIT that is being held
	answered chan struct{} // one value for each COMMIT that Postgres answered while the client did not hear

	mu   sync.Mutex
	next cut // for one COMMIT
}

// startProxy gives a proxy to the server of a database and the database's URL through it.
func startProxy(t *testing.T, database string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		listener: listener, target: u.Host,
		released: make(chan struct{}), held: make(chan struct{}, 16), answered: make(chan struct{}, 16),
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		group.Wait()
	})
	u.Host = listener.Addr().String()
	return p, u.String()
}

// atNextCommit sets what happens to the next COMMIT.
func (p *proxy) atNextCommit(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = c
}

func (p *proxy) take() cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.next
	p.next = pass
	return c
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	l := &link{client: client, server: server, back: make(chan struct{}), done: make(chan struct{}, 1), texts: map[string]string{}}
	// Whichever side ends ends the other.
	go func() {
		defer close(l.back)
		l.answers()
		client.Close()
	}()
	_ = p.forward(l)
	client.Close()
	server.Close()
	<-l.back
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	back           chan struct{} // closed when the server's answers have ended
	deaf           atomic.Bool   // the client gets no more answers
	endless        atomic.Bool   // the client gets no more ends of answers
	done           chan struct{} // a value when the server has done a statement

	texts map[string]string // of prepared statements
	begun bool              // a transaction
	tells bool              // the statements that are on their way, outside of a transaction, write an event
}

// answers copies the server's messages.
func (l *link) answers() {
	for {
		header := make([]byte, 5)
		if _, err := io.ReadFull(l.server, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(l.server, body); err != nil {
			return
		}
		switch {
		case l.deaf.Load():
			continue // and heard to the end
		case header[0] == 'Z' && l.endless.Load():
			l.client.Close()
		case header[0] == 'C':
			select {
			case l.done <- struct{}{}:
			default:
			}
		}
		_, _ = l.client.Write(append(header, body...))
	}
}

// commits tells that a message makes the server commit.
func (l *link) commits(kind byte, body []byte) bool {
	parts := bytes.SplitN(body, []byte{0}, 3)
	switch kind {
	case 'P': // prepare: name, text
		l.texts[string(parts[0])] = string(parts[1])
	case 'B': // run: portal, name
		l.sees(l.texts[string(parts[1])])
	case 'S': // the end
		if l.tells {
			l.tells = false
			return true
		}
	case 'Q':
		ends := l.sees(string(parts[0]))
		ends, l.tells = ends || l.tells, false
		return ends
	}
	return false
}

// sees follows transactions, and tells that a text ends one.
func (l *link) sees(text string) bool {
	text = strings.ToLower(text)
	switch {
	case strings.HasPrefix(text, "begin"):
		l.begun = true
	case strings.HasPrefix(text, "commit"), strings.HasPrefix(text, "rollback"):
		l.begun = false
		return strings.HasPrefix(text, "commit")
	}
	l.tells = !l.begun && (l.tells || strings.Contains(text, "into events"))
	return false
}

var errCut = errors.New("cut")

// forward copies the client's messages, one at a time.
func (p *proxy) forward(l *link) error {
	first := true // the start-up message has no type
	for {
		header := make([]byte, 5)
		if first {
			header = header[:4]
		}
		if _, err := io.ReadFull(l.client, header); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(header[len(header)-4:])-4)
		if _, err := io.ReadFull(l.client, body); err != nil {
			return err
		}
		if !first && l.commits(header[0], body) {
			if err := p.commit(l, append(header, body...)); err != nil {
				return err
			}
			continue
		}
		first = false
		if _, err := l.server.Write(append(header, body...)); err != nil {
			return err
		}
	}
}

func (p *proxy) commit(l *link, message []byte) error {
	switch p.take() {
	case loseRequest:
		return errCut
	case loseAnswer: // a client that is cut off before would have the server cancel it
		l.deaf.Store(true)
		return p.finish(l, message)
	case loseEnd:
		l.endless.Store(true)
		return p.finish(l, message)
	case hold:
		if message[0] == 'S' {
			if err := l.awaitStatement(); err != nil {
				return err
			}
		}
		l.client.Close()
		p.held <- struct{}{}
		<-p.released
		return p.finish(l, message)
	}
	_, err := l.server.Write(message)
	return err
}

// awaitStatement waits until the server has done what it got, by having it send its answers.
func (l *link) awaitStatement() error {
	select {
	case <-l.done:
	default:
	}
	flush := []byte{'H', 0, 0, 0, 4}
	if _, err := l.server.Write(flush); err != nil {
		return err
	}
	select {
	case <-l.done:
		return nil
	case <-l.back:
		return errCut
	}
}

// finish sends the COMMIT, and a goodbye after it: Postgres closes the connection when it has done both, so the commit is
// over when the answers end.
func (p *proxy) finish(l *link, message []byte) error {
	goodbye := []byte{'X', 0, 0, 0, 4}
	if _, err := l.server.Write(append(message, goodbye...)); err != nil {
		return err
	}
	<-l.back
	p.answered <- struct{}{}
	return errCut
}
