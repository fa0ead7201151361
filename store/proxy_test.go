package store

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// cut says what a proxy does when a COMMIT comes by.
type cut int

const (
	pass        cut = iota // nothing
	loseRequest            // both sides are cut off before the server sees it
	loseAnswer             // the server works on it; the client is cut off and never hears
	hold                   // the client is cut off; the server gets it when the test says so
)

// proxy stands between the store and Postgres and knows the protocol as far as it needs to find a COMMIT.
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
	// Whichever side ends ends the other.
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	_ = p.forward(client, server, back)
	client.Close()
	server.Close()
	<-back
}

var errCut = errors.New("cut")

// forward copies the client's messages, one at a time.
func (p *proxy) forward(client, server net.Conn, back chan struct{}) error {
	first := true // the start-up message has no type
	for {
		header := make([]byte, 5)
		if first {
			header = header[:4]
		}
		if _, err := io.ReadFull(client, header); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(header[len(header)-4:])-4)
		if _, err := io.ReadFull(client, body); err != nil {
			return err
		}
		if !first && header[0] == 'Q' && strings.HasPrefix(strings.ToLower(string(body)), "commit") {
			if err := p.commit(client, server, append(header, body...), back); err != nil {
				return err
			}
			continue
		}
		first = false
		if _, err := server.Write(append(header, body...)); err != nil {
			return err
		}
	}
}

func (p *proxy) commit(client, server net.Conn, message []byte, back chan struct{}) error {
	switch p.take() {
	case loseRequest:
		return errCut
	case loseAnswer:
		return p.finish(client, server, message, back)
	case hold:
		client.Close()
		p.held <- struct{}{}
		<-p.released
		return p.finish(client, server, message, back)
	}
	_, err := server.Write(message)
	return err
}

// finish sends the COMMIT without a client that could hear, and a goodbye after it: Postgres closes the connection
// when it has done both, so the commit is over when the answers end.
func (p *proxy) finish(client, server net.Conn, message []byte, back chan struct{}) error {
	client.Close()
	goodbye := []byte{'X', 0, 0, 0, 4}
	if _, err := server.Write(append(message, goodbye...)); err != nil {
		return err
	}
	<-back
	p.answered <- struct{}{}
	return errCut
}
